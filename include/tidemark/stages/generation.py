"""Which generation a run writes, and when the live name moves.

A generation is built under one embedding fingerprint. A new model, or an index that was lost, begins a
new one beside the live one; searches stay with the old until every source is in the new. One that is given
up, because the model was set back, is dropped when the last document has left it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from tidemark.domain.identity import document_id
from tidemark.domain.records import GenerationRecord, GenerationStatus, RunStatus
from tidemark.ports import Clock, Embedder, Ledger, LexicalEncoder, VectorIndex
from tidemark.stages.job import Job, Tools, embed_fingerprint


def current_generation(
    ledger: Ledger, index: VectorIndex, index_name: str, embed: str
) -> int | None:
    """The generation built under this embedding fingerprint, None when there is none yet."""
    existing = index.generations()
    records = ledger.generations(index_name)
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
                index.switch(_said_live(ledger, index, index_name) or number)
            elif index.live_sections() != served:
                index.switch(served)
            live = index.live() == number
        records = ledger.generations(index_name)
        if number not in {record.number for record in records}:
            status = GenerationStatus.LIVE if live else GenerationStatus.BUILDING
            made = GenerationRecord(index_name, number, embed, embedder.dimension, status, clock())
            ledger.save_generation(made)
            records = [*records, made]
        elif not live:
            _take_up(ledger, records, number)
        if live:
            _say_live(ledger, records, number, index.generations())
    return number


def switch_when_complete(job: Job, tools: Tools, generation: int) -> bool:
    """Put the live name over the generation once all documents of all declared sources are in it.

    When it is live already, what else there is was given up, and goes once it is empty.
    """
    ledger, index = tools.ledger, tools.index
    if index.live() == generation:
        _drop_given_up(job, tools, generation)
        return False
    others = [name for name in job.declared if name != job.source]
    if ledger.documents_outside(generation) or awaited(
        ledger, job.index_name, generation, others, tools.clock()
    ):
        return False
    index.switch(generation)
    for number in index.generations():
        if number != generation:
            index.drop(number)
    _say_live(ledger, ledger.generations(job.index_name), generation, [generation])
    return True


def awaited(
    ledger: Ledger, index_name: str, generation: int, names: Iterable[str], now: datetime
) -> list[str]:
    """Those of some sources that no good run has looked at since the generation was begun.

    Since it ended, that is: the run that has begun the generation is one. What a run under the model of
    before, that went on meanwhile, has written is outside. Nothing can be told by a generation that was begun
    later than now, because the clock has been set back.
    """
    records = ledger.generations(index_name)
    begun = next((r.created_at for r in records if r.number == generation), None)
    if begun is None or begun > now:
        return []
    return [
        name
        for name in names
        if not any(
            run.status is RunStatus.SUCCESS and run.finished_at and run.finished_at >= begun
            for run in ledger.runs(name, limit=5)
        )
    ]


def given_up(ledger: Ledger, index: VectorIndex, live: int, run_id: str = "") -> list[int]:
    """Generations beside the live one that no document is in, and that no run can need.

    To be asked under the lock under which generations are made, when the live one is of the present model.
    ``run_id``: the run that asks. Any other that goes on may be of another model, as two environments have
    it, and have begun one of them, or found it, without a document in it yet.
    """
    beside = [number for number in index.generations() if number != live]
    if not beside or ledger.documents_outside(live):
        return []
    return [] if _others_run(ledger, run_id) else beside


def drop_generations(
    ledger: Ledger, index: VectorIndex, index_name: str, numbers: Sequence[int]
) -> None:
    """Drop generations, and say that they are retired."""
    for number in numbers:
        index.drop(number)
    for record in ledger.generations(index_name):
        if record.number in numbers and record.status is not GenerationStatus.RETIRED:
            ledger.save_generation(replace(record, status=GenerationStatus.RETIRED))


def _drop_given_up(job: Job, tools: Tools, live: int) -> None:
    ledger, index = tools.ledger, tools.index
    if not given_up(ledger, index, live, job.run_id):
        return
    with ledger.lock_documents([document_id("generations", job.index_name)]), index.session():
        if index.live() == live:
            dead = given_up(ledger, index, live, job.run_id)
            drop_generations(ledger, index, job.index_name, dead)


def _others_run(ledger: Ledger, run_id: str) -> bool:
    """Does another run go on? One of Airflow has no process between two tasks; of others the lock tells."""
    return any(
        run.run_id != run_id and (run.trigger.startswith("airflow") or ledger.is_locked(run.source))
        for run in ledger.running()
    )


def _said_live(ledger: Ledger, index: VectorIndex, index_name: str) -> int | None:
    """The generation that the ledger calls live, if there is one and the index has its points."""
    lost = index.incomplete()
    existing = [number for number in index.generations() if lost.get(number) != "points"]
    return next(
        (
            record.number
            for record in ledger.generations(index_name)
            if record.status is GenerationStatus.LIVE and record.number in existing
        ),
        None,
    )


def _take_up(ledger: Ledger, records: Sequence[GenerationRecord], number: int) -> None:
    """A retired generation that the index has again is being built again."""
    for record in records:
        if record.number == number and record.status is GenerationStatus.RETIRED:
            ledger.save_generation(replace(record, status=GenerationStatus.BUILDING))


def _say_live(
    ledger: Ledger, records: Sequence[GenerationRecord], live: int, existing: Sequence[int]
) -> None:
    """Make the ledger say which generation is live; what was live before, or is gone, is retired."""
    for record in records:
        status = record.status
        if record.number == live:
            status = GenerationStatus.LIVE
        elif status is GenerationStatus.LIVE or record.number not in existing:
            status = GenerationStatus.RETIRED
        if record.status is not status:
            ledger.save_generation(replace(record, status=status))


def _next(ledger: Ledger, index: VectorIndex, index_name: str) -> int:
    numbers = [record.number for record in ledger.generations(index_name)]
    return max([*numbers, *index.generations()], default=0) + 1
