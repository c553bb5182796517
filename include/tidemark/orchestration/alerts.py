"""Alerts to people, at the address of the Airflow Connection ``tidemark_alerts``.

It takes what a chat's incoming webhook takes: a POST of ``{"text": …}``. The address is a secret: the
Connection's host, with its scheme or ``schema`` (https when neither says), its port, and its password as the
rest of the path. Without that Connection nothing is sent; a task that is red is an alert by itself.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

log = logging.getLogger(__name__)

TIMEOUT = 10.0
LONGEST = 3_000
"""Characters: more is cut off, for chats refuse it."""


def alert(text: str) -> bool:
    """Send it; True when it was taken. Never raises for an address that does not answer."""
    try:
        connection = Connection.get("tidemark_alerts")
    except AirflowNotFoundException:
        return False
    try:
        with _unlogged("httpx", "httpcore"):
            answer = httpx.post(
                _address(connection), json={"text": text[:LONGEST]}, timeout=TIMEOUT
            )
        answer.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # Not the error's own words: they name the address.
        log.warning("The alert could not be sent (%s).", type(error).__name__)
        return False
    return True


@contextmanager
def _unlogged(*names: str) -> Iterator[None]:
    """Without what the client itself would log: each request with its address."""
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _address(connection: Connection) -> str:
    host = (connection.host or "").rstrip("/")
    if "://" not in host:
        port = f":{connection.port}" if connection.port else ""
        host = f"{connection.schema or 'https'}://{host}{port}"
    path = (connection.password or "").lstrip("/")
    return f"{host}/{path}" if path else host
