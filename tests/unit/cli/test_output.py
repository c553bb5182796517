"""What the command line prints where there is no terminal."""

import pytest

from tidemark.cli.output import Output
from tidemark.cli.search import render_results
from tidemark.domain.chunks import StoredPoint
from tidemark.domain.identity import document_id
from tidemark.stages.search import SearchResult


def test_a_long_text_in_a_log_is_wrapped_and_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(f"word{n}" for n in range(200))
    point = StoredPoint(
        document_id("s", "u"), {"text": text, "heading_path": ["A"], "source_uri": "u"}
    )
    Output(as_json=False).result({}, lambda: render_results([SearchResult(point, None)]))
    shown = capsys.readouterr().out
    assert [n for n in range(200) if f"word{n}" not in shown] == []
