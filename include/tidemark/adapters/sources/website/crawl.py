"""One crawl of a website: who is visited, and what the listing says of it.

Pages are visited several at a time, in the event loop, and taken in the order in which they were asked for,
so a crawl of the same site gives the same listing. What a visit means:

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
    redirect within scope,              MOVED, ALIAS or FAILED: see website_leads.py
    rel=canonical within scope
    redirect out of scope               no document
      and known before, temporarily     FAILED, held links followed
    start page not answered with a page  not listed                  incomplete; without any, the end
    a trap (website_traps.py)           the first one EXCLUDED

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
from datetime import UTC, datetime

from tidemark.adapters.media import HTML_TYPES
from tidemark.adapters.sources.website.fetch import NOINDEX, Answer, Kind, Visitor
from tidemark.adapters.sources.website.frontier import Frontier, Scope, Target, Traps
from tidemark.adapters.sources.website.http import MAX_HELD_BYTES, Budget, Fetcher
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.adapters.sources.website.pages import PageFacts, read_page
from tidemark.adapters.sources.website.robots import Robots
from tidemark.adapters.sources.website.sitemaps import SitemapReader
from tidemark.adapters.sources.website.state import How, Lead, Mark, Route, Trail
from tidemark.adapters.sources.website.transport import LoopThread
from tidemark.domain.documents import CrawlEnd, CrawlItem, Outcome, SourceItem
from tidemark.domain.urls import canonical_url, origin_of
from tidemark.ports import Clock, Known

# What a listing lacks, collected while it is made and told at its end.


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
class Leads:
    """Settles all addresses that lead elsewhere.

    failed: makes the item of an address that FAILED, with a detail and its depth, and follows what is
        held of it.
    drained: visits what waits in the frontier.
    """

    trail: Trail
    frontier: Frontier
    failed: Callable[[str, str, int], CrawlItem]
    drained: Callable[[], Iterator[CrawlItem]]

    def settle(self) -> Iterator[CrawlItem]:
        """Yield what the listing says of them, and what is found on the way."""
        while True:
            for lead in self.trail.leading():
                yield from self._at_a_document(lead)
            if not len(self.frontier):
                for lead in self.trail.leading():
                    yield from self._nowhere(lead)
            if not len(self.frontier):
                return
            yield from self.drained()

    def settle_probed(self) -> Iterator[CrawlItem]:
        """Yield those met while probing that moved to a document; the others are absent."""
        for lead in self.trail.leading():
            route = self.trail.route(lead.uri)
            if lead.known and lead.how is How.PERMANENT and route.document and route.permanent:
                yield self._led(lead, route)

    def _at_a_document(self, lead: Lead) -> Iterator[CrawlItem]:
        route = self.trail.route(lead.uri)
        if not route.document:
            # The last one of a chain, and those on a circle, stand for themselves; then others may follow.
            if lead.how is How.CANONICAL and (route.through or not route.names):
                self.trail.mark(lead.uri, Mark.OWN)
                self.frontier.again(Target(lead.uri, lead.uri, lead.depth, lead.referrer, own=True))
            return
        if lead.known and lead.how is How.TEMPORARY and self.trail.sent_to(lead.leads) >= WALL:
            detail = f"redirects for now to {route.end}, as other pages do: is that a login?"
            yield self.failed(lead.uri, detail, lead.depth)
        else:
            yield self._led(lead, route)

    def _led(self, lead: Lead, route: Route) -> CrawlItem:
        """The item of an address whose way ends at a document."""
        self.trail.mark(lead.uri, Mark.SAID)
        if lead.known and lead.how is not How.CANONICAL and route.permanent:
            outcome, detail = Outcome.MOVED, f"moved to {route.end}"
        elif lead.how is How.CANONICAL:
            outcome, detail = Outcome.ALIAS, f"names {lead.leads} as canonical"
        else:
            outcome, detail = Outcome.ALIAS, f"redirects to {lead.leads}"
        return CrawlItem(SourceItem(lead.uri), outcome, detail=detail, target=route.end)

    def _nowhere(self, lead: Lead) -> Iterator[CrawlItem]:
        route = self.trail.route(lead.uri)
        if route.document or lead.how is How.CANONICAL:
            return
        if route.circle:
            yield self.failed(lead.uri, "redirects in a circle", lead.depth)
            return
        is_open = not route.permanent or route.marks & Mark.FAILED
        if lead.known and is_open and not route.marks & Mark.GONE:
            detail = f"redirects to {route.end}, which is no document now"
            yield self.failed(lead.uri, detail, lead.depth)


MAX_REDIRECTS = 10
OUTAGES_IN_A_ROW = 20
"""After so many visits without an answer the site is taken to be away."""
_URLS_PER_DOCUMENT = 4
_URLS_AT_LEAST = 1_000
"""A trap may be all redirects and errors: URLs are bounded too, not only documents."""

_AHEAD = 4
_MOST_AHEAD = 128
"""Visits asked for and not yet handed on, per request at a time, and at most."""

_MARKS = {
    Outcome.FAILED: Mark.FAILED,
    Outcome.TOO_LARGE: Mark.FAILED,
    Outcome.GONE: Mark.GONE,
}
_SAID = {
    Kind.GONE: Outcome.GONE,
    Kind.FAILED: Outcome.FAILED,
    Kind.EXCLUDED: Outcome.EXCLUDED,
    Kind.TOO_LARGE: Outcome.TOO_LARGE,
}


class Crawl:
    """The state of one crawl. Only visits run in the loop's thread."""

    def __init__(
        self,
        *,
        options: WebsiteOptions,
        scope: Scope,
        fetcher: Fetcher,
        loop: LoopThread,
        trail: Trail,
        known: Known,
        limit: int | None,
        clock: Clock,
    ) -> None:
        self._options = options
        self._scope = scope
        self._fetcher = fetcher
        self._loop = loop
        self._trail = trail
        self._known = known
        self._limit = limit
        self._ahead = min(_MOST_AHEAD, _AHEAD * options.concurrency * scope.hosts)
        self._robots = Robots(fetcher, options.robots_name)
        self._budget = Budget(loop.call_soon, MAX_HELD_BYTES)
        self._visitor = Visitor(fetcher, self._robots, options.robots_name, clock, self._budget)
        self._traps = Traps(trail, queries=options.max_queries, repeats=options.max_repeats)
        self._frontier = Frontier(scope, trail, self._traps, options.max_depth)
        self._asked = 0
        self._documents = 0
        self._origins: dict[str, None] = {}
        self._outages = 0
        self._lacks = Shortfalls()
        self._doubts: list[str] = []
        self._stopped = False

    def run(self) -> Iterator[CrawlItem | CrawlEnd]:
        """Yield the listing, then its end."""
        yield from self._listing()
        yield self._lacks.end(self._robots.problems)

    def _listing(self) -> Iterator[CrawlItem]:
        self._trail.remember(self._counted(self._known.uris()))
        for start in self._scope.starts:
            self._frontier.offer(Target(start, start, seed=True))
        # The start pages first: when the site is away nothing else is asked, or said.
        yield from self._drain(lambda: self._frontier.seeds)
        if self._stopped or not self._origins:
            return
        if self._options.use_sitemap:
            self._read_sitemaps()
        yield from self._waiting()
        leads = Leads(self._trail, self._frontier, self._failed_by_itself, self._waiting)
        if not self._stopped:
            yield from leads.settle()
        for uri, why in self._traps.met.values():
            self._trail.mark(uri, Mark.SAID | Mark.SEEN)
            yield self._said(uri, Outcome.EXCLUDED, why)
        # With a start page lost, what it led to is not reached for that reason alone.
        if not self._stopped and not self._lacks.lost_starts:
            yield from self._unreached(leads)

    def _counted(self, uris: Iterator[str]) -> Iterator[str]:
        for uri in uris:
            self._traps.count(uri)
            yield uri

    def _waiting(self) -> Iterator[CrawlItem]:
        return self._drain(lambda: len(self._frontier))

    def _drain(self, waiting: Callable[[], int], *, probing: bool = False) -> Iterator[CrawlItem]:
        """Visit what waits and what that leads to, several at a time, settled in order of asking."""
        under_way: deque[tuple[Target, Future[Answer]]] = deque()
        while not self._stopped:
            room = self._ahead if probing else self._room()
            while waiting() and len(under_way) < room:
                target = self._frontier.take()
                under_way.append((target, self._visit(target)))
            if not under_way:
                if waiting():
                    self._frontier.clear()
                    self._lacks.cut(self._documents, self._asked)
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
        """How many visits may be under way, so that no more documents come than are wanted."""
        most = self._options.max_pages
        if self._limit is not None:
            most = min(most, self._limit)
        if self._asked >= _URLS_PER_DOCUMENT * self._options.max_pages + _URLS_AT_LEAST:
            return 0
        return min(self._ahead, most - self._documents)

    def _end(self, problem: str) -> None:
        self._lacks.add(problem)
        self._stopped = True

    def _visit(self, target: Target) -> Future[Answer]:
        number = self._asked
        self._asked += 1
        validators = None if target.afresh else self._known.validators(target.uri)
        dated = self._trail.dated(target.uri)
        return self._loop.submit(self._visitor.visit(number, target, validators, dated))

    def _settle(self, target: Target, answer: Answer) -> Iterator[CrawlItem]:
        self._trail.mark(target.uri, Mark.SETTLED | (Mark.STOOD if target.own else 0))
        self._outages = self._outages + 1 if answer.outage else 0
        if target.seed and answer.kind in _SAID:
            self._lacks.start_lost(target.uri, answer.detail)
        elif answer.kind in {Kind.PAGE, Kind.UNCHANGED} and not target.probe:
            yield from self._met(target, answer)
        elif answer.kind is Kind.MOVED:
            yield from self._moved(target, answer)
        elif answer.kind is Kind.FAILED:
            yield self._failed(target, answer)
        elif answer.kind is Kind.TOO_LARGE:
            yield self._too_large(target, answer)
        elif answer.kind in _SAID:
            yield self._said(target.uri, _SAID[answer.kind], answer.detail)
        if self._outages >= OUTAGES_IN_A_ROW:
            self._end(f"The site stopped answering ({self._outages} times in a row).")

    def _said(self, uri: str, outcome: Outcome, detail: str) -> CrawlItem:
        self._trail.mark(uri, Mark.SAID | _MARKS.get(outcome, 0))
        return CrawlItem(SourceItem(uri), outcome, detail=detail)

    def _failed_by_itself(self, uri: str, detail: str, depth: int) -> CrawlItem:
        """FAILED for what the URL itself says, not for an outage."""
        self._follow_held(uri, depth)
        return self._said(uri, Outcome.FAILED, detail)

    def _failed(self, target: Target, answer: Answer) -> CrawlItem:
        # What nothing leads to any more leads to nothing either.
        followed = target.probe or self._follow_held(target.uri, target.depth)
        if not followed and not answer.refusal:
            self._lacks.unread(target.uri, answer.detail)
        return self._said(target.uri, Outcome.FAILED, answer.detail)

    def _too_large(self, target: Target, answer: Answer) -> CrawlItem:
        # What it links to is not read either; what it linked to when it was smaller must not be lost.
        self._follow_held(target.uri, target.depth)
        said = self._said(target.uri, Outcome.TOO_LARGE, answer.detail)
        return replace(said, item=SourceItem(target.uri, answer.validators))

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

    def _met(self, target: Target, answer: Answer) -> Iterator[CrawlItem]:
        facts = self._facts(target, answer)
        if facts is None:
            self._frontier.again(replace(target, afresh=True))
            return
        if target.seed:
            self._origins[origin_of(target.uri)] = None
        if not answer.directives.nofollow and not target.own:
            self._frontier.follow(facts.links, target.depth + 1, target.uri)
        if answer.directives.noindex or facts.directives.noindex:
            yield self._said(target.uri, Outcome.EXCLUDED, NOINDEX)
        elif target.seed and not self._scope.admits(target.uri):
            yield self._said(target.uri, Outcome.EXCLUDED, "is read for its links alone (patterns)")
        elif facts.canonical and not target.own and self._scope.admits(facts.canonical):
            self._lead(target, How.CANONICAL, facts.canonical)
            self._frontier.offer(Target(facts.canonical, facts.canonical, target.depth, target.uri))
        else:
            self._documents += 1
            self._trail.mark(target.uri, Mark.DOCUMENT | Mark.SAID)
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

    def _lead(self, target: Target, how: How, leads: str) -> None:
        self._trail.lead(target.uri, how, leads, target.depth, target.referrer)

    def _moved(self, target: Target, answer: Answer) -> Iterator[CrawlItem]:
        if target.hops >= MAX_REDIRECTS:
            problem = "redirects too many times"
        elif answer.location == target.uri:
            # The server insists on another spelling of the same URL.
            self._frontier.again(replace(target, url=answer.spelling, hops=target.hops + 1))
            return
        elif not self._scope.contains(answer.location):
            problem = f"redirects out of the source's scope, to {answer.location}"
            known = self._trail.marks(target.uri) & Mark.KNOWN
            if target.probe or ((answer.permanent or not known) and not target.seed):
                return
        else:
            how = How.PERMANENT if answer.permanent else How.TEMPORARY
            self._lead(target, how, answer.location)
            if not target.probe:
                self._frontier.offer(
                    replace(target, uri=answer.location, url=answer.location, hops=target.hops + 1)
                )
            return
        if target.seed:
            self._lacks.start_lost(target.uri, problem)
        else:
            yield self._failed_by_itself(target.uri, problem, target.depth)

    def _unreached(self, leads: Leads) -> Iterator[CrawlItem]:
        for uri in self._trail.unreached():
            if self._scope.admits(uri):
                self._frontier.again(Target(uri, uri, probe=True))
            else:
                yield self._said(uri, Outcome.EXCLUDED, "is no longer in the source's scope")
        yield from self._drain(lambda: len(self._frontier), probing=True)
        yield from leads.settle_probed()
        if self._doubts and self._trail.has_absent():
            for doubt in self._doubts:
                self._lacks.add(doubt)
            self._lacks.add(
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
                        self._trail.date(uri, page.modified[:64])
        for problem in reader.problems:
            self._lacks.add(problem)
        self._doubts = reader.doubts


# The website source: from start pages, sitemaps and links to documents with their bytes.

__all__ = ["WebsiteOptions", "WebsiteSource"]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class WebsiteSource:
    """Crawls one website (a ``Source``)."""

    def __init__(self, options: WebsiteOptions, clock: Clock = _utc_now) -> None:
        self.fingerprint = options.fingerprint
        self._options = options
        self._clock = clock

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Crawl it (``Source.crawl``); memory does not grow with the site.

        Whoever consumes this may stop early: no thread, task or file outlives the crawl. Raises
        ``ConfigurationError`` when the certificate authorities cannot be read.
        """
        fetcher = Fetcher(self._options)
        with Trail() as trail, LoopThread(fetcher) as loop:
            yield from Crawl(
                options=self._options,
                scope=Scope(self._options),
                fetcher=fetcher,
                loop=loop,
                trail=trail,
                known=known,
                limit=limit,
                clock=self._clock,
            ).run()
