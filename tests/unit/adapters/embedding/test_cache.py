"""Vectors are remembered between calls and processes, and a cache that fails costs only time."""

import sqlite3
import subprocess
import sys
from array import array
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import pytest

from fakes.embedder import HashEmbedder
from tidemark.adapters.embedding.cache import CachedEmbedder, EmbeddingCache
from tidemark.domain.errors import TransientError

TESTS = str(Path(__file__).parents[3])
"""Where the fakes are."""


class Counting(HashEmbedder):
    """Remembers what it was asked for."""

    def __init__(self, dimension: int = 16) -> None:
        super().__init__(dimension)
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        self.asked += texts
        return super().embed(texts)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "vectors.sqlite"


def kept(file: Path) -> int:
    with closing(sqlite3.connect(file)) as cache:
        return int(cache.execute("select count(*) from vectors").fetchone()[0])


def test_a_second_call_embeds_nothing_and_gives_the_very_same_vectors(file: Path) -> None:
    first, second = Counting(), Counting()
    before = CachedEmbedder(first, file).embed(["a pier", "a mast"])
    after = CachedEmbedder(second, file).embed(["a pier", "a mast"])
    assert (first.asked, second.asked) == (["a pier", "a mast"], [])
    assert after == before


def test_only_new_texts_are_embedded_each_once_and_the_order_is_kept(file: Path) -> None:
    inner = Counting()
    embedder = CachedEmbedder(inner, file)
    embedder.embed(["b"])
    found = embedder.embed(["c", "b", "a", "c"])
    assert inner.asked == ["b", "c", "a"]
    expected = HashEmbedder(16).embed(["c", "b", "a", "c"])
    for vector, wanted in zip(found, expected, strict=True):
        assert vector == pytest.approx(wanted, abs=1e-6)


def test_no_text_needs_no_file(file: Path) -> None:
    assert CachedEmbedder(Counting(), file).embed([]) == []


def test_another_model_has_vectors_of_its_own(file: Path) -> None:
    CachedEmbedder(Counting(16), file).embed(["a"])
    other = Counting(32)
    (vector,) = CachedEmbedder(other, file).embed(["a"])
    assert other.asked == ["a"]
    assert len(vector) == 32


def test_it_is_the_embedder_that_it_wraps_to_others(file: Path) -> None:
    inner = Counting()
    embedder = CachedEmbedder(inner, file)
    assert (embedder.fingerprint, embedder.dimension) == (inner.fingerprint, inner.dimension)


def test_the_oldest_vectors_go_when_there_are_too_many(file: Path) -> None:
    inner = Counting()
    embedder = CachedEmbedder(inner, file, most=3)
    for text in "abcde":
        embedder.embed([text])
    assert kept(file) == 3
    inner.asked.clear()
    embedder.embed(["c", "d", "e"])
    assert inner.asked == []
    embedder.embed(["a"])
    assert inner.asked == ["a"]


def test_a_broken_file_is_replaced_and_the_texts_are_embedded(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"this is no database" * 100)
    inner = Counting()
    embedder = CachedEmbedder(inner, file)
    assert embedder.embed(["a"]) == embedder.embed(["a"])
    assert inner.asked == ["a"]


@pytest.mark.parametrize("vector", [b"abc", b"", "text", None, b"1234"])
def test_a_damaged_vector_is_embedded_again(file: Path, vector: object) -> None:
    CachedEmbedder(Counting(), file).embed(["a"])
    with closing(sqlite3.connect(file)) as cache, cache:
        cache.execute("update vectors set vector = ?", [vector])
    inner = Counting()
    assert len(CachedEmbedder(inner, file).embed(["a"])[0]) == 16
    assert inner.asked == ["a"]


def test_a_locked_file_costs_the_wait_and_nothing_else(file: Path) -> None:
    CachedEmbedder(Counting(), file).embed(["a"])
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("begin exclusive")
        inner = Counting()
        found = CachedEmbedder(inner, file, wait=0.05).embed(["a", "b"])
        assert inner.asked == ["a", "b"]
        assert len(found) == 2
        other.execute("rollback")
    assert kept(file) == 1


def test_a_place_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    inner = Counting()
    assert len(CachedEmbedder(inner, tmp_path / "file" / "vectors").embed(["a"])) == 1


def test_two_processes_write_at_once_and_nothing_is_lost(file: Path) -> None:
    script = dedent("""
        import sys
        from pathlib import Path
        from tidemark.adapters.embedding.cache import CachedEmbedder
        sys.path.insert(0, sys.argv[3])
        from fakes.embedder import HashEmbedder
        embedder = CachedEmbedder(HashEmbedder(16), Path(sys.argv[1]), wait=20)
        for number in range(12):
            embedder.embed([f"{sys.argv[2]} {number}", f"both {number}"])
    """)
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(file), name, TESTS])
        for name in ("x", "y")
    ]
    assert [process.wait(60) for process in running] == [0, 0]
    assert kept(file) == 36


# The file as such


def test_it_is_emptied_without_an_embedder_and_nothing_stays_in_the_file(file: Path) -> None:
    CachedEmbedder(Counting(), file).embed(["a tide", "a gauge"])
    vector = array("f", Counting().embed(["a tide"])[0]).tobytes()
    assert vector in file.read_bytes()
    cache = EmbeddingCache(file)
    assert (cache.count(), cache.clear(), cache.count()) == (2, 2, 0)
    assert vector not in file.read_bytes()
    assert cache.clear() == 0
    again = Counting()
    CachedEmbedder(again, file).embed(["a tide"])
    assert (again.asked, cache.count()) == (["a tide"], 1)


def test_where_nothing_was_cached_there_is_nothing_to_forget(file: Path) -> None:
    cache = EmbeddingCache(file)
    assert (cache.count(), cache.clear()) == (0, 0)
    assert not file.exists()


def test_a_cache_that_is_no_database_is_deleted(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database at all, and long enough to tell" * 100)
    assert EmbeddingCache(file).clear() == 0
    assert not file.exists()


def test_a_cache_that_another_process_holds_is_not_said_to_be_empty(file: Path) -> None:
    CachedEmbedder(Counting(), file).embed(["a tide"])
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("begin exclusive")
        with pytest.raises(TransientError, match="when no run is embedding"):
            EmbeddingCache(file, wait=0.1).clear()
    assert EmbeddingCache(file).count() == 1
