"""A document can harm the process that reads it, and nothing else."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import psutil
import pytest

from tidemark.adapters.partition.options import PartitionOptions
from tidemark.adapters.partition.partitioner import DocumentPartitioner
from tidemark.adapters.partition.sandbox.parent import SandboxedPartitioner, SandboxLimits
from tidemark.domain.documents import RawDocument
from tidemark.domain.errors import DocumentError, PermanentError, TransientError

pytestmark = pytest.mark.slow

QUICK = SandboxLimits(
    memory_bytes=300 * 2**20, seconds=0.7, seconds_per_mebibyte=0, output_bytes=2**20, open_files=64
)


def raw(content: str | bytes, uri: str = "file:///docs/a-file") -> RawDocument:
    data = content.encode() if isinstance(content, str) else content
    return RawDocument(uri, data, "text/plain", None, datetime(2026, 1, 1, tzinfo=UTC))


def faulty(limits: SandboxLimits = QUICK) -> SandboxedPartitioner:
    return SandboxedPartitioner(limits=limits, worker_module="sandbox_faults")


@pytest.fixture
def sandbox() -> Iterator[SandboxedPartitioner]:
    made = faulty()
    yield made
    made.close()


def said(partitioner: SandboxedPartitioner, content: str) -> list[str]:
    """Process id, boilerplate and words of the worker."""
    return partitioner.partition(raw(content)).elements[0].text.split(" ", 2)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_worker_is_used_again_and_started_with_the_first_document(
    sandbox: SandboxedPartitioner,
) -> None:
    assert sandbox._shared._worker is None
    first, second = said(sandbox, "hello there"), said(sandbox, "größe")
    assert first[0] == second[0] != str(os.getpid())
    assert (first[2], second[2]) == ("hello there", "größe")


def test_an_answer_has_all_that_the_document_has(sandbox: SandboxedPartitioner) -> None:
    document = sandbox.partition(raw("plain"))
    assert (document.title, document.language) == ("plain", "en")
    assert document.elements[0].page_number == 1


@pytest.mark.parametrize(
    ("deed", "problem"),
    [
        ("hang", r"took longer than 0\.7 seconds"),
        ("hang-in-c", r"took longer than 0\.7 seconds"),
        ("crash", r"crashed its parser \(signal SIGSEGV: about to fall"),
        ("kill", "the system killed its parser"),
        ("eat", "ran out of memory when it was read; the limit is 300 MiB"),
        ("repeat 2000000", r"turns into more than 1,048,576 bytes"),
        ("lie", "answer what makes no sense"),
        ("fault", "it is bad"),
    ],
)
def test_what_happens_to_the_parser_costs_that_document_only(
    sandbox: SandboxedPartitioner, deed: str, problem: str
) -> None:
    said(sandbox, "before")
    with pytest.raises(DocumentError, match=problem) as caught:
        sandbox.partition(raw(deed))
    assert caught.value.stage == "partition"
    assert caught.value.hint
    assert deed == "fault" or "file:///docs/a-file" in caught.value.message
    assert said(sandbox, "after")[2] == "after"


def test_what_is_not_set_up_is_not_the_fault_of_a_document(sandbox: SandboxedPartitioner) -> None:
    with pytest.raises(PermanentError, match="not set up") as caught:
        sandbox.partition(raw("setup"))
    assert not isinstance(caught.value, DocumentError)


def test_what_a_parser_prints_is_no_answer(sandbox: SandboxedPartitioner) -> None:
    assert said(sandbox, "say words")[2] == "words"
    assert said(sandbox, "noise")[2] == "done"


def test_a_worker_that_somebody_killed_meanwhile_is_replaced_without_a_word(
    sandbox: SandboxedPartitioner,
) -> None:
    first = int(said(sandbox, "a")[0])
    os.kill(first, signal.SIGKILL)
    assert int(said(sandbox, "b")[0]) != first


def test_memory_that_others_left_behind_is_not_charged_to_a_document(
    sandbox: SandboxedPartitioner,
) -> None:
    assert said(sandbox, "grow 160000000")[2] == "1"
    assert said(sandbox, "grow 160000000")[2] == "1"  # in a new worker


def test_a_worker_gives_way_after_its_share_of_documents_or_memory() -> None:
    limited = faulty(SandboxLimits(documents=2, resident_bytes=150 * 2**20))
    pids = [said(limited, "x")[0] for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]
    grown = said(limited, "grow 200000000")[0]
    assert said(limited, "x")[0] != grown
    limited.close()


def test_a_worker_knows_no_secrets_and_dumps_no_core(
    sandbox: SandboxedPartitioner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_LEDGER_URL", "postgresql://keeper:secret@db")
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "secret")
    known = json.loads(said(sandbox, "environment")[2])
    assert not [name for name in known if name.startswith(("TIDEMARK", "AIRFLOW"))]
    assert "secret" not in json.dumps(known)
    assert known["DO_NOT_TRACK"] == "true"
    if sys.platform == "linux":
        worker = psutil.Process(int(said(sandbox, "x")[0]))
        assert worker.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert int(said(sandbox, "files")[2]) < 64


def test_it_takes_the_boilerplate_of_a_site_along_and_shares_its_worker(
    sandbox: SandboxedPartitioner,
) -> None:
    other = sandbox.with_boilerplate(frozenset({7, 2**63}))
    assert said(other, "x")[1:] == ["[7,", f"{2**63}] x"]
    assert said(sandbox, "x")[1] == "[]"
    assert said(other, "x")[0] == said(sandbox, "x")[0]


def test_the_fingerprint_is_that_of_the_reader_and_needs_no_worker() -> None:
    options = PartitionOptions(max_pages=7)
    sandbox, plain = SandboxedPartitioner(options), DocumentPartitioner(options)
    some = frozenset({1, 2})
    assert sandbox.fingerprint == plain.fingerprint
    assert sandbox.with_boilerplate(some).fingerprint == plain.with_boilerplate(some).fingerprint
    assert sandbox.with_boilerplate(some).fingerprint != sandbox.fingerprint
    assert (
        sandbox.with_boilerplate(some).with_boilerplate(frozenset()).fingerprint
        == sandbox.fingerprint
    )
    assert sandbox._shared._worker is None


def test_a_document_over_the_bound_does_not_start_a_worker() -> None:
    sandbox = SandboxedPartitioner(PartitionOptions(max_bytes=10))
    with pytest.raises(DocumentError, match="limit is 10"):
        sandbox.partition(raw("more than ten bytes"))
    assert sandbox._shared._worker is None


def test_threads_take_turns(sandbox: SandboxedPartitioner) -> None:
    answers: dict[int, str] = {}

    def work(number: int) -> None:
        answers[number] = said(sandbox, f"document {number}")[2]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: f"document {n}" for n in range(8)}


def test_a_forked_process_has_a_worker_of_its_own(sandbox: SandboxedPartitioner) -> None:
    mine = said(sandbox, "x")[0]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            theirs = said(sandbox, "x")[0]
            sandbox.close()
            os.write(writer, theirs.encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    theirs = os.read(reader, 100).decode()
    os.close(reader)
    assert theirs
    assert theirs != mine
    assert said(sandbox, "x")[0] == mine


def test_a_start_that_fails_for_want_of_room_may_be_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", full)
    with pytest.raises(TransientError, match="cannot be started"):
        faulty().partition(raw("x"))


def test_a_worker_that_cannot_start_is_no_document_s_fault() -> None:
    broken = SandboxedPartitioner(limits=QUICK, worker_module="no_such_module_anywhere")
    with pytest.raises(PermanentError, match="no_such_module_anywhere") as caught:
        broken.partition(raw("x"))
    assert not isinstance(caught.value, DocumentError)


PARENT = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever these tests were started by
sys.path[:0] = {path!r}
from datetime import UTC, datetime
from tidemark.adapters.partition.sandbox.parent import SandboxedPartitioner
from tidemark.domain.documents import RawDocument
box = SandboxedPartitioner(worker_module="sandbox_faults")
def read(words):
    raw = RawDocument("file:///a", words, "text/plain", None, datetime(2026, 1, 1, tzinfo=UTC))
    return box.partition(raw).elements[0].text
print(read(b"x").split()[0], flush=True)
{rest}
"""


def parent(rest: str) -> tuple[subprocess.Popen[str], int]:
    """A process with a worker, and that worker's id."""
    program = PARENT.format(path=[p for p in sys.path if p], rest=rest)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def wait_until(happened: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if happened():
            return True
        time.sleep(0.05)
    return happened()


@pytest.mark.parametrize("rest", ["time.sleep(60)", "read(b'hang')"])
def test_a_worker_dies_with_the_process_that_started_it(rest: str) -> None:
    process, worker = parent(rest)
    assert alive(worker)
    process.kill()
    process.communicate()
    assert wait_until(lambda: not alive(worker))


def test_an_interrupt_ends_the_worker_too() -> None:
    process, worker = parent("read(b'hang')")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    assert "KeyboardInterrupt" in errors
    assert wait_until(lambda: not alive(worker))


def test_a_partitioner_that_is_forgotten_leaves_no_process() -> None:
    sandbox = faulty()
    worker = int(said(sandbox, "x")[0])
    del sandbox
    assert wait_until(lambda: not alive(worker))
