"""One crawl of a website: which pages are fetched, and what the listing says of it.

Pages are fetched several at a time, in the event loop, and taken in the order in which they were asked for,
so a crawl of the same site gives the same listing. What an answer means:

    answer                              this URI                     the listing
    ----------------------------------  ---------------------------  -------------------------------
    bytes, "not modified"               FETCHED, NOT_MODIFIED
    404, 410                            GONE, with the linking page
    noindex, robots.txt, no document    EXCLUDED
    too large                           TOO_LARGE, held links
                                        followed
    refusal (4xx), redirects too often  FAILED
    outage, empty body                  FAILED                       incomplete
      and its bytes are held            FAILED, held links followed
    redirect within scope,              MOVED, ALIAS or FAILED: see RedirectGraph
    rel=canonical within scope
    redirect out of scope               no document
      and known before, temporarily     FAILED, held links followed
    start page not answered with a page  not listed                  incomplete; without any, the end
    a trap (CrawlTraps)                 the first one EXCLUDED

A page that FAILED is named in the listing, so nothing happens to it; what is not known is only what its
links would have led to. Held bytes tell that; a refusal hides it for good, and a site must not wait for it
for ever; an outage hides it for today.

Then every URI that is known and was not reached is asked whether it still exists. 404 and 410 are GONE. One
that redirects for good to a document of the listing has MOVED. One that exists all the same is not listed:
nothing leads to it any more, and the plan's rule for the absent (so many complete crawls) decides. A known
URI that scope or patterns no longer admit is EXCLUDED. Where a sitemap was not read that may have led
to one of those, the listing is incomplete (``SitemapReader.doubts``).
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from tidemark.adapters.media import HTML_TYPES
from tidemark.adapters.sources.selection import utc_now
from tidemark.adapters.sources.website.fetch import NOINDEX, Answer, Kind, PageFetcher
from tidemark.adapters.sources.website.frontier import CrawlTraps, Frontier, Scope, Target
from tidemark.adapters.sources.website.http import MAX_HELD_BYTES, Budget, Fetcher
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.adapters.sources.website.pages import PageFacts, read_page
from tidemark.adapters.sources.website.robots import Robots
from tidemark.adapters.sources.website.sitemaps import SitemapReader
from tidemark.adapters.sources.website.state import CrawlState, Mark, Redirect, RedirectKind, Route
from tidemark.adapters.sources.website.transport import LoopThread
from tidemark.domain.documents import CrawlEnd, CrawlItem, Outcome, SourceItem
from tidemark.domain.urls import canonical_url, origin_of
from tidemark.ports.progress import Clock
from tidemark.ports.source import Known


class CrawlIssues:
    """Every reason why a crawl did not see the whole site. Without any its listing is complete."""

    def __init__(self) -> None:
        self.failed_starts = 0
        self._problems: list[str] = []
        self._unread = 0
        self._first_unread = ""
        self._is_cut = False

    def add(self, problem: str) -> None:
        """A sentence of its own."""
        self._problems.append(problem)

    def add_failed_start(self, uri: str, detail: str) -> None:
        """A start page that gives no page."""
        self.failed_starts += 1
        self.add(f"The start page fails: {_named(uri, detail)}.")

    def add_unread_page(self, uri: str, detail: str) -> None:
        """A page whose links are not known."""
        self._unread += 1
        self._first_unread = self._first_unread or _named(uri, detail)

    def add_cut(self, documents: int, urls: int) -> None:
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
        text = " ".join(problems)
        problem = " ".join([*problems, *(p for p in further if p.rstrip(".") not in text)])
        return CrawlEnd(complete=not problem, authoritative=False, problem=problem)


def _named(uri: str, detail: str) -> str:
    text = detail.rstrip(".")
    return text if uri in text else f"{uri} {text}"


# Addresses that lead to other ones: what redirects and canonical links say once all pages are known.
#
# the address                                  its way ends at         the listing says of it
# -------------------------------------------  ----------------------  -----------------------------------
# known, redirects, each one for good          a document              MOVED to that
# any other redirect, rel=canonical            a document              ALIAS of that
# known, and redirects for now, as many       a document              FAILED: a wall, not a move (a)
# others do, to one document
# rel=canonical                                no document             stands for itself: asked for again
# redirects in a circle                                                FAILED
# known, redirects for now                     no document, not 404    FAILED: evidence of nothing
# known, redirects for good, or for now to     404, not in the crawl   nothing: the rule for the absent
# what is not there
# not known, redirects                         no document             nothing
#
# (a) A login or consent page that every page sends its visitors to would else take all of them away. A single
# page that is sent elsewhere for now is kept once, at its target, and comes back when the redirect ends.

WALL = 3
"""So many known pages that redirect to one document for now were not moved: it stands in the way."""


@dataclass(frozen=True, slots=True)
class RedirectGraph:
    """What the listing says of all addresses that lead elsewhere.

    failed: makes the item of an address that FAILED, with a detail and its depth, and follows what is
        held of it.
    drain: fetches what waits in the frontier.
    """

    state: CrawlState
    frontier: Frontier
    failed: Callable[[str, str, int], CrawlItem]
    drain: Callable[[], Iterator[CrawlItem]]

    def settle(self) -> Iterator[CrawlItem]:
        """Yield what the listing says of them, and what is found on the way."""
        while True:
            for redirect in self.state.redirects():
                yield from self._to_document(redirect)
            if not len(self.frontier):
                for redirect in self.state.redirects():
                    yield from self._to_no_document(redirect)
            if not len(self.frontier):
                return
            yield from self.drain()

    def settle_probed(self) -> Iterator[CrawlItem]:
        """Yield those met while probing that moved to a document; the others are absent."""
        for redirect in self.state.redirects():
            route = self.state.route(redirect.uri)
            if (
                redirect.known
                and redirect.kind is RedirectKind.PERMANENT
                and route.document
                and route.permanent
            ):
                yield self._item(redirect, route)

    def _to_document(self, redirect: Redirect) -> Iterator[CrawlItem]:
        route = self.state.route(redirect.uri)
        if not route.document:
            # The last one of a chain, and those on a circle, stand for themselves; then others may follow.
            if redirect.kind is RedirectKind.CANONICAL and (route.through or not route.names):
                self.state.mark(redirect.uri, Mark.OWN)
                self.frontier.put(
                    Target(redirect.uri, redirect.uri, redirect.depth, redirect.referrer, own=True)
                )
            return
        if (
            redirect.known
            and redirect.kind is RedirectKind.TEMPORARY
            and self.state.count_temporary_redirects(redirect.target) >= WALL
        ):
            detail = f"redirects for now to {route.end}, as other pages do: is that a login?"
            yield self.failed(redirect.uri, detail, redirect.depth)
        else:
            yield self._item(redirect, route)

    def _item(self, redirect: Redirect, route: Route) -> CrawlItem:
        """The item of an address whose way ends at a document."""
        self.state.mark(redirect.uri, Mark.LISTED)
        if redirect.known and redirect.kind is not RedirectKind.CANONICAL and route.permanent:
            outcome, detail = Outcome.MOVED, f"moved to {route.end}"
        elif redirect.kind is RedirectKind.CANONICAL:
            outcome, detail = Outcome.ALIAS, f"names {redirect.target} as canonical"
        else:
            outcome, detail = Outcome.ALIAS, f"redirects to {redirect.target}"
        return CrawlItem(SourceItem(redirect.uri), outcome, detail=detail, target=route.end)

    def _to_no_document(self, redirect: Redirect) -> Iterator[CrawlItem]:
        route = self.state.route(redirect.uri)
        if route.document or redirect.kind is RedirectKind.CANONICAL:
            return
        if route.circle:
            yield self.failed(redirect.uri, "redirects in a circle", redirect.depth)
            return
        is_open = not route.permanent or route.marks & Mark.FAILED
        if redirect.known and is_open and not route.marks & Mark.GONE:
            detail = f"redirects to {route.end}, which is no document now"
            yield self.failed(redirect.uri, detail, redirect.depth)


MAX_REDIRECTS = 10
OUTAGES_IN_A_ROW = 20
"""After so many fetches without an answer the site is taken to be away."""
_URLS_PER_DOCUMENT = 4
_URLS_AT_LEAST = 1_000
"""A trap may be all redirects and errors: URLs are bounded too, not only documents."""

_AHEAD = 4
_MOST_AHEAD = 128
"""Fetches asked for and not yet handed on, per request at a time, and at most."""

_MARKS = {
    Outcome.FAILED: Mark.FAILED,
    Outcome.TOO_LARGE: Mark.FAILED,
    Outcome.GONE: Mark.GONE,
}
_OUTCOMES = {
    Kind.GONE: Outcome.GONE,
    Kind.FAILED: Outcome.FAILED,
    Kind.EXCLUDED: Outcome.EXCLUDED,
    Kind.TOO_LARGE: Outcome.TOO_LARGE,
}


class Crawl:
    """The state of one crawl. Only fetches run in the loop's thread."""

    def __init__(
        self,
        *,
        options: WebsiteOptions,
        scope: Scope,
        fetcher: Fetcher,
        loop: LoopThread,
        state: CrawlState,
        known: Known,
        limit: int | None,
        clock: Clock,
    ) -> None:
        self._options = options
        self._scope = scope
        self._fetcher = fetcher
        self._loop = loop
        self._state = state
        self._known = known
        self._limit = limit
        self._ahead = min(_MOST_AHEAD, _AHEAD * options.concurrency * scope.hosts)
        self._robots = Robots(fetcher, options.robots_name)
        self._budget = Budget(loop.call_soon, MAX_HELD_BYTES)
        self._page_fetcher = PageFetcher(
            fetcher, self._robots, options.robots_name, clock, self._budget
        )
        self._traps = CrawlTraps(state, queries=options.max_queries, repeats=options.max_repeats)
        self._frontier = Frontier(scope, state, self._traps, options.max_depth)
        self._asked = 0
        self._documents = 0
        self._origins: dict[str, None] = {}
        self._outages = 0
        self._issues = CrawlIssues()
        self._doubts: list[str] = []
        self._stopped = False

    def run(self) -> Iterator[CrawlItem | CrawlEnd]:
        """Yield the listing, then its end."""
        yield from self._listing()
        yield self._issues.end(self._robots.problems)

    def _listing(self) -> Iterator[CrawlItem]:
        self._state.add_known(self._counted(self._known.uris()))
        for start in self._scope.starts:
            self._frontier.offer(Target(start, start, seed=True))
        # The start pages first: when the site is away nothing else is asked, or said.
        yield from self._drain(lambda: self._frontier.seeds)
        if self._stopped or not self._origins:
            return
        if self._options.use_sitemap:
            self._read_sitemaps()
        yield from self._drain_all()
        redirects = RedirectGraph(self._state, self._frontier, self._url_failed, self._drain_all)
        if not self._stopped:
            yield from redirects.settle()
        for uri, why in self._traps.examples.values():
            self._state.mark(uri, Mark.LISTED | Mark.SEEN)
            yield self._item(uri, Outcome.EXCLUDED, why)
        # With a start page lost, what it led to is not reached for that reason alone.
        if not self._stopped and not self._issues.failed_starts:
            yield from self._unreached(redirects)

    def _counted(self, uris: Iterator[str]) -> Iterator[str]:
        for uri in uris:
            self._traps.count(uri)
            yield uri

    def _drain_all(self) -> Iterator[CrawlItem]:
        return self._drain(lambda: len(self._frontier))

    def _drain(self, pending: Callable[[], int], *, probing: bool = False) -> Iterator[CrawlItem]:
        """Fetch what waits and what that leads to, several at a time, settled in order of asking."""
        under_way: deque[tuple[Target, Future[Answer]]] = deque()
        while not self._stopped:
            room = self._ahead if probing else self._room()
            while pending() and len(under_way) < room:
                target = self._frontier.take()
                under_way.append((target, self._fetch(target)))
            if not under_way:
                if pending():
                    self._frontier.clear()
                    self._issues.add_cut(self._documents, self._asked)
                return
            target, future = under_way.popleft()
            answer = future.result()
            del future
            self._budget.handed_on(len(answer.raw.content) if answer.raw else 0)
            yield from self._settle(target, answer)
            del answer
            if self._limit is not None and self._documents >= self._limit:
                self._end(f"It was limited to {self._limit:,} documents.")

    def _room(self) -> int:
        """How many fetches may be under way, so that no more documents come than are wanted."""
        most = self._options.max_pages
        if self._limit is not None:
            most = min(most, self._limit)
        if self._asked >= _URLS_PER_DOCUMENT * self._options.max_pages + _URLS_AT_LEAST:
            return 0
        return min(self._ahead, most - self._documents)

    def _end(self, problem: str) -> None:
        self._issues.add(problem)
        self._stopped = True

    def _fetch(self, target: Target) -> Future[Answer]:
        number = self._asked
        self._asked += 1
        validators = None if target.afresh else self._known.validators(target.uri)
        sitemap_date = self._state.sitemap_date(target.uri)
        return self._loop.submit(self._page_fetcher.fetch(number, target, validators, sitemap_date))

    def _settle(self, target: Target, answer: Answer) -> Iterator[CrawlItem]:
        self._state.mark(target.uri, Mark.SETTLED | (Mark.STOOD if target.own else 0))
        self._outages = self._outages + 1 if answer.outage else 0
        if target.seed and answer.kind in _OUTCOMES:
            self._issues.add_failed_start(target.uri, answer.detail)
        elif answer.kind in {Kind.PAGE, Kind.UNCHANGED} and not target.probe:
            yield from self._page(target, answer)
        elif answer.kind is Kind.MOVED:
            yield from self._moved(target, answer)
        elif answer.kind is Kind.FAILED:
            yield self._failed(target, answer)
        elif answer.kind is Kind.TOO_LARGE:
            yield self._too_large(target, answer)
        elif answer.kind in _OUTCOMES:
            yield self._item(target.uri, _OUTCOMES[answer.kind], answer.detail)
        if self._outages >= OUTAGES_IN_A_ROW:
            self._end(f"The site stopped answering ({self._outages} times in a row).")

    def _item(self, uri: str, outcome: Outcome, detail: str) -> CrawlItem:
        self._state.mark(uri, Mark.LISTED | _MARKS.get(outcome, 0))
        return CrawlItem(SourceItem(uri), outcome, detail=detail)

    def _url_failed(self, uri: str, detail: str, depth: int) -> CrawlItem:
        """FAILED for what the URL itself says, not for an outage."""
        self._follow_held(uri, depth)
        return self._item(uri, Outcome.FAILED, detail)

    def _failed(self, target: Target, answer: Answer) -> CrawlItem:
        # What nothing leads to any more leads to nothing either.
        followed = target.probe or self._follow_held(target.uri, target.depth)
        if not followed and not answer.refusal:
            self._issues.add_unread_page(target.uri, answer.detail)
        return self._item(target.uri, Outcome.FAILED, answer.detail)

    def _too_large(self, target: Target, answer: Answer) -> CrawlItem:
        # What it links to is not read either; what it linked to when it was smaller must not be lost.
        self._follow_held(target.uri, target.depth)
        item = self._item(target.uri, Outcome.TOO_LARGE, answer.detail)
        return replace(item, item=SourceItem(target.uri, answer.validators))

    def _follow_held(self, uri: str, depth: int) -> bool:
        """Follow the links that a page had last time; was it held?"""
        held = self._known.content(uri)
        if held is None:
            return False
        content, media_type = held
        if media_type in HTML_TYPES:
            facts = read_page(content, None, uri, self._options.robots_name)
            self._frontier.follow(facts.links, depth + 1, uri)
        return True

    def _page(self, target: Target, answer: Answer) -> Iterator[CrawlItem]:
        facts = self._facts(target, answer)
        if facts is None:
            self._frontier.put(replace(target, afresh=True))
            return
        if target.seed:
            self._origins[origin_of(target.uri)] = None
        if not answer.directives.nofollow and not target.own:
            self._frontier.follow(facts.links, target.depth + 1, target.uri)
        if answer.directives.noindex or facts.directives.noindex:
            yield self._item(target.uri, Outcome.EXCLUDED, NOINDEX)
        elif target.seed and not self._scope.admits(target.uri):
            yield self._item(target.uri, Outcome.EXCLUDED, "is read for its links alone (patterns)")
        elif facts.canonical and not target.own and self._scope.admits(facts.canonical):
            self._add_redirect(target, RedirectKind.CANONICAL, facts.canonical)
            self._frontier.offer(Target(facts.canonical, facts.canonical, target.depth, target.uri))
        else:
            self._documents += 1
            self._state.mark(target.uri, Mark.DOCUMENT | Mark.LISTED)
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

    def _add_redirect(self, target: Target, kind: RedirectKind, destination: str) -> None:
        self._state.add_redirect(target.uri, kind, destination, target.depth, target.referrer)

    def _moved(self, target: Target, answer: Answer) -> Iterator[CrawlItem]:
        if target.hops >= MAX_REDIRECTS:
            problem = "redirects too many times"
        elif answer.location == target.uri:
            # The server insists on another spelling of the same URL.
            self._frontier.put(replace(target, url=answer.spelling, hops=target.hops + 1))
            return
        elif not self._scope.contains(answer.location):
            problem = f"redirects out of the source's scope, to {answer.location}"
            known = self._state.marks(target.uri) & Mark.KNOWN
            if target.probe or ((answer.permanent or not known) and not target.seed):
                return
        else:
            kind = RedirectKind.PERMANENT if answer.permanent else RedirectKind.TEMPORARY
            self._add_redirect(target, kind, answer.location)
            if not target.probe:
                self._frontier.offer(
                    replace(target, uri=answer.location, url=answer.location, hops=target.hops + 1)
                )
            return
        if target.seed:
            self._issues.add_failed_start(target.uri, problem)
        else:
            yield self._url_failed(target.uri, problem, target.depth)

    def _unreached(self, redirects: RedirectGraph) -> Iterator[CrawlItem]:
        for uri in self._state.unreached():
            if self._scope.admits(uri):
                self._frontier.put(Target(uri, uri, probe=True))
            else:
                yield self._item(uri, Outcome.EXCLUDED, "is no longer in the source's scope")
        yield from self._drain(lambda: len(self._frontier), probing=True)
        yield from redirects.settle_probed()
        if self._doubts and self._state.has_absent():
            for doubt in self._doubts:
                self._issues.add(doubt)
            self._issues.add(
                "Known pages that nothing else leads to may be in it: mend the sitemap, let it answer 404, "
                "or set use_sitemap to false."
            )

    def _read_sitemaps(self) -> None:
        reader = SitemapReader(self._fetcher, self._loop)
        for origin in self._origins:
            declared = self._loop.run(self._robots.sitemaps(origin))
            for page in reader.pages(origin, declared):
                uri = canonical_url(page.url, origin)
                if uri is not None:
                    self._frontier.offer(Target(uri, uri, depth=1))
                    if page.modified and self._scope.contains(uri):
                        self._state.set_sitemap_date(uri, page.modified[:64])
        for problem in reader.problems:
            self._issues.add(problem)
        self._doubts = reader.doubts


class WebsiteSource:
    """Crawls one website (a ``Source``)."""

    def __init__(self, options: WebsiteOptions, clock: Clock = utc_now) -> None:
        self.fingerprint = options.fingerprint
        self._options = options
        self._clock = clock

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Crawl it (``Source.crawl``); memory does not grow with the site.

        Whoever consumes this may stop early: no thread, task or file outlives the crawl. Raises
        ``ConfigurationError`` when the certificate authorities cannot be read.
        """
        fetcher = Fetcher(self._options)
        with CrawlState() as state, LoopThread(fetcher.aclose) as loop:
            yield from Crawl(
                options=self._options,
                scope=Scope(self._options),
                fetcher=fetcher,
                loop=loop,
                state=state,
                known=known,
                limit=limit,
                clock=self._clock,
            ).run()
