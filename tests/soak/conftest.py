"""What the soak measured is printed when it is over, test by test."""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from soak_home import Home

_FIGURE = "figure"

Figures = Callable[..., None]


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Figures:
    """Note what was measured: ``figures(rounds=50, seconds=12.3)``; printed at the session's end."""

    def note(**measured: object) -> None:
        for name, value in measured.items():
            shown = f"{value:.1f}" if isinstance(value, float) else str(value)
            record_property(_FIGURE, f"{name.replace('_', ' ')}: {shown}")

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [
        (report.nodeid.rpartition("::")[2], value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for key, value in report.user_properties
        if key == _FIGURE
    ]
    if lines:
        terminalreporter.section("what the soak measured")
    said = ""
    for name, value in lines:
        if name != said:
            terminalreporter.write_line(name)
            said = name
        terminalreporter.write_line(f"    {value}")


@pytest.fixture
def seed(figures: Figures) -> int:
    """The seed of a test's random choices: SOAK_SEED, else a new one; printed either way."""
    chosen = int(os.environ.get("SOAK_SEED") or secrets.randbelow(1_000_000))
    figures(seed=f"{chosen} (repeat with SOAK_SEED={chosen})")
    return chosen


@pytest.fixture
def home(own_folder: Path) -> Iterator[Callable[..., Home]]:
    """Makes homes over folders of files; stops their servers at the end."""
    made: list[Home] = []

    def make(*sources: str, quick: bool = True) -> Home:
        folders = {name: own_folder / "files" / name for name in sources}
        for folder in folders.values():
            folder.mkdir(parents=True)
        made.append(Home(own_folder / "tide", folders, quick=quick))
        return made[-1]

    yield make
    for one in made:
        one.stop()
