"""What the stages ask of those who read a document's bytes."""

from typing import Protocol

from tidemark.domain.documents import Definition, Inspection, PartitionedDocument, RawDocument


class Partitioner(Protocol):
    """Bytes to elements, without the boilerplate around the content."""

    @property
    def fingerprint(self) -> str: ...

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        """Clean and partition. Raises ``DocumentError`` naming the hint when the bytes are at fault."""

    def with_boilerplate(self, boilerplate: frozenset[int]) -> "Partitioner":
        """One that also drops these blocks of a site (``Inspection.blocks``), and says so in its fingerprint.

        Without any it is this one, with this fingerprint.
        """


class PageInspector(Protocol):
    """A first look at fetched bytes, an order of magnitude cheaper than partitioning them."""

    def inspect(
        self, raw: RawDocument, boilerplate: frozenset[int] = frozenset()
    ) -> Inspection | None:
        """Look at a page or any other text (Markdown, data, code); None for what is neither.

        Never raises for what it contains. Texts that differ in white space alone have one hash.
        ``boilerplate``: blocks of the site that are no part of its text.
        """


class CodeParser(Protocol):
    """Finds the definitions in program code."""

    @property
    def fingerprint(self) -> str:
        """Of what decides the definitions found."""

    def definitions(self, code: str, syntax: str) -> list[Definition]:
        """Those of ``code`` and its units, in order, nested ones after the one they are in.

        ``syntax`` is a canonical name ("python"). Code with errors gives what was found in it; a language
        that is not known, and code that cannot be parsed in bounded time, give []. Never raises for code.
        """
