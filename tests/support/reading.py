"""Documents on disk, partitioned once a session for all tests that look at their chunks."""

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from tidemark.adapters.media import media_type_of_suffix
from tidemark.adapters.partition.partitioner import DocumentPartitioner
from tidemark.domain.documents import PartitionedDocument, RawDocument

GOLDEN_DOCUMENTS = Path(__file__).parents[1] / "golden" / "documents"
FETCHED_AT = datetime(2026, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=1)
def _partitioner() -> DocumentPartitioner:
    return DocumentPartitioner()


@lru_cache(maxsize=256)
def read(path: Path) -> PartitionedDocument:
    """The elements of a file. Raises ``DocumentError`` when its bytes are at fault.

    Its URI is made of its name alone, so that nothing depends on where the checkout lies.
    """
    media_type = media_type_of_suffix(path.suffix)
    assert media_type is not None, f"{path.name}: no format is known by this suffix"
    uri = f"file:///documents/{path.name}"
    return _partitioner().partition(
        RawDocument(uri, path.read_bytes(), media_type, None, FETCHED_AT)
    )
