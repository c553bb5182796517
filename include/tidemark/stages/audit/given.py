"""What an audit of an index is given."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tidemark.ports import Clock, Embedder, Ledger, LexicalEncoder, Progress, VectorIndex, quiet
from tidemark.stages.audit.generations import SETTLE_SECONDS
from tidemark.stages.job import Dependencies, Job, utc_now


@dataclass(frozen=True, slots=True)
class AuditDependencies:
    """The ports, and what a repair needs of the world.

    hand: job (with a run id of its own) and tools of a source. Raises ``ConfigurationError`` when it cannot
        be made a run of.
    will_run: is it a source whose next run will come?
    wait_seconds: how long a repair waits for a source that a run holds.
    settle_seconds: between two looks at the generations.
    """

    ledger: Ledger
    index: VectorIndex
    index_name: str
    embedder: Embedder
    lexical: LexicalEncoder
    hand: Callable[[str], tuple[Job, Dependencies]]
    will_run: Callable[[str], bool]
    clock: Clock = utc_now
    progress: Progress = field(default_factory=quiet)
    wait_seconds: float = 60.0
    settle_seconds: float = SETTLE_SECONDS
