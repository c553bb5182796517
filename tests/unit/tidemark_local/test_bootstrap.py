"""Set-up: what it decides, and what it says when it cannot go on."""

import ast
import io
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tidemark_local import bootstrap
from tidemark_local.bootstrap import (
    Console,
    Place,
    Runner,
    SetupError,
    check_machine,
    drop_half_installed,
    explain,
    last_useful,
    requirement_count,
    set_up,
    torch_command,
)

PROJECT = Path(__file__).resolve().parents[3]
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;#\\]+)")
LISTS = sorted(PROJECT.glob("requirements*.txt"))


def pins(path: Path) -> dict[str, str]:
    found = (PIN.match(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {normal(m["name"]): m["version"] for m in found if m}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in ("pyproject.toml", "include/tidemark_local/bootstrap.py", *(p.name for p in LISTS)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, tmp_path / name)
    return Place(tmp_path, tmp_path / ".venv")


def as_set_up(place: Place) -> None:
    place.python.parent.mkdir(parents=True)
    place.python.touch()
    place.stamp.write_text(place.digest, encoding="utf-8")


def quiet() -> Console:
    return Console(out=io.StringIO())


def written(console: Console) -> str:
    assert isinstance(console.out, io.StringIO)
    return console.out.getvalue()


@pytest.mark.parametrize("path", LISTS, ids=lambda p: p.name)
def test_every_requirement_is_pinned_exactly(path: Path) -> None:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:1].isalnum()]
    assert lines
    assert [line for line in lines if not PIN.match(line)] == []


def test_no_two_lists_pin_a_package_differently() -> None:
    seen: dict[str, tuple[str, str]] = {}
    for path in LISTS:
        for name, version in pins(path).items():
            where, other = seen.setdefault(name, (path.name, version))
            assert other == version, f"{name}: {version} in {path.name}, {other} in {where}"


def test_hashes_are_of_packages_as_they_are_pinned() -> None:
    hashed = pins(PROJECT / "requirements-hashes.txt")
    assert len(hashed) > 100
    assert hashed.items() <= pins(PROJECT / "requirements.txt").items()


def direct(path: Path) -> set[str]:
    """The packages that a list names as imported here."""
    own = path.read_text(encoding="utf-8").partition("# -- what those need")[0]
    return {normal(m["name"]) for line in own.splitlines() if (m := PIN.match(line))}


@pytest.mark.slow
def test_every_package_that_is_imported_is_listed_as_direct() -> None:
    product = direct(PROJECT / "requirements.txt") | direct(PROJECT / "requirements-torch.txt")
    installed = packages_distributions()
    trees = [
        ast.parse(path.read_text(encoding="utf-8")) for path in PROJECT.glob("include/**/*.py")
    ]
    missing = {
        root
        for root in {name.partition(".")[0] for tree in trees for name in imports(tree)}
        if root not in sys.stdlib_module_names
        and not root.startswith("tidemark")
        and not {normal(name) for name in installed.get(root, [])} & product
    }
    # Airflow's name is shared by its packages; the others are extras, which say so when they are missing.
    assert missing <= {
        "airflow",
        "gcsfs",
        "azure",
        "google",
        "pytesseract",
        "unstructured_inference",
    }


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_celery_stays_under_the_release_that_breaks_its_provider() -> None:
    assert pins(PROJECT / "requirements-compose.txt")["celery"].startswith("5.6.")


def test_no_file_of_set_up_names_a_package_registry() -> None:
    hosts = re.compile("python" + "hosted|py" + r"pi\.(org|python)", re.IGNORECASE)
    names = ["Makefile", "Dockerfile", "docker-compose.yaml", ".ci/run"]
    local = sorted((PROJECT / "include" / "tidemark_local").glob("*.py"))
    for path in [*(PROJECT / name for name in names), *LISTS, *local]:
        assert not hosts.search(path.read_text(encoding="utf-8")), path


def test_it_does_nothing_when_the_stamp_is_of_these_requirements(place: Place) -> None:
    as_set_up(place)
    console = quiet()
    assert set_up(place, console) is False
    assert written(console) == ""


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "pyproject.toml"])
def test_a_changed_list_sets_up_again(place: Place, name: str) -> None:
    as_set_up(place)
    with (place.project / name).open("a", encoding="utf-8") as out:
        out.write("# changed\n")
    assert not place.is_set_up


def test_another_torch_build_sets_up_again(place: Place) -> None:
    as_set_up(place)
    assert not Place(place.project, place.venv, gpu=True).is_set_up


def test_a_moved_checkout_sets_up_again(place: Place, tmp_path: Path) -> None:
    as_set_up(place)
    moved = tmp_path / "elsewhere"
    shutil.move(place.venv, moved)
    assert not Place(place.project, moved).is_set_up


def test_an_unsupported_python_is_named_with_a_hint(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "PYTHONS", ((3, 98), (3, 99)))
    with pytest.raises(SetupError, match=r"cannot run Tidemark.*apt install python3\.11"):
        check_machine(place)


def test_a_missing_venv_module_is_named_with_a_hint(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap.importlib.util, "find_spec", lambda name: None)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(SetupError, match=rf"apt install python{version}-venv"):
        check_machine(place)


def test_a_full_disk_is_named_before_anything_is_installed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "NEEDED_GB", 10.0**9)
    with pytest.raises(SetupError, match="GB free"):
        set_up(place, quiet())
    assert not place.python.exists()


def test_a_package_cut_off_while_being_unpacked_is_installed_again(tmp_path: Path) -> None:
    whole, half = tmp_path / "whole-1.0.dist-info", tmp_path / "half-2.0.dist-info"
    for info in (whole, half):
        info.mkdir()
        (info / "METADATA").touch()
    (whole / "INSTALLER").write_text("pip")
    (tmp_path / "~alf").mkdir()
    assert drop_half_installed(tmp_path) == ["half-2.0"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["whole-1.0.dist-info"]


def test_torch_comes_alone_from_the_index_of_cpu_builds(place: Place) -> None:
    command = torch_command(place, ["pip"], cpu_index=True)
    assert command[command.index("--index-url") + 1] == bootstrap.TORCH_CPU_INDEX
    assert "--no-deps" in command


def test_a_plain_torch_brings_what_it_needs_within_the_pins(place: Place) -> None:
    command = torch_command(place, ["pip"], cpu_index=False)
    assert "--no-deps" not in command
    assert command[command.index("-c") + 1] == str(place.project / "requirements.txt")


def test_a_container_gets_celery_instead_of_the_test_tools(place: Place) -> None:
    container = Place(place.project, place.venv, container=True)
    assert {"celery"} <= {n for path in container.requirements for n in pins(path)}
    assert "pytest" not in {n for path in container.requirements for n in pins(path)}
    assert container.digest != place.digest


def test_requirements_are_counted_without_comments_and_options(tmp_path: Path) -> None:
    path = tmp_path / "r.txt"
    path.write_text("# one\na==1\n    --hash=sha256:00\n\nb==2  # why\n")
    assert requirement_count(path) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM", "not the one that was tested"),
        ("NewConnectionError('Failed to establish a new connection')", "cannot be reached"),
        ("ERROR: No matching distribution found for torch==2.13.0", "not to be had"),
        ("PermissionError: [Errno 13] Permission denied: 'x'", "may not be written"),
    ],
)
def test_a_failure_is_explained_in_one_line_with_the_log(line: str, message: str) -> None:
    error = str(explain([line, ""], Path("/x/setup.log")))
    assert message in error
    assert "/x/setup.log" in error
    assert "\n" not in error


def test_an_unknown_failure_shows_the_last_error_line() -> None:
    tail = ["ERROR: a strange thing", "note: unrelated", ""]
    assert last_useful(tail) == "ERROR: a strange thing"
    assert last_useful([]) == "the command said nothing"


def test_a_failed_command_raises_with_what_it_said(tmp_path: Path) -> None:
    console = quiet()
    runner = Runner(console, tmp_path / "setup.log", {})
    with pytest.raises(SetupError, match="disk is full"):
        runner.run("torch", ["/bin/sh", "-c", "echo 'No space left on device' >&2; exit 1"])
    assert "✗ torch" in written(console)
    assert "No space left" in (tmp_path / "setup.log").read_text(encoding="utf-8")


def test_steps_are_shown_with_their_seconds(tmp_path: Path) -> None:
    console = quiet()
    Runner(console, tmp_path / "setup.log", {}).run("pip", ["/bin/true"])
    assert re.search(r"✓ pip\s+0 s", written(console))
