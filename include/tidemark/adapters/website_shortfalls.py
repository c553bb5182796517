"""What a listing lacks, collected while it is made and told at its end."""

from collections.abc import Sequence

from tidemark.domain.model import CrawlEnd


class Shortfalls:
    """Every reason why a crawl did not see the whole site. Without any its listing is complete."""

    def __init__(self) -> None:
        self.lost_starts = 0
        self._problems: list[str] = []
        self._unread = 0
        self._first_unread = ""
        self._is_cut = False

    def add(self, problem: str) -> None:
        """A sentence of its own."""
        self._problems.append(problem)

    def start_lost(self, uri: str, detail: str) -> None:
        """A start page that gives no page."""
        self.lost_starts += 1
        self.add(f"The start page fails: {_named(uri, detail)}.")

    def unread(self, uri: str, detail: str) -> None:
        """A page whose links are not known."""
        self._unread += 1
        self._first_unread = self._first_unread or _named(uri, detail)

    def cut(self, documents: int, urls: int) -> None:
        """There would be more pages than allowed; told once."""
        if not self._is_cut:
            self._is_cut = True
            self.add(
                f"It stopped at {documents:,} documents ({urls:,} URLs asked for): "
                "raise max_pages, or leave parts of the site out with exclude."
            )

    def end(self, further: Sequence[str]) -> CrawlEnd:
        """The end of the listing; ``further`` problems are told where they are not yet."""
        problems = list(self._problems)
        if self._unread:
            count = "1 page" if self._unread == 1 else f"{self._unread:,} pages"
            problems.append(f"{count} could not be fetched: {self._first_unread}.")
        told = " ".join(problems)
        problem = " ".join([*problems, *(p for p in further if p.rstrip(".") not in told)])
        return CrawlEnd(complete=not problem, authoritative=False, problem=problem)


def _named(uri: str, detail: str) -> str:
    told = detail.rstrip(".")
    return told if uri in told else f"{uri} {told}"
