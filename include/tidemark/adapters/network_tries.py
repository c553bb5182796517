"""A request to somebody else's server, made again when it fails as networks do."""

from collections.abc import Callable
from typing import TypeVar

from tidemark.domain.errors import TransientError

TRIES = 3
FIRST_WINDOW = 0.5
"""Seconds. A wait is taken at random from a window that doubles with each try."""
NO_MORE_AFTER = 20.0
"""Seconds. What failed for so long is away, and is not tried again: a timeout costs once."""

T = TypeVar("T")


def tried(request: Callable[[], T]) -> T:
    """What the request gives; one that raises ``TransientError`` is made ``TRIES`` times in all.

    Raises the last error. The request must be safe to repeat.
    """
    from tenacity import (
        Retrying,
        retry_if_exception_type,
        stop_after_attempt,
        stop_after_delay,
        wait_random_exponential,
    )

    tries = Retrying(
        stop=stop_after_attempt(TRIES) | stop_after_delay(NO_MORE_AFTER),
        wait=wait_random_exponential(multiplier=FIRST_WINDOW),
        retry=retry_if_exception_type(TransientError),
        reraise=True,
    )
    return tries(request)
