"""What docs/partitioning.md says of Unstructured is so; where a new version does better, think again."""

import subprocess
import sys
from importlib.util import find_spec
from io import BytesIO
from typing import Any

import pytest
from lxml import etree

from tidemark.adapters.partition.html.reader import elements_of
from tidemark.adapters.partition.unstructured import partition_module
from tidemark.domain.errors import PermanentError

pytestmark = pytest.mark.model

PROBE = """
import sys, types
if sys.argv[1] == "stub":
    sys.modules["spacy"] = types.ModuleType("spacy")
else:
    sys.modules["spacy"] = None
import unstructured.partition.docx, unstructured.partition.pptx
"""


def imported(how: str) -> bool:
    command = [sys.executable, "-c", PROBE, how]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_unstructured_still_imports_spacy_and_no_more_of_it_than_its_name() -> None:
    assert not imported("none"), "it does without now: so can adapters/partition/unstructured.py"
    assert imported("stub")


def test_a_tagger_is_asked_for_in_vain_and_never_fetched() -> None:
    partition_module("docx")
    from unstructured.nlp.tokenize import pos_tag

    with pytest.raises(PermanentError, match="spaCy model that is not installed"):
        pos_tag("A text for the tagger that nobody installed.")
    assert "spacy" not in sys.modules or find_spec("spacy") is not None


TABLE = (
    "<table><tr><th colspan=2>Depth</th><th rowspan=2>Fee</th></tr><tr><th>low</th><th>high</th></tr>"
    "<tr><td rowspan=2>3</td><td>4</td><td>9</td></tr><tr><td>5</td><td>8</td></tr></table>"
)
PAGE = (
    f"<html><body><h2 id=fees>Fees</h2>{TABLE}<details><summary>Who pays?</summary><p>The skipper.</p>"
    "</details><figure><pre class=language-python>x = 1</pre></figure><ol start=3><li>Third</li></ol>"
    "<dl><dt>berth</dt><dd>A place</dd></dl><address>Quay 1<br>Harbour</address></body></html>"
)


@pytest.fixture(scope="module")
def elements() -> list[Any]:
    """Of Unstructured, which is told that every text is narrative: its tagger is not installed."""
    partition_html = partition_module("html").partition_html
    from unstructured.partition.html import parser

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parser, "is_possible_narrative_text", lambda *_args, **_options: True)
        return list(partition_html(text=PAGE, languages=[""]))


def test_unstructured_loses_the_spans_of_tables(elements: list[Any]) -> None:
    (table,) = (e for e in elements if e.category == "Table")
    assert "<tr><td>5</td><td>8</td></tr>" in table.metadata.text_as_html


def test_unstructured_leaves_out_what_can_be_opened_and_figures(elements: list[Any]) -> None:
    text = " ".join(e.text for e in elements)
    assert "skipper" not in text
    assert "x = 1" not in text


def test_unstructured_tells_no_fragment_no_number_and_no_term(elements: list[Any]) -> None:
    kinds = [(e.category, e.text) for e in elements]
    assert ("ListItem", "Third") in kinds
    assert ("ListItem", "A place") in kinds
    assert ("NarrativeText", "Quay 1 Harbour") in kinds
    assert not any("fees" in str(e.metadata.to_dict()) for e in elements)


def test_unstructured_leaves_out_of_word_files_what_is_not_a_plain_paragraph() -> None:
    from word_files import word_file

    module = partition_module("docx")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "is_possible_narrative_text", lambda *_args, **_options: True)
        parts = module.partition_docx(file=BytesIO(word_file()), languages=[""])
    text = " ".join(part.text for part in parts)
    assert "sixteen" not in text  # inserted with changes tracked
    assert "Keeper" not in text  # a content control
    assert "12 May" not in text  # a field
    assert "mc" not in text  # a formula
    assert "secret" in text  # hidden
    titles = [part.text for part in parts if part.category == "Title"]
    assert titles == ["Lamps"]  # neither by outline level nor by what a style is based on


def test_the_reader_of_pages_tells_all_of_it() -> None:
    body = etree.fromstring(PAGE, etree.HTMLParser()).find("body")
    found = [(e.kind.value, e.text, e.anchor, e.syntax) for e in elements_of(body)]
    assert found == [
        ("title", "Fees", "fees", ""),
        ("table", "Depth\tDepth\tFee\nlow\thigh\tFee\n3\t4\t9\n3\t5\t8", None, ""),
        ("term", "Who pays?", None, ""),
        ("text", "The skipper.", None, ""),
        ("code", "x = 1", None, "python"),
        ("list_item", "3. Third", None, ""),
        ("term", "berth", None, ""),
        ("definition", "A place", None, ""),
        ("text", "Quay 1\nHarbour", None, ""),
    ]
