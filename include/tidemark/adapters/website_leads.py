"""Addresses that lead to other ones: what redirects and canonical links say once all pages are known.

    the address                                  its way ends at         the listing says of it
    -------------------------------------------  ----------------------  -----------------------------------
    known, redirects, each one for good          a document              MOVED to that
    any other redirect, rel=canonical            a document              ALIAS of that
      known, and redirects for now, as many       a document              FAILED: a wall, not a move (a)
      others do, to one document
    rel=canonical                                no document             stands for itself: asked for again
    redirects in a circle                                                FAILED
    known, redirects for now                     no document, not 404    FAILED: evidence of nothing
    known, redirects for good, or for now to     404, not in the crawl   nothing: the rule for the absent
      what is not there
    not known, redirects                         no document             nothing

(a) A login or consent page that every page sends its visitors to would else take all of them away. A single
    page that is sent elsewhere for now is kept once, at its target, and comes back when the redirect ends.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidemark.adapters.website_frontier import Frontier, Target
from tidemark.adapters.website_trail import How, Lead, Mark, Route, Trail
from tidemark.domain.model import CrawlItem, Outcome, SourceItem

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
