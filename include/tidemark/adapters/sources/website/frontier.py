"""What is still to be asked for, in which order, and what is none of this crawl's business."""

import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

from tidemark.adapters.media import is_never_document
from tidemark.adapters.sources.selection import PathPatterns
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.adapters.sources.website.state import CrawlState, Mark
from tidemark.domain.urls import canonical_url, site_of

# Links that a site makes up without end: told by their spelling, and left alone.
#
# /docs/docs/docs/docs/a           the same piece of a path again and again (a wrong relative link)
# a path of more than 30 segments
# /search?q=1, ?q=2, ...           more query strings under one path than wanted (filters, sortings)
# /calendar/2199/04                a calendar's pages far from now
#
# Such a URL is not asked for, and the listing is complete all the same: what a trap would still have led to
# is no page. What was a document before is never taken for a trap; it counts towards the bound on its path.

MAX_SEGMENTS = 30
_MAX_PATTERNS = 100
_EARLIEST_YEAR = 1990
_YEARS_AHEAD = 2
_SCHEDULE = re.compile(r"calend[ae]r|kalender|agenda|events?\b|schedule", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(\d{4})(?=[-/](?:0?[1-9]|1[0-2])(?!\d))|\byear=(\d{4})(?!\d)")


class CrawlTraps:
    """Judges the URLs of one crawl.

    queries: how many query strings under one path are wanted.
    repeats: how often a piece of a path may follow itself.
    """

    def __init__(self, state: CrawlState, *, queries: int, repeats: int) -> None:
        self._state = state
        self._queries = queries
        repeated = rf"(?=(/[^/]+(?:/[^/]+)*?)(?:\1){{{repeats}}}(?:/|$))"
        self._repeated = re.compile(repeated)
        self._may_repeat = repeats
        self._year = datetime.now(UTC).year
        self.examples: dict[str, tuple[str, str]] = {}
        """The first URL of each pattern, and what is said of it."""

    def count(self, uri: str) -> None:
        """Let a document known from before count towards the bound on its path."""
        path, query, _ = uri.partition("?")
        if query:
            self._state.count_variant(path, self._queries)

    def catches(self, uri: str) -> bool:
        """Is it a trap? Counts it where it is none."""
        match = self._match(uri)
        if match is None:
            return False
        pattern, why = match
        if len(self.examples) < _MAX_PATTERNS:
            self.examples.setdefault(pattern, (uri, why))
        return True

    def _match(self, uri: str) -> tuple[str, str] | None:
        parts = urlsplit(uri)
        depth = parts.path.count("/")
        if depth > MAX_SEGMENTS:
            return (
                "depth",
                f"its path has more than {MAX_SEGMENTS} segments, which is taken for a trap",
            )
        if depth > self._may_repeat and (match := self._repeated.search(parts.path)):
            why = (
                f"its path repeats {match[1]} more than {self._may_repeat} times, which is taken for a"
                " trap; mend the link, or raise max_repeats"
            )
            return f"repeats {match[1]}", why
        if self._is_far_date(uri):
            why = "it is a calendar's page far from today, which is taken for a trap"
            return f"calendar {parts.netloc}", why
        if parts.query:
            path = uri.partition("?")[0]
            if not self._state.count_variant(path, self._queries):
                why = (
                    f"there are more than {self._queries:,} query strings under {path}, and all further"
                    " ones are taken for a trap; exclude that path, or raise max_queries"
                )
                return f"queries {path}", why
        return None

    def _is_far_date(self, uri: str) -> bool:
        if not _SCHEDULE.search(uri):
            return False
        for match in _YEAR.finditer(uri):
            year = int(match[1] or match[2])
            if not _EARLIEST_YEAR <= year <= self._year + _YEARS_AHEAD:
                return True
        return False


_MAX_IN_MEMORY = 1_000
"""Targets kept in memory; the rest of the queue is in the crawl state."""
_MAX_DECIDED = 20_000
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

    def __init__(
        self, scope: Scope, state: CrawlState, traps: CrawlTraps, max_depth: int | None
    ) -> None:
        self._scope = scope
        self._state = state
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
        marks = self._state.marks(target.uri)
        if not marks & Mark.SEEN and (target.seed or self._wants(target.uri, marks)):
            self._state.mark(target.uri, Mark.SEEN)
            self.put(target)
        if len(self._decided) >= _MAX_DECIDED:
            self._decided.clear()
        self._decided.add(target.uri)

    def _wants(self, uri: str, marks: int) -> bool:
        if is_never_document(uri) or not self._scope.admits(uri):
            return False
        return bool(marks & Mark.KNOWN) or not self._traps.catches(uri)

    def put(self, target: Target) -> None:
        """Take a target in, whether or not it was seen."""
        if target.seed:
            self._seeds.append(target)
        elif len(self._head) < _MAX_IN_MEMORY and not self._stored and not self._tail:
            self._head.append(target)
        else:
            self._tail.append(target)
            if len(self._tail) >= _MAX_IN_MEMORY:
                self._spill()

    def _spill(self) -> None:
        self._state.enqueue(target.row() for target in self._tail)
        self._stored += len(self._tail)
        self._tail.clear()

    def take(self) -> Target:
        """The next one. Raises ``IndexError`` when none waits."""
        if self._seeds:
            return self._seeds.popleft()
        if not self._head:
            if self._stored:
                rows = self._state.dequeue(_MAX_IN_MEMORY)
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
        self._state.clear_queue()
        self._stored = 0
