"""The generations of an index as such: is the right one live, is any dead, was each built by one model?"""

import time
from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from tidemark.domain.errors import PermanentError
from tidemark.domain.identity import document_id
from tidemark.domain.records import GenerationRecord, GenerationStatus
from tidemark.ports import Ledger, VectorIndex
from tidemark.stages.audit.drift import What

SETTLE_SECONDS = 1.0
"""A run that puts the live name over another generation takes a moment for it: what is wrong is looked at
twice, this far apart."""


@dataclass(frozen=True, slots=True)
class GenerationFindings:
    """dead: generations that nobody needs. mixed: those of which ledger and index say different things, and
    what. live_name: what is wrong with it, "" when nothing is; ``belongs`` over which it should be put, None
    when that cannot be told. follow: it is right, and the ledger must say so. damaged: it names nothing that
    can be read. incomplete: those of which a collection is lost, and which; what is missing in it is found
    document by document.
    """

    dead: tuple[int, ...] = ()
    mixed: dict[int, str] = field(default_factory=dict)
    live_name: str = ""
    belongs: int | None = None
    follow: bool = False
    damaged: bool = False
    incomplete: dict[int, str] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        return not (self.dead or self.mixed or self.live_name)


def look_at_generations(
    ledger: Ledger,
    index: VectorIndex,
    index_name: str,
    embed_fingerprint: str,
    in_use: AbstractSet[int],
    settle_seconds: float = SETTLE_SECONDS,
) -> GenerationFindings:
    """What is wrong with them, twice over.

    ``in_use``: generations that documents are in. ``embed_fingerprint``: of the configured model; what is
    built under it is what the next run writes, whether the ledger knows it or not.
    """
    first = _look(ledger, index, index_name, embed_fingerprint, in_use)
    if first.clean:
        return first
    time.sleep(settle_seconds)
    second = _look(ledger, index, index_name, embed_fingerprint, in_use)
    return replace(
        second,
        dead=tuple(number for number in second.dead if number in first.dead),
        mixed={number: why for number, why in second.mixed.items() if number in first.mixed},
        live_name=second.live_name if first.live_name else "",
    )


def _look(
    ledger: Ledger,
    index: VectorIndex,
    index_name: str,
    embed_fingerprint: str,
    in_use: AbstractSet[int],
) -> GenerationFindings:
    with ledger.lock_documents([document_id("generations", index_name)]):
        existing, incomplete = index.generations(), dict(index.incomplete())
        try:
            live, damage = index.live(), ""
        except PermanentError as error:
            live, damage = None, error.message
        records = {record.number: record for record in ledger.generations.all(index_name)}
        mixed = {
            number: why
            for number in existing
            if number in records
            and incomplete.get(number) != What.POINTS.value
            and (why := _disagreement(records[number], index))
        }
        named = _live_name(ledger, existing, live, records)
        if not damage and named.clean and live is not None:
            named = _sections_astray(index, live)
        if not damage and named.clean and live is not None:
            named = _left_behind(ledger, index, live, records, in_use)
        dead = _dead(index, live, records, embed_fingerprint, in_use)
    if damage:
        named = replace(named, live_name=damage, damaged=True)
    return replace(named, dead=dead, mixed=mixed, incomplete=incomplete)


def _dead(
    index: VectorIndex,
    live: int | None,
    records: Mapping[int, GenerationRecord],
    embed_fingerprint: str,
    in_use: AbstractSet[int],
) -> tuple[int, ...]:
    existing = index.generations()
    wanted = {n for n, r in records.items() if r.status is not GenerationStatus.RETIRED}
    wanted |= {n for n in existing if index.built_under(n) == embed_fingerprint}
    return tuple(n for n in existing if n != live and n not in wanted and n not in in_use)


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


def _live_name(
    ledger: Ledger, existing: list[int], live: int | None, records: dict[int, GenerationRecord]
) -> GenerationFindings:
    said = next((n for n, r in records.items() if r.status is GenerationStatus.LIVE), None)
    if live is None:
        if not existing:
            return GenerationFindings()
        only = existing[0] if len(existing) == 1 and existing[0] in records else None
        belongs = said if said in existing else only
        return GenerationFindings(live_name="it is over no generation", belongs=belongs)
    record = records.get(live)
    if record is None:
        problem = f"it is over generation {live}, which the ledger does not know"
        return GenerationFindings(live_name=problem, belongs=said if said in existing else None)
    if said in (None, live) and record.status is not GenerationStatus.RETIRED:
        return GenerationFindings()
    problem = f"it is over generation {live}, and the ledger says {said if said else 'none'}"
    # Killed between the switch and the ledger's row: the index is right when all documents are in there.
    if not ledger.generations.outside(live):
        return GenerationFindings(live_name=problem, belongs=live, follow=True)
    return GenerationFindings(live_name=problem, belongs=said if said in existing else None)


def _sections_astray(index: VectorIndex, live: int) -> GenerationFindings:
    """Is the live name over the sections of another generation than over the points, or over none?"""
    over = index.live_sections()
    if over == live:
        return GenerationFindings()
    problem = (
        f"it is over the points of generation {live}, and over "
        f"{'no sections' if over is None else f'the sections of generation {over}'}"
    )
    return GenerationFindings(live_name=problem, belongs=live)


def _left_behind(
    ledger: Ledger,
    index: VectorIndex,
    live: int,
    records: Mapping[int, GenerationRecord],
    in_use: AbstractSet[int],
) -> GenerationFindings:
    """Ledger and live name agree, and documents are in a generation that both have given up.

    It happens when the name comes to stand over a generation that is still being built: what is not in it yet
    is found no more. Documents in a generation that is gone are missing points, and no matter of the name.
    """
    existing = index.generations()
    behind = [
        number
        for number in existing
        if number != live
        and number in in_use
        and number in records
        and records[number].status is GenerationStatus.RETIRED
    ]
    if not behind or not ledger.generations.outside(live):
        return GenerationFindings()
    numbers = ", ".join(map(str, behind))
    problem = (
        f"it is over generation {live}, as the ledger says, and there are documents that are only in "
        f"generation {numbers}, which is given up"
    )
    fullest = max(behind, key=index.count_points)
    more = index.count_points(fullest) > index.count_points(live)
    return GenerationFindings(live_name=problem, belongs=fullest if more else None)


def repair_generations(
    ledger: Ledger,
    index: VectorIndex,
    index_name: str,
    found: GenerationFindings,
    models: Mapping[int, AbstractSet[str]],
    embed_fingerprint: str,
) -> tuple[Counter[str], GenerationFindings]:
    """Put the live name right, drop what is dead, make collections that are lost again; what was done, and
    what is left for a person.

    ``models``: by what the documents of each generation were embedded. Where all of them agree with the
    index, it is the ledger's row that is wrong. Once the live name is right, what it was over may be dead.
    """
    did: Counter[str] = Counter()
    left, dead = found, found.dead
    with ledger.lock_documents([document_id("generations", index_name)]):
        if found.live_name and found.belongs is not None:
            if not found.follow:
                did["collections_made"] += _make_whole(ledger, index, index_name, {found.belongs})
                index.switch(found.belongs)
                did["live_name_moved"] = 1
            _say_live(ledger, index_name, found.belongs, models.keys() & set(index.generations()))
            left = replace(left, live_name="", damaged=False)
            records = {record.number: record for record in ledger.generations.all(index_name)}
            dead = _dead(index, found.belongs, records, embed_fingerprint, models.keys())
        if not left.damaged:
            for number in dead:
                index.drop(number)
                did["generations_dropped"] += 1
            left = replace(left, dead=())
        needed = set(index.incomplete()) - set(dead) - _given_up(ledger, index_name)
        did["collections_made"] += _make_whole(ledger, index, index_name, needed)
        for record in ledger.generations.all(index_name):
            built = index.built_under(record.number) if record.number in found.mixed else ""
            if built and models.get(record.number, {built}) == {built}:
                dimension = index.dimension(record.number)
                ledger.generations.save(
                    replace(record, embed_fingerprint=built, dimension=dimension)
                )
                did["ledger_rows_corrected"] += 1
                mixed = {n: why for n, why in left.mixed.items() if n != record.number}
                left = replace(left, mixed=mixed)
    return did, left


def _given_up(ledger: Ledger, index_name: str) -> set[int]:
    return {
        record.number
        for record in ledger.generations.all(index_name)
        if record.status is GenerationStatus.RETIRED
    }


def _make_whole(
    ledger: Ledger, index: VectorIndex, index_name: str, needed: AbstractSet[int]
) -> int:
    """Make lost collections of generations anew, empty: what was in them is missing, and healed as such.

    One whose points are lost, and that the ledger does not know either, nobody can make: how long are its
    vectors?
    """
    records = {record.number: record for record in ledger.generations.all(index_name)}
    made = 0
    for number, lost in index.incomplete().items():
        if number not in needed:
            continue
        if lost != What.POINTS.value:
            index.ensure(number, index.dimension(number), index.built_under(number))
        elif number in records:
            record = records[number]
            index.ensure(number, record.dimension, record.embed_fingerprint)
        else:
            continue
        made += 1
    return made


def _say_live(ledger: Ledger, index_name: str, live: int, in_use: AbstractSet[int]) -> None:
    """``in_use``: generations that documents are in; what was called live and is one is being built still."""
    for record in ledger.generations.all(index_name):
        status = record.status
        if record.number == live:
            status = GenerationStatus.LIVE
        elif status is GenerationStatus.LIVE:
            used = record.number in in_use
            status = GenerationStatus.BUILDING if used else GenerationStatus.RETIRED
        if status is not record.status:
            ledger.generations.save(replace(record, status=status))
