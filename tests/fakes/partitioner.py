"""A partitioner for tests: a few marks of Markdown, no vendor, no file formats."""

from tidemark.domain.documents import CELL, Element, ElementKind, PartitionedDocument, RawDocument
from tidemark.domain.errors import DocumentError
from tidemark.domain.hashing import Canonical, digest_of, fingerprint


class MemoryPartitioner:
    """Headings (#), list items (-), tables (|), fenced code and paragraphs, parted by blank lines.

    It reads no pages, so a site's boilerplate changes its fingerprint and nothing else.
    """

    def __init__(self, version: int = 1, boilerplate: frozenset[int] = frozenset()) -> None:
        self._version = version
        self._boilerplate = boilerplate
        decided: dict[str, Canonical] = {"kind": "memory", "version": version}
        if boilerplate:
            decided["furniture"] = digest_of(sorted(boilerplate))
        self.fingerprint = fingerprint("partition", decided)

    def with_boilerplate(self, boilerplate: frozenset[int]) -> "MemoryPartitioner":
        """One with this boilerplate in its fingerprint."""
        return (
            self
            if boilerplate == self._boilerplate
            else MemoryPartitioner(self._version, boilerplate)
        )

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        try:
            text = raw.content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DocumentError(
                "partition", f"{raw.uri} is not UTF-8 text.", "Save it as UTF-8."
            ) from error
        if not text.strip():
            raise DocumentError(
                "partition", f"{raw.uri} is empty.", "Check the file at its source."
            )
        elements = tuple(
            element for block in text.split("\n\n") for element in _block(block.strip("\n"))
        )
        title = next((e.text for e in elements if e.kind is ElementKind.TITLE), "")
        return PartitionedDocument(title, elements)


def _block(block: str) -> list[Element]:
    if not block.strip():
        return []
    if block.startswith("#"):
        marks, _, name = block.partition(" ")
        return [Element(ElementKind.TITLE, name.strip(), min(len(marks), 6))]
    if block.startswith("```"):
        return [Element(ElementKind.CODE, block.strip("`").strip("\n"))]
    lines = block.split("\n")
    if all(line.startswith("- ") for line in lines):
        return [Element(ElementKind.LIST_ITEM, line[2:], 1) for line in lines]
    if all(line.startswith("|") for line in lines):
        rows = [CELL.join(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
        return [Element(ElementKind.TABLE, "\n".join(rows), header_rows=1 if len(rows) > 1 else 0)]
    return [Element(ElementKind.TEXT, " ".join(lines))]
