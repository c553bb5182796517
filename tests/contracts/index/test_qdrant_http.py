"""The stand-in for a Qdrant server: it must not forget what it said yes to, and must end by itself."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import qdrant_http
from vector_index_cases import DIMENSION, direction, point, section

from tidemark.adapters.index.qdrant import QdrantServerIndex
from tidemark.domain.errors import TransientError

pytestmark = pytest.mark.services


def start(*arguments: object) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, str(qdrant_http.__file__), *map(str, arguments), "--seconds", "60"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    ready, port = process.stdout.readline().split()
    assert ready == "ready"
    return process, int(port)


def test_a_killed_server_comes_back_with_all_it_had_said_yes_to(tmp_path: Path) -> None:
    server, port = start(0, "--folder", tmp_path)
    index = QdrantServerIndex(f"http://127.0.0.1:{port}", timeout=10)
    try:
        index.ensure(1, DIMENSION, "made by this")
        index.switch(1)
        index.upsert_points(1, [point(n, 10 * n) for n in range(5)])
        index.upsert_sections(1, [section(1)])
        index.set_payloads(1, [point(2, title="new")])
        index.delete_points(1, [point(0).point_id])
        index.write_epoch(1, "docs", "m")
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    with (tmp_path / "writes.jsonl").open("ab") as log:
        log.write(b'["PUT", "/collections/tidemark__g1/poi')
    with pytest.raises(TransientError, match="cannot be reached"):
        index.count_points(1)
    server, port = start(port, "--folder", tmp_path, "--idle", 1.5)
    try:
        assert index.live() == 1
        assert index.count_points(1) == 4
        assert index.get_points(1, [point(2).point_id])[0].payload["title"] == "new"
        assert index.search(1, 1, dense=direction(30))[0].payload["number"] == 3
        assert index.epochs(1, "docs") == ("m", "m")
        assert index.built_under(1) == "made by this"
        index.upsert_points(1, [point(9)])
        assert server.wait(timeout=20) == 0  # as nobody asked it anything
    finally:
        server.kill()
        server.wait()
    assert len(qdrant_http.Store(tmp_path).client.scroll("tidemark__g1", limit=99)[0]) == 5 + 2
