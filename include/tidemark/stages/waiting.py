"""What a new generation waits for until it goes live, and one that was given up until it is dropped.

Searches are answered from the live generation meanwhile, so nothing fails and nobody would look: each run's
report and the status name what is waited for, and the cure.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from tidemark.domain.hashing import Canonical
from tidemark.domain.plan import is_stuck
from tidemark.domain.records import DocumentRecord, GenerationStatus
from tidemark.ports import Clock, Ledger, VectorIndex
from tidemark.stages.generation import awaited, current_generation
from tidemark.stages.job import utc_now

NAMED = 8
"""Sources named in a sentence."""
STUCK = 3
"""Documents named one by one."""


@dataclass(frozen=True, slots=True)
class Awaited:
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
class Stuck:
    """A document that no run can bring into the generation."""

    source: str
    uri: str
    message: str
    cure: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """generations: that is being built; or, ``given_up``, those that are to be dropped.

    lost: nothing is built; the live generation lacks what the sources had in one that is not there any more.
    stuck: the first of ``stuck_count`` documents. They are not counted with their sources.
    """

    generations: tuple[int, ...]
    given_up: bool
    sources: tuple[Awaited, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    stuck_count: int = 0
    lost: bool = False

    def sentence(self) -> str:
        """For people: what waits, for what, and what to do."""
        numbers = ", ".join(map(str, self.generations))
        if self.lost:
            return self._of_what_is_lost()
        if self.given_up:
            head = f"The model was set back; generation {numbers} is dropped"
        else:
            head = f"Generation {numbers} is being built and goes live"
        return " ".join(filter(None, (self._for_sources(head), self._for_documents(head))))

    def _of_what_is_lost(self) -> str:
        count = sum(found.documents for found in self.sources)
        documents = "1 document" if count == 1 else f"{count} documents"
        names = ", ".join(f"{found.words()} ({found.documents})" for found in self.sources[:NAMED])
        if len(self.sources) > NAMED:
            names += f" and {len(self.sources) - NAMED} more"
        return (
            f"No search finds {documents} that the ledger knows, for the index was lost or set back: "
            f"{names}. `tidemark index --all` brings them back; of a source that is away, or not declared, "
            "`tidemark audit SOURCE --repair` does, from the stored snapshots."
        )

    def _for_sources(self, head: str) -> str:
        if not self.sources:
            return ""
        names = ", ".join(found.words() for found in self.sources[:NAMED])
        if len(self.sources) > NAMED:
            names += f" and {len(self.sources) - NAMED} more"
        cures = ["`tidemark index SOURCE`"]
        if any(found.standing == "undeclared" for found in self.sources):
            cures.append(
                "what is not declared: declare it again (or --path, --url), or `tidemark forget SOURCE`"
            )
        if any(found.standing == "disabled" for found in self.sources):
            cures.append(
                "what is disabled: the same command indexes it once, or remove its declaration and "
                "`tidemark forget SOURCE`"
            )
        return f"{head} once these are indexed: {names}. Index each: {'; '.join(cures)}."

    def _for_documents(self, head: str) -> str:
        if not self.stuck_count:
            return ""
        many = "a document" if self.stuck_count == 1 else f"{self.stuck_count} documents"
        told = " ".join(f"{one.uri}: {one.message} {one.cure}" for one in self.stuck)
        waits = "It waits also for" if self.sources else f"{head} once it need not wait for"
        return f"{waits} {many} in quarantine that no run can bring along. {told}"

    def as_dict(self) -> dict[str, Canonical]:
        return {
            "generations": list(self.generations),
            "given_up": self.given_up,
            "lost": self.lost,
            "sources": [
                {"source": s.source, "documents": s.documents, "standing": s.standing}
                for s in self.sources
            ],
            "stuck": [
                {"source": s.source, "uri": s.uri, "message": s.message, "cure": s.cure}
                for s in self.stuck
            ],
            "stuck_count": self.stuck_count,
            "sentence": self.sentence(),
        }


def waiting(
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
) -> Waiting | None:
    """What is waited for, None when nothing is; costs one small query where no generation is being built.

    ``embed``: the present embedding fingerprint. ``declared``: sources that have runs, ``disabled``: those
    that are declared and have none. ``source``: the one that a run is just ending of. ``doubtful``: look for
    documents that the live generation lacks, too; then it costs a look at all documents.
    """
    records = ledger.generations(index_name)
    building = [r.number for r in records if r.status is GenerationStatus.BUILDING]
    if not building and doubtful:
        return _lost(ledger, index, declared, disabled)
    live = index.live() if building else None
    goal = current_generation(ledger, index, index_name, embed) if live is not None else None
    if goal is None:
        return None
    given_up = goal == live
    outside = ledger.sources_outside(goal)
    stuck, counts = _stuck(ledger, outside, goal)
    names = {name: n - counts[name] for name, n in outside.items() if n > counts[name]}
    if not given_up:
        others = [name for name in declared if name != source]
        unseen = awaited(ledger, index_name, goal, others, clock())
        names |= {name: 0 for name in unseen if name not in outside}
    if not names and not counts:
        return None
    return Waiting(
        tuple(building) if given_up else (goal,),
        given_up,
        tuple(
            Awaited(name, count, _standing(name, declared, disabled))
            for name, count in sorted(names.items())
        ),
        tuple(stuck),
        counts.total(),
    )


def _lost(
    ledger: Ledger, index: VectorIndex, declared: Collection[str], disabled: Collection[str]
) -> Waiting | None:
    live = index.live()
    outside = ledger.sources_outside(live) if live is not None else {}
    if live is None or not outside:
        return None
    lacking = [Awaited(n, count, _standing(n, declared, disabled)) for n, count in outside.items()]
    return Waiting((live,), given_up=False, sources=tuple(lacking), lost=True)


def _standing(name: str, declared: Collection[str], disabled: Collection[str]) -> str:
    if name in declared:
        return "declared"
    return "disabled" if name in disabled else "undeclared"


def _stuck(ledger: Ledger, sources: Collection[str], goal: int) -> tuple[list[Stuck], Counter[str]]:
    """The first of them, and how many each source has."""
    found: list[Stuck] = []
    counts: Counter[str] = Counter()
    for source in sources:
        for record in ledger.quarantined(source):
            if record.generation == goal or not is_stuck(record):
                continue
            counts[source] += 1
            if len(found) < STUCK:
                found.append(_told(record))
    return found, counts


def _told(record: DocumentRecord) -> Stuck:
    failure = record.failure
    message, cure = (failure.message, failure.cure) if failure else ("", "")
    return Stuck(record.source, record.uri, message.replace(record.uri, "it"), cure)
