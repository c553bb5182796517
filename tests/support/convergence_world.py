"""A source, its runs and its stores, as the convergence machine has them; what must hold at every write."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine
from site_model import (
    ABSENT,
    URIS,
    Page,
    RefusingIndex,
    Setup,
    expected,
    lay_out,
    with_page,
)
from store_copies import Stores
from worlds import SOURCE, World

from fakes.artifacts import MemoryArtifacts
from fakes.faulty_ports import Fault, KilledError, Line
from tidemark import pipeline
from tidemark.domain.errors import TidemarkError
from tidemark.domain.hashing import digest_text
from tidemark.domain.identity import document_id
from tidemark.domain.records import RunSummary
from tidemark.pipeline import run_source
from tidemark.stages.audit.audit import audit_index
from tidemark.stages.audit.compare import AuditDependencies
from tidemark.stages.job import Dependencies, Job, embed_fingerprint

STORES = ("ledger", "index")


@dataclass(frozen=True, slots=True)
class Planned:
    """A run as tasks: planned, its batches still to be processed; of what site, and indexed how."""

    site: dict[str, Page]
    setup: Setup
    job: Job
    deps: Dependencies
    generation: int
    batches: tuple[str, ...]


class Tried(RuleBasedStateMachine):
    """A site, how it is indexed, and the stores; a subclass says of what kind they are.

    copies: backups of the stores, with what was wrong in them. bodies: every page there was, by the hash of
    its bytes. hand: what somebody has done to the index by hand that only an audit can find, or a count.
    forgetful: snapshots may have been deleted that a backup of the ledger still refers to. older: a run's
    tasks that may wake up late. lost: healthy documents that were not whole at some moment.
    """

    takes_down = True
    collects_garbage = True

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
        self.lost: list[str] = []
        self._take_up()

    def lay(self, uri: str, page: Page) -> None:
        self.site = with_page(self.site, uri, page)
        if page.kind == "page":
            self.bodies[digest_text(str(page.body()))] = page

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
                return run_source(job, line.deps(self.world.deps()), "test")
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
        deps = self.world.deps()
        pipeline.crawl(job, deps, "test")
        plan = pipeline.plan(job, deps)
        return Planned(dict(self.site), self.setup, job, deps, plan.generation, plan.batches)

    def _process(self, planned: Planned, line: Line) -> None:
        deps = replace(
            planned.deps, ledger=self.world.ledger, index=self.world.index
        )  # what was put back since
        try:
            for key in planned.batches:
                pipeline.process(planned.job, line.deps(deps), planned.generation, key)
        except (KilledError, TidemarkError):
            pass

    def _repair(self, fault: Fault | None = None) -> None:
        """The audit of all with its repair, under the present configuration."""
        self._prepare("", URIS[0])
        world, line = self.world, Line(fault)
        job, deps = self.setup.job(world), line.deps(world.deps())
        given = AuditDependencies(
            deps.ledger, deps.index, "tidemark", deps.embedder, deps.lexical, lambda _: (job, deps),
            lambda _: True, deps.clock, wait_seconds=0, settle_seconds=0,
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
        job, deps = self.setup.job(self.world), self.world.deps()
        return Planned(self.site, self.setup, job, deps, 0, ())

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
            if not self._can_be_repaired() and self.world.ledger.documents.get(document) is None:
                continue
            chunks = self.world.ledger.documents.chunks(document)
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

        self.lost = []
        line.watch = look

    def _live_anew(self, uri: str, setups: Iterable[Setup]) -> list[frozenset[str]]:
        """The live version as it is cut by now, which a run writes where it cannot have a newer one."""
        record = self.world.ledger.documents.get(document_id(SOURCE, uri))
        page = self.bodies.get(record.raw_hash or "") if record else None
        return [expected({uri: page}, setup).ids(uri) for setup in setups] if page else []

    def _told(self, *lines: Line) -> None:
        assert not self.lost, self.lost
