"""The generations of an index as such: is the right one live, is any dead, was each built by one model?"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from tidemark.domain.errors import PermanentError
from tidemark.domain.identity import document_id
from tidemark.domain.records import GenerationRecord, GenerationStatus
from tidemark.ports.index import VectorIndex
from tidemark.stages.audit.compare import AuditDependencies
from tidemark.stages.audit.drift import Collection
from tidemark.stages.generations import mark_live
from tidemark.stages.job import embed_fingerprint

LIVE, RETIRED = GenerationStatus.LIVE, GenerationStatus.RETIRED


@dataclass(frozen=True, slots=True)
class AliasMismatch:
    """What is wrong with the alias of the live generation, "" when nothing is.

    belongs: over which generation it should be put, None when that cannot be told. follow: it is right, and
    the ledger must say so. damaged: it names nothing that can be read.
    """

    problem: str = ""
    belongs: int | None = None
    follow: bool = False
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class GenerationFindings:
    """dead: generations that nobody needs. mixed: those of which ledger and index say different things, and
    what. incomplete: those of which a collection is lost, and which; what is missing in it is found document
    by document.
    """

    alias: AliasMismatch = AliasMismatch()
    dead: tuple[int, ...] = ()
    mixed: dict[int, str] = field(default_factory=dict)
    incomplete: dict[int, str] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        return not (self.dead or self.mixed or self.alias.problem)


@dataclass(frozen=True, slots=True)
class _Generations:
    """The ledger's and the index's at one moment. in_use: those that documents are in."""

    deps: AuditDependencies
    in_use: AbstractSet[int]
    records: Mapping[int, GenerationRecord]
    existing: list[int]

    def outside(self, generation: int) -> bool:
        """Are there documents in another one?"""
        return bool(self.deps.ledger.generations.outside(generation))


def _read(deps: AuditDependencies, in_use: AbstractSet[int]) -> _Generations:
    records = {r.number: r for r in deps.ledger.generations.all(deps.index_name)}
    return _Generations(deps, in_use, records, deps.index.generations())


def check_generations(deps: AuditDependencies, in_use: AbstractSet[int]) -> GenerationFindings:
    """What is wrong with them, twice over. ``in_use``: generations that documents are in."""
    first = _check(deps, in_use)
    if first.clean:
        return first
    time.sleep(deps.settle_seconds)
    second = _check(deps, in_use)
    return replace(
        second,
        alias=second.alias if first.alias.problem else AliasMismatch(),
        dead=tuple(number for number in second.dead if number in first.dead),
        mixed={number: why for number, why in second.mixed.items() if number in first.mixed},
    )


def _check(deps: AuditDependencies, in_use: AbstractSet[int]) -> GenerationFindings:
    index = deps.index
    with deps.ledger.lock_documents([document_id("generations", deps.index_name)]):
        incomplete = dict(index.incomplete())
        now = _read(deps, in_use)
        mixed = {
            number: why
            for number in now.existing
            if number in now.records
            and incomplete.get(number) != Collection.POINTS.value
            and (why := _disagreement(now.records[number], index))
        }
        try:
            live, damage = index.live(), ""
        except PermanentError as error:
            live, damage = None, error.message
        alias = _mismatch_with_ledger(now, live)
        if damage:
            alias = replace(alias, problem=damage, damaged=True)
        for check in (_mismatch_of_sections, _mismatch_with_documents):
            if not alias.problem and live is not None:
                alias = check(now, live)
        return GenerationFindings(alias, _dead(now, live), mixed, incomplete)


def _dead(now: _Generations, live: int | None) -> tuple[int, ...]:
    """What the next run writes is not, the one built under the present model, known to the ledger or not."""
    embed = embed_fingerprint(now.deps.embedder, now.deps.lexical)
    wanted = {n for n, record in now.records.items() if record.status is not RETIRED}
    wanted |= {n for n in now.existing if now.deps.index.built_under(n) == embed}
    return tuple(n for n in now.existing if n != live and n not in wanted | now.in_use)


def _disagreement(record: GenerationRecord, index: VectorIndex) -> str:
    built, dimension = index.built_under(record.number), index.dimension(record.number)
    if built and built != record.embed_fingerprint:
        return (
            f"generation {record.number} is built under {built}, and the ledger says "
            f"{record.embed_fingerprint}"
        )
    if dimension != record.dimension:
        return (
            f"generation {record.number} holds vectors of {dimension} numbers, and the ledger says "
            f"{record.dimension}"
        )
    return ""


def _mismatch_with_ledger(now: _Generations, live: int | None) -> AliasMismatch:
    recorded = next((n for n, record in now.records.items() if record.status is LIVE), None)
    belongs = recorded if recorded in now.existing else None
    if live is None:
        if not now.existing:
            return AliasMismatch()
        only = now.existing[0] if len(now.existing) == 1 else None
        if belongs is None and only in now.records:
            belongs = only
        return AliasMismatch("it is over no generation", belongs)
    record = now.records.get(live)
    if record is None:
        problem = f"it is over generation {live}, which the ledger does not know"
        return AliasMismatch(problem, belongs)
    if recorded in (None, live) and record.status is not RETIRED:
        return AliasMismatch()
    problem = f"it is over generation {live}, and the ledger says {recorded or 'none'}"
    # Killed between the switch and the ledger's row: the index is right when all documents are in there.
    if not now.outside(live):
        return AliasMismatch(problem, live, follow=True)
    return AliasMismatch(problem, belongs)


def _mismatch_of_sections(now: _Generations, live: int) -> AliasMismatch:
    """Is the alias over the sections of another generation than over the points, or over none?"""
    over = now.deps.index.live_sections()
    if over == live:
        return AliasMismatch()
    sections = "no sections" if over is None else f"the sections of generation {over}"
    return AliasMismatch(
        f"it is over the points of generation {live}, and over {sections}", belongs=live
    )


def _mismatch_with_documents(now: _Generations, live: int) -> AliasMismatch:
    """A stale alias: ledger and alias agree, and documents are in a generation that both have abandoned.

    It happens when the alias comes to stand over a generation that is still being built: what is not in it
    yet is found no more. Documents in a generation that is gone are missing points, and no matter of it.
    """
    retired = {n for n, record in now.records.items() if record.status is RETIRED}
    abandoned = [n for n in now.existing if n != live and n in now.in_use & retired]
    if not abandoned or not now.outside(live):
        return AliasMismatch()
    numbers = ", ".join(map(str, abandoned))
    problem = (
        f"it is over generation {live}, as the ledger says, and there are documents that are only in "
        f"generation {numbers}, which is given up"
    )
    count = now.deps.index.count_points
    fullest = max(abandoned, key=count)
    return AliasMismatch(problem, fullest if count(fullest) > count(live) else None)


def repair_generations(
    deps: AuditDependencies,
    found: GenerationFindings,
    models: Mapping[int, AbstractSet[str]],
) -> tuple[Counter[str], GenerationFindings]:
    """Put the alias right, drop what is dead, make collections that are lost again; what was done, and what
    is left for a person.

    ``models``: by what the documents of each generation were embedded. Where all of them agree with the
    index, it is the ledger's row that is wrong. Once the alias is right, what it was over may be dead.
    """
    ledger, index, belongs = deps.ledger, deps.index, found.alias.belongs
    did: Counter[str] = Counter()
    left = found
    with ledger.lock_documents([document_id("generations", deps.index_name)]):
        if found.alias.problem and belongs is not None:
            now = _read(deps, models.keys())
            if not found.alias.follow:
                did["collections_made"] += _ensure_collections(now, {belongs})
                index.switch(belongs)
                did["live_name_moved"] = 1
            in_use = now.in_use & set(now.existing)
            mark_live(ledger, now.records.values(), belongs, now.records.keys(), in_use)
            left = replace(
                left, alias=AliasMismatch(), dead=_dead(_read(deps, now.in_use), belongs)
            )
        dead = left.dead
        if not left.alias.damaged:
            for number in dead:
                index.drop(number)
                did["generations_dropped"] += 1
            left = replace(left, dead=())
        now = _read(deps, models.keys())
        retired = {n for n, record in now.records.items() if record.status is RETIRED}
        needed = index.incomplete().keys() - set(dead) - retired
        did["collections_made"] += _ensure_collections(now, needed)
        for number in found.mixed.keys() & now.records.keys():
            built = index.built_under(number)
            if built and models.get(number, {built}) == {built}:
                dimension = index.dimension(number)
                record = now.records[number]
                ledger.generations.save(
                    replace(record, embed_fingerprint=built, dimension=dimension)
                )
                did["ledger_rows_corrected"] += 1
                mixed = {n: why for n, why in left.mixed.items() if n != number}
                left = replace(left, mixed=mixed)
    return did, left


def _ensure_collections(now: _Generations, needed: Iterable[int]) -> int:
    """Make lost collections of generations anew, empty: what was in them is missing, and healed as such.

    One whose points are lost, and that the ledger does not know either, nobody can make: how long are its
    vectors?
    """
    index, made = now.deps.index, 0
    lost = index.incomplete()
    for number in lost.keys() & set(needed):
        if lost[number] != Collection.POINTS.value:
            index.ensure(number, index.dimension(number), index.built_under(number))
        elif record := now.records.get(number):
            index.ensure(number, record.dimension, record.embed_fingerprint)
        else:
            continue
        made += 1
    return made
