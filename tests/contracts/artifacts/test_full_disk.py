"""What the stores say when a disk takes no more, and what to do about it."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from tidemark.adapters.artifacts import FsspecArtifacts
from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.retry import Retry
from tidemark.domain.errors import PermanentError, TransientError


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let no file of this process grow past so many bytes: the system refuses the rest of a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def write(store: FsspecArtifacts, lines: int, *, and_a_value: bool) -> None:
    """As a crawl does: lines of a listing, and a value between them."""
    with store.writer("runs/a/listing.jsonl") as writer:
        for number in range(lines):
            writer.line(f"a line with the number {number}")
        if and_a_value:
            store.write("raw/b", bytes(100))


@pytest.mark.parametrize(
    ("lines", "and_a_value", "named"),
    [
        (1, False, "runs/a/listing.jsonl"),
        (5_000, False, "runs/a/listing.jsonl"),
        (1, True, "raw/b"),
    ],
    ids=["at the end", "in the middle", "by another value in between"],
)
def test_lines_that_do_not_fit_end_in_one_error_of_ours(
    tmp_path: Path, lines: int, and_a_value: bool, named: str
) -> None:
    store = FsspecArtifacts(str(tmp_path))
    with files_up_to(20), pytest.raises(PermanentError, match=f"{named} in .*: File too large"):
        write(store, lines, and_a_value=and_a_value)
    assert list(store.keys()) == []


@pytest.mark.services
def test_a_full_disk_of_the_database_server_is_called_that(postgres_url: str) -> None:
    database = Database(postgres_url, Retry("The ledger"))
    refused = text("DO $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$")
    with pytest.raises(TransientError, match=r"no room.*Free some space on the server's disk"):
        database.rows(refused)
    database.close()
