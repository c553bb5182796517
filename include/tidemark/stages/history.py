"""History: what a document was at some time, from the snapshot of that version."""

from tidemark.domain.errors import DocumentError
from tidemark.domain.model import PartitionedDocument, RawDocument
from tidemark.domain.records import VersionRecord
from tidemark.ports import ArtifactStore, Partitioner
from tidemark.stages.codec import decode_elements
from tidemark.stages.job import raw_key
from tidemark.stages.prepare import elements_key


def recall(
    artifacts: ArtifactStore, partitioner: Partitioner, version: VersionRecord
) -> tuple[PartitionedDocument, bool]:
    """The content of a version, and whether it is read as it was then.

    It is, where its elements are still kept; else its snapshot is read with today's parser. Raises
    ``DocumentError`` when that is gone too, or cannot be read.
    """
    try:
        key = elements_key(version, version.fingerprints.partition)
        return decode_elements(artifacts.read(key)), True
    except KeyError:
        pass  # Only the snapshot is kept for as long as the version.
    try:
        content = artifacts.read(raw_key(version.raw_hash))
    except KeyError:
        raise DocumentError(
            "fetch",
            f"The snapshot of {version.uri} from {version.fetched_at:%Y-%m-%d %H:%M} UTC is gone.",
            "TIDEMARK_HISTORY_DAYS says for how long those of replaced versions are kept.",
        ) from None
    raw = RawDocument(version.uri, content, version.media_type, version.charset, version.fetched_at)
    return partitioner.partition(raw), False
