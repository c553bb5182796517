"""The vector index on a Qdrant server, through qdrant-client.

Of a collection, this must be as it is here: the size and the distance of the vector ``dense``, the weighing
(IDF) of the sparse vector ``lexical``, and keyword indexes on what is filtered by. A server changes the last
two in place; the others need a new generation. Optimizer, graph, quantization, placement on disk and
replication are the operator's to tune: they are left as they are.
"""

import json
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from tidemark.adapters.index.layout import (
    BUILT_UNDER,
    DENSE,
    EPOCH,
    LEXICAL,
    MORE_POINT_KEYS,
    MORE_SECTION_KEYS,
    PAGE,
    POINT_KEYS,
    RRF_K,
    SECTION_KEYS,
    CollectionLostError,
    Layout,
    Where,
    built_under_id,
    count_reserved,
    epoch_id,
    epoch_point,
    fusion_depth,
    last_of_each,
    pages,
    stored_point,
    text_under,
)
from tidemark.adapters.retry import Retry
from tidemark.domain.chunks import PointWrite, SparseVector, StoredPoint
from tidemark.domain.errors import ConfigurationError, PermanentError, RefusedError, TransientError

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

DELETE_BATCH = 1_000
"""Ids a request: deletes by filter over much data time out, these do not."""

REQUEST_BYTES = 16_000_000
"""Estimated size of a request; the server refuses more than 32 MB."""

REQUEST_POINTS = 500
"""Points a request, so that one request stays well under the timeout."""

TIMEOUT = 60
"""Seconds to wait for an answer."""

_TRY_LATER = frozenset({408, 425, 429})
_THIS_ONE = frozenset({400, 413, 422})
"""What is sent is at fault; another document may pass."""

T = TypeVar("T")


class QdrantServerIndex:
    """Implements VectorIndex. Threads and forked processes may share it.

    Give either ``url`` (with ``api_key`` where the server wants one) or ``client_factory``, which makes
    a client when one is first needed, and again in a forked process. timeout: seconds for one answer.
    retry_timeout: for how long a server that is away is asked again, each time.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        name: str = "tidemark",
        *,
        client_factory: "Callable[[], QdrantClient] | None" = None,
        timeout: int = TIMEOUT,
        retry_timeout: float = 0.0,
    ) -> None:
        if (url is None) == (client_factory is None):
            raise ConfigurationError(
                "A Qdrant index needs a URL or a client factory, and not both."
            )
        self.layout = Layout(name)
        self._server = _shown(url) if url else "the given client"
        self._connection = Connection(
            client_factory or (lambda: _connect(url or "", api_key, timeout))
        )
        self._retry = Retry("The index", retry_timeout)

    def session(self) -> AbstractContextManager[None]:
        """Nothing to hold: the client keeps its connections between calls."""
        return nullcontext()

    def close(self) -> None:
        """Let go of the connections; the next call makes new ones."""
        self._connection.close()

    # Generations

    def ensure(self, generation: int, dimension: int, embed_fingerprint: str = "") -> None:
        points, sections = self.layout.both(generation)

        def ready_sections(client: "QdrantClient") -> None:
            info = _present_or_made(client, sections, None)
            _index_keys(client, sections, (*SECTION_KEYS, *MORE_SECTION_KEYS), info)

        def ready_points(client: "QdrantClient") -> None:
            info = _present_or_made(client, points, dimension)
            if (size := _dimension_of(self.layout, points, info)) != dimension:
                raise self.layout.other_dimension(generation, size, dimension)
            _weigh(client, self.layout, points, info)
            _index_keys(client, points, (*POINT_KEYS, *MORE_POINT_KEYS), info)

        # Sections first: a generation exists as soon as its points have a place.
        self._ask(f"preparing {sections}", ready_sections)
        self._ask(f"preparing {points}", ready_points)
        if embed_fingerprint and not self.built_under(generation):
            kept = PointWrite(built_under_id(), {BUILT_UNDER: embed_fingerprint})
            self._upsert(points, [kept], vectors=False)

    def built_under(self, generation: int) -> str:
        return self._reserved(self.layout.points(generation), built_under_id(), BUILT_UNDER)

    def dimension(self, generation: int) -> int:
        name = self.layout.points(generation)
        return self._ask_of(
            name,
            "reading the settings of",
            lambda client: _dimension_of(self.layout, name, client.get_collection(name)),
        )

    def write_epoch(self, generation: int, source: str, epoch: str) -> None:
        for name in self.layout.both(generation):
            with suppress(CollectionLostError):
                self._upsert(name, [epoch_point(source, epoch)], vectors=False)

    def epochs(self, generation: int, source: str) -> tuple[str, str]:
        points, sections = self.layout.both(generation)
        key = epoch_id(source)
        return self._reserved(points, key, EPOCH), self._reserved(sections, key, EPOCH)

    def generations(self) -> list[int]:
        return self.layout.generations(self._names())

    def incomplete(self) -> dict[int, str]:
        return self.layout.incomplete(self._names())

    def _names(self) -> list[str]:
        answer = self._ask("listing collections", lambda client: client.get_collections())
        return [collection.name for collection in answer.collections]

    def live(self) -> int | None:
        return self._behind(self.layout.live_points, self.layout.points)

    def live_sections(self) -> int | None:
        return self._behind(self.layout.live_sections, self.layout.sections)

    def _behind(self, alias: str, named: Callable[[int], str]) -> int | None:
        """The generation whose collection of this kind a name is over."""
        target = self._aliases().get(alias)
        number = None if target is None else self.layout.generation_of(target)
        return number if number is not None and named(number) == target else None

    def switch(self, generation: int) -> None:
        from qdrant_client import models

        points, sections = self.layout.both(generation)
        wanted = {self.layout.live_points: points, self.layout.live_sections: sections}
        names = self._names()
        if (problem := self.layout.absent(points, names)) is not None:
            raise problem
        deletions = [
            models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
            for alias in wanted.keys() & self._aliases().keys()
        ]
        creations = [
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=target, alias_name=alias)
            )
            for alias, target in wanted.items()
            # No name can be over sections that are lost; the points are served all the same.
            if target in names
        ]
        # One request: no search ever meets a missing or a half switched name.
        self._ask(
            f"switching to {points}",
            lambda client: client.update_collection_aliases([*deletions, *creations]),
        )

    def drop(self, generation: int) -> None:
        if generation == self.live():
            raise self.layout.is_live(generation)
        for name in self.layout.both(generation):

            def delete(client: "QdrantClient", name: str = name) -> None:
                if client.collection_exists(name):
                    client.delete_collection(name)

            self._ask(f"deleting {name}", delete)

    # Points and sections

    def upsert_points(self, generation: int, points: Sequence[PointWrite]) -> None:
        self._upsert(self.layout.points(generation), points, vectors=True)

    def upsert_sections(self, generation: int, sections: Sequence[PointWrite]) -> None:
        self._upsert(self.layout.sections(generation), sections, vectors=False)

    def set_payloads(self, generation: int, points: Sequence[PointWrite]) -> None:
        name = self.layout.points(generation)
        for run in requests(last_of_each(points)):

            def write(client: "QdrantClient", run: Sequence[PointWrite] = run) -> None:
                client.batch_update_points(name, [_overwrite(point) for point in run], wait=True)

            self._ask_of(name, "updating payloads in", write)

    def delete_points(self, generation: int, ids: Sequence[UUID]) -> None:
        self._delete(self.layout.points(generation), ids)

    def delete_sections(self, generation: int, ids: Sequence[UUID]) -> None:
        self._delete(self.layout.sections(generation), ids)

    def get_points(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        return self._get(self.layout.points(generation), ids)

    def get_sections(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        return self._get(self.layout.sections(generation), ids)

    def get_vectors(self, generation: int, ids: Sequence[UUID]) -> dict[UUID, tuple[float, ...]]:
        points = self._get(self.layout.points(generation), ids, vectors_alone=True)
        return {point.point_id: point.dense for point in points if point.dense is not None}

    def scan_points(
        self, generation: int, where: Where | None = None, *, vectors: bool = False
    ) -> Iterator[StoredPoint]:
        return self._scan(self.layout.points(generation), where, vectors=vectors)

    def scan_sections(self, generation: int, where: Where | None = None) -> Iterator[StoredPoint]:
        return self._scan(self.layout.sections(generation), where)

    def count_points(self, generation: int, where: Where | None = None) -> int:
        return self._count(self.layout.points(generation), where)

    def count_sections(self, generation: int, where: Where | None = None) -> int:
        return self._count(self.layout.sections(generation), where)

    def search(
        self,
        generation: int,
        k: int,
        *,
        dense: Sequence[float] | None = None,
        lexical: SparseVector | None = None,
        where: Where | None = None,
    ) -> list[StoredPoint]:
        from qdrant_client import models

        name, matching, depth = self.layout.points(generation), _conditions(where), fusion_depth(k)
        lists = []
        if dense is not None:
            query = list(dense)
            lists.append(models.Prefetch(query=query, using=DENSE, limit=depth, filter=matching))
        if lexical is not None:
            words = _sparse(lexical)
            lists.append(models.Prefetch(query=words, using=LEXICAL, limit=depth, filter=matching))
        asked: dict[str, Any]
        if len(lists) == 1:
            [one] = lists
            asked = {"query": one.query, "using": one.using, "query_filter": matching}
        else:
            fused = models.RrfQuery(rrf=models.Rrf(k=RRF_K))
            asked = {"prefetch": lists, "query": fused}
        answer = self._ask_of(
            name, "searching", lambda client: client.query_points(name, limit=k, **asked)
        )
        return _stored_points(answer.points)

    # Requests

    def _aliases(self) -> dict[str, str]:
        answer = self._ask("listing aliases", lambda client: client.get_aliases())
        return {alias.alias_name: alias.collection_name for alias in answer.aliases}

    def _upsert(self, name: str, points: Sequence[PointWrite], *, vectors: bool) -> None:
        for run in requests(last_of_each(points)):

            def write(client: "QdrantClient", run: Sequence[PointWrite] = run) -> None:
                structs = [_point_struct(point, vectors=vectors) for point in run]
                client.upsert(name, points=structs, wait=True)

            self._ask_of(name, "writing to", write)

    def _delete(self, name: str, ids: Sequence[UUID]) -> None:
        from qdrant_client import models

        for page in pages(ids, DELETE_BATCH):

            def delete(client: "QdrantClient", page: Sequence[UUID] = page) -> None:
                gone = models.PointIdsList(points=[str(i) for i in page])
                client.delete(name, gone, wait=True)

            with suppress(CollectionLostError):
                self._ask_of(name, "deleting from", delete)

    def _get(
        self, name: str, ids: Sequence[UUID], *, vectors_alone: bool = False
    ) -> list[StoredPoint]:
        points: list[StoredPoint] = []
        for page in pages(list(dict.fromkeys(ids))):

            def read(client: "QdrantClient", page: Sequence[UUID] = page) -> list[StoredPoint]:
                records = client.retrieve(
                    name,
                    [str(i) for i in page],
                    with_payload=not vectors_alone,
                    with_vectors=[DENSE] if vectors_alone else False,
                )
                return _stored_points(records)

            with suppress(CollectionLostError):
                points += self._ask_of(name, "reading", read)
        return points

    def _scan(
        self, name: str, where: Where | None, *, vectors: bool = False
    ) -> Iterator[StoredPoint]:
        offset: models.ExtendedPointId | None = None

        def page(
            client: "QdrantClient",
        ) -> "tuple[Sequence[models.Record], models.ExtendedPointId | None]":
            return client.scroll(
                name,
                _conditions(where),
                limit=PAGE,
                offset=offset,
                with_payload=True,
                with_vectors=[DENSE, LEXICAL] if vectors else False,
            )

        with suppress(CollectionLostError):
            while True:
                records, offset = self._ask_of(name, "scanning", page)
                yield from _stored_points(records)
                if offset is None:
                    return

    def _count(self, name: str, where: Where | None) -> int:
        def count(client: "QdrantClient") -> int:
            count = client.count(name, _conditions(where), exact=True).count
            if where:
                return count  # What is reserved has no key that a filter names.
            return count - count_reserved(
                lambda start: client.scroll(name, limit=PAGE, offset=str(start), with_payload=False)
            )

        with suppress(CollectionLostError):
            return self._ask_of(name, "counting", count)
        return 0

    def _reserved(self, name: str, reserved_id: UUID, key: str) -> str:
        """The text kept under a reserved id, "" when it, or the collection, is not there."""

        def read(client: "QdrantClient") -> str:
            if not client.collection_exists(name):
                return ""
            records = client.retrieve(name, [str(reserved_id)], with_payload=True)
            return text_under(records[0].payload, key) if records else ""

        return self._ask(f"reading {name}", read)

    def _ask(self, doing: str, call: "Callable[[QdrantClient], T]") -> T:
        """Ask something of the server, again while it is away."""

        def once() -> T:
            with _translated(doing, self._server):
                return call(self._connection.client())

        return self._retry(once)

    def _ask_of(self, name: str, doing: str, call: "Callable[[QdrantClient], T]") -> T:
        """Ask something of a collection; where that fails because it is not there, say so."""
        try:
            return self._ask(f"{doing} {name}", call)
        except PermanentError as error:
            if (problem := self.layout.absent(name, self._names())) is not None:
                raise problem from error
            raise


# The client


def _shown(url: str) -> str:
    """A URL without user, password, path and query: what may be shown."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")


class Connection:
    """Makes its client when it is first asked for."""

    def __init__(self, make: "Callable[[], QdrantClient]") -> None:
        self._make = make
        self._client: QdrantClient | None = None
        self._pid = os.getpid()
        self._guard = threading.Lock()

    def client(self) -> "QdrantClient":
        with self._guard:
            if self._client is None or self._pid != os.getpid():
                # Sockets that a parent process also reads from would mix up the answers.
                self._client, self._pid = self._make(), os.getpid()
            return self._client

    def close(self) -> None:
        """Let go of the connections; the next call makes new ones."""
        with self._guard:
            client, self._client = self._client, None
        if client is not None:
            client.close()


def _connect(url: str, api_key: str | None, timeout: int) -> "QdrantClient":
    """timeout: seconds for one answer."""
    from qdrant_client import QdrantClient

    # The version check would ask the server before the first call does, and warn if it is away.
    return QdrantClient(url=url, api_key=api_key, timeout=timeout, check_compatibility=False)


# Collections


def _dimension_of(layout: Layout, name: str, info: "models.CollectionInfo") -> int:
    """How long its dense vectors are. Raises ``PermanentError`` when they are none of ours."""
    from qdrant_client import models

    vectors = info.config.params.vectors
    dense = vectors.get(DENSE) if isinstance(vectors, dict) else None
    if dense is None:
        raise layout.other_settings(name, f"has no vector named {DENSE!r}")
    if dense.distance != models.Distance.COSINE:
        raise layout.other_settings(name, f"compares vectors by {dense.distance}, not by Cosine")
    if dense.multivector_config is not None:
        raise layout.other_settings(name, "holds many vectors for one point")
    return dense.size


def _weigh(
    client: "QdrantClient", layout: Layout, name: str, info: "models.CollectionInfo"
) -> None:
    from qdrant_client import models

    lexical = (info.config.params.sparse_vectors or {}).get(LEXICAL)
    if lexical is None:
        # It could be added, but then the points that are there would have none.
        raise layout.other_settings(name, f"has no sparse vector named {LEXICAL!r}")
    if lexical.modifier != models.Modifier.IDF:
        weighed = lexical.model_copy(update={"modifier": models.Modifier.IDF})
        client.update_collection(name, sparse_vectors_config={LEXICAL: weighed})


def _present_or_made(
    client: "QdrantClient", name: str, dimension: int | None
) -> "models.CollectionInfo":
    if not client.collection_exists(name):
        try:
            _make(client, name, dimension)
        except Exception:
            # Another process may have made it since the question; if not, that is what failed.
            if not client.collection_exists(name):
                raise
    return client.get_collection(name)


def _make(client: "QdrantClient", name: str, dimension: int | None) -> None:
    from qdrant_client import models

    if dimension is None:
        client.create_collection(name, vectors_config={})
        return
    client.create_collection(
        name,
        vectors_config={
            DENSE: models.VectorParams(size=dimension, distance=models.Distance.COSINE)
        },
        sparse_vectors_config={LEXICAL: models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )


def _index_keys(
    client: "QdrantClient", name: str, keys: Sequence[str], info: "models.CollectionInfo"
) -> None:
    from qdrant_client import models

    for key in keys:
        index = info.payload_schema.get(key)
        if index is not None and index.data_type == models.PayloadSchemaType.KEYWORD:
            continue
        if index is not None:
            client.delete_payload_index(name, key, wait=True)
        with warnings.catch_warnings():
            # The client's embedded modes have no payload indexes and say so each time.
            warnings.filterwarnings("ignore", message="Payload indexes have no effect")
            client.create_payload_index(name, key, models.PayloadSchemaType.KEYWORD, wait=True)


# Values


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


def _point_struct(point: PointWrite, *, vectors: bool) -> "models.PointStruct":
    from qdrant_client import models

    named: dict[str, models.Vector] = {}
    if vectors and point.dense is not None:
        named[DENSE] = list(point.dense)
    if vectors and point.lexical is not None and point.lexical.indices:
        named[LEXICAL] = _sparse(point.lexical)
    return models.PointStruct(id=str(point.point_id), vector=named, payload=dict(point.payload))


def _overwrite(point: PointWrite) -> "models.OverwritePayloadOperation":
    """Replace one payload; by filter, because by id a server refuses ids that do not exist."""
    from qdrant_client import models

    existing = models.Filter(must=[models.HasIdCondition(has_id=[str(point.point_id)])])
    return models.OverwritePayloadOperation(
        overwrite_payload=models.SetPayload(payload=dict(point.payload), filter=existing)
    )


def _sparse(vector: SparseVector) -> "models.SparseVector":
    from qdrant_client import models

    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


def _conditions(where: Where | None) -> "models.Filter | None":
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


def _stored_points(records: "Iterable[models.Record | models.ScoredPoint]") -> list[StoredPoint]:
    points = (stored_point(r.id, r.payload, r.vector, getattr(r, "score", 0.0)) for r in records)
    return [point for point in points if point is not None]


@contextmanager
def _translated(doing: str, server: str) -> Iterator[None]:
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
    answer = content[:300].decode("utf-8", "replace")
    message = f"Qdrant at {server} answered {status}, {doing}: {answer}"
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
