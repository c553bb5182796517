"""Stops a launcher's services when the launcher dies without stopping them (kill -9, a closed window).

    python -m tidemark_local.guard HOME [--postgres]

It reads a pipe whose other end only the launcher holds; its end is the launcher's end.
"""

import argparse
import signal
import sys
from pathlib import Path

from tidemark_local.layout import Layout


def main(arguments: list[str] | None = None) -> int:
    """Wait for the launcher's end, then stop what it left running under HOME."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--postgres", action="store_true", help="stop the database server, too")
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(64):
        continue
    layout = Layout(options.home)
    layout.processes().stop(grace=10.0)
    layout.state.unlink(missing_ok=True)
    if options.postgres:
        layout.postgres().stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
