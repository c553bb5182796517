"""A stand-in for a Qdrant server: as much of its REST interface as the index asks of one.

Answers come from the client's own embedded mode, in this process's memory. With a folder, every write is
noted there before it is acknowledged and made again at the next start, so that a killed server comes back
with all it had said yes to. For tests only: one question at a time, and slow past some ten thousand points.

    python tests/support/qdrant_http.py PORT [--folder DIR] [--idle SECONDS] [--seconds SECONDS]

PORT 0 takes a free one. It says `ready PORT` when it listens, and ends by itself: when it was not asked
anything for a while (idle), and at the latest after so many seconds.
"""

import argparse
import json
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel
from qdrant_client import QdrantClient, models  # noqa: TID253 (a server, imported where one is wanted)

IDLE = 600.0
"""Seconds without a question after which it ends."""

SECONDS = 3600.0
"""Seconds after which it ends in any case."""


class NoCollectionError(Exception):
    """A collection that is asked for does not exist."""


@dataclass
class Store:
    """What the server holds, and how it answers."""

    folder: Path | None = None
    client: QdrantClient = field(default_factory=lambda: QdrantClient(":memory:"))
    indexes: dict[str, dict[str, str]] = field(default_factory=dict)
    """The type of each payload index, by collection and key."""
    guard: threading.Lock = field(default_factory=threading.Lock)
    log: BinaryIO | None = None

    def __post_init__(self) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "writes.jsonl"
        whole = 0
        for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
            if not line.endswith(b"\n"):
                break  # cut off by a kill, so never acknowledged
            whole += len(line)
            method, at, body = json.loads(line)
            self._answer(method, at, body)
        self.log = path.open("ab", buffering=0)
        self.log.truncate(whole)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """The status and the result, or what is wrong."""
        with self.guard:
            try:
                writes, result = self._answer(method, path, body)
            except NoCollectionError as error:
                return 404, f"Not found: Collection `{error}` doesn't exist!"
            except (ValueError, KeyError, TypeError, AssertionError) as error:
                return 400, f"Wrong input: {error}"
            if writes and self.log is not None:
                self.log.write(json.dumps([method, path, body]).encode() + b"\n")
            return 200, result

    def _answer(self, method: str, path: str, body: Any) -> tuple[bool, Any]:
        for (of, pattern), (writes, work) in _ROUTES.items():
            found = re.fullmatch(pattern, path)
            if of == method and found:
                names = [part for part in found.groups() if part is not None]
                if names and work not in (_exists, _create, _drop):
                    self.known(names[0])
                return writes, _plain(work(self, *names, body))
        raise ValueError(f"{method} {path} is not played here")

    def known(self, name: str) -> None:
        aliases = {alias.alias_name for alias in self.client.get_aliases().aliases}
        if name not in aliases and not self.client.collection_exists(name):
            raise NoCollectionError(name)


def _plain(result: Any) -> Any:
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json")
    if isinstance(result, (list, tuple)):
        return [_plain(one) for one in result]
    if isinstance(result, dict):
        return {key: _plain(value) for key, value in result.items()}
    return result


def _done(*_: object) -> dict[str, Any]:
    return {"operation_id": 1, "status": "completed"}


def _list(store: Store, body: Any) -> Any:
    return store.client.get_collections()


def _aliases(store: Store, body: Any) -> Any:
    return store.client.get_aliases()


def _change_aliases(store: Store, body: Any) -> Any:
    actions = models.ChangeAliasesOperation.model_validate(body).actions
    return store.client.update_collection_aliases(actions)


def _exists(store: Store, name: str, body: Any) -> Any:
    return {"exists": store.client.collection_exists(name)}


def _info(store: Store, name: str, body: Any) -> Any:
    info = store.client.get_collection(name).model_dump(mode="json")
    info["payload_schema"] = {
        key: {"data_type": kind, "points": 0} for key, kind in store.indexes.get(name, {}).items()
    }
    return info


def _create(store: Store, name: str, body: Any) -> Any:
    asked = models.CreateCollection.model_validate(body)
    return store.client.create_collection(
        name,
        vectors_config=asked.vectors or {},
        sparse_vectors_config=asked.sparse_vectors,
    )


def _update(store: Store, name: str, body: Any) -> Any:
    asked = models.UpdateCollection.model_validate(body)
    return store.client.update_collection(name, sparse_vectors_config=asked.sparse_vectors)


def _drop(store: Store, name: str, body: Any) -> Any:
    store.indexes.pop(name, None)
    return store.client.delete_collection(name)


def _index(store: Store, name: str, body: Any) -> Any:
    kind = body["field_schema"]
    kind = kind["type"] if isinstance(kind, dict) else kind
    store.indexes.setdefault(name, {})[body["field_name"]] = kind
    return _done()


def _drop_index(store: Store, name: str, key: str, body: Any) -> Any:
    store.indexes.get(name, {}).pop(key, None)
    return _done()


def _upsert(store: Store, name: str, body: Any) -> Any:
    store.client.upsert(name, models.PointsList.model_validate(body).points)
    return _done()


def _batch(store: Store, name: str, body: Any) -> Any:
    operations = models.UpdateOperations.model_validate(body).operations
    store.client.batch_update_points(name, operations)
    return [_done() for _ in operations]


def _delete(store: Store, name: str, body: Any) -> Any:
    store.client.delete(name, models.PointIdsList.model_validate(body))
    return _done()


def _retrieve(store: Store, name: str, body: Any) -> Any:
    asked = models.PointRequest.model_validate(body)
    return store.client.retrieve(
        name,
        asked.ids,
        with_payload=True if asked.with_payload is None else asked.with_payload,
        with_vectors=asked.with_vector or False,
    )


def _scroll(store: Store, name: str, body: Any) -> Any:
    asked = models.ScrollRequest.model_validate(body)
    points, after = store.client.scroll(
        name,
        asked.filter,
        limit=asked.limit or 10,
        offset=asked.offset,
        with_payload=True if asked.with_payload is None else asked.with_payload,
        with_vectors=asked.with_vector or False,
    )
    return {"points": points, "next_page_offset": after}


def _count(store: Store, name: str, body: Any) -> Any:
    return store.client.count(name, models.CountRequest.model_validate(body).filter)


def _query(store: Store, name: str, body: Any) -> Any:
    asked = models.QueryRequest.model_validate(body)
    return store.client.query_points(
        name,
        query=asked.query,
        using=asked.using,
        prefetch=asked.prefetch,
        query_filter=asked.filter,
        limit=asked.limit or 10,
        with_payload=asked.with_payload or False,
        with_vectors=asked.with_vector or False,
    )


_NAME = "/collections/([^/]+)"

_ROUTES: dict[tuple[str, str], tuple[bool, Callable[..., Any]]] = {
    ("GET", "/(?:healthz|readyz)?"): (False, _done),
    ("GET", "/collections"): (False, _list),
    ("GET", "/aliases"): (False, _aliases),
    ("POST", "/collections/aliases"): (True, _change_aliases),
    ("GET", f"{_NAME}/exists"): (False, _exists),
    ("GET", _NAME): (False, _info),
    ("PUT", _NAME): (True, _create),
    ("PATCH", _NAME): (True, _update),
    ("DELETE", _NAME): (True, _drop),
    ("PUT", f"{_NAME}/index"): (True, _index),
    ("DELETE", f"{_NAME}/index/([^/]+)"): (True, _drop_index),
    ("PUT", f"{_NAME}/points"): (True, _upsert),
    ("POST", f"{_NAME}/points/batch"): (True, _batch),
    ("POST", f"{_NAME}/points/delete"): (True, _delete),
    ("POST", f"{_NAME}/points"): (False, _retrieve),
    ("POST", f"{_NAME}/points/scroll"): (False, _scroll),
    ("POST", f"{_NAME}/points/count"): (False, _count),
    ("POST", f"{_NAME}/points/query"): (False, _query),
}
"""Whether it writes, and what answers, by method and path."""


class QdrantHttp(ThreadingHTTPServer):
    """The server; ``asked`` is when it was last asked something (monotonic seconds)."""

    daemon_threads = True

    def __init__(self, port: int, folder: Path | None = None) -> None:
        warnings.filterwarnings("ignore", message="Payload indexes have no effect")
        self.store = Store(folder)
        self.asked = time.monotonic()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    server: QdrantHttp

    def answer(self) -> None:
        self.server.asked = started = time.monotonic()
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        status, result = self.server.store.answer(
            self.command, path, json.loads(sent) if sent else None
        )
        whole = (
            {"result": result, "status": "ok"}
            if status == 200
            else {"result": None, "status": {"error": result}}
        )
        body = json.dumps({**whole, "time": time.monotonic() - started}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 (the base class names them)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(folder: Path | None = None) -> Iterator[QdrantHttp]:
    """A server in a thread of this process, on a free port."""
    server = QdrantHttp(0, folder)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for a Qdrant server, for tests.")
    parser.add_argument("port", type=int)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--idle", type=float, default=IDLE)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    server = QdrantHttp(given.port, given.folder)
    end = time.monotonic() + given.seconds

    def end_in_time() -> None:
        while time.monotonic() < min(end, server.asked + given.idle):
            time.sleep(0.1)
        os._exit(0)

    threading.Thread(target=end_in_time, daemon=True).start()
    print(f"ready {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
