"""A worker for the tests of the sandbox: what a document says happens to the process that reads it."""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable

from tidemark.adapters.partition.sandbox.worker import serve
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument, RawDocument
from tidemark.domain.errors import DocumentError, PermanentError


def partition(raw: RawDocument, boilerplate: frozenset[int]) -> PartitionedDocument:
    word, _, rest = raw.content.decode("utf-8", "replace").partition(" ")
    said = _DEEDS[word](rest) if word in _DEEDS else raw.content.decode("utf-8", "replace")
    body = f"{os.getpid()} {sorted(boilerplate)} {said}"
    return PartitionedDocument(word, (Element(ElementKind.TEXT, body, page_number=1),), "en")


def _hang(_rest: str) -> str:
    time.sleep(600)
    return ""


def _hang_in_c(_rest: str) -> str:
    ctypes.PyDLL(None).sleep(600)  # holds the interpreter's lock
    return ""


def _crash(_rest: str) -> str:
    sys.stderr.write("about to fall\n")
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.string_at(0)
    return ""


def _eat(_rest: str) -> str:
    return str(len(bytearray(1_000_000_000)))


def _grow(rest: str) -> str:
    _LEAK.append(b"x" * int(rest))
    return str(len(_LEAK))


def _kill(_rest: str) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def _say(rest: str) -> str:
    print("a parser prints" * 100, flush=True)
    os.write(1, b"\0\0\0\0\0\0\0\1x")
    return rest


def _lie(_rest: str) -> str:
    # The only descriptor above the standard ones that is a pipe and not the input is that of the answers.
    for number in range(3, 20):
        try:
            os.write(number, b"\0\0\0\0\0\0\0\3[1]")
        except OSError:
            continue
    return ""


def _noise(_rest: str) -> str:
    sys.stderr.write("noise\n" * 200_000)
    return "done"


def _fault(_rest: str) -> str:
    raise DocumentError("partition", "it is bad", "mend it")


def _setup(_rest: str) -> str:
    raise PermanentError("not set up", "set up")


def _files(_rest: str) -> str:
    opened = []
    try:
        while len(opened) < 5000:
            opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        return str(len(opened))
    finally:
        for number in opened:
            os.close(number)
    return "endless"


_LEAK: list[bytes] = []
_DEEDS: dict[str, Callable[[str], str]] = {
    "hang": _hang, "hang-in-c": _hang_in_c, "crash": _crash, "eat": _eat, "grow": _grow, "kill": _kill,
    "say": _say, "lie": _lie, "noise": _noise, "fault": _fault, "setup": _setup, "files": _files,
    "environment": lambda _: json.dumps(dict(os.environ)),
    "repeat": lambda rest: "y" * int(rest),
}  # fmt: skip

if __name__ == "__main__":
    serve(lambda _options: partition, sys.argv[1:])
