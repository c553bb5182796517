"""Waiting for a store that is away, instead of failing with its first error.

    what is called                            what happens when it raises ``TransientError``
    ----------------------------------------  ------------------------------------------------------------
    a plain call                              made again, later and later, until ``timeout`` is over; then
                                              the last error is raised
    one that gives an iterator                the same until its first item (or its end) has come; after
                                              that the error passes, for a scan cannot be taken up again
                                              (but for one of a Qdrant server: each page is a plain call)
    ``session``, ``lock``, ``writer``         passes: whoever entered them must know that they were lost
    entering ``lock_documents``               made again: nothing has been done under the locks yet
    a call of the ledger's in that block,     passes at once (below)
    in the same thread
    ``LockLostError`` and any other error,    passes at once
    of any call

What is promised: every write of the ports gives the same result when it is repeated, so a call that was
carried out though its answer was lost is carried out twice and counts once. (What a ``drop`` returns is
then what the last try dropped.) A call is not begun again after ``timeout`` seconds; it lasts as long as
that and one try.

Why a block under ``lock_documents`` is not carried over an outage of the ledger: the locks are a session of
the same database. An outage that a call of the block sees has most likely ended that session too; another run
may have got the locks, compared and written these documents meanwhile. A repeated ``commit`` would then put
this run's rows over the other's points and close the intent of the document, and nothing would be left to
tell of it. So the error ends the block; the intents stay open (``DocumentWrites.open_intent``), and whoever
comes next finds out from the index itself what is there. Calls of the *index* and of the artifact store in
the block do wait: their outage takes no lock away. That the locks went in such a wait, unnoticed by any call,
is told by the end of ``lock_documents`` (``LockLostError``). The lock of a whole source may be lost in an
outage that is waited for; its end tells that as well, and each document has been written under locks of its
own since.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

from tidemark.domain.errors import LockLostError, TransientError

RETRY_TIMEOUT = 60.0
"""Seconds: a server that is restarted, or a network that fails over, is back by then."""
_FIRST_WINDOW = 0.2
_WIDEST_WINDOW = 5.0
"""Seconds. A wait is taken at random from a window that doubles, so that many do not come back at once."""

log = logging.getLogger(__name__)

T = TypeVar("T")
_END = object()


class Retry:
    """Makes calls of one store, and makes them again while it is away.

    store: its name in the log. timeout: seconds, 0 for no second try. clock: gives seconds.
    Threads may share it, and it may be used before and after a fork.
    """

    def __init__(
        self,
        store: str,
        timeout: float = 0.0,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._timeout = timeout
        self._sleep = sleep
        self._clock = clock
        self._forget()

    def __call__(self, call: Callable[[], T]) -> T:
        """What ``call`` returns."""
        began = self._clock()
        try:
            return call()
        except TransientError as error:
            deadline = began + self._timeout
            if not _may_pass(error) or self._clock() >= deadline:
                raise
            return self._again(call, error, deadline)

    def stream(self, call: Callable[[], Iterator[T]]) -> Iterator[T]:
        """The items of the iterator that ``call`` makes, which is made again until its first one comes."""
        opened: list[Iterator[T]] = []

        def first() -> object:
            opened[:] = [call()]
            return next(opened[0], _END)

        item = self(first)
        try:
            if item is not _END:
                yield cast(T, item)
                yield from opened[0]
        finally:
            # Some iterators hold nothing open, and have nothing to close.
            getattr(opened[0], "close", bool)()

    def _again(self, call: Callable[[], T], error: TransientError, deadline: float) -> T:
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
        with self._outage(error):
            result = tries(attempt)
            self._over()
        return result

    # The log is told once that a store is away and once that it is back, however many wait for it.

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._guard = threading.Lock()
        self._waiting = 0
        self._since: float | None = None

    @contextmanager
    def _outage(self, error: TransientError) -> Iterator[None]:
        if self._pid != os.getpid():
            # A fork in the middle of an outage: the waiting threads, and what they held, were the parent's.
            self._forget()
        with self._guard:
            self._waiting += 1
            if self._since is None:
                self._since = self._clock()
                log.warning(
                    "%s failed, and is tried again for up to %g s: %s",
                    *(self._store, self._timeout, error),
                )
        try:
            yield
        finally:
            with self._guard:
                self._waiting -= 1
                if not self._waiting:
                    self._since = None

    def _over(self) -> None:
        with self._guard:
            if self._since is not None:
                seconds = self._clock() - self._since
                log.info("%s works again after %.1f s.", self._store, seconds)
                self._since = None


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, TransientError) and not isinstance(error, LockLostError)
