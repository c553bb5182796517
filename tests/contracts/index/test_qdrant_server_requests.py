"""What the Qdrant server adapter sends, and what it makes of the answers, on a server that plays along."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from vector_index_cases import direction, identity, point, section, words

from tidemark.adapters.index import qdrant as qdrant_requests
from tidemark.adapters.index.qdrant import QdrantServerIndex
from tidemark.domain.chunks import SparseVector
from tidemark.domain.errors import ConfigurationError, PermanentError, TransientError

pytestmark = [
    pytest.mark.services,
    pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection"),
]

WRITTEN = {"result": {"operation_id": 1, "status": "completed"}, "status": "ok", "time": 0.0}


@dataclass
class Played:
    """A server that gives one answer to everything and keeps what it was asked.

    away: the numbers, from 1, of the requests that it does not answer.
    """

    url: str = ""
    status: int = 200
    away: frozenset[int] = frozenset()
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = json.dumps(WRITTEN).encode()
    by_path: dict[str, object] = field(default_factory=dict)
    seconds: float = 0.0
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)

    def bodies(self, path: str = "") -> list[dict[str, Any]]:
        """Of the requests to this path, or of all."""
        return [json.loads(body) for _, to, body in self.asked if not path or to.startswith(path)]


@pytest.fixture
def server() -> Iterator[Played]:
    played = Played()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            played.asked.append((self.command, self.path, self.rfile.read(length)))
            time.sleep(played.seconds)
            path = self.path.split("?")[0]
            body = played.body
            if path in played.by_path:
                body = json.dumps({"result": played.by_path[path], "status": "ok"}).encode()
            self.send_response(503 if len(played.asked) in played.away else played.status)
            for name, value in played.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 (the base class names them)

        def log_message(self, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    played.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.02,))
    thread.start()
    yield played
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 429])
def test_an_outage_is_transient_and_names_the_server(server: Played, status: int) -> None:
    server.status = status
    with pytest.raises(TransientError, match=f"{server.url} answered {status}, counting"):
        QdrantServerIndex(server.url).count_points(1)


def test_being_asked_to_come_back_later_is_transient(server: Played) -> None:
    server.status, server.headers, server.body = 429, {"Retry-After": "3"}, b"{}"
    with pytest.raises(TransientError, match="later"):
        QdrantServerIndex(server.url).search(1, 1, dense=direction(0))


@pytest.mark.parametrize(
    ("status", "hint"), [(400, ""), (401, "API key"), (404, "Index a source"), (413, "smaller")]
)
def test_a_refusal_is_permanent_and_names_the_cure(server: Played, status: int, hint: str) -> None:
    server.status, server.body = status, b'{"status": {"error": "because of this"}}'
    with pytest.raises(PermanentError, match=f"because of this.*{hint}"):
        QdrantServerIndex(server.url, "the-key").upsert_points(1, [point(1)])


def test_an_answer_that_comes_too_late_is_transient(server: Played) -> None:
    server.seconds = 1.5
    with pytest.raises(TransientError, match="in time"):
        QdrantServerIndex(server.url, timeout=1).delete_points(1, [identity(1)])


def test_an_answer_of_another_kind_is_permanent(server: Played) -> None:
    server.body = b'{"result": "something else"}'
    with pytest.raises(PermanentError, match="do not understand"):
        QdrantServerIndex(server.url).count_points(1)


def test_a_server_that_is_away_is_transient_and_shows_no_secret() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    index = QdrantServerIndex(f"http://user:hush@127.0.0.1:{port}/?token=hush", "hush-hush")
    with pytest.raises(
        TransientError, match=f"http://127.0.0.1:{port} cannot be reached"
    ) as caught:
        index.generations()
    assert "hush" not in str(caught.value)


def test_each_page_of_a_scan_waits_for_a_server_that_is_away(server: Played) -> None:
    records = [{"id": str(identity(n)), "payload": {}} for n in (1, 2)]
    pages = [
        {"points": [records[0]], "next_page_offset": records[1]["id"]},
        {"points": [records[1]], "next_page_offset": None},
    ]
    scroll = "/collections/tidemark__g1/points/scroll"
    server.by_path, server.away = {scroll: pages[0]}, frozenset({1, 3})
    scan = QdrantServerIndex(server.url, retry_timeout=30).scan_points(1)
    assert next(scan).point_id == identity(1)
    server.by_path = {scroll: pages[1]}
    assert [point.point_id for point in scan] == [identity(2)]
    offsets = [body.get("offset") for body in server.bodies(scroll)]
    assert offsets == [None, None, records[1]["id"], records[1]["id"]]


def test_it_wants_a_url_or_a_client() -> None:
    with pytest.raises(ConfigurationError):
        QdrantServerIndex()


def test_writes_are_cut_to_fit_a_request_and_waited_for(
    server: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant_requests, "REQUEST_BYTES", 100_000)
    index = QdrantServerIndex(server.url, timeout=5)
    index.upsert_points(1, [point(n, tokens=tuple(range(50)), text="é" * 5_000) for n in range(9)])
    index.upsert_sections(1, [section(n, text="x" * 60_000) for n in range(3)])
    assert all(len(body) <= 100_000 for _, _, body in server.asked)
    assert len(server.asked) == 3 + 3
    assert all("wait=true" in path for _, path, _ in server.asked)
    sent = [p for body in server.bodies() for p in body["points"]]
    assert [p["id"] for p in sent] == [str(identity(n)) for n in (*range(9), *range(3))]
    assert [p["vector"] for p in sent[-3:]] == [{}, {}, {}]


def test_a_point_too_large_for_the_limit_travels_alone(
    server: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qdrant_requests, "REQUEST_BYTES", 10_000)
    texts = ["a", "b" * 50_000, "c"]
    QdrantServerIndex(server.url).upsert_sections(
        1, [section(n, text=text) for n, text in enumerate(texts)]
    )
    assert len(server.asked) == 3


def test_points_are_deleted_by_id_a_thousand_at_a_time(server: Played) -> None:
    ids = [identity(n) for n in range(2_500)]
    QdrantServerIndex(server.url).delete_points(1, ids)
    assert [len(body["points"]) for body in server.bodies()] == [1000, 1000, 500]
    assert all("wait=true" in path for _, path, _ in server.asked)


def test_payloads_are_overwritten_by_filter_so_that_no_missing_id_fails_the_rest(
    server: Played,
) -> None:
    server.body = json.dumps({**WRITTEN, "result": [WRITTEN["result"]] * 2}).encode()
    QdrantServerIndex(server.url).set_payloads(1, [point(1, title="t"), point(2)])
    assert len(server.asked) == 1
    first = server.bodies()[0]["operations"][0]["overwrite_payload"]
    assert first["payload"] == {"number": 1, "title": "t"}
    assert first["filter"]["must"] == [{"has_id": [str(identity(1))]}]
    assert "points" not in first


def test_both_live_names_move_in_one_request(server: Played) -> None:
    names = ("tidemark__g1", "tidemark__g2", "tidemark__sections__g2")
    server.by_path = {
        "/collections": {"collections": [{"name": name} for name in names]},
        "/aliases": {"aliases": [{"alias_name": "tidemark", "collection_name": "tidemark__g1"}]},
        "/collections/aliases": True,
    }
    QdrantServerIndex(server.url).switch(2)
    assert server.bodies("/collections/aliases") == [
        {
            "actions": [
                {"delete_alias": {"alias_name": "tidemark"}},
                {
                    "create_alias": {
                        "collection_name": "tidemark__g2",
                        "alias_name": "tidemark",
                    }
                },
                {
                    "create_alias": {
                        "collection_name": "tidemark__sections__g2",
                        "alias_name": "tidemark__sections",
                    }
                },
            ]
        }
    ]


def test_hybrid_search_is_one_request(server: Played) -> None:
    server.body = json.dumps({"result": {"points": []}, "status": "ok"}).encode()
    QdrantServerIndex(server.url).search(
        1, 5, dense=direction(0), lexical=words(3), where={"source": "a"}
    )
    body = server.bodies()[0]
    assert len(server.asked) == 1
    assert body["query"] == {"rrf": {"k": 60}}
    only = {"must": [{"key": "source", "match": {"any": ["a"]}}]}
    assert [(p["using"], p["filter"]) for p in body["prefetch"]] == [
        ("dense", only),
        ("lexical", only),
    ]
    assert body["with_payload"] is True


def test_a_scan_fetches_the_vectors_only_when_asked(server: Played) -> None:
    words = {"indices": [3, 7], "values": [0.5, 1.0]}
    vectors = {"dense": [0.5, -0.5], "lexical": words}
    found = {"id": str(identity(1)), "payload": None, "vector": vectors}
    page = {"points": [found], "next_page_offset": None}
    server.by_path = {"/collections/tidemark__g1/points/scroll": page}
    index = QdrantServerIndex(server.url)
    (plain,) = index.scan_points(1, vectors=False)
    (whole,) = index.scan_points(1, vectors=True)
    assert [body["with_vector"] for body in server.bodies()] == [False, ["dense", "lexical"]]
    assert whole.dense == (0.5, -0.5)
    assert whole.lexical == SparseVector((3, 7), (0.5, 1.0))
    assert plain.payload == whole.payload == {}


def test_a_mark_is_one_small_write_a_collection(server: Played) -> None:
    QdrantServerIndex(server.url).write_epoch(1, "docs", "m1")
    assert [path for _, path, _ in server.asked] == [
        "/collections/tidemark__g1/points?wait=true",
        "/collections/tidemark__sections__g1/points?wait=true",
    ]
    (sent,) = {json.dumps(body["points"]) for body in server.bodies()}
    assert json.loads(sent)[0]["payload"] == {"tidemark_mark": "m1", "tidemark_source": "docs"}
    assert json.loads(sent)[0]["vector"] == {}


def test_a_forked_process_makes_its_own_connections(server: Played) -> None:
    server.by_path = {"/collections": {"collections": []}}
    made: list[int] = []

    def make() -> Any:
        from qdrant_client import QdrantClient

        made.append(os.getpid())
        return QdrantClient(url=server.url, check_compatibility=False)

    index = QdrantServerIndex(client_factory=make)
    assert index.generations() == index.generations() == []
    assert made == [os.getpid()]
    child = os.fork()
    if child == 0:
        try:
            index.generations()
        finally:
            os._exit(0 if made[-1] == os.getpid() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
