"""What an audit compares with what."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from tidemark.domain.errors import PermanentError
from tidemark.domain.records import DocumentRecord, GenerationStatus
from tidemark.ports import Ledger, Progress, VectorIndex, quiet


@dataclass(frozen=True, slots=True)
class Scope:
    """What is compared with what.

    generations: those whose points and sections are read as a whole.
    existing: all that the index has. live: the one that searches are, or are to be, answered from.
    whole: documents in any other generation are looked at too, piece by piece.
    models: what each generation is built under, as far as the index, or else the ledger, says.
    undecided: documents that are not looked at: what becomes of them a later run decides.
    """

    ledger: Ledger
    index: VectorIndex
    generations: tuple[int, ...]
    existing: frozenset[int]
    live: int | None
    models: Mapping[int, str]
    whole: bool = False
    progress: Progress = field(default_factory=quiet)
    undecided: frozenset[UUID] = frozenset()

    def covers(self, generation: int) -> bool:
        """Are the documents of a generation looked at? Not those of others that exist, for a run."""
        return self.whole or generation in self.generations or generation not in self.existing

    def serves(self, generation: int, record: DocumentRecord) -> bool:
        """Is it right that this generation has a version of a document whose newest is in another one?

        It is while that other one is being built: searches are still answered from here. It is as well when
        that one is gone: until the document is written again, this version is all that there is.
        """
        return generation == self.live and record.generation not in (None, generation)

    def leaves(self, generation: int, record: DocumentRecord) -> bool:
        """Is it no matter what this generation still has of a document that is in another one?

        It is not while nobody is answered from here: whoever writes the document here again asks what there
        is of it, and a generation that was given up goes as a whole.
        """
        return (
            generation != self.live
            and record.generation != generation
            and record.generation in self.existing
        )

    def of_other_model(self, record: DocumentRecord) -> bool:
        """Was a document embedded by another model than its generation is built under?"""
        if record.generation is None or record.fingerprints is None:
            return False
        model = self.models.get(record.generation)
        return bool(model) and model != record.fingerprints.embed


def scope_of(
    ledger: Ledger, index: VectorIndex, generations: Iterable[int], index_name: str | None = None
) -> Scope:
    """The scope of an audit of some generations as things are now."""
    existing = frozenset(index.generations())
    records = ledger.generations.all(index_name) if index_name is not None else []
    said = {record.number: record.embed_fingerprint for record in records}
    models = {n: index.built_under(n) or said.get(n, "") for n in existing}
    chosen = tuple(sorted(existing.intersection(generations)))
    said_live = {r.number for r in records if r.status is GenerationStatus.LIVE} & existing
    # A live name that is lost, damaged or moved is a finding of its own: what is served is no drift by it.
    live = max(said_live) if said_live else live_of(index)
    if live is not None and index.incomplete().get(live) == "points":
        # Half dropped after a switch: what is served is where the name is.
        live = live_of(index) or live
    return Scope(ledger, index, chosen, existing, live, models, index_name is not None)


def live_of(index: VectorIndex) -> int | None:
    """The generation behind the live name; None also when the name is damaged."""
    try:
        return index.live()
    except PermanentError:
        return None
