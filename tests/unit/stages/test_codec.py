"""Elements on their way through the artifact store."""

import gzip
import json

from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.stages.codec import decode_elements, encode_elements

TEXT = Element(ElementKind.TEXT, "They measure.", anchor="a")


def test_elements_come_back_as_they_were() -> None:
    code = Element(ElementKind.CODE, "read()", syntax="python")
    document = PartitionedDocument("Gauges", (TEXT, code), "en")
    assert decode_elements(encode_elements(document)) == document


def test_elements_written_before_there_were_languages_are_read() -> None:
    old = {"title": "A", "language": None, "elements": [["code", "x", None, 2, None, 0]]}
    document = decode_elements(gzip.compress(json.dumps(old).encode()))
    assert document.elements == (Element(ElementKind.CODE, "x", page_number=2),)


def test_a_language_changes_the_hash_of_its_document_alone() -> None:
    plain = Element(ElementKind.CODE, "read()")
    assert TEXT.canonical() == ["text", "They measure.", None, None, "a", 0]
    assert plain.canonical() == ["code", "read()", None, None, None, 0]
    named = Element(ElementKind.CODE, "read()", syntax="python")
    assert (
        PartitionedDocument("", (named,)).content_hash
        != PartitionedDocument("", (plain,)).content_hash
    )
