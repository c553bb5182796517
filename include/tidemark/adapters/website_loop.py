"""An event loop in one background thread: asynchronous fetching for a synchronous crawl."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar

Result = TypeVar("Result")
THREAD_NAME = "crawl"
_NAME_LOOKUPS = 4


class LoopThread:
    """Runs coroutines until its context ends; then none of them, and no thread, is left.

    resource: entered in the loop before anything else and left after everything else.
    """

    def __init__(self, resource: AbstractAsyncContextManager[object]) -> None:
        self._resource = resource
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        # A daemon, so that an interpreter that ends in the middle of a crawl does end.
        self._thread = threading.Thread(target=self._main, name=THREAD_NAME, daemon=True)

    def __enter__(self) -> "LoopThread":
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        # A forgotten crawl may be collected, and so be closed, in any thread, in this one too.
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def submit(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Start a coroutine; its result or exception is in the future."""
        if self._loop is None:
            work.close()
            raise RuntimeError("the loop does not run")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call it in the loop; nothing happens once that is closed."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Wait for a coroutine's result."""
        return self.submit(work).result()

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again where the crawl is consumed
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(_NAME_LOOKUPS, f"{THREAD_NAME}-names"))
        async with self._resource:
            self._ready.set()
            await self._stop.wait()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
