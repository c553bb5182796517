"""Ports on the loopback address."""

import errno
import socket

from tidemark.domain.errors import PermanentError

HOST = "127.0.0.1"


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Can a server listen on this port of the loopback address?"""
    with socket.socket() as probe:
        # As servers do: a port whose last connection is merely cooling down is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
        # On some systems binding succeeds beside a server that listens on all addresses.
        with socket.socket() as caller:
            caller.settimeout(0.2)
            return caller.connect_ex((HOST, port)) != 0


def claim(port: int, what: str, variable: str) -> int:
    """The port to use: a free one for 0, else this one.

    Raises ``PermanentError`` when it is taken; ``variable`` is how to choose another.
    """
    if port == 0:
        return free_port()
    if not is_free(port):
        raise PermanentError(
            f"Port {port}, for {what}, is taken.", f"Choose another one: {variable}={port + 1}."
        )
    return port
