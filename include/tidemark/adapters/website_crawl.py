"""One crawl of a website: who is visited, and what the listing says of it.

Pages are visited by a few threads and taken in the order in which they were asked for, so a crawl of the
same site gives the same listing. What a visit means:

    answer                              this URI                     the listing
    ----------------------------------  ---------------------------  -------------------------------
    bytes, "not modified"               FETCHED, NOT_MODIFIED
    404, 410                            GONE, with the linking page
    noindex, robots.txt, no document,   EXCLUDED
    too large
    outage, refusal, empty body,        FAILED                       incomplete
    redirects in a circle
    redirect within scope               no document (its target is)
      and known before, permanently     GONE once its target is here
    redirect out of scope               no document
      and known before, temporarily     FAILED                       incomplete
    rel=canonical within scope          no document (its target is),
                                        unless that turns out not to be one
    start page not answered with a page  not listed                  incomplete; without any, the end

Then every URI that is known and was not reached is asked whether it still exists. 404 and 410 are GONE.
One that exists all the same is not listed: nothing leads to it any more, and the plan's rule for the
absent (so many complete crawls) decides. A known URI that scope or patterns no longer admit is EXCLUDED.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import replace

from tidemark.adapters.media import HTML_TYPES
from tidemark.adapters.website_frontier import Frontier, Scope, Target
from tidemark.adapters.website_http import Fetcher
from tidemark.adapters.website_options import WebsiteOptions
from tidemark.adapters.website_pages import PageFacts, read_page
from tidemark.adapters.website_robots import Robots
from tidemark.adapters.website_sitemaps import SitemapReader
from tidemark.adapters.website_visit import NOINDEX, Answer, Kind, Visitor
from tidemark.domain.model import CrawlEnd, CrawlItem, Outcome, SourceItem
from tidemark.domain.urls import canonical_url, origin_of
from tidemark.ports import Clock, Known

MAX_REDIRECTS = 10
OUTAGES_IN_A_ROW = 20
"""After so many visits without an answer the site is taken to be away."""
_URLS_PER_DOCUMENT = 4
_URLS_AT_LEAST = 1_000
"""A trap may be all redirects and errors: URLs are bounded too, not only documents."""

_SAID = {
    Kind.GONE: Outcome.GONE,
    Kind.FAILED: Outcome.FAILED,
    Kind.EXCLUDED: Outcome.EXCLUDED,
}


class Crawl:
    """The state of one crawl. Only `Visitor.visit` runs in other threads."""

    def __init__(
        self,
        *,
        options: WebsiteOptions,
        scope: Scope,
        fetcher: Fetcher,
        pool: Executor,
        threads: int,
        known: Known,
        limit: int | None,
        clock: Clock,
    ) -> None:
        self._options = options
        self._scope = scope
        self._fetcher = fetcher
        self._pool = pool
        self._threads = threads
        self._known = known
        self._known_uris = frozenset(known.uris())
        self._limit = limit
        self._robots = Robots(fetcher, options.robots_name)
        self._visitor = Visitor(fetcher, self._robots, options.robots_name, clock)
        self._frontier = Frontier(scope, options.max_depth)
        self._asked = 0
        self._documents: set[str] = set()
        self._settled: set[str] = set()
        self._moves: dict[str, tuple[str, bool]] = {}
        self._aliases: dict[str, tuple[Target, str]] = {}
        self._origins: dict[str, None] = {}
        self._lost_starts = 0
        self._outages = 0
        self._failures = 0
        self._first_failure = ""
        self._problems: list[str] = []
        self._stopped = False

    def run(self) -> Iterator[CrawlItem | CrawlEnd]:
        """Yield the listing, then its end."""
        yield from self._listing()
        if self._failures:
            count = "1 page" if self._failures == 1 else f"{self._failures:,} pages"
            self._problems.append(f"{count} could not be fetched: {self._first_failure}.")
        yield CrawlEnd(
            complete=not self._problems, authoritative=False, problem=" ".join(self._problems)
        )

    def _listing(self) -> Iterator[CrawlItem]:
        for start in self._scope.starts:
            self._frontier.offer(Target(start, start, seed=True))
        # The start pages first: when the site is away nothing else is asked, or said.
        yield from self._drain(lambda: self._frontier.seeds)
        if self._stopped or not self._origins:
            return
        if self._options.use_sitemap:
            self._read_sitemaps()
        yield from self._drain(lambda: len(self._frontier))
        yield from self._aliases_settled()
        yield from self._moves_settled()
        # With a start page lost, what it led to is not reached for that reason alone.
        if not self._stopped and not self._lost_starts:
            yield from self._unreached()

    def _drain(self, waiting: Callable[[], int], *, probing: bool = False) -> Iterator[CrawlItem]:
        """Visit what waits and what that leads to, several at a time, settled in order of asking."""
        under_way: deque[tuple[Target, Future[Answer]]] = deque()
        while not self._stopped:
            room = self._threads if probing else self._room()
            while waiting() and len(under_way) < room:
                target = self._frontier.take()
                under_way.append((target, self._visit(target)))
            if not under_way:
                if waiting():
                    self._cut_off()
                return
            target, future = under_way.popleft()
            yield from self._settle(target, future.result())
            if self._limit is not None and len(self._documents) >= self._limit:
                self._end(f"It was limited to {self._limit:,} documents.")

    def _room(self) -> int:
        """How many visits may be under way, so that no more documents come than are wanted."""
        most = self._options.max_pages
        if self._limit is not None:
            most = min(most, self._limit)
        if self._asked >= _URLS_PER_DOCUMENT * self._options.max_pages + _URLS_AT_LEAST:
            return 0
        return min(self._threads, most - len(self._documents))

    def _cut_off(self) -> None:
        self._problems.append(
            f"It stopped at {len(self._documents):,} documents ({self._asked:,} URLs asked for): "
            "raise max_pages, or leave parts of the site out with exclude."
        )
        self._frontier.clear()

    def _end(self, problem: str) -> None:
        self._problems.append(problem)
        self._stopped = True

    def _visit(self, target: Target) -> Future[Answer]:
        self._asked += 1
        validators = None if target.afresh else self._known.validators(target.uri)
        return self._pool.submit(self._visitor.visit, target, validators)

    def _settle(self, target: Target, answer: Answer) -> Iterator[CrawlItem]:
        self._settled.add(target.uri)
        self._outages = self._outages + 1 if answer.outage else 0
        if target.seed and answer.kind in _SAID:
            self._lose_start(target, answer.detail)
        elif target.probe:
            yield from self._probed(target, answer)
        elif answer.kind in {Kind.PAGE, Kind.UNCHANGED}:
            yield from self._met(target, answer)
        elif answer.kind is Kind.MOVED:
            yield from self._moved(target, answer)
        else:
            yield self._said(target.uri, _SAID[answer.kind], answer.detail)
        if self._outages >= OUTAGES_IN_A_ROW:
            self._end(f"The site stopped answering ({self._outages} times in a row).")

    def _lose_start(self, target: Target, problem: str) -> None:
        self._lost_starts += 1
        self._problems.append(f"The start page fails: {_named(target.uri, problem)}.")

    def _said(self, uri: str, outcome: Outcome, detail: str) -> CrawlItem:
        if outcome is Outcome.FAILED:
            self._failures += 1
            self._first_failure = self._first_failure or _named(uri, detail)
        return CrawlItem(SourceItem(uri), outcome, detail=detail)

    def _met(self, target: Target, answer: Answer) -> Iterator[CrawlItem]:
        facts = self._facts(target, answer)
        if facts is None:
            self._frontier.again(replace(target, afresh=True))
            return
        if target.seed:
            self._origins[origin_of(target.uri)] = None
        if not answer.directives.nofollow and not target.own:
            for link in facts.links:
                if link not in self._frontier:
                    self._frontier.offer(Target(link, link, target.depth + 1, target.uri))
        if answer.directives.noindex or facts.directives.noindex:
            yield self._said(target.uri, Outcome.EXCLUDED, NOINDEX)
        elif target.seed and not self._scope.admits(target.uri):
            yield self._said(target.uri, Outcome.EXCLUDED, "is read for its links alone (patterns)")
        elif facts.canonical and not target.own and self._scope.admits(facts.canonical):
            self._aliases[target.uri] = (target, facts.canonical)
            self._frontier.offer(Target(facts.canonical, facts.canonical, target.depth, target.uri))
        else:
            self._documents.add(target.uri)
            outcome = Outcome.FETCHED if answer.raw else Outcome.NOT_MODIFIED
            yield CrawlItem(SourceItem(target.uri, answer.validators), outcome, answer.raw)

    def _facts(self, target: Target, answer: Answer) -> PageFacts | None:
        """What is in the page; None when the server says "not modified" and the bytes are lost."""
        charset = None
        if answer.raw is not None:
            content, media_type = answer.raw.content, answer.raw.media_type
            charset = answer.raw.charset
        else:
            held = self._known.content(target.uri)
            if held is None:
                return None
            content, media_type = held
        if media_type not in HTML_TYPES:
            return PageFacts()
        return read_page(content, charset, target.url, self._options.robots_name)

    def _moved(self, target: Target, answer: Answer) -> Iterator[CrawlItem]:
        if target.hops >= MAX_REDIRECTS:
            problem = "redirects too many times"
        elif answer.location == target.uri:
            # The server insists on another spelling of the same URL.
            self._frontier.again(replace(target, url=answer.spelling, hops=target.hops + 1))
            return
        elif not self._scope.contains(answer.location):
            problem = f"redirects out of the source's scope, to {answer.location}"
            lasting = answer.permanent or target.uri not in self._known_uris
            if lasting and not target.seed:
                return
        else:
            self._moves[target.uri] = (answer.location, answer.permanent)
            self._frontier.offer(
                replace(target, uri=answer.location, url=answer.location, hops=target.hops + 1)
            )
            return
        if target.seed:
            self._lose_start(target, problem)
        else:
            yield self._said(target.uri, Outcome.FAILED, problem)

    def _aliases_settled(self) -> Iterator[CrawlItem]:
        """Pages that name another as canonical: let go when it is a document, else documents."""
        if self._stopped:
            return
        for uri, (target, canonical) in self._aliases.items():
            if self._final(canonical) is None:
                self._frontier.again(replace(target, seed=False, own=True))
            elif uri in self._known_uris:
                yield self._said(uri, Outcome.EXCLUDED, f"names {canonical} as canonical")
        yield from self._drain(lambda: len(self._frontier))

    def _moves_settled(self) -> Iterator[CrawlItem]:
        if self._stopped:
            return
        for uri in self._moves:
            if self._is_circle(uri):
                yield self._said(uri, Outcome.FAILED, "redirects in a circle")
            elif uri in self._known_uris and self._moved_for_good(uri):
                yield self._said(uri, Outcome.GONE, f"moved to {self._final(uri)}")

    def _unreached(self) -> Iterator[CrawlItem]:
        for uri in sorted(self._known_uris - self._settled):
            if self._scope.admits(uri):
                self._frontier.again(Target(uri, uri, probe=True))
            else:
                yield self._said(uri, Outcome.EXCLUDED, "is no longer in the source's scope")
        yield from self._drain(lambda: len(self._frontier), probing=True)

    def _probed(self, target: Target, answer: Answer) -> Iterator[CrawlItem]:
        if answer.kind in _SAID:
            yield self._said(target.uri, _SAID[answer.kind], answer.detail)
        elif answer.kind is Kind.MOVED and answer.location != target.uri:
            self._moves[target.uri] = (answer.location, answer.permanent)
            if self._moved_for_good(target.uri):
                yield self._said(target.uri, Outcome.GONE, f"moved to {answer.location}")

    def _final(self, uri: str) -> str | None:
        """The document that redirects and canonical links lead to from ``uri``, None without one."""
        passed: set[str] = set()
        while uri not in self._documents:
            if uri in passed:
                return None
            passed.add(uri)
            if uri in self._moves:
                uri = self._moves[uri][0]
            elif uri in self._aliases:
                uri = self._aliases[uri][1]
            else:
                return None
        return uri

    def _is_circle(self, uri: str) -> bool:
        passed: set[str] = set()
        while uri in self._moves and uri not in passed:
            passed.add(uri)
            uri = self._moves[uri][0]
        return uri in passed

    def _moved_for_good(self, uri: str) -> bool:
        if self._final(uri) is None:
            return False
        while uri in self._moves:
            uri, permanent = self._moves[uri]
            if not permanent:
                return False
        return True

    def _read_sitemaps(self) -> None:
        reader = SitemapReader(self._fetcher)
        for origin in self._origins:
            for page in reader.pages(origin, self._robots.sitemaps(origin)):
                uri = canonical_url(page, origin)
                if uri is not None:
                    self._frontier.offer(Target(uri, uri, depth=1))
        self._problems += reader.problems


def _named(uri: str, detail: str) -> str:
    told = detail.rstrip(".")
    return told if uri in told else f"{uri} {told}"
