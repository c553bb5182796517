"""What every ArtifactStore must do: in memory, in a folder, and in an object store's stand-in."""

import errno
import os
import signal
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import start_python

from fakes.artifacts import MemoryArtifacts
from tidemark.adapters.artifacts import FsspecArtifacts, LocalFolder, _written_at
from tidemark.domain.errors import ConfigurationError, PermanentError, TransientError
from tidemark.ports.artifacts import ArtifactStore

EACH_EXAMPLE_MAY_SHARE_THE_STORE = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=["memory", "folder", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    """An empty store."""
    if request.param == "memory":
        return MemoryArtifacts()
    if request.param == "folder":
        return FsspecArtifacts((tmp_path / "artifacts").as_uri())
    return FsspecArtifacts(f"memory://bucket-{uuid4().hex}/some/prefix")


def fill(store: ArtifactStore, key: str, lines: list[str]) -> None:
    with store.writer(key) as writer:
        for line in lines:
            writer.line(line)


@EACH_EXAMPLE_MAY_SHARE_THE_STORE
@given(data=st.binary(max_size=2000))
def test_it_gives_bytes_back_as_they_were_written(store: ArtifactStore, data: bytes) -> None:
    store.write("raw/a", data)
    assert store.read("raw/a") == data


def test_the_last_value_written_counts(store: ArtifactStore) -> None:
    for data in (b"first", b"first", b"other", b""):
        store.write("raw/a", data)
        assert store.read("raw/a") == data
    assert list(store.keys()) == ["raw/a"]


def test_a_missing_key_is_a_key_error(store: ArtifactStore) -> None:
    store.write("raw/a", b"x")
    for key in ("raw/b", "raw", "nothing", "nothing/b"):
        assert not store.exists(key)
        with pytest.raises(KeyError):
            store.read(key)
        with pytest.raises(KeyError):
            store.lines(key)
        store.delete(key)
    assert store.exists("raw/a")


def test_a_deleted_key_is_gone_and_may_come_again(store: ArtifactStore) -> None:
    for _ in range(2):
        store.write("runs/a/plan", b"x")
        store.delete("runs/a/plan")
        store.delete("runs/a/plan")
        assert not store.exists("runs/a/plan")
        assert list(store.keys()) == []


def test_it_finds_keys_by_their_beginning(store: ArtifactStore) -> None:
    keys = {"raw/aa", "raw/ab", "raw/b/c", "rawest", "runs/1/plan.jsonl", "Ä/東京 %:+é'\""}
    for key in keys:
        store.write(key, b"x")
    for prefix in ("", "r", "raw", "raw/", "raw/a", "raw/ab", "raw/b/", "Ä/", "none", "none/x"):
        assert sorted(store.keys(prefix)) == sorted(k for k in keys if k.startswith(prefix))


def test_keys_may_be_deleted_while_they_are_streamed(store: ArtifactStore) -> None:
    for n in range(20):
        store.write(f"raw/{n}", b"x")
    for key in store.keys("raw/"):
        store.delete(key)
    assert list(store.keys()) == []


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../../b", "./a", "a\0b", ".tmp/a"]
)
def test_a_key_that_leads_elsewhere_is_refused(store: ArtifactStore, key: str) -> None:
    with pytest.raises(PermanentError):
        store.write(key, b"x")
    with pytest.raises(PermanentError):
        store.read(key)
    with pytest.raises(PermanentError), store.writer(key):
        pytest.fail("It was opened.")


@EACH_EXAMPLE_MAY_SHARE_THE_STORE
@given(
    lines=st.lists(
        st.text(st.characters(exclude_characters="\n", exclude_categories=())), max_size=20
    )
)
def test_it_gives_lines_back_as_they_were_written(store: ArtifactStore, lines: list[str]) -> None:
    fill(store, "runs/1/plan.jsonl", lines)
    assert list(store.lines("runs/1/plan.jsonl")) == lines


def test_lines_are_the_value_and_the_value_is_lines(store: ArtifactStore) -> None:
    fill(store, "a", ["{}", "", "ä"])
    assert store.read("a") == "{}\n\nä\n".encode()
    store.write("b", b"one\r\ntwo\x0c\n\nfour")
    assert list(store.lines("b")) == ["one\r", "two\x0c", "", "four"]
    store.write("c", b"")
    assert list(store.lines("c")) == []


def test_bytes_that_are_no_text_have_no_lines(store: ArtifactStore) -> None:
    store.write("a", b"\xff\xfe\n")
    with pytest.raises(PermanentError):
        list(store.lines("a"))


def test_a_line_break_inside_a_line_is_refused(store: ArtifactStore) -> None:
    with pytest.raises(PermanentError), store.writer("a") as writer:
        writer.line("one\ntwo")
    assert not store.exists("a")


def test_lines_appear_only_when_the_writer_has_ended(store: ArtifactStore) -> None:
    fill(store, "a", ["old"])
    with store.writer("a") as writer, store.writer("b") as other:
        for _ in range(5000):
            writer.line("new")
            other.line("new")
        assert list(store.lines("a")) == ["old"]
        assert not store.exists("b")
        assert sorted(store.keys()) == ["a"]
    assert list(store.lines("a")) == ["new"] * 5000
    assert sorted(store.keys()) == ["a", "b"]


def test_a_writer_that_fails_leaves_what_was_there(store: ArtifactStore) -> None:
    fill(store, "a", ["old"])
    for key in ("a", "b"):
        with pytest.raises(ZeroDivisionError), store.writer(key) as writer:
            writer.line(f"{1 / 0}")
    assert list(store.lines("a")) == ["old"]
    assert list(store.keys()) == ["a"]


def test_a_line_is_read_before_the_rest_is(store: ArtifactStore) -> None:
    fill(store, "a", [f"{n}" for n in range(10)])
    lines = store.lines("a")
    assert next(lines) == "0"
    store.delete("a")
    del lines


def test_entries_tell_size_and_when_each_was_written(store: ArtifactStore) -> None:
    begun = datetime.now(UTC) - timedelta(seconds=1)
    store.write("raw/a", b"12345")
    store.write("raw/b/c", b"")
    fill(store, "runs/1/plan", ["x"])
    found = {entry.key: entry for entry in store.entries()}
    assert {key: entry.size for key, entry in found.items()} == {
        "raw/a": 5,
        "raw/b/c": 0,
        "runs/1/plan": 2,
    }
    ended = datetime.now(UTC) + timedelta(seconds=1)
    assert all(begun <= entry.written_at <= ended for entry in found.values())
    assert sorted(entry.key for entry in store.entries("raw/")) == ["raw/a", "raw/b/c"]
    assert list(store.entries("none")) == []


def test_bytes_that_are_written_again_count_as_written_now(store: ArtifactStore) -> None:
    store.write("raw/a", b"x")
    [before] = store.entries()
    time.sleep(0.02)
    store.write("raw/a", b"x")
    [after] = store.entries()
    assert after.written_at > before.written_at
    assert store.read("raw/a") == b"x"


def test_what_was_written_since_a_time_is_not_deleted(store: ArtifactStore) -> None:
    store.write("raw/a", b"x")
    [entry] = store.entries()
    assert not store.delete("raw/a", written_before=entry.written_at)
    assert store.exists("raw/a")
    assert store.delete("raw/a", written_before=entry.written_at + timedelta(seconds=1))
    assert not store.exists("raw/a")
    assert store.delete("raw/a", written_before=entry.written_at)
    assert store.delete("raw/a")


def test_entries_may_be_deleted_while_they_are_streamed(store: ArtifactStore) -> None:
    for n in range(20):
        store.write(f"raw/{n}", b"x")
    later = datetime.now(UTC) + timedelta(minutes=1)
    assert all(store.delete(e.key, written_before=later) for e in store.entries("raw/"))
    assert list(store.entries()) == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"LastModified": datetime(2026, 1, 2, tzinfo=UTC)}, datetime(2026, 1, 2, tzinfo=UTC)),
        ({"last_modified": datetime(2026, 1, 2)}, datetime(2026, 1, 2, tzinfo=UTC)),  # noqa: DTZ001
        ({"updated": "2026-01-02T00:00:00Z"}, datetime(2026, 1, 2, tzinfo=UTC)),
        ({"mtime": 0.0}, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_each_kind_of_object_store_tells_the_time_in_its_own_way(
    found: dict[str, object], expected: datetime
) -> None:
    assert _written_at(found) == expected


def test_a_store_that_tells_no_time_loses_nothing_to_age() -> None:
    assert _written_at({"size": 1}) > datetime.now(UTC) - timedelta(minutes=1)


# In a folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "with space, ünïcode and 100%"


def test_a_folder_is_made_when_it_is_first_written_to(folder: Path) -> None:
    store = FsspecArtifacts(str(folder))
    assert not store.exists("a")
    assert list(store.keys()) == []
    store.delete("a")
    assert not folder.exists()
    store.write("a/b", b"x")
    assert (folder / "a" / "b").read_bytes() == b"x"


def test_a_value_that_is_there_is_not_written_again(folder: Path) -> None:
    store = FsspecArtifacts(str(folder))
    store.write("raw/a", b"x" * 1000)
    before = (folder / "raw/a").stat()
    store.write("raw/a", b"x" * 1000)
    assert (folder / "raw/a").stat().st_ino == before.st_ino
    store.write("raw/a", b"y" * 1000)
    assert store.read("raw/a") == b"y" * 1000


def test_there_is_nothing_below_a_value(folder: Path) -> None:
    store = FsspecArtifacts(str(folder))
    store.write("a", b"x")
    assert not store.exists("a/b")
    store.delete("a/b")
    with pytest.raises(KeyError):
        store.read("a/b")
    assert list(store.keys("a/")) == []


def test_a_folder_without_values_is_removed(folder: Path) -> None:
    store = FsspecArtifacts(str(folder))
    store.write("runs/1/plan", b"x")
    store.write("runs/2/plan", b"x")
    store.delete("runs/1/plan")
    assert [p.name for p in (folder / "runs").iterdir()] == ["2"]


WRITER = """
import sys, time
from tidemark.adapters.artifacts import FsspecArtifacts
with FsspecArtifacts(sys.argv[1]).writer("a") as writer:
    for _ in range(100_000):
        writer.line("unfinished")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_a_killed_writer_leaves_no_value_and_its_rest_is_swept_a_day_later(folder: Path) -> None:
    process = start_python(WRITER, str(folder))
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    store = FsspecArtifacts(str(folder))
    assert list(store.keys()) == []
    [rest] = (folder / ".tmp").iterdir()
    store.write("b", b"x")
    assert rest.exists()
    os.utime(rest, (0, time.time() - 25 * 3600))
    size = rest.stat().st_size
    day_ago = datetime.now(UTC) - timedelta(days=1)
    assert store.discard_unfinished(day_ago, dry_run=True) == (1, size)
    assert store.discard_unfinished(day_ago - timedelta(days=1)) == (0, 0)
    assert rest.exists()
    FsspecArtifacts(str(folder)).write("c", b"x")
    assert not rest.exists()
    assert sorted(store.keys()) == ["b", "c"]
    rest.write_bytes(b"12")
    assert store.discard_unfinished(datetime.now(UTC) + timedelta(minutes=1)) == (1, 2)
    assert list((folder / ".tmp").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_a_permanent_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = FsspecArtifacts(str(tmp_path / "file"))
    for call in (lambda: store.write("a", b"x"), lambda: store.writer("a").__enter__()):
        with pytest.raises(PermanentError, match=r"[Nn]ot a directory|File exists"):
            call()
    assert not store.exists("a")


def test_a_name_longer_than_the_file_system_takes_is_a_permanent_error(folder: Path) -> None:
    store = FsspecArtifacts(str(folder))
    with pytest.raises(PermanentError, match="too long"):
        store.write("a" * 300, b"x")


@pytest.mark.parametrize(
    ("method", "call", "answer"),
    [
        ("open", lambda store: store.read("a"), b"one\n"),
        ("open", lambda store: list(store.lines("a")), ["one"]),
        ("put", lambda store: store.write("b", b"two"), None),
        ("size", lambda store: store.exists("a"), True),
        ("delete", lambda store: store.delete("a"), True),
        ("keys", lambda store: list(store.keys()), ["a"]),
        ("entries", lambda store: [e.size for e in store.entries()], [4]),
    ],
)
def test_a_store_that_is_away_is_asked_again(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    call: Callable[[ArtifactStore], object],
    answer: object,
) -> None:
    whole = getattr(LocalFolder, method)
    tries: list[str] = []

    def away_at_first(*arguments: object) -> object:
        tries.append(method)
        if len(tries) == 1:
            raise OSError(errno.EIO, "The network is away.")
        return whole(*arguments)

    FsspecArtifacts(str(folder)).write("a", b"one\n")
    monkeypatch.setattr(LocalFolder, method, away_at_first)
    with pytest.raises(TransientError):
        call(FsspecArtifacts(str(folder)))
    tries.clear()
    assert call(FsspecArtifacts(str(folder), retry_timeout=30)) == answer
    assert len(tries) > 1


def test_lines_of_a_large_value_are_not_held_in_memory(folder: Path) -> None:
    store = FsspecArtifacts(str(folder))
    tracemalloc.start()
    with store.writer("a") as writer:
        for n in range(50_000):
            writer.line(f"{n:0100}")
    assert sum(1 for _ in store.lines("a")) == 50_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("url", ["no-such-kind://x/y", "abfs-missing+x://a"])
def test_an_unknown_kind_of_store_is_refused_with_the_cure(url: str) -> None:
    with pytest.raises(ConfigurationError, match="TIDEMARK_ARTIFACTS_URL"):
        FsspecArtifacts(url)
