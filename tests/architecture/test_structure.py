"""The shape of the code: folders that can be looked over, no fakes in the product, a map that is true."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "benchmarks"))

from structure import Modules, protocol_methods, python_files  # noqa: E402

FILES_IN_A_FOLDER = 14
FILES = 211
"""Without the migrations of the ledger, of which each release may bring one."""
METHODS_OF_A_PROTOCOL = 10
SUFFIXES = (".py", ".md", ".svg", ".toml", ".yaml", ".json", "/")
"""What a name in backquotes ends with that means a file or a folder."""

ARCHITECTURE = PROJECT / "ARCHITECTURE.md"


def test_every_folder_can_be_looked_over() -> None:
    counts = Counter(path.parent for path in python_files(PROJECT / "include"))
    full = {str(f.relative_to(PROJECT)): n for f, n in counts.items() if n > FILES_IN_A_FOLDER}
    assert full == {}, f"more than {FILES_IN_A_FOLDER} modules: {full}"


def test_the_product_has_no_more_modules_than_it_needs() -> None:
    files = [f for f in python_files(PROJECT / "include") if f.parent.name != "versions"]
    assert len(files) <= FILES, (
        "Is the newest module a thing that a reader looks for by its name? Then raise FILES with it; "
        "if it is a slice of another, put it there."
    )


def test_no_protocol_of_the_ledger_is_about_everything() -> None:
    assert max(protocol_methods(PROJECT).values()) <= METHODS_OF_A_PROTOCOL


def test_there_are_no_fakes_in_the_product() -> None:
    assert Modules(PROJECT).fakes() == []


def named_paths() -> list[str]:
    """What ``ARCHITECTURE.md`` names in backquotes or links to."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    quoted = [name for name in re.findall(r"`([^`\s]+)`", text) if name.endswith(SUFFIXES)]
    linked = [name for name in re.findall(r"\]\(([^)#]+)", text) if "://" not in name]
    return sorted({*quoted, *linked})


@pytest.mark.parametrize("name", named_paths())
def test_the_map_names_what_exists(name: str) -> None:
    places = (PROJECT, PROJECT / "include", PROJECT / "include" / "tidemark")
    assert any((place / name).exists() for place in places), f"{ARCHITECTURE.name} names {name}"
