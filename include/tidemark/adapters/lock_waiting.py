"""How a run waits for a source that another run holds: the same for every ledger."""

import logging
import random
import time
from collections.abc import Callable

from tidemark.domain.errors import SourceBusyError

log = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds of waiting after which the log says who is waited for."""
REMINDER = 30.0
"""Seconds between two such lines."""
POLL = (0.2, 1.0)
"""Seconds between two tries; a random time between them, so that many waiters spread out."""


def wait_for_source(attempt: Callable[[], str | None], source: str, wait_seconds: float) -> None:
    """Try until a source's lock is had.

    attempt: takes the lock and returns None, or says who holds it.
    Raises ``SourceBusyError`` when it is not had after ``wait_seconds``.
    """
    begun = time.monotonic()
    next_line = PATIENCE
    while (holders := attempt()) is not None:
        waited = time.monotonic() - begun
        busy = f'Another run holds the source "{source}": {holders}.'
        if waited >= wait_seconds:
            lasting = f" It was waited for {waited:.0f} s." if wait_seconds > 0 else ""
            raise SourceBusyError(
                busy + lasting, "Wait for it to end, or stop that process; its lock ends with it."
            )
        if waited >= next_line:
            log.warning("%s Waiting for it, %.0f of %.0f s.", busy, waited, wait_seconds)
            next_line = waited + REMINDER
        time.sleep(min(random.uniform(*POLL), wait_seconds - waited))  # noqa: S311 - no secret
