"""A partitioner that reads documents in a process of its own: one can harm nothing but itself."""

import os
import signal
import threading

from tidemark.adapters.sandbox_process import (
    SandboxLimits,
    WorkerDied,
    WorkerProcess,
    WorkerTimeout,
    WorkerTooMuch,
)
from tidemark.adapters.sandbox_protocol import OutOfMemory, decode_answer, encode_request
from tidemark.adapters.unstructured_options import UnstructuredOptions
from tidemark.adapters.unstructured_partitioner import UnstructuredPartitioner
from tidemark.domain.errors import DocumentError
from tidemark.domain.model import PartitionedDocument, RawDocument

__all__ = ["SandboxLimits", "SandboxedPartitioner"]

_WORKER = "tidemark.adapters.sandbox_worker"
_EXCLUDE = "Exclude it from the source, or split it"


class _Shared:
    """The worker of one process, for a partitioner and all that know another site's furniture."""

    def __init__(self, module: str, options: UnstructuredOptions, limits: SandboxLimits) -> None:
        self._module, self._options, self.limits = module, options, limits
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._worker: WorkerProcess | None = None
        self._told: frozenset[int] = frozenset()

    def ask(self, raw: RawDocument, furniture: frozenset[int]) -> PartitionedDocument:
        if (
            self._owner != os.getpid()
        ):  # forked: the worker and a lock that may be held are the parent's
            self._lock, self._owner = threading.Lock(), os.getpid()
            if self._worker is not None:
                self._worker.forget()
                self._worker = None
        with self._lock:
            fresh = self._worker is None or not self._worker.usable
            try:
                return self._ask(raw, furniture)
            except (WorkerDied, OutOfMemory):
                self.close()
                if fresh:
                    raise
                # What earlier documents left behind, or somebody's kill, is not this one's fault.
                return self._ask(raw, furniture)

    def _ask(self, raw: RawDocument, furniture: frozenset[int]) -> PartitionedDocument:
        if self._worker is not None and not self._worker.usable:
            self.close()
        if self._worker is None:
            self._worker = WorkerProcess(self._module, self._options, self.limits)
            self._told = frozenset()
        seconds = self.limits.seconds_for(len(raw.content))
        changed = furniture if furniture != self._told else None
        answer = self._worker.ask(encode_request(raw, seconds, changed), seconds)
        self._told = furniture
        return decode_answer(answer)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None


class SandboxedPartitioner:
    """Reads documents as ``UnstructuredPartitioner`` does, in a worker process that is bounded.

    The worker starts with the first document and serves one at a time. One that crashes, hangs or takes too
    much costs its document, which is at fault then; the next document finds a new worker.
    """

    def __init__(
        self,
        options: UnstructuredOptions | None = None,
        limits: SandboxLimits | None = None,
        furniture: frozenset[int] = frozenset(),
        *,
        worker_module: str = _WORKER,
    ) -> None:
        """worker_module: the program of the worker; tests have ones that fail."""
        options = options or UnstructuredOptions()
        self._reader = UnstructuredPartitioner(options, furniture)
        self._furniture = furniture
        self._shared = _Shared(worker_module, options, limits or SandboxLimits())
        self._max_bytes = options.max_bytes

    @property
    def fingerprint(self) -> str:
        """That of the partitioner in the worker; known without starting it."""
        return self._reader.fingerprint

    def knowing(self, furniture: frozenset[int]) -> "SandboxedPartitioner":
        """One that also drops these blocks of a site from its pages; both share their worker."""
        if furniture == self._furniture:
            return self
        other = object.__new__(SandboxedPartitioner)
        other._reader = self._reader.knowing(furniture)
        other._furniture = furniture
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
            return self._shared.ask(raw, self._furniture)
        except WorkerTimeout as error:
            seconds = limits.seconds_for(len(raw.content))
            raise DocumentError(
                "partition",
                f"{raw.uri} took longer than {seconds:g} seconds to read.",
                f"{_EXCLUDE}; or raise TIDEMARK_PARSER_SECONDS and run `tidemark retry`.",
            ) from error
        except OutOfMemory as error:
            raise self._too_large(raw.uri) from error
        except WorkerTooMuch as error:
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
        if "MemoryError" in died.said or "memory" in died.said.lower():
            return self._too_large(name)
        if died.code == -signal.SIGKILL:
            return DocumentError(
                "partition",
                f"{name} was being read when the system killed its parser (SIGKILL), "
                "as it does when memory runs out.",
                f"{_EXCLUDE}; or give the machine more memory and run `tidemark retry`.",
            )
        signals = {s.value for s in signal.Signals}
        told = (
            f"signal {signal.Signals(-died.code).name}"
            if -died.code in signals
            else f"code {died.code}"
        )
        said = f": {died.said}" if died.said else ""
        return DocumentError(
            "partition",
            f"{name} crashed its parser ({told}{said}).",
            "Exclude it from the source, or convert it to another format.",
        )
