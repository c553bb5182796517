"""The stores, for the work on them that is no run over a source."""

from dataclasses import dataclass

from tidemark.ports import ArtifactStore, Clock, Ledger, VectorIndex
from tidemark.stages.job import utc_now


@dataclass(frozen=True, slots=True)
class Stores:
    """What upkeep works on; constructing them loads nothing heavy."""

    ledger: Ledger
    artifacts: ArtifactStore
    index: VectorIndex
    clock: Clock = utc_now
