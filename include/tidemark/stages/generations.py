"""Which generation a run writes, and when the alias moves.

A generation is built under one embedding fingerprint. A new model, or an index that was lost, begins a
new one beside the live one; searches stay with the old until every source is in the new. One that is
abandoned, because the model was set back, is dropped when the last document has left it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from tidemark.domain.decide import is_stuck
from tidemark.domain.hashing import Canonical
from tidemark.domain.identity import document_id
from tidemark.domain.records import DocumentRecord, GenerationRecord, GenerationStatus, RunStatus
from tidemark.ports.embedding import Embedder, LexicalEncoder
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger
from tidemark.ports.progress import Clock
from tidemark.stages.job import Dependencies, Job, embed_fingerprint, utc_now


def current_generation(
    ledger: Ledger, index: VectorIndex, index_name: str, embed: str
) -> int | None:
    """The generation built under this embedding fingerprint, None when there is none yet."""
    existing = index.generations()
    records = ledger.generations.all(index_name)
    for record in reversed(records):
        usable = record.status is not GenerationStatus.RETIRED and record.number in existing
        if usable and record.embed_fingerprint == embed:
            return record.number
    # A ledger that is restored does not know what was begun since, and an index that is restored has again
    # what the ledger calls retired: the index itself knows what it was built under. The live one comes first.
    lost = index.incomplete()
    there = [n for n in reversed(existing) if n not in lost and index.built_under(n) == embed]
    if len(there) > 1 and (live := index.live()) in there:
        return live
    return there[0] if there else None


def planned_generation(ledger: Ledger, index: VectorIndex, index_name: str, embed: str) -> int:
    """The generation that the next run will write; creates nothing."""
    found = current_generation(ledger, index, index_name, embed)
    return found if found is not None else _next(ledger, index, index_name)


def ensure_generation(
    ledger: Ledger,
    index: VectorIndex,
    index_name: str,
    embedder: Embedder,
    lexical: LexicalEncoder,
    clock: Clock,
) -> int:
    """Find or create the generation to write. The first ever is live at once.

    Two sources may begin at the same time: one finds what the other has made, under a lock of the index.
    """
    embed = embed_fingerprint(embedder, lexical)
    with ledger.lock_documents([document_id("generations", index_name)]):
        number = planned_generation(ledger, index, index_name, embed)
        with index.session():
            index.ensure(number, embedder.dimension, embed)
            served = index.live()
            if served is None:
                # Lost, or never there: what the ledger calls live is whole, this one may be half built.
                index.switch(_live_in_ledger(ledger, index, index_name) or number)
            elif index.live_sections() != served:
                index.switch(served)
            live = index.live() == number
        records = ledger.generations.all(index_name)
        if number not in {record.number for record in records}:
            status = GenerationStatus.LIVE if live else GenerationStatus.BUILDING
            made = GenerationRecord(index_name, number, embed, embedder.dimension, status, clock())
            ledger.generations.save(made)
            records = [*records, made]
        elif not live:
            _resume(ledger, records, number)
        if live:
            mark_live(ledger, records, number, index.generations())
    return number


def switch_when_complete(job: Job, deps: Dependencies, generation: int) -> bool:
    """Put the alias over the generation once all documents of all declared sources are in it.

    When it is live already, what else there is was abandoned, and goes once it is empty.
    """
    ledger, index = deps.ledger, deps.index
    if index.live() == generation:
        _drop_abandoned(job, deps, generation)
        return False
    others = [name for name in job.declared if name != job.source]
    if ledger.generations.outside(generation) or sources_pending(
        ledger, job.index_name, generation, others, deps.clock()
    ):
        return False
    index.switch(generation)
    for number in index.generations():
        if number != generation:
            index.drop(number)
    mark_live(ledger, ledger.generations.all(job.index_name), generation, [generation])
    return True


def sources_pending(
    ledger: Ledger, index_name: str, generation: int, names: Iterable[str], now: datetime
) -> list[str]:
    """Those of some sources that no good run has looked at since the generation was begun.

    Since it ended, that is: the run that has begun the generation is one. What a run under the model of
    before, that went on meanwhile, has written is outside. Nothing can be told by a generation that was begun
    later than now, because the clock has been set back.
    """
    records = ledger.generations.all(index_name)
    begun = next((r.created_at for r in records if r.number == generation), None)
    if begun is None or begun > now:
        return []
    return [
        name
        for name in names
        if not any(
            run.status is RunStatus.SUCCESS and run.finished_at and run.finished_at >= begun
            for run in ledger.runs.recent(name, limit=5)
        )
    ]


def abandoned(ledger: Ledger, index: VectorIndex, live: int, run_id: str = "") -> list[int]:
    """Generations beside the live one that no document is in, and that no run can need.

    To be asked under the lock under which generations are made, when the live one is of the present model.
    ``run_id``: the run that asks. Any other that goes on may be of another model, as two environments have
    it, and have begun one of them, or found it, without a document in it yet.
    """
    beside = [number for number in index.generations() if number != live]
    if not beside or ledger.generations.outside(live):
        return []
    return [] if _others_run(ledger, run_id) else beside


def drop_generations(
    ledger: Ledger, index: VectorIndex, index_name: str, numbers: Sequence[int]
) -> None:
    """Drop generations, and say that they are retired."""
    for number in numbers:
        index.drop(number)
    for record in ledger.generations.all(index_name):
        if record.number in numbers and record.status is not GenerationStatus.RETIRED:
            ledger.generations.save(replace(record, status=GenerationStatus.RETIRED))


def _drop_abandoned(job: Job, deps: Dependencies, live: int) -> None:
    ledger, index = deps.ledger, deps.index
    if not abandoned(ledger, index, live, job.run_id):
        return
    with ledger.lock_documents([document_id("generations", job.index_name)]), index.session():
        if index.live() == live:
            dead = abandoned(ledger, index, live, job.run_id)
            drop_generations(ledger, index, job.index_name, dead)


def _others_run(ledger: Ledger, run_id: str) -> bool:
    """Does another run go on? One of Airflow has no process between two tasks; of others the lock tells."""
    return any(
        run.run_id != run_id and (run.trigger.startswith("airflow") or ledger.is_locked(run.source))
        for run in ledger.runs.running()
    )


def _live_in_ledger(ledger: Ledger, index: VectorIndex, index_name: str) -> int | None:
    """The generation that the ledger calls live, if there is one and the index has its points."""
    lost = index.incomplete()
    existing = [number for number in index.generations() if lost.get(number) != "points"]
    return next(
        (
            record.number
            for record in ledger.generations.all(index_name)
            if record.status is GenerationStatus.LIVE and record.number in existing
        ),
        None,
    )


def _resume(ledger: Ledger, records: Sequence[GenerationRecord], number: int) -> None:
    """A retired generation that the index has again is being built again."""
    for record in records:
        if record.number == number and record.status is GenerationStatus.RETIRED:
            ledger.generations.save(replace(record, status=GenerationStatus.BUILDING))


def mark_live(
    ledger: Ledger,
    records: Iterable[GenerationRecord],
    live: int,
    existing: Collection[int],
    in_use: Collection[int] = (),
) -> None:
    """Make the ledger say which generation is live; what was live before, or is gone, is retired.

    ``in_use``: what was live before and is one of these is being built still.
    """
    for record in records:
        status = record.status
        if record.number == live:
            status = GenerationStatus.LIVE
        elif record.number not in existing:
            status = GenerationStatus.RETIRED
        elif status is GenerationStatus.LIVE:
            building = record.number in in_use
            status = GenerationStatus.BUILDING if building else GenerationStatus.RETIRED
        if record.status is not status:
            ledger.generations.save(replace(record, status=status))


def _next(ledger: Ledger, index: VectorIndex, index_name: str) -> int:
    numbers = [record.number for record in ledger.generations.all(index_name)]
    return max([*numbers, *index.generations()], default=0) + 1


# What a new generation waits for until it goes live, and one that was abandoned until it is dropped.
#
# Searches are answered from the live generation meanwhile, so nothing fails and nobody would look: each run's
# report and the status name what is waited for, and the hint.

NAMED = 8
"""Sources named in a sentence."""
STUCK = 3
"""Documents named one by one."""


@dataclass(frozen=True, slots=True)
class PendingSource:
    """A source with documents in another generation; none of one that no run has looked at yet.

    standing: "declared", "disabled" (declared, and without runs of its own) or "undeclared".
    """

    source: str
    documents: int
    standing: str

    def words(self) -> str:
        what = {"disabled": "disabled", "undeclared": "not declared"}.get(self.standing, "")
        return f"{self.source} ({what})" if what else self.source


@dataclass(frozen=True, slots=True)
class StuckDocument:
    """A document that no run can bring into the generation."""

    source: str
    uri: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class PendingGeneration:
    """generations: that is being built; or, ``abandoned``, those that are to be dropped.

    lost: nothing is built; the live generation lacks what the sources had in one that is not there any more.
    stuck: the first of ``stuck_count`` documents. They are not counted with their sources.
    """

    generations: tuple[int, ...]
    abandoned: bool
    sources: tuple[PendingSource, ...] = ()
    stuck: tuple[StuckDocument, ...] = ()
    stuck_count: int = 0
    lost: bool = False

    def sentence(self) -> str:
        """For people: what waits, for what, and what to do."""
        numbers = ", ".join(map(str, self.generations))
        if self.lost:
            return self._for_lost()
        if self.abandoned:
            head = f"The model was set back; generation {numbers} is dropped"
        else:
            head = f"Generation {numbers} is being built and goes live"
        return " ".join(filter(None, (self._for_sources(head), self._for_documents(head))))

    def _for_lost(self) -> str:
        count = sum(one.documents for one in self.sources)
        documents = "1 document" if count == 1 else f"{count} documents"
        names = _listed([f"{one.words()} ({one.documents})" for one in self.sources])
        return (
            f"No search finds {documents} that the ledger knows, for the index was lost or set back: "
            f"{names}. `tidemark index --all` brings them back; of a source that is away, or not declared, "
            "`tidemark audit SOURCE --repair` does, from the stored snapshots."
        )

    def _for_sources(self, head: str) -> str:
        if not self.sources:
            return ""
        names = _listed([one.words() for one in self.sources])
        standings = {one.standing for one in self.sources}
        hints = ["`tidemark index SOURCE`"]
        if "undeclared" in standings:
            hints.append(
                "what is not declared: declare it again (or --path, --url), or `tidemark forget SOURCE`"
            )
        if "disabled" in standings:
            hints.append(
                "what is disabled: the same command indexes it once, or remove its declaration and "
                "`tidemark forget SOURCE`"
            )
        return f"{head} once these are indexed: {names}. Index each: {'; '.join(hints)}."

    def _for_documents(self, head: str) -> str:
        if not self.stuck_count:
            return ""
        many = "a document" if self.stuck_count == 1 else f"{self.stuck_count} documents"
        why = " ".join(f"{one.uri}: {one.message} {one.hint}" for one in self.stuck)
        waits = "It waits also for" if self.sources else f"{head} once it need not wait for"
        return f"{waits} {many} in quarantine that no run can bring along. {why}"

    def as_dict(self) -> dict[str, Canonical]:
        return {
            "generations": list(self.generations),
            "given_up": self.abandoned,
            "lost": self.lost,
            "sources": [asdict(one) for one in self.sources],
            "stuck": [
                {"source": s.source, "uri": s.uri, "message": s.message, "cure": s.hint}
                for s in self.stuck
            ],
            "stuck_count": self.stuck_count,
            "sentence": self.sentence(),
        }


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def pending_generation(
    ledger: Ledger,
    index: VectorIndex,
    index_name: str,
    embed: str,
    declared: Collection[str],
    disabled: Collection[str],
    clock: Clock = utc_now,
    source: str = "",
    *,
    doubtful: bool = False,
) -> PendingGeneration | None:
    """What is waited for, None when nothing is; costs one small query where no generation is being built.

    ``embed``: the present embedding fingerprint. ``declared``: sources that have runs, ``disabled``: those
    that are declared and have none. ``source``: the one that a run is just ending of. ``doubtful``: look for
    documents that the live generation lacks, too; then it costs a look at all documents.
    """
    records = ledger.generations.all(index_name)
    building = [r.number for r in records if r.status is GenerationStatus.BUILDING]
    if not building and doubtful:
        return _lost(ledger, index, declared, disabled)
    live = index.live() if building else None
    goal = current_generation(ledger, index, index_name, embed) if live is not None else None
    if goal is None:
        return None
    set_back = goal == live
    outside = ledger.generations.outside(goal)
    stuck, counts = _stuck(ledger, outside, goal)
    names = {name: n - counts[name] for name, n in outside.items() if n > counts[name]}
    if not set_back:
        others = [name for name in declared if name != source]
        unseen = sources_pending(ledger, index_name, goal, others, clock())
        names |= {name: 0 for name in unseen if name not in outside}
    if not names and not counts:
        return None
    return PendingGeneration(
        tuple(building) if set_back else (goal,),
        set_back,
        tuple(
            PendingSource(name, count, _standing(name, declared, disabled))
            for name, count in sorted(names.items())
        ),
        tuple(stuck),
        counts.total(),
    )


def _lost(
    ledger: Ledger, index: VectorIndex, declared: Collection[str], disabled: Collection[str]
) -> PendingGeneration | None:
    live = index.live()
    outside = ledger.generations.outside(live) if live is not None else {}
    if live is None or not outside:
        return None
    lacking = [
        PendingSource(n, count, _standing(n, declared, disabled)) for n, count in outside.items()
    ]
    return PendingGeneration((live,), abandoned=False, sources=tuple(lacking), lost=True)


def _standing(name: str, declared: Collection[str], disabled: Collection[str]) -> str:
    if name in declared:
        return "declared"
    return "disabled" if name in disabled else "undeclared"


def _stuck(
    ledger: Ledger, sources: Collection[str], goal: int
) -> tuple[list[StuckDocument], Counter[str]]:
    """The first of them, and how many each source has."""
    found: list[StuckDocument] = []
    counts: Counter[str] = Counter()
    for source in sources:
        for record in ledger.documents.stream(source, quarantined=True):
            if record.generation == goal or not is_stuck(record):
                continue
            counts[source] += 1
            if len(found) < STUCK:
                found.append(_stuck_document(record))
    return found, counts


def _stuck_document(record: DocumentRecord) -> StuckDocument:
    failure = record.failure
    message, hint = (failure.message, failure.hint) if failure else ("", "")
    return StuckDocument(record.source, record.uri, message.replace(record.uri, "it"), hint)
