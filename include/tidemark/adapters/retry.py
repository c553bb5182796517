"""A port whose calls wait for a store that is away, instead of failing with its first error.

    what is called                            what happens when it raises ``TransientError``
    ----------------------------------------  ------------------------------------------------------------
    a plain call                              made again, later and later, until ``patience`` is over; then
                                              the last error is raised
    one that gives an iterator                the same until its first item (or its end) has come; after
                                              that the error passes, for a scan cannot be taken up again
    ``session``, ``lock``, ``writer``         passes: whoever entered them must know that they were lost
    entering ``lock_documents``               made again: nothing has been done under the locks yet
    a call of the ledger's in that block,     passes at once (below)
    in the same thread
    ``LockLostError`` and any other error,    passes at once
    of any call

What is promised: every write of the ports gives the same result when it is repeated, so a call that was
carried out though its answer was lost is carried out twice and counts once. (What a ``drop_…`` returns is
then what the last try dropped.) A call is not begun again after ``patience`` seconds; it lasts as long as
that and one try.

Why a block under ``lock_documents`` is not carried over an outage of the ledger: the locks are a session of
the same database. An outage that a call of the block sees has most likely ended that session too; another run
may have got the locks, compared and written these documents meanwhile. A repeated ``commit_document`` would
then put this run's rows over the other's points and drop the note that the document is being written, and
nothing would be left to tell of it. So the error ends the block; the documents stay noted (``Ledger.begin``),
and whoever comes next finds out from the index itself what is there. Calls of the *index* and of the artifact
store in the block do wait: their outage takes no lock away. That the locks went in such a wait, unnoticed by
any call, is told by the end of ``lock_documents`` (``LockLostError``). The lock of a whole source may be lost
in an outage that is waited for; its end tells that as well, and each document has been written under locks of
its own since.

Threads may share it, and it may be used before and after a fork.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar, cast
from uuid import UUID

from tidemark.domain.errors import LockLostError, TransientError
from tidemark.ports import ArtifactStore, Ledger, VectorIndex

PATIENCE = 60.0
"""Seconds: a server that is restarted, or a network that fails over, is back by then."""
UNTOUCHED = frozenset({"session", "lock", "writer"})
_FIRST_WINDOW = 0.2
_WIDEST_WINDOW = 5.0
"""Seconds. A wait is taken at random from a window that doubles, so that many do not come back at once."""

log = logging.getLogger(__name__)

Port = TypeVar("Port", bound=VectorIndex | Ledger | ArtifactStore)
T = TypeVar("T")


def retrying(
    port: Port,
    patience: float = PATIENCE,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Port:
    """The port, waiting for up to ``patience`` seconds where it would raise ``TransientError``.

    0 switches it off: it is the port itself then. ``clock`` gives seconds.
    """
    if patience <= 0:
        return port
    return cast(Port, _Retrying(port, patience, sleep, clock))


class _Retrying:
    __slots__ = ("_block", "_clock", "_outage", "_patience", "_port", "_sleep")

    def __init__(
        self,
        port: object,
        patience: float,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self._port = port
        self._patience = patience
        self._sleep = sleep
        self._clock = clock
        self._outage = _Outage(type(port).__name__, patience, clock)
        self._block = threading.local()

    def __getattr__(self, name: str) -> Any:
        # Not what copying and pickling look for on an object without its slots.
        if name.startswith("_"):
            raise AttributeError(name)
        member = getattr(self._port, name)
        if name in UNTOUCHED or not callable(member):
            return member
        if name == "lock_documents":
            return self._lock_documents

        def call(*arguments: Any, **named: Any) -> Any:
            def once() -> Any:
                return member(*arguments, **named)

            found = self._patiently(name, once)
            return self._stream(name, once, found) if isinstance(found, Iterator) else found

        return call

    def _lock_documents(self, document_ids: Sequence[UUID]) -> AbstractContextManager[None]:
        return self._locked(cast(Ledger, self._port), document_ids)

    @contextmanager
    def _locked(self, ledger: Ledger, document_ids: Sequence[UUID]) -> Iterator[None]:
        with ExitStack() as held:
            self._patiently(
                "lock_documents", lambda: held.enter_context(ledger.lock_documents(document_ids))
            )
            self._block.entered = True
            try:
                yield
            finally:
                self._block.entered = False

    def _stream(
        self, name: str, again: Callable[[], Iterator[T]], stream: Iterator[T]
    ) -> Iterator[T]:
        """The items of ``stream``, which is made again as long as its first one does not come."""
        streams = [stream]

        def first() -> tuple[T, ...]:
            found = streams.pop() if streams else again()
            item = next(found, _END)
            if item is _END:
                return ()
            streams.append(found)
            return (cast(T, item),)

        begun = self._patiently(name, first)
        try:
            yield from begun
            for rest in streams:
                yield from rest
        finally:
            for rest in streams:
                # Some iterators hold nothing open, and have nothing to close.
                getattr(rest, "close", bool)()

    def _patiently(self, name: str, call: Callable[[], T]) -> T:
        began = self._clock()
        try:
            return call()
        except LockLostError:
            raise
        except TransientError as error:
            deadline = began + self._patience
            if getattr(self._block, "entered", False) or self._clock() >= deadline:
                raise
            return self._again(name, call, error, deadline)

    def _again(self, name: str, call: Callable[[], T], error: TransientError, deadline: float) -> T:
        # Here, since a store that is never away needs none of it.
        from tenacity import RetryCallState, Retrying, retry_if_exception
        from tenacity import wait_random_exponential as window

        waits = window(multiplier=_FIRST_WINDOW, max=_WIDEST_WINDOW, min=_FIRST_WINDOW / 4)

        def wait(state: RetryCallState) -> float:
            # The last try is made when the time is over, not when the one before it failed.
            return max(0.0, min(waits(state), deadline - self._clock()))

        failed = [error]

        def attempt() -> T:
            # The first try was made already.
            if failed:
                raise failed.pop()
            return call()

        tries = Retrying(
            sleep=self._sleep,
            stop=lambda _: self._clock() >= deadline,
            wait=wait,
            retry=retry_if_exception(_may_pass),
            reraise=True,
        )
        with self._outage.waiting(name, error) as back:
            found = tries(attempt)
            back()
        return found


_END = object()


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, TransientError) and not isinstance(error, LockLostError)


class _Outage:
    """Tells the log once that a port is away and once that it is back, however many wait for it."""

    def __init__(self, port: str, patience: float, clock: Callable[[], float]) -> None:
        self._port = port
        self._patience = patience
        self._clock = clock
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._pid = os.getpid()
        self._guard = threading.Lock()
        self._waiting = 0
        self._since: float | None = None

    @contextmanager
    def waiting(self, name: str, error: TransientError) -> Iterator[Callable[[], None]]:
        """One call waits; calls what it is given when it has got through."""
        if self._pid != os.getpid():
            # A fork in the middle of an outage: the waiting threads, and what they held, were the parent's.
            self._begin_anew()
        with self._guard:
            self._waiting += 1
            if self._since is None:
                self._since = self._clock()
                log.warning(
                    "%s.%s failed, and is tried again for up to %g s: %s",
                    *(self._port, name, self._patience, error),
                )
        try:
            yield lambda: self._back(name)
        finally:
            with self._guard:
                self._waiting -= 1
                if not self._waiting:
                    self._since = None

    def _back(self, name: str) -> None:
        with self._guard:
            if self._since is not None:
                seconds = self._clock() - self._since
                log.info("%s.%s works again after %.1f s.", self._port, name, seconds)
                self._since = None
