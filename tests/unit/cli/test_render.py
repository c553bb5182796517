"""What people see in a terminal, when documents are hostile or long."""

import io

import pytest
from rich.console import Console

from tidemark.cli import output as texts
from tidemark.cli.chunk import render_chunks
from tidemark.cli.index import render_summary
from tidemark.domain.records import ChunkCounts, RunSummary

HOSTILE = "\x1b]0;owned\x07[red]not red[/red]\x1b[2J"


def shown(renderable: object) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_document_cannot_write_control_sequences_to_the_terminal() -> None:
    chunk = {"chunk_index": 0, "token_count": 3, "page_number": None, "heading_path": [HOSTILE],
             "text": HOSTILE}  # fmt: skip
    about = {"uri": "u" + HOSTILE, "title": HOSTILE, "error": None, "profile": "docs"}
    text = shown(render_chunks({"document": about, "sections": [], "chunks": [chunk]}))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]not red[/red]" in text, "markup of a document is shown, not obeyed"


def test_an_error_is_cleaned_too() -> None:
    about = {"uri": "u", "title": "", "error": HOSTILE}
    assert "\x1b" not in shown(render_chunks({"document": about, "sections": [], "chunks": []}))


@pytest.mark.parametrize(
    ("summary", "sentence"),
    [
        (
            RunSummary("s", "r", "success", {"keep": 3}),
            "s: nothing changed (3 documents checked, 0.0 s).",
        ),
        (RunSummary("s", "r", "failed", problem="It is away."), "s: failed. It is away."),
        (
            RunSummary("s", "r", "success", {"add": 2}, dry_run=True),
            "s: dry run; the plan is 2 add.",
        ),
        (
            RunSummary(
                "s", "r", "success", {"add": 1}, chunks=ChunkCounts(4), problem="1 page failed."
            ),
            "s: 1 add; 4 chunks embedded, 0 kept, 0 removed; 0.0 s. Incomplete: 1 page failed.",
        ),
    ],
)
def test_a_run_is_one_sentence(summary: RunSummary, sentence: str) -> None:
    assert summary.sentence() == sentence
    assert sentence in " ".join(shown(render_summary(summary)).split())


@pytest.mark.parametrize(
    "character",
    ["\u202a", "\u202e", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c", "\u200b", "\u2060", "\ufeff",
     "\U000e0041"],
)  # fmt: skip
def test_a_title_cannot_turn_around_or_hide_characters(character: str) -> None:
    about = {"uri": f"u{character}", "title": f"t{character}", "error": None, "profile": "docs"}
    text = shown(render_chunks({"document": about, "sections": [], "chunks": []}))
    assert character not in text
    assert "u\N{REPLACEMENT CHARACTER}" in text


@pytest.mark.parametrize("mark", ["\n", "\r\n", "\x0b", "\x85", "\u2028", "\u2029"])
def test_a_title_cannot_forge_a_line(mark: str) -> None:
    assert texts.safe(f"a{mark}Error: b") == "a Error: b"


def test_joined_characters_stay_whole() -> None:
    family, persian = "👩\u200d👩\u200d👧", "می\u200cخواهم"
    assert texts.safe(family + persian) == family + persian


def test_a_text_keeps_its_lines_and_cannot_turn_them_around() -> None:
    text = texts.safe_lines("a\n\tb\u202ec\u2067\x1b")
    assert text == "a\n\tb\ufffdc\ufffd\ufffd"
