"""Links that a site makes up without end: told by their spelling, and left alone.

    /docs/docs/docs/docs/a           the same piece of a path again and again (a wrong relative link)
    a path of more than 30 segments
    /search?q=1, ?q=2, ...           more query strings under one path than wanted (filters, sortings)
    /calendar/2199/04                a calendar's pages far from now

Such a URL is not asked for, and the listing is complete all the same: what a trap would still have led to
is no page. What was a document before is never taken for a trap; it counts towards the bound on its path.
"""

import re
from datetime import UTC, datetime
from urllib.parse import urlsplit

from tidemark.adapters.website_trail import Trail

MAX_SEGMENTS = 30
_MAX_PATTERNS = 100
_EARLIEST_YEAR = 1990
_YEARS_AHEAD = 2
_SCHEDULE = re.compile(r"calend[ae]r|kalender|agenda|events?\b|schedule", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(\d{4})(?=[-/](?:0?[1-9]|1[0-2])(?!\d))|\byear=(\d{4})(?!\d)")


class Traps:
    """Judges the URLs of one crawl.

    queries: how many query strings under one path are wanted.
    repeats: how often a piece of a path may follow itself.
    """

    def __init__(self, trail: Trail, *, queries: int, repeats: int) -> None:
        self._trail = trail
        self._queries = queries
        repeated = rf"(?=(/[^/]+(?:/[^/]+)*?)(?:\1){{{repeats}}}(?:/|$))"
        self._repeated = re.compile(repeated)
        self._may_repeat = repeats
        self._year = datetime.now(UTC).year
        self.met: dict[str, tuple[str, str]] = {}
        """The first URL of each pattern, and what is said of it."""

    def count(self, uri: str) -> None:
        """Let a document known from before count towards the bound on its path."""
        path, query, _ = uri.partition("?")
        if query:
            self._trail.vary(path, self._queries)

    def catches(self, uri: str) -> bool:
        """Is it a trap? Counts it where it is none."""
        found = self._told(uri)
        if found is None:
            return False
        pattern, why = found
        if len(self.met) < _MAX_PATTERNS:
            self.met.setdefault(pattern, (uri, why))
        return True

    def _told(self, uri: str) -> tuple[str, str] | None:
        parts = urlsplit(uri)
        depth = parts.path.count("/")
        if depth > MAX_SEGMENTS:
            return (
                "depth",
                f"its path has more than {MAX_SEGMENTS} segments, which is taken for a trap",
            )
        if depth > self._may_repeat and (again := self._repeated.search(parts.path)):
            why = (
                f"its path repeats {again[1]} more than {self._may_repeat} times, which is taken for a"
                " trap; mend the link, or raise max_repeats"
            )
            return f"repeats {again[1]}", why
        if self._is_far_date(uri):
            why = "it is a calendar's page far from today, which is taken for a trap"
            return f"calendar {parts.netloc}", why
        if parts.query:
            path = uri.partition("?")[0]
            if not self._trail.vary(path, self._queries):
                why = (
                    f"there are more than {self._queries:,} query strings under {path}, and all further"
                    " ones are taken for a trap; exclude that path, or raise max_queries"
                )
                return f"queries {path}", why
        return None

    def _is_far_date(self, uri: str) -> bool:
        if not _SCHEDULE.search(uri):
            return False
        for found in _YEAR.finditer(uri):
            year = int(found[1] or found[2])
            if not _EARLIEST_YEAR <= year <= self._year + _YEARS_AHEAD:
                return True
        return False
