"""What the stages ask of the world. Each adapter implements one of these Protocols.

Every method may raise ``TransientError`` (an outage: retry) or ``PermanentError`` (it will fail again);
nothing else. A write may be repeated with the same result. Times are aware and in UTC.
"""

from tidemark.ports.artifacts import ArtifactEntry, ArtifactStore, LineWriter
from tidemark.ports.embedding import Embedder, LexicalEncoder, Tokenizer, VectorCache
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger
from tidemark.ports.partition import CodeParser, PageInspector, Partitioner
from tidemark.ports.progress import Clock, Progress, quiet
from tidemark.ports.source import Known, Source

__all__ = [
    "ArtifactEntry",
    "ArtifactStore",
    "Clock",
    "CodeParser",
    "Embedder",
    "Known",
    "Ledger",
    "LexicalEncoder",
    "LineWriter",
    "PageInspector",
    "Partitioner",
    "Progress",
    "Source",
    "Tokenizer",
    "VectorCache",
    "VectorIndex",
    "quiet",
]
