"""What a person sees while a run goes on."""

import io

import pytest
from rich.console import Console

from tidemark.cli import output as progress
from tidemark.cli.output import Bar


def terminal(**options: object) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=160, force_terminal=True, **options), file  # type: ignore[arg-type]


@pytest.mark.parametrize("total", [None, 0, 1, 7])
def test_a_terminal_shows_every_stage_and_how_far_it_is(total: int | None) -> None:
    console, file = terminal()
    with Bar(console, "handbook", quiet=False) as bar:
        for stage in ("crawl", "process", "sweep"):
            bar.stage(stage, total)
            bar.advance(detail="file:///one.md")
            bar._progress.refresh()
    shown = file.getvalue()
    for text in ("handbook", "crawl", "process", "sweep", "file:///one.md"):
        assert text in shown
    assert f"1/{'?' if total is None else total}" in shown


def test_a_total_that_is_not_known_is_not_the_one_before() -> None:
    console, file = terminal()
    with Bar(console, "handbook", quiet=False) as bar:
        bar.stage("process", 41)
        bar.stage("sweep", None)
        file.truncate(0)
        bar._progress.refresh()
    assert "41" not in file.getvalue()
    assert "0/?" in file.getvalue()


@pytest.mark.parametrize("uri", ["file:///[bold]/[/x].md", "file:///[/red]", "a[link=b]"])
def test_brackets_of_an_address_are_shown_and_not_obeyed(uri: str) -> None:
    console, file = terminal(no_color=True)
    with Bar(console, "[/name]", quiet=False) as bar:
        bar.stage("[/stage]", 2)
        bar.advance(detail=uri)
        bar._progress.refresh()
    for text in ("[/name]", "[/stage]", uri):
        assert text in file.getvalue()


def test_an_address_cannot_write_control_sequences() -> None:
    console, file = terminal()
    with Bar(console, "handbook", quiet=False) as bar:
        bar.stage("crawl", None)
        bar.advance(detail="\x1b]0;owned\x07\nnext")
        bar._progress.refresh()
    assert "\x1b]0;" not in file.getvalue()
    assert "\x07" not in file.getvalue()


def test_the_cursor_comes_back_when_the_work_fails() -> None:
    console, file = terminal()

    def fail() -> None:
        with Bar(console, "handbook", quiet=False) as bar:
            bar.stage("crawl", None)
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        fail()
    assert file.getvalue().rindex("\x1b[?25h") > file.getvalue().rindex("\x1b[?25l")


def test_without_a_terminal_there_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    file = io.StringIO()
    with Bar(Console(file=file), "[/name]", quiet=False) as bar:
        bar.stage("crawl", None)
        bar.advance()
    assert file.getvalue() == "[/name]: crawl, 1 document so far\n"


def test_a_line_says_how_much_is_left_where_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    now = iter([0.0, 0.0, 30.0, 30.0, 30.0, 30.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    file = io.StringIO()
    bar = Bar(Console(file=file), "handbook", quiet=False)
    bar.stage("process", 40)
    bar.advance(10)
    assert file.getvalue() == "handbook: process, 10 of 40 documents, about 90 s left\n"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_json_has_no_progress(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    file = io.StringIO()
    with Bar(Console(file=file, force_terminal=is_terminal), "handbook", quiet=True) as bar:
        bar.stage("crawl", None)
        bar.advance()
    assert file.getvalue() == ""
