"""What is still to be asked for, in which order, and what is none of this crawl's business."""

from collections import deque
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from tidemark.adapters.media import is_never_document
from tidemark.adapters.patterns import PathPatterns
from tidemark.adapters.website_options import WebsiteOptions
from tidemark.adapters.website_trail import Mark, Trail
from tidemark.adapters.website_traps import Traps
from tidemark.domain.urls import canonical_url, site_of

_AT_HAND = 1_000
"""Targets kept in memory; the rest of the line is in the trail."""
_DECIDED = 20_000
"""URLs whose repeated mention costs nothing, enough for the menus of a site."""


@dataclass(frozen=True, slots=True)
class Target:
    """One URL to ask for.

    uri: canonical, what it is known by.
    url: as it is asked for; another spelling of ``uri`` only where the server insists on it.
    depth: links away from a start page.
    referrer: the page that led to it, "" for start pages and sitemap entries.
    hops: redirects followed to get here.
    seed: a start page, or where one redirects to.
    probe: known from before and not reached now; only whether it still exists matters.
    own: a document under its own URI, whatever it calls its canonical one.
    afresh: without conditions, because the bytes held are lost.
    """

    uri: str
    url: str
    depth: int = 0
    referrer: str = ""
    hops: int = 0
    seed: bool = False
    probe: bool = False
    own: bool = False
    afresh: bool = False

    def row(self) -> tuple[str | int, ...]:
        marks = self.seed | self.probe << 1 | self.own << 2 | self.afresh << 3
        return self.uri, self.url, self.depth, self.referrer, self.hops, marks

    @staticmethod
    def of(row: tuple[str, str, int, str, int, int]) -> "Target":
        uri, url, depth, referrer, hops, marks = row
        seed, probe, own, afresh = (bool(marks & bit) for bit in (1, 2, 4, 8))
        return Target(uri, url, depth, referrer, hops, seed, probe, own, afresh)


class Scope:
    """The start pages' own corners of the web, narrowed by the patterns.

    A start page ``/docs/`` or ``/docs/index.html`` opens everything below ``/docs/``, and ``/docs`` that
    and itself. ``www.`` and the scheme make no difference, any other host or port does.
    """

    def __init__(self, options: WebsiteOptions) -> None:
        self.starts = [uri for start in options.starts if (uri := canonical_url(start))]
        self._areas = [(site_of(uri), _prefix(urlsplit(uri).path)) for uri in self.starts]
        self._patterns = PathPatterns(options.include, options.exclude)

    @property
    def hosts(self) -> int:
        return len({site for site, _ in self._areas})

    def contains(self, uri: str) -> bool:
        """Is it under a start page, whatever the patterns say?"""
        site, path = site_of(uri), urlsplit(uri).path
        return any(
            site == own and (path.startswith(prefix) or path + "/" == prefix)
            for own, prefix in self._areas
        )

    def admits(self, uri: str) -> bool:
        """May it become a document?"""
        return self.contains(uri) and self._patterns.admits(unquote(urlsplit(uri).path))


def _prefix(path: str) -> str:
    folder, _, last = path.rpartition("/")
    return f"{path}/" if last and "." not in last else f"{folder}/"


class Frontier:
    """A queue in which no canonical URL comes up twice; start pages come before all others."""

    def __init__(self, scope: Scope, trail: Trail, traps: Traps, max_depth: int | None) -> None:
        self._scope = scope
        self._trail = trail
        self._traps = traps
        self._max_depth = max_depth
        self._seeds: deque[Target] = deque()
        self._head: deque[Target] = deque()
        self._tail: list[Target] = []
        self._stored = 0
        self._decided: set[str] = set()

    def __len__(self) -> int:
        return len(self._seeds) + len(self._head) + self._stored + len(self._tail)

    @property
    def seeds(self) -> int:
        """How many start pages wait."""
        return len(self._seeds)

    def follow(self, links: tuple[str, ...], depth: int, referrer: str) -> None:
        """Take in the links of a page."""
        for link in links:
            if link not in self._decided:
                self.offer(Target(link, link, depth, referrer))

    def offer(self, target: Target) -> None:
        """Take a target in, unless it was seen, is out of scope or too deep, a trap, or no document."""
        if self._max_depth is not None and target.depth > self._max_depth and not target.seed:
            return
        marks = self._trail.marks(target.uri)
        if not marks & Mark.SEEN and (target.seed or self._wants(target.uri, marks)):
            self._trail.mark(target.uri, Mark.SEEN)
            self.again(target)
        if len(self._decided) >= _DECIDED:
            self._decided.clear()
        self._decided.add(target.uri)

    def _wants(self, uri: str, marks: int) -> bool:
        if is_never_document(uri) or not self._scope.admits(uri):
            return False
        return bool(marks & Mark.KNOWN) or not self._traps.catches(uri)

    def again(self, target: Target) -> None:
        """Take a target in, whether or not it was seen."""
        if target.seed:
            self._seeds.append(target)
        elif len(self._head) < _AT_HAND and not self._stored and not self._tail:
            self._head.append(target)
        else:
            self._tail.append(target)
            if len(self._tail) >= _AT_HAND:
                self._put_away()

    def _put_away(self) -> None:
        self._trail.queue(target.row() for target in self._tail)
        self._stored += len(self._tail)
        self._tail.clear()

    def take(self) -> Target:
        """The next one. Raises ``IndexError`` when none waits."""
        if self._seeds:
            return self._seeds.popleft()
        if not self._head:
            if self._stored:
                rows = self._trail.unqueue(_AT_HAND)
                self._stored -= len(rows)
                self._head.extend(Target.of(row) for row in rows)
            else:
                self._head.extend(self._tail)
                self._tail.clear()
        return self._head.popleft()

    def clear(self) -> None:
        self._seeds.clear()
        self._head.clear()
        self._tail.clear()
        self._trail.clear_queue()
        self._stored = 0
