"""What qdrant-client is given and what it raises, in the project's own terms."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from uuid import UUID

from tidemark.adapters.index.layout import DENSE, LEXICAL, PAGE, RESERVED_FROM, Where, is_reserved
from tidemark.domain.chunks import PointWrite, SparseVector, StoredPoint
from tidemark.domain.errors import PermanentError, RefusedError, TransientError

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

REQUEST_BYTES = 16_000_000
"""Estimated size of a request; the server refuses more than 32 MB."""

REQUEST_POINTS = 500
"""Points a request, so that one request stays well under the timeout."""

_TRY_LATER = frozenset({408, 425, 429})
_THIS_ONE = frozenset({400, 413, 422})
"""What is sent is at fault; another document may pass."""


def where_is(url: str) -> str:
    """A URL without user, password, path and query: what may be shown."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")


def requests(points: Sequence[PointWrite]) -> Iterator[list[PointWrite]]:
    """Cut writes into runs that each fit one request."""
    run: list[PointWrite] = []
    size = 0
    for point in points:
        more = _size(point)
        if run and (size + more > REQUEST_BYTES or len(run) == REQUEST_POINTS):
            yield run
            run, size = [], 0
        run.append(point)
        size += more
    if run:
        yield run


def _size(point: PointWrite) -> int:
    """Bytes of the point in JSON, rather over than under."""
    numbers = 24 * len(point.dense or ())
    if point.lexical is not None:
        numbers += 36 * len(point.lexical.indices)
    return numbers + len(json.dumps(point.payload)) + 200


def point_struct(point: PointWrite, *, vectors: bool) -> "models.PointStruct":
    from qdrant_client import models

    named: dict[str, models.Vector] = {}
    if vectors and point.dense is not None:
        named[DENSE] = list(point.dense)
    if vectors and point.lexical is not None and point.lexical.indices:
        named[LEXICAL] = sparse(point.lexical)
    return models.PointStruct(id=str(point.point_id), vector=named, payload=dict(point.payload))


def overwrite(point: PointWrite) -> "models.OverwritePayloadOperation":
    """Replace one payload; by filter, because by id a server refuses ids that do not exist."""
    from qdrant_client import models

    existing = models.Filter(must=[models.HasIdCondition(has_id=[str(point.point_id)])])
    return models.OverwritePayloadOperation(
        overwrite_payload=models.SetPayload(payload=dict(point.payload), filter=existing)
    )


def sparse(vector: SparseVector) -> "models.SparseVector":
    from qdrant_client import models

    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


def conditions(where: Where | None) -> "models.Filter | None":
    from qdrant_client import models

    if not where:
        return None
    return models.Filter(
        must=[
            models.FieldCondition(
                key=key, match=models.MatchAny(any=[value] if isinstance(value, str) else value)
            )
            for key, value in where.items()
        ]
    )


def points(found: "Iterable[models.Record | models.ScoredPoint]") -> list[StoredPoint]:
    """Points as they are kept, however damaged, without what is reserved or has no id of ours."""
    return [point for one in found if (point := _stored(one)) is not None]


def _stored(found: "models.Record | models.ScoredPoint") -> StoredPoint | None:
    from qdrant_client import models

    if isinstance(found.id, int):
        return None
    point_id = UUID(str(found.id))
    if is_reserved(point_id):
        return None
    named = found.vector if isinstance(found.vector, dict) else {}
    vector, words = named.get(DENSE), named.get(LEXICAL)
    dense = tuple(cast("list[float]", vector)) if isinstance(vector, list) else None
    lexical = None
    if isinstance(words, models.SparseVector):
        lexical = SparseVector(tuple(words.indices), tuple(words.values))
    score = getattr(found, "score", 0.0)
    return StoredPoint(point_id, found.payload or {}, score, dense, lexical)


def reserved_count(client: "QdrantClient", name: str) -> int:
    """How much in a collection is no point of ours but kept beside them."""
    count, offset = 0, str(RESERVED_FROM)
    while True:
        records, after = client.scroll(name, limit=PAGE, offset=offset, with_payload=False)
        reserved = [record for record in records if is_reserved(UUID(str(record.id)))]
        count += len(reserved)
        if after is None or len(reserved) < len(records):
            return count
        offset = str(after)


@contextmanager
def translated(doing: str, server: str) -> Iterator[None]:
    """Translate what qdrant-client raises; its embedded modes raise plain Python errors.

    doing: for the message, "reading tidemark__g1"; server: where, without secrets.
    """
    import httpx
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    try:
        yield
    except UnexpectedResponse as error:
        raise _refused(doing, server, error) from error
    except QdrantException as error:
        raise TransientError(
            f"Qdrant at {server} is out of resources, {doing}: {error}.", "Try again later."
        ) from error
    except ResponseHandlingException as error:
        if isinstance(error.source, httpx.TimeoutException):
            raise TransientError(
                f"Qdrant at {server} did not answer in time, {doing}.",
                "Try again, or allow more time.",
            ) from error
        if isinstance(error.source, (httpx.TransportError, OSError)):
            raise TransientError(
                f"Qdrant at {server} cannot be reached, {doing}: {error.source}.",
                "Check that it runs and that the address is right.",
            ) from error
        raise PermanentError(
            f"Qdrant at {server} and its client do not understand each other, {doing}: "
            f"{error.source}.",
            "Run the server's version that docker-compose.yaml pins.",
        ) from error
    except (OSError, RuntimeError) as error:
        raise TransientError(
            f"Qdrant at {server} failed, {doing}: {error}.", "Try again."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise RefusedError(f"Qdrant at {server} refused, {doing}: {error}.") from error


def _refused(doing: str, server: str, error: "Exception") -> TransientError | PermanentError:
    status = getattr(error, "status_code", None) or 500
    content = getattr(error, "content", b"")
    said = content[:300].decode("utf-8", "replace")
    message = f"Qdrant at {server} answered {status}, {doing}: {said}"
    if status >= 500 or status in _TRY_LATER:
        return TransientError(message, "See the server's log if it lasts.")
    hints = {
        401: "Set the API key of the server.",
        403: "Use an API key that may do this.",
        404: "Index a source first, which creates the collection.",
        413: "Allow larger requests on the server (max_request_size_mb) or make sections smaller.",
    }
    kind = RefusedError if status in _THIS_ONE else PermanentError
    return kind(message, hints.get(status, ""))
