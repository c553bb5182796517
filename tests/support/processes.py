"""Other Python processes, with this one's packages."""

import os
import subprocess
import sys


def start_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a piece of code in a process of its own; its output is to be read."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
