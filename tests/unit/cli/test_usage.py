"""The contract of the command line when it is used wrongly: one clear line, and the exit code."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from fakes.embedder import WordTokenizer
from fakes.partitioner import MemoryPartitioner
from tidemark import __version__
from tidemark import pipeline as stage
from tidemark.cli import app as commands
from tidemark.cli import output
from tidemark.domain.errors import SourceBusyError, TransientError
from tidemark.domain.records import RunSummary
from tidemark.wiring import Container

NOT_UTF8 = "caf\udce9"
"""What Python makes of an argument in Latin-1."""


class _FakeContainer(Container):
    partitioner = MemoryPartitioner()  # type: ignore[assignment]
    tokenizer = WordTokenizer()  # type: ignore[assignment]

    def deps(self, declared: object, progress: object = None) -> None:  # type: ignore[override]
        return None


@pytest.fixture(autouse=True)
def _no_stores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(output, "Container", _FakeContainer)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(commands.app, list(arguments))


def refused(*arguments: str) -> str:
    """What it says of bad usage; nothing is on stdout and nothing is a traceback."""
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", NOT_UTF8, "--json"),
        ("search", "x", "--filter", f"source={NOT_UTF8}"),
        ("search", "x", "--mode", NOT_UTF8),
        ("search", "x", "--expand", NOT_UTF8),
        ("explain", NOT_UTF8, "--json"),
        ("explain", f"https://a.example/{NOT_UTF8}"),
        ("index", "s", "--note", NOT_UTF8),
        ("index", NOT_UTF8),
        ("index", "--url", f"https://a.example/{NOT_UTF8}"),
        ("plan", NOT_UTF8),
        ("status", NOT_UTF8),
        ("audit", NOT_UTF8, "--json"),
        ("chunk", ".", "--profile", NOT_UTF8),
        ("chunk", ".", "--base-url", NOT_UTF8),
    ],
)
def test_an_argument_that_is_not_utf8_is_bad_usage(arguments: tuple[str, ...]) -> None:
    assert "not valid UTF-8" in refused(*arguments)


@pytest.mark.parametrize(
    "url",
    ["not-a-url", "ftp://a.example/", "http://", "http://[x", "http://a:99999/", "https:/a", ""],
)
def test_what_is_no_web_address_is_told_in_one_line(url: str) -> None:
    result = call("index", "--url", url, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert "https://docs.example.org/" in result.stderr


def test_a_missing_folder_or_an_unknown_file_is_bad_usage(tmp_path: Path) -> None:
    unknown = tmp_path / "a.bin"
    unknown.write_bytes(b"x")
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert "Name a folder that exists" in refused("index", "--path", str(tmp_path / "away"))
    assert "Name a folder that exists" in refused("plan", "--path", "x" * 300)
    assert "Name a folder that exists" in refused("index", "--path", str(loop))
    assert "known format" in refused("index", "--path", str(unknown))
    other = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    assert "not valid UTF-8" in refused("index", "--path", other)


@pytest.mark.parametrize("name", ["away.md", "x" * 300, "dead.md", "loop"])
def test_chunk_refuses_a_path_that_does_not_exist_before_it_does_anything(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "a.md").write_text("# A\n\nText.\n")
    (tmp_path / "dead.md").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    said = refused("chunk", str(tmp_path / "a.md"), str(tmp_path / name), "--json")
    assert said.startswith("Error: ")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_chunk_goes_on_after_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    good, pipe = tmp_path / "b.md", tmp_path / "pipe.md"
    good.write_text("# B\n\nText.\n")
    os.mkfifo(pipe)
    result = call("chunk", "/proc/self/mem", str(pipe), str(good), "--json")
    assert result.exit_code == 1
    first, second, third = (json.loads(line)["document"] for line in result.stdout.splitlines())
    assert "cannot be read" in first["error"]
    assert "not a regular file" in second["error"]
    assert third["error"] is None


@pytest.mark.slow
def test_chunk_goes_on_after_a_folder_that_cannot_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut, good = tmp_path / "shut", tmp_path / "b.md"
    shut.mkdir()
    good.write_text("# B\n\nText.\n")
    with _denied(monkeypatch, shut):
        result = call("chunk", str(shut), str(good), "--json")
    assert result.exit_code == 1
    first, second = (json.loads(line)["document"] for line in result.stdout.splitlines())
    assert first["uri"] == shut.as_uri()
    assert "cannot be listed" in first["error"]
    assert second["error"] is None


@contextmanager
def _denied(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    # Permissions would not stop a test that runs as root.
    scandir = os.scandir

    def deny(path: str) -> object:
        if Path(path) == folder:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", deny)
        yield


@pytest.mark.slow
def test_chunk_reads_a_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9 100%.md")
    try:
        (tmp_path / name).write_text("# B\n\nText.\n")
    except OSError:
        pytest.skip("this file system has no such names")
    result = call("chunk", str(tmp_path / name), "--base-url", "https://a.example", "--json")
    assert result.exit_code == 0, result.output
    uri = json.loads(result.stdout)["document"]["uri"]
    assert uri == "https://a.example/caf%E9%20100%25.md"


def test_a_failed_run_is_a_summary_on_stdout_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = RunSummary("s", "r", "failed", complete=False, problem="It is away.")
    monkeypatch.setattr(stage, "new_run_id", lambda *_: "r")
    monkeypatch.setattr(stage, "run_source", lambda *_: failed)
    result = call("index", "--path", str(tmp_path), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problem"] == "It is away."


@pytest.mark.parametrize("error", [SourceBusyError("It runs.", "Wait."), TransientError("Away.")])
def test_an_error_is_on_stderr_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(stage, "new_run_id", lambda *_: "r")
    monkeypatch.setattr(stage, "run_source", fail)
    result = call("index", "--path", str(tmp_path), "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"Error: {error}\n"


def test_a_busy_source_does_not_keep_the_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = RunSummary("s", "r", "success")
    answers: Iterator[RunSummary | Exception] = iter([SourceBusyError("It runs."), done])

    def answer(*_: object) -> RunSummary:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(stage, "new_run_id", lambda *_: "r")
    monkeypatch.setattr(stage, "run_source", answer)
    result = call("index", "--url", "https://a.example/", "--path", str(tmp_path), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["status"] == "success"
    assert "It runs." in result.stderr


def test_it_says_which_version_it_is() -> None:
    assert call("--version").stdout == f"tidemark {__version__}\n"


def test_a_wrong_setting_is_one_line_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_EMBEDDING_BATCH_SIZE", "many")
    result = call("sources", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert "TIDEMARK_EMBEDDING_BATCH_SIZE" in result.stderr
