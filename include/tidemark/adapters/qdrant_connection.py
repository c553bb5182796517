"""One client of a Qdrant server for all threads of a process, and another one after a fork."""

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qdrant_client import QdrantClient


class Connection:
    """Makes its client when it is first asked for."""

    def __init__(self, make: "Callable[[], QdrantClient]") -> None:
        self._make = make
        self._client: QdrantClient | None = None
        self._pid = os.getpid()
        self._guard = threading.Lock()

    def client(self) -> "QdrantClient":
        with self._guard:
            if self._client is None or self._pid != os.getpid():
                # Sockets that a parent process also reads from would mix up the answers.
                self._client, self._pid = self._make(), os.getpid()
            return self._client

    def close(self) -> None:
        """Let go of the connections; the next call makes new ones."""
        with self._guard:
            client, self._client = self._client, None
        if client is not None:
            client.close()


def connect(url: str, api_key: str | None, timeout: int) -> "QdrantClient":
    """timeout: seconds for one answer."""
    from qdrant_client import QdrantClient

    # The version check would ask the server before the first call does, and warn if it is away.
    return QdrantClient(url=url, api_key=api_key, timeout=timeout, check_compatibility=False)
