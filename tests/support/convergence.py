"""A machine that does to a source, its runs and its stores whatever can happen to them, in any order.

After each of its checks, one clean run, the index must be what a fresh index of the same source would be.
And at no write of any run may a healthy document be missing.
"""

import contextlib
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

from convergence_checks import Checked
from convergence_world import STORES
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from site_model import (
    LEADING,
    PARAGRAPHS,
    SICK,
    URIS,
    Page,
    Setup,
    aliases,
    lay_out,
    with_page,
)
from store_losses import What, lose
from worlds import SOURCE

from fakes.faulty_ports import MODES, Fault, KilledError, Line, Turns
from tidemark import pipeline
from tidemark.domain.chunks import PointWrite, StoredPoint
from tidemark.domain.errors import TidemarkError
from tidemark.stages.housekeeping import Retention, collect_garbage
from tidemark.stages.job import Stores as Upkeep
from tidemark.stages.job import embed_fingerprint
from tidemark.stages.takedown.requests import DocumentRef
from tidemark.stages.takedown.takedown import take_down

uris = st.sampled_from(URIS)
texts = st.lists(st.sampled_from(PARAGRAPHS), min_size=1, max_size=3).map(tuple)
titles = st.sampled_from(["A page", "The tide"])
setups = st.builds(
    Setup,
    tokens=st.sampled_from([40, 12]),
    labels=st.sampled_from([("one",), ("two",)]),
    parser=st.sampled_from([1, 2]),
    dimension=st.sampled_from([16, 16, 24]),
    etags=st.booleans(),
)
calls = st.integers(0, 40) | st.integers(0, 160)
faults = st.builds(
    Fault, mode=st.sampled_from(MODES), at=calls, calls=st.sampled_from([1, 1, 2, 5, 1000])
)


class Convergence(Checked):
    """What happens; a subclass says on what stores."""

    # The site

    @initialize(site=st.lists(texts, min_size=2, max_size=4), setup=setups)
    def there_is_a_site(self, site: list[tuple[str, ...]], setup: Setup) -> None:
        self.setup = setup
        for uri, paragraphs in zip(URIS, site, strict=False):
            self.lay(uri, Page(paragraphs=paragraphs))
        self.clean_run()

    @rule(uri=uris, paragraphs=texts, title=titles, pad=st.integers(0, 2))
    def a_page_is_written(
        self, uri: str, paragraphs: tuple[str, ...], title: str, pad: int
    ) -> None:
        self.lay(uri, Page("page", title, paragraphs, pad))

    @rule(uri=uris, what=st.sampled_from(["title", "pad", "shrink", "swap"]))
    def a_page_is_edited(self, uri: str, what: str) -> None:
        page = self.site[uri]
        if page.kind != "page":
            return
        edits: dict[str, dict[str, Any]] = {
            "title": {"title": page.title + "!"},
            "pad": {"pad": page.pad + 1},
            "shrink": {"paragraphs": page.paragraphs[:1]},
            "swap": {"paragraphs": page.paragraphs[::-1]},
        }
        self.history.append(page)
        self.lay(uri, replace(page, **edits[what]))

    @rule(uri=uris, to=uris, how=st.sampled_from(["moved", "alias", "gone", "unlisted", "copied"]))
    def a_page_goes_elsewhere(self, uri: str, to: str, how: str) -> None:
        page = self.site[uri]
        if uri == to or page.kind != "page":
            return
        self.lay(to, page)
        if how != "copied":
            self.lay(uri, Page(how, target=to if how in LEADING else ""))

    @rule(uri=uris, to=uris, how=st.sampled_from(sorted(LEADING)))
    def an_address_leads_to_another(self, uri: str, to: str, how: str) -> None:
        if uri != to and self.site[to].kind == "page":
            self.lay(uri, Page(how, target=to))

    @rule(uri=uris, how=st.sampled_from(["gone", "unlisted", "excluded"]))
    def a_page_vanishes(self, uri: str, how: str) -> None:
        self.history.append(self.site[uri])
        self.lay(uri, Page(how))

    @precondition(lambda self: self.history)
    @rule(uri=uris, data=st.data())
    def something_comes_back(self, uri: str, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(self.history))
        if page.kind not in LEADING:
            self.lay(uri, page)

    @rule(uri=uris, kind=st.sampled_from(sorted(SICK)), paragraphs=texts)
    def a_page_becomes_sick(self, uri: str, kind: str, paragraphs: tuple[str, ...]) -> None:
        self.history.append(self.site[uri])
        self.lay(uri, Page(kind, paragraphs=paragraphs))

    @rule(setup=setups)
    def it_is_configured_otherwise(self, setup: Setup) -> None:
        if setup.dimension == self.setup.dimension or self._may_lose("ledger"):
            self.setup = setup

    # Runs

    @rule(
        trouble=st.sampled_from(["", "", "failing", "incomplete", "away", "force", "limit"]),
        uri=uris,
        fault=st.none() | faults,
        photo=st.sampled_from(["", "", *STORES]),
        photo_at=calls,
    )
    def a_run(self, trouble: str, uri: str, fault: Fault | None, photo: str, photo_at: int) -> None:
        line = Line(fault)
        if photo and fault is None:
            line.photo, line.photo_at = lambda: self._copy(photo), photo_at
        self._prepare(trouble, uri)
        job = {"force": {"force": True}, "limit": {"limit": 2}}.get(trouble, {})
        self._watch(line)
        self._run(line, **job)

    @rule(
        lengths=st.lists(st.integers(1, 30), min_size=1, max_size=12),
        faults=st.tuples(st.none() | faults, st.none() | faults),
        uri=uris,
        page=st.builds(Page, paragraphs=texts) | st.just(Page("gone")),
    )
    def two_runs_overlap(
        self, lengths: list[int], faults: tuple[Fault | None, Fault | None], uri: str, page: Page
    ) -> None:
        """The first has lost its source's lock and does not know; the site changes when the other begins."""
        before = dict(self.site)
        turns = Turns(lengths)
        lines = [Line(fault, turns=turns) for fault in faults]
        self._prepare("", uri)

        def second() -> None:
            self.lay(uri, page)
            lay_out(self.world, self.site)
            self._run(lines[1])

        for line in lines:
            self._watch(line, with_page(before, uri, page), before)
        turns.run(lambda: self._run(lines[0]), second)
        self._told(*lines)

    @rule(
        lengths=st.lists(st.integers(1, 30), min_size=1, max_size=12),
        fault=st.none() | faults,
        swept=st.booleans(),
    )
    def tasks_of_a_run_overlap(self, lengths: list[int], fault: Fault | None, swept: bool) -> None:
        """Each batch is processed twice at the same time, by a task and by its retry."""
        self._prepare("", URIS[0])
        planned = self._plan()
        turns = Turns(lengths)
        lines = [Line(fault, turns=turns), Line(turns=turns)]
        for line in lines:
            self._watch(line)
        turns.run(*(lambda line=line: self._process(planned, line) for line in lines))
        self._told(*lines)
        self.older = planned
        if swept:
            pipeline.sweep(planned.job, planned.deps, planned.generation)

    @precondition(lambda self: self.older is not None)
    @rule(fault=st.none() | faults)
    def an_old_task_wakes_up(self, fault: Fault | None) -> None:
        """It has slept while other runs went on, and processes what it was given."""
        line = Line(fault)
        self._watch(line, old=self.older)
        self._process(self.older, line)
        self._told(line)

    # Stores

    @rule(which=st.sampled_from(STORES))
    def a_store_is_copied(self, which: str) -> None:
        self._copy(which)

    @precondition(lambda self: any(self.copies.values()))
    @rule(which=st.sampled_from(STORES), data=st.data())
    def a_store_is_put_back(self, which: str, data: st.DataObject) -> None:
        if self.copies[which] and self._may_lose(which):
            age = data.draw(st.integers(1, len(self.copies[which])))
            copy, hand = self.copies[which][-age]
            self.kept.restore(which, copy)
            self.hand = (hand or self.hand) if which == "ledger" else hand
            self._take_up()

    @rule(which=st.sampled_from(STORES))
    def a_store_is_lost(self, which: str) -> None:
        if self._may_lose(which):
            self.kept.wipe(which)
            self.hand = self.hand if which == "ledger" else ""
            self._take_up()

    @rule(what=st.sampled_from(["points", "sections"]), number=st.integers(0, 2))
    def a_collection_is_lost(self, what: What, number: int) -> None:
        index = self.kept.index
        if (generations := index.generations()) and self._may_lose("index"):
            lose(index, generations[number % len(generations)], what)

    @rule(
        what=st.sampled_from(["lost", "gained", "changed"]),
        number=st.integers(0, 10),
        sections=st.booleans(),
    )
    def somebody_meddles_with_the_index(self, what: str, number: int, sections: bool) -> None:
        index, live = self.world.index, self.world.index.live()
        found = list((index.scan_sections if sections else index.scan_points)(live)) if live else []
        # What is lost and what is gained may cancel out in the counts; only an audit sees such.
        if not found or live is None:
            return
        item = sorted(found, key=lambda p: p.point_id)[number % len(found)]
        if what == "changed" and not sections and not self._is_known(item):
            return
        self.hand = what if self.hand in ("", what) else "changed"
        delete = index.delete_sections if sections else index.delete_points
        dense = None if sections else (0.25,) * index.dimension(live)
        write = index.upsert_sections if sections else index.upsert_points
        if what == "lost":
            delete(live, [item.point_id])
        elif what == "gained":
            write(live, [PointWrite(uuid5(item.point_id, str(number)), item.payload, dense)])
        else:
            payload = item.payload if number % 2 else {**item.payload, "title": "meddled with"}
            # With its own vector it has lost its words only.
            kept = None if sections else index.get_vectors(live, [item.point_id])
            own = kept.get(item.point_id, dense) if kept and number % 3 else dense
            write(live, [PointWrite(item.point_id, payload, own)])

    def _is_known(self, point: StoredPoint) -> bool:
        """Does the ledger know the vector of a point? Nothing else can tell it from another."""
        document = UUID(str(point.payload["document_id"]))
        chunks = {c.point_id: c.vector_hash for c in self.world.ledger.documents.chunks(document)}
        record = self.world.ledger.documents.get(document)
        here = record is not None and record.generation == self.world.index.live()
        return here and chunks.get(point.point_id) is not None

    @rule(fault=st.none() | st.none() | faults)
    def an_audit_repairs(self, fault: Fault | None) -> None:
        self._repair(fault)

    @precondition(lambda self: self.takes_down)
    @rule(uri=uris, fault=st.none() | faults)
    def a_document_is_taken_down(self, uri: str, fault: Fault | None) -> None:
        if any(page.target == uri for page in self.site.values()):
            return
        self._prepare("", URIS[0])
        line = Line(fault)
        leading = {alias for alias, end in aliases(self.world).items() if end == uri}
        self._watch(line, old=self._as_it_is(), besides={uri} | leading)
        self.forgetful = True
        with contextlib.suppress(KilledError, TidemarkError):
            take_down(self._upkeep(line), DocumentRef.at(SOURCE, uri))
        self._told(line)

    @precondition(lambda self: self.collects_garbage)
    @rule(days=st.sampled_from([0, 1, 40, 200]), fault=st.none() | faults)
    def garbage_is_collected_some_days_later(self, days: int, fault: Fault | None) -> None:
        self._prepare("", URIS[0])
        self.world.now += timedelta(days=days)
        line = Line(fault)
        self._watch(line, old=self._as_it_is())
        embed = embed_fingerprint(self.world.embedder, self.world.lexical)
        self.forgetful = True
        with contextlib.suppress(KilledError, TidemarkError):
            collect_garbage(self._upkeep(line), Retention(), "tidemark", embed, [SOURCE])
        self._told(line)

    def _upkeep(self, line: Line) -> Upkeep:
        deps = line.deps(self.world.deps())
        return Upkeep(deps.ledger, deps.artifacts, deps.index, deps.clock)

    # Checks

    @rule()
    def it_converges(self) -> None:
        self.clean_run()

    def teardown(self) -> None:
        self.clean_run()
