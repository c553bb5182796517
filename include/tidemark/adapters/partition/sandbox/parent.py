"""A partitioner that reads documents in a process of its own: one can harm nothing but itself."""

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidemark.adapters.partition.options import PartitionOptions
from tidemark.adapters.partition.partitioner import DocumentPartitioner
from tidemark.adapters.partition.sandbox.protocol import (
    LENGTH,
    READY,
    OutOfMemory,
    decode_answer,
    encode_options,
    encode_request,
)
from tidemark.domain.documents import PartitionedDocument, RawDocument
from tidemark.domain.errors import ConfigurationError, DocumentError, PermanentError, TransientError

_CHUNK = 1 << 18
_KEPT_ERRORS = 8192
_END_SECONDS = 5.0
_WORKER = "tidemark.adapters.partition.sandbox.worker"
_EXCLUDE = "Exclude it from the source, or split it"


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What a worker process may take.

    memory_bytes: address space above what it has after its start; 0 for no limit. Where a system has no such
        limit (macOS), the time alone bounds it.
    seconds, seconds_per_mebibyte: of wall time for a document, the latter for each MiB of its bytes.
    output_bytes: of an answer. open_files: descriptors.
    documents: after so many a new process takes over; what parsers leak goes with the old one.
    resident_bytes: so does it after a document that left the process this large.
    start_seconds: until it is ready.
    """

    memory_bytes: int = 2 * 2**30
    seconds: float = 120.0
    seconds_per_mebibyte: float = 20.0
    output_bytes: int = 256 * 2**20
    open_files: int = 128
    documents: int = 20_000
    resident_bytes: int = 2**30
    start_seconds: float = 180.0

    def seconds_for(self, size: int) -> float:
        """Wall time for a document of so many bytes."""
        return self.seconds + self.seconds_per_mebibyte * size / 2**20


class WorkerTimeout(Exception):  # noqa: N818 - what happened to the worker, for who holds it
    """It did not answer in time, and is ended."""


class AnswerTooLarge(Exception):  # noqa: N818
    """Its answer is over the bound, and it is ended."""


class WorkerDied(Exception):  # noqa: N818
    """It ended by itself or by a signal. code: as ``Popen.returncode``. stderr: the last line of it."""

    def __init__(self, code: int, stderr: str) -> None:
        super().__init__(f"ended with {code}")
        self.code = code
        self.stderr = stderr

    @property
    def cause(self) -> str:
        """The code for a person: the name of the signal that it tells of."""
        try:
            return f"signal {signal.Signals(-self.code).name}"
        except ValueError:
            return f"code {self.code}"


class WorkerProcess:
    """A running worker. Of one process: one that was forked from it must not use it."""

    def __init__(self, module: str, options: PartitionOptions, limits: SandboxLimits) -> None:
        """Start a worker and wait until it is ready.

        Raises ``TransientError`` when the system has no room for it, else ``PermanentError``.
        """
        self._limits = limits
        self._errors = b""
        self.answered = 0
        self.owner = os.getpid()
        self._process = _started(module, options, limits)
        self._finalizer = weakref.finalize(self, _end, self._process, self.owner)
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        if stdin is None or stdout is None or stderr is None:
            raise PermanentError("The worker has no pipes.", "This is a bug: report it.")
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr
        for stream in (stdin, stdout, stderr):
            os.set_blocking(stream.fileno(), False)
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        try:
            ready = self.ask(b"", self._limits.start_seconds)
        except WorkerTimeout as error:
            raise TransientError(
                f"The parser's process was not ready after {self._limits.start_seconds:g} seconds.",
                "The machine is too busy: try again later.",
            ) from error
        except WorkerDied as error:
            if error.code in {-signal.SIGKILL, -signal.SIGTERM}:
                raise TransientError(
                    f"The parser's process was ended at its start ({error.cause}).",
                    "The machine has too little memory: try again later.",
                ) from error
            raise PermanentError(
                f"The parser's process cannot start ({error.cause}): {error.stderr or 'it says nothing'}.",
                "Run the project's set-up again (make setup).",
            ) from error
        if ready != READY:
            self.end()
            raise PermanentError("The parser's process speaks another language.", "Set up again.")
        self.answered = 0

    @property
    def usable(self) -> bool:
        """Whether it can take another document."""
        if self._process.poll() is not None or self.answered >= self._limits.documents:
            return False
        return _resident_bytes(self._process.pid) <= self._limits.resident_bytes

    def ask(self, request: bytes, seconds: float) -> bytes:
        """Send a request and wait for its answer.

        Raises ``WorkerDied``, ``WorkerTimeout`` and ``AnswerTooLarge``; the process is gone then.
        """
        try:
            answer = self._exchange(request, time.monotonic() + seconds)
        except BaseException:  # also when a person interrupts: half a conversation cannot go on
            self.end()
            raise
        self.answered += 1
        return answer

    def _exchange(self, request: bytes, deadline: float) -> bytes:
        unsent, answer = memoryview(request), bytearray()
        self._errors = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._stderr, selectors.EVENT_READ)
            if unsent:
                selector.register(self._stdin, selectors.EVENT_WRITE)
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise WorkerTimeout
                for key, _ in selector.select(min(left, 1.0)):
                    if key.fileobj is self._stdin:
                        unsent = self._write(unsent, selector)
                    elif key.fileobj is self._stderr:
                        self._read_errors(selector)
                    elif self._read(answer):
                        return bytes(answer[LENGTH.size :])

    def _write(self, unsent: memoryview, selector: selectors.BaseSelector) -> memoryview:
        try:
            unsent = unsent[os.write(self._stdin.fileno(), unsent[:_CHUNK]) :]
        except BlockingIOError:
            return unsent
        except OSError:  # it is gone: what it said last is still to be read
            unsent = unsent[len(unsent) :]
        if not unsent:
            selector.unregister(self._stdin)
        return unsent

    def _read(self, answer: bytearray) -> bool:
        """Whether the answer is whole."""
        try:
            data = os.read(self._stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._raise_died()
        answer += data
        if len(answer) < LENGTH.size:
            return False
        (length,) = LENGTH.unpack_from(answer)
        if length > self._limits.output_bytes:
            raise AnswerTooLarge
        return len(answer) >= LENGTH.size + int(length)

    def _read_errors(self, selector: selectors.BaseSelector) -> None:
        try:
            data = os.read(self._stderr.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not data:
            selector.unregister(self._stderr)
        self._errors = (self._errors + data)[-_KEPT_ERRORS:]

    def _raise_died(self) -> None:
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        with suppress(OSError):
            while data := os.read(self._stderr.fileno(), _CHUNK):
                self._errors = (self._errors + data)[-_KEPT_ERRORS:]
        lines = self._errors.decode("utf-8", "replace").strip().split("\n")
        raise WorkerDied(code, lines[-1][:300].strip().rstrip("."))

    def end(self) -> None:
        """End the process at once. A second time does nothing."""
        self._finalizer()

    def forget(self) -> None:
        """Let go of a process that another one owns: close the pipes and leave it alone."""
        self._finalizer.detach()
        _close(self._process)


def _started(
    module: str, options: PartitionOptions, limits: SandboxLimits
) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise ConfigurationError(
            "This Python does not know its own program, so no parser's process can be started.",
            "Run it from the project's virtual environment.",
        )
    # The death of the thread that starts a process counts as its parent's: only the main one lives as long.
    with_parent = threading.current_thread() is threading.main_thread()
    command = [
        sys.executable, "-P", "-m", module, encode_options(options), str(limits.memory_bytes),
        str(limits.open_files), str(os.getpid()), str(int(with_parent)),
    ]  # fmt: skip
    try:
        return subprocess.Popen(  # noqa: S603 - our own program, no shell
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
            bufsize=0,
            # A person's Ctrl-C is for the parent, which then ends this group.
            start_new_session=True,
        )
    except OSError as error:
        raise TransientError(
            f"The parser's process cannot be started ({error.strerror}).",
            "The machine is short of memory or processes: try again later.",
        ) from error


def _environment() -> dict[str, str]:
    """All that the worker gets to know of this process's environment."""
    return {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "HOME": str(Path.home()),
        "PATH": os.defpath + ":/usr/local/bin:/opt/homebrew/bin",
        "TMPDIR": tempfile.gettempdir(),
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "DO_NOT_TRACK": "true",
        "SCARF_NO_ANALYTICS": "true",
        "UNSTRUCTURED_DISABLE_NOTICE": "1",
        # One thread each: pools of them cost address space, and documents are read one at a time.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:  # a fork that ends must not end its parent's worker
        return
    if process.poll() is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(OSError):
            process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
    _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        with suppress(OSError):
            if stream is not None:
                stream.close()


def _resident_bytes(pid: int) -> int:
    """Memory of a process, 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0


class _SharedWorker:
    """The worker of one process, for a partitioner and all that drop another site's boilerplate."""

    def __init__(self, module: str, options: PartitionOptions, limits: SandboxLimits) -> None:
        self._module, self._options, self.limits = module, options, limits
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._worker: WorkerProcess | None = None
        self._boilerplate: frozenset[int] = frozenset()

    def ask(self, raw: RawDocument, boilerplate: frozenset[int]) -> PartitionedDocument:
        if self._owner != os.getpid():
            # Forked: the worker, and a lock that may be held, are the parent's.
            self._lock, self._owner = threading.Lock(), os.getpid()
            if self._worker is not None:
                self._worker.forget()
                self._worker = None
        with self._lock:
            fresh = self._worker is None or not self._worker.usable
            try:
                return self._ask(raw, boilerplate)
            except (WorkerDied, OutOfMemory):
                self.close()
                if fresh:
                    raise
                # What earlier documents left behind, or somebody's kill, is not this one's fault.
                return self._ask(raw, boilerplate)

    def _ask(self, raw: RawDocument, boilerplate: frozenset[int]) -> PartitionedDocument:
        if self._worker is not None and not self._worker.usable:
            self.close()
        if self._worker is None:
            self._worker = WorkerProcess(self._module, self._options, self.limits)
            self._boilerplate = frozenset()
        seconds = self.limits.seconds_for(len(raw.content))
        changed = boilerplate if boilerplate != self._boilerplate else None
        answer = self._worker.ask(encode_request(raw, seconds, changed), seconds)
        self._boilerplate = boilerplate
        return decode_answer(answer)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None


class SandboxedPartitioner:
    """Reads documents as ``DocumentPartitioner`` does, in a worker process that is bounded.

    The worker starts with the first document and serves one at a time. One that crashes, hangs or takes too
    much costs its document, which is at fault then; the next document finds a new worker.
    """

    def __init__(
        self,
        options: PartitionOptions | None = None,
        limits: SandboxLimits | None = None,
        boilerplate: frozenset[int] = frozenset(),
        *,
        worker_module: str = _WORKER,
    ) -> None:
        """worker_module: the program of the worker; tests have ones that fail."""
        options = options or PartitionOptions()
        self._reader = DocumentPartitioner(options, boilerplate)
        self._boilerplate = boilerplate
        self._shared = _SharedWorker(worker_module, options, limits or SandboxLimits())
        self._max_bytes = options.max_bytes

    @property
    def fingerprint(self) -> str:
        """That of the partitioner in the worker; known without starting it."""
        return self._reader.fingerprint

    def with_boilerplate(self, boilerplate: frozenset[int]) -> "SandboxedPartitioner":
        """One that also drops these blocks of a site from its pages; both share their worker."""
        if boilerplate == self._boilerplate:
            return self
        other = object.__new__(SandboxedPartitioner)
        other._reader = self._reader.with_boilerplate(boilerplate)
        other._boilerplate = boilerplate
        other._shared = self._shared
        other._max_bytes = self._max_bytes
        return other

    def close(self) -> None:
        """End the worker. The next document starts another one."""
        self._shared.close()

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        """Read one document.

        Raises ``DocumentError`` when its bytes are at fault or the worker came to harm over it, and
        ``TransientError`` when no worker can be started now.
        """
        if len(raw.content) > self._max_bytes:
            return self._reader.partition(raw)  # which refuses it by its size alone
        limits = self._shared.limits
        try:
            return self._shared.ask(raw, self._boilerplate)
        except WorkerTimeout as error:
            seconds = limits.seconds_for(len(raw.content))
            raise DocumentError(
                "partition",
                f"{raw.uri} took longer than {seconds:g} seconds to read.",
                f"{_EXCLUDE}; or raise TIDEMARK_PARSER_SECONDS and run `tidemark retry`.",
            ) from error
        except OutOfMemory as error:
            raise self._too_large(raw.uri) from error
        except AnswerTooLarge as error:
            raise DocumentError(
                "partition",
                f"{raw.uri} turns into more than {limits.output_bytes:,} bytes of text.",
                f"{_EXCLUDE}: this limit is no setting.",
            ) from error
        except WorkerDied as error:
            raise self._crashed(raw.uri, error) from error
        except ValueError as error:
            self.close()
            raise DocumentError(
                "partition",
                f"{raw.uri} made its parser answer what makes no sense ({error}).",
                "Exclude it from the source, and report it.",
            ) from error

    def _too_large(self, name: str) -> DocumentError:
        limit = self._shared.limits.memory_bytes
        return DocumentError(
            "partition",
            f"{name} ran out of memory when it was read; the limit is {limit / 2**20:,.0f} MiB.",
            f"{_EXCLUDE}; or raise TIDEMARK_PARSER_MEGABYTES and run `tidemark retry`.",
        )

    def _crashed(self, name: str, died: WorkerDied) -> DocumentError:
        if "memory" in died.stderr.lower():
            return self._too_large(name)
        if died.code == -signal.SIGKILL:
            return DocumentError(
                "partition",
                f"{name} was being read when the system killed its parser (SIGKILL), "
                "as it does when memory runs out.",
                f"{_EXCLUDE}; or give the machine more memory and run `tidemark retry`.",
            )
        stderr = f": {died.stderr}" if died.stderr else ""
        return DocumentError(
            "partition",
            f"{name} crashed its parser ({died.cause}{stderr}).",
            "Exclude it from the source, or convert it to another format.",
        )
