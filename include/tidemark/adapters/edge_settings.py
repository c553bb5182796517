"""How an embedded collection is set up.

- No graph is built: it took 28 CPU-seconds for 20,000 points to bring a query from 4.4 to 2.0 ms.
  Search is exact; past some 200,000 points a server is the better home.
- Closing offers the engine to tidy up: 0.1 ms when there is nothing to do. It seals what has grown
  past SEAL_KB into files that need no building when opened (40,000 points: 0.15 s to open, not 0.45 s;
  3.5 s of work once) and drops the dead when they are a fifth. A kill in the middle loses nothing.
"""

from collections.abc import Mapping

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    HnswIndexConfig,
    Memory,
    Modifier,
)

from tidemark.adapters.vector_layout import DENSE, LEXICAL

SEAL_KB = 16_000
"""Size in KB of the vectors of a growing segment (some 10,000 points) past which it is sealed."""

SEGMENTS = 2
"""Files that a collection is kept in, at least."""

NO_VECTOR = "none"
"""The engine wants a vector in each collection: sections get one that no point ever has."""


def settings(dimension: int | None) -> Mapping[str, str | int]:
    """What a collection is set up with, to tell whether one was opened with it before."""
    shared: dict[str, str | int] = {"graph": 0, "segments": SEGMENTS, "seal_kb": SEAL_KB}
    return {**shared, "distance": "cosine", "lexical": "idf"} if dimension else shared


def config(dimension: int | None) -> EdgeConfig:
    """Of a collection of points whose vectors are so long, or (None) of one of sections."""
    lexical = EdgeSparseVectorParams(modifier=Modifier.Idf, memory=Memory.Cold)
    return EdgeConfig(
        vectors={DENSE: EdgeVectorParams(size=dimension, distance=Distance.Cosine)}
        if dimension
        else None,
        sparse_vectors={LEXICAL: lexical} if dimension else {NO_VECTOR: EdgeSparseVectorParams()},
        hnsw_config=HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=1_000_000),
        id_tracker_memory=Memory.Cold,
        optimizers=EdgeOptimizersConfig(
            indexing_threshold=SEAL_KB, default_segment_number=SEGMENTS
        ),
    )
