"""What every files source decides alike, wherever the files are."""

from pathlib import PurePosixPath
from urllib.parse import quote

from tidemark.adapters.media import media_type_of_suffix
from tidemark.adapters.patterns import PathPatterns
from tidemark.domain.model import CrawlEnd
from tidemark.ports import Known

URI_SAFE = "/!$&'()*+,;=:@~"
"""What stays as it is in the path of a document's URI."""


class FileRules:
    """Which paths are documents, and of which type."""

    def __init__(self, include: tuple[str, ...], exclude: tuple[str, ...]) -> None:
        self._patterns = PathPatterns(include, exclude)
        self._asked_for = bool(include)

    def admits(self, relative: str) -> bool:
        """Do the patterns let a path through?"""
        return self._patterns.admits(relative)

    def is_document(self, relative: str) -> bool:
        return media_type(relative) is not None and self.admits(relative)

    def lists(self, relative: str) -> bool:
        """Is it told of? What a pattern asks for is, though its format is not known."""
        return self.admits(relative) and (self._asked_for or media_type(relative) is not None)


def media_type(relative: str) -> str | None:
    """By the suffix of a path, None for what is no document."""
    return media_type_of_suffix(PurePosixPath(relative).suffix.lower())


def end_of(
    problems: list[str], *, listed: bool, allow_empty: bool, known: Known, place: str
) -> CrawlEnd:
    """The end of a listing; one that is empty, though documents are known, is not believed."""
    if not listed and not problems and not allow_empty and next(known.uris(), None) is not None:
        problems.append(
            f"There is no document in {place}, though there were some: is the share mounted, the path "
            "still right? Set allow_empty if it was emptied on purpose."
        )
    problem = " ".join(problems)
    return CrawlEnd(complete=not problem, authoritative=True, problem=problem)


def limited(limit: int | None) -> str:
    """The problem of a listing that was cut off."""
    return f"It was limited to {limit:,} documents."


def quoted(path: str) -> str:
    """A path as it stands in a URI."""
    return quote(path, safe=URI_SAFE, errors="surrogateescape")
