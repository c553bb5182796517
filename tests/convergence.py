"""A machine that does to a source, its runs and its stores whatever can happen to them, in any order.

After each of its checks, one clean run, the index must be what a fresh index of the same source would be.
And at no write of any run may a healthy document be missing.
"""

import contextlib
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from faulty_ports import MODES, Fault, KilledError, Line, Turns
from site_model import (
    ABSENT,
    LEADING,
    PARAGRAPHS,
    SICK,
    URIS,
    Expected,
    Page,
    RefusingIndex,
    Setup,
    aliases,
    difference,
    expected,
    held,
    lay_out,
    rows,
    with_page,
)
from store_copies import Stores
from tidemark.adapters.memory_artifacts import MemoryArtifacts
from tidemark.domain.checksums import add, checksum, point_part, section_part, vector_hash
from tidemark.domain.errors import TidemarkError
from tidemark.domain.hashing import digest_of, digest_text
from tidemark.domain.identity import document_id
from tidemark.domain.model import PointWrite, StoredPoint
from tidemark.domain.plan import Target
from tidemark.domain.records import DocumentStatus
from tidemark.domain.summary import RunSummary
from tidemark.stages.auditing.given import AuditTools
from tidemark.stages.auditing.whole import audit_index
from tidemark.stages.crawl import crawl
from tidemark.stages.generation import ensure_generation
from tidemark.stages.housekeeping import Retention, keep_house
from tidemark.stages.job import Job, Tools, embed_fingerprint, raw_key, target
from tidemark.stages.plan import make_plan
from tidemark.stages.process import process_batch
from tidemark.stages.reconcile import advance, reconcile
from tidemark.stages.report import begin
from tidemark.stages.run import run_source
from tidemark.stages.site import knowing_site
from tidemark.stages.stores import Stores as Upkeep
from tidemark.stages.sweep import sweep
from tidemark.stages.takedown import NoCache, take_down
from tidemark.stages.takedown_order import Found
from worlds import SOURCE, World

STORES = ("ledger", "index")

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


@dataclass(frozen=True, slots=True)
class Planned:
    """A run as tasks: planned, its batches still to be processed; of what site, and indexed how."""

    site: dict[str, Page]
    setup: Setup
    job: Job
    tools: Tools
    goal: Target
    batches: tuple[str, ...]


class Convergence(RuleBasedStateMachine):
    """What happens; a subclass says on what stores."""

    takes_down = True
    keeps_house = True

    def stores(self) -> Stores:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.kept: Stores = self.stores()
        self.world = World()
        self.world.artifacts = MemoryArtifacts(self.world._clock)
        self.setup = Setup()
        self.site: dict[str, Page] = dict.fromkeys(URIS, Page("gone"))
        self.history: list[Page] = []
        self.copies: dict[str, list[Any]] = {name: [] for name in STORES}
        self.bodies: dict[str, Page] = {}
        self.hand = ""
        self.forgetful = False
        self.older: Planned | None = None
        self._take_up()

    # The site

    def lay(self, uri: str, page: Page) -> None:
        self.site = with_page(self.site, uri, page)
        if page.kind == "page":
            self.bodies[digest_text(str(page.body()))] = page

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
            sweep(planned.job, planned.tools, planned.goal.generation)

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
            write(live, [PointWrite(item.point_id, payload, dense)])

    def _is_known(self, point: StoredPoint) -> bool:
        """Does the ledger know the vector of a point? Nothing else can tell it from another."""
        document = UUID(str(point.payload["document_id"]))
        chunks = {c.point_id: c.vector_hash for c in self.world.ledger.chunks(document)}
        record = self.world.ledger.document(document)
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
            take_down(self._upkeep(line), NoCache(), Found(SOURCE, uri, document_id(SOURCE, uri)))
        self._told(line)

    @precondition(lambda self: self.keeps_house)
    @rule(days=st.sampled_from([0, 1, 40, 200]), fault=st.none() | faults)
    def the_house_is_kept_some_days_later(self, days: int, fault: Fault | None) -> None:
        self._prepare("", URIS[0])
        self.world.now += timedelta(days=days)
        line = Line(fault)
        self._watch(line, old=self._as_it_is())
        embed = embed_fingerprint(self.world.embedder, self.world.lexical)
        self.forgetful = True
        with contextlib.suppress(KilledError, TidemarkError):
            keep_house(self._upkeep(line), Retention(), "tidemark", embed, [SOURCE])
        self._told(line)

    def _upkeep(self, line: Line) -> Upkeep:
        tools = line.tools(self.world.tools())
        return Upkeep(tools.ledger, tools.artifacts, tools.index, tools.clock)

    # Checks

    @rule()
    def it_converges(self) -> None:
        self.clean_run()

    def teardown(self) -> None:
        self.clean_run()

    def clean_run(self) -> None:
        """One whole run that nothing disturbs, and all that must be right after it."""
        with self.world.index.session():
            self._clean_run()

    def _clean_run(self) -> None:
        self._cure_what_cannot_be_restored()
        if self.hand == "changed":
            self._repair()
        self._prepare("", URIS[0])
        unchecked = self._unchecked()
        want = self._expected(unchecked)
        bound = self._texts_missing(want)
        live_before = self._live_sick()
        summary, line = self._clean()
        assert summary.status == "success", summary
        assert len(self.world.embedder.texts) <= bound, "what is there is not embedded again"
        self._assert_right(want, unchecked, live_before)
        self._prepare("", URIS[0])
        again, line = self._clean()
        assert (again.status, line.writes) == ("success", []), again
        assert not self.world.embedder.texts, again
        assert not self.world.partitioner.calls, again
        self.hand = ""

    def _cure_what_cannot_be_restored(self) -> None:
        """A sick document whose last good bytes are deleted, and in the ledger again from a backup."""
        for record in self.world.ledger.documents(SOURCE):
            lost = record.raw_hash and not self.world.artifacts.exists(raw_key(record.raw_hash))
            if lost and self.site[record.uri].kind in SICK:
                assert self.forgetful
                self.lay(record.uri, Page())

    def _clean(self) -> tuple[RunSummary, Line]:
        line = Line()
        self._watch(line)
        summary = self._run(line)
        self._told(line)
        assert summary is not None
        return summary, line

    def _expected(self, unchecked: AbstractSet[str]) -> Expected:
        site = dict(self.site)
        for uri in self._taken() | {u for u in unchecked if site[u].kind not in SICK}:
            site = with_page(site, uri, Page("gone"))
        return expected(site, self.setup)

    def _taken(self) -> set[str]:
        return {stone.uri for stone in self.world.ledger.taken_down(SOURCE)}

    def _unchecked(self) -> set[str]:
        """Addresses of which the site alone does not tell what is live there.

        Those of sick documents, and those that have, or lead to, what was taken down from another address:
        that is kept out, and stays where it has been before.
        """
        taken = self._taken()
        stones = self.world.ledger.taken_down(SOURCE)
        raws = {raw for stone in stones for raw in (stone.raw_hash, *stone.kept_out)}
        found = {
            uri
            for uri, page in self.site.items()
            if page.kind in SICK
            or page.target in taken
            or (page.kind == "page" and digest_text(str(page.body())) in raws)
        }
        found |= {uri for uri, page in self.site.items() if page.target in found}
        return found - taken

    def _assert_right(
        self, want: Expected, unchecked: AbstractSet[str], live_before: dict[str, str]
    ) -> None:
        world, generation = self.world, self.world.generation
        sick = {uri for uri in unchecked if self.site[uri].kind in SICK}
        assert world.index.live() == generation
        for scan, wanted in (("scan_points", want.points), ("scan_sections", want.sections)):
            found = held(world, scan)
            differing = difference({u: h for u, h in found.items() if u not in unchecked}, wanted)
            assert not differing, (scan, differing)
        told = rows(world)
        assert {u: r for u, r in told.items() if u not in unchecked} == want.rows
        assert sick <= told.keys()
        assert world.ledger.in_flight(SOURCE) == {}
        mark = world.ledger.tide_mark(SOURCE)
        assert world.index.marks(generation, SOURCE) == (mark, mark)
        findings = world.audit()
        assert findings.clean, findings
        assert want.aliases.items() <= aliases(world).items()
        for record in world.ledger.documents(SOURCE):
            assert record.generation in (None, generation)
            assert record.checksum == self._checksum(record.document_id) or record.raw_hash is None
            if record.uri in sick:
                assert record.status is DocumentStatus.QUARANTINED
                lost = record.raw_hash is None and record.uri in live_before
                assert not lost or self.forgetful, "it was live"

    # How

    def _take_up(self) -> None:
        self.world.ledger = self.kept.ledger
        self.world.index = RefusingIndex(self.kept.index)  # type: ignore[assignment]

    def _copy(self, which: str) -> None:
        self.copies[which].append((self.kept.copy(which), self.hand if which == "index" else ""))

    def _may_lose(self, which: str) -> bool:
        """A vector that somebody put in place of another is told by the ledger alone."""
        if which == "ledger" and self.hand == "changed":
            self._repair()
        return which == "index" or self.hand != "changed"

    def _prepare(self, trouble: str, uri: str) -> None:
        world = self.world
        world.now += timedelta(hours=1)
        self.setup.apply(world)
        lay_out(world, self.site)
        world.source.away = "It does not answer." if trouble == "away" else ""
        world.source.incomplete = "It broke off." if trouble == "incomplete" else ""
        if trouble == "failing":
            world.source.failing[uri] = "answers 503"
        world.embedder.texts.clear()
        world.partitioner.calls.clear()

    def _run(self, line: Line, **changes: object) -> RunSummary | None:
        job = self.setup.job(self.world, **changes)
        try:
            # Opened once, for an embedded engine takes longer to open than all that is done with it here.
            with self.world.index.session():
                return run_source(job, line.tools(self.world.tools()), "test")
        except KilledError:
            return None
        except TidemarkError:
            if line.fault is None and line.turns is None:
                raise
            return None
        finally:
            if line.turns is None:
                self._told(line)

    def _plan(self) -> Planned:
        job = self.setup.job(self.world, batch_documents=2)
        tools = self.world.tools()
        begin(job, tools, "test")
        crawl(job, tools)
        tools = knowing_site(job, tools)
        generation = ensure_generation(
            tools.ledger, tools.index, job.index_name, tools.embedder, tools.lexical, tools.clock
        )
        reconcile(job, tools, generation)
        goal = target(job, tools, generation)
        plan = make_plan(job, tools, goal)
        advance(tools.ledger, tools.index, SOURCE, generation, job.run_id)
        return Planned(dict(self.site), self.setup, job, tools, goal, plan.batches)

    def _process(self, planned: Planned, line: Line) -> None:
        tools = replace(
            planned.tools, ledger=self.world.ledger, index=self.world.index
        )  # what was put back since
        try:
            for key in planned.batches:
                process_batch(planned.job, line.tools(tools), planned.goal, key)
        except (KilledError, TidemarkError):
            pass

    def _repair(self, fault: Fault | None = None) -> None:
        """The audit of all with its repair, under the present configuration."""
        self._prepare("", URIS[0])
        world, line = self.world, Line(fault)
        job, tools = self.setup.job(world), line.tools(world.tools())
        given = AuditTools(
            tools.ledger, tools.index, "tidemark", tools.embedder, tools.lexical, lambda _: (job, tools),
            lambda _: True, tools.clock, wait_seconds=0, settle_seconds=0,
        )  # fmt: skip
        self._watch(line, old=self._as_it_is())
        try:
            done = audit_index(given, repair=True)
        except (KilledError, TidemarkError):
            assert fault is not None
        else:
            told = fault is None and self._can_be_repaired() and not self.forgetful
            assert not told or not done.failed, done
            self.hand = self.hand if fault is not None or not self._can_be_repaired() else ""
        self._told(line)

    def _can_be_repaired(self) -> bool:
        """Is the live generation of the present model, so that there is something to write it with?"""
        live, index = self.world.index.live(), self.world.index
        embed = embed_fingerprint(self.world.embedder, self.world.lexical)
        return live is not None and index.built_under(live) == embed

    def _as_it_is(self) -> Planned:
        """What is done to the stores without looking at the source has no site to go by."""
        job, tools = self.setup.job(self.world), self.world.tools()
        return Planned(self.site, self.setup, job, tools, target(job, tools, 0), ())

    # What must hold at every write

    def _ids(self) -> frozenset[str]:
        live = self.world.index.live()
        if live is None:
            return frozenset()
        return frozenset(str(p.point_id) for p in self.world.index.scan_points(live))

    def _watch(
        self,
        line: Line,
        *sites: dict[str, Page],
        old: Planned | None = None,
        besides: AbstractSet[str] = frozenset(),
    ) -> None:
        """Of each document that is whole now one version must be whole at each moment of the run.

        ``sites``: those that the run may see. ``old``: what it is told to do, though that is out of date.
        """
        besides = besides | self._taken() | self._unchecked()
        sites = (*(sites or (self.site,)), *([old.site] if old else []))
        setups = [self.setup, *([old.setup] if old else [])]
        versions = [expected(site, setup) for site in sites for setup in setups]
        there = self._ids()
        duties: dict[str, list[frozenset[str]]] = {}
        for uri, page in self.site.items():
            if uri in besides or any(site[uri].kind in ABSENT for site in sites):
                continue
            ends = {site[uri].target or uri for site in sites}
            newer = [v.ids(end) for v in versions for end in ends if end in v.points]
            document = document_id(SOURCE, uri)
            # What the ledger has lost is not waited for before a generation of another model goes live.
            if not self._can_be_repaired() and self.world.ledger.document(document) is None:
                continue
            chunks = self.world.ledger.chunks(document)
            now = frozenset(str(chunk.point_id) for chunk in chunks)
            whole = [ids for ids in newer if ids <= there]
            if whole and len(versions) == 1 and page.kind == "page":
                duties[uri] = whole
            elif now and now <= there:
                duties[uri] = [now, *newer, *self._live_anew(uri, setups)]

        def look(name: str) -> None:
            ids = self._ids()
            for uri, alternatives in duties.items():
                if not any(one <= ids for one in alternatives):
                    self.lost.append(f"{uri} is not whole after {name}")

        self.lost: list[str] = []
        line.watch = look

    def _live_anew(self, uri: str, setups: Iterable[Setup]) -> list[frozenset[str]]:
        """The live version as it is cut by now, which a run writes where it cannot have a newer one."""
        record = self.world.ledger.document(document_id(SOURCE, uri))
        page = self.bodies.get(record.raw_hash or "") if record else None
        return [expected({uri: page}, setup).ids(uri) for setup in setups] if page else []

    def _told(self, *lines: Line) -> None:
        assert not self.lost, self.lost

    # What a clean run may cost, and what may not get lost

    def _texts_missing(self, want: Expected) -> int:
        """How many texts have no vector in the generation that the run will write."""
        world = self.world
        tools = world.tools()
        embed = embed_fingerprint(tools.embedder, tools.lexical)
        from tidemark.stages.generation import current_generation

        generation = current_generation(world.ledger, world.index, "tidemark", embed)
        there: dict[str, str] = {}
        if generation is not None:
            points = world.index.scan_points(generation, vectors=True)
            there = {str(p.point_id): vector_hash(p.dense) for p in points if p.dense}
        missing = sum(
            there.get(key) != vector
            for document in want.points.values()
            for key, (_, vector) in document.items.items()
        )
        sick = self._unchecked()
        # Of a sick one: what it has now, which is tried, and what was live, which may have to be restored.
        return missing + 40 * len(sick)

    def _live_sick(self) -> dict[str, str]:
        return {
            record.uri: record.raw_hash
            for record in self.world.ledger.documents(SOURCE)
            if record.raw_hash is not None and self.site[record.uri].kind in SICK
        }

    def _checksum(self, document: UUID) -> str:
        where: dict[str, Any] = {"document_id": str(document)}
        index, generation = self.world.index, self.world.generation
        points: Iterable[int] = (
            point_part(p.point_id, digest_of(p.payload), vector_hash(p.dense or ()))
            for p in index.scan_points(generation, where, vectors=True)
        )
        sections = (
            section_part(s.point_id, digest_of(s.payload))
            for s in index.scan_sections(generation, where)
        )
        return checksum([add(*points), add(*sections)])
