"""Killing runs at moments spread over all of their work, and what each kill cost."""

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from soak_home import Death, Home, Run, kill, outlived

DEATHS: Sequence[Death] = ("process", "family", "everything")
_POLL = 0.01


@dataclass(frozen=True)
class Usual:
    """How long a run takes that nobody kills, in seconds.

    whole: from start to end. writing: of it, from the first text embedded to the end.
    """

    whole: float
    writing: float


@dataclass
class Killer:
    """Kills runs of a home and counts where they were.

    kills: by the phase in which the run was. late: runs that had ended before their time came.
    orphans: children that outlived a killed parent. begun: documents in flight at each kill.
    """

    home: Home
    random: Random
    usual: Usual
    kills: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)
    late: int = 0
    orphans: list[str] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)

    def strike(self, source: str) -> str:
        """Start a run and kill it: at any moment of it, or, more often than its share, while it writes."""
        log = self.home.texts
        before = log.stat().st_size if log.exists() else 0
        runs = _run_folders(self.home)
        run = self.home.start("index", source, "--approve", "--json")
        if self.random.random() < 0.6:
            _sleep_until(run, self.random.uniform(0.0, 0.9 * self.usual.whole))
        else:
            _wait_for_growth(run, log, before)
            _sleep_until(run, run.seconds + self.random.uniform(0.0, 0.8 * self.usual.writing))
        if not run.running:
            run.end()
            self.late += 1
            return "ended"
        death = self.random.choice(DEATHS)
        children = kill(run, death, self.home.postgres)
        self.orphans += outlived(children)
        self.deaths[death] += 1
        phase = self._phase(source, runs, wrote=log.exists() and log.stat().st_size > before)
        self.kills[phase] += 1
        return phase

    def _phase(self, source: str, runs: set[str], *, wrote: bool) -> str:
        """Where the run was, by what it left behind."""
        [folder, *_] = [*(_run_folders(self.home) - runs), ""]
        listed, planned = (
            bool(folder) and (_runs(self.home) / folder / name).exists()
            for name in ("listing.jsonl", "plan.jsonl")
        )
        if not (listed or planned or wrote):
            return "start, crawl"
        if not planned:
            return "plan"
        with self.home.ledger() as ledger:
            begun = len(ledger.in_flight(source))
            committed = folder and any(True for _ in ledger.run_events(folder))
        self.begun.append(begun)
        if begun:
            return "write"
        return ("between writes" if wrote else "sweep, audit") if committed else "prepare, embed"


def _runs(home: Home) -> Path:
    return home.home / "artifacts" / "runs"


def _run_folders(home: Home) -> set[str]:
    return {path.name for path in _runs(home).iterdir()} if _runs(home).is_dir() else set()


def _sleep_until(run: Run, seconds: float) -> None:
    while run.running and run.seconds < seconds:
        time.sleep(_POLL)


def _wait_for_growth(run: Run, file: Path, before: int) -> None:
    while run.running and not (file.exists() and file.stat().st_size > before):
        time.sleep(_POLL)


def measure(home: Home, source: str) -> Usual:
    """Time one run that nobody kills."""
    log = home.texts
    before = log.stat().st_size if log.exists() else 0
    run = home.start("index", source, "--approve", "--json")
    _wait_for_growth(run, log, before)
    begun = run.seconds
    run.end()
    return Usual(run.seconds, run.seconds - begun)


@dataclass(frozen=True)
class Twice:
    """What was embedded more than once.

    documents: for each process that was cut short, how many documents it embedded in vain, as a later one
        embedded a text of theirs again. texts: how many such texts, of how many altogether.
    """

    documents: dict[str, int]
    texts: int
    all_texts: int

    @property
    def most(self) -> int:
        return max(self.documents.values(), default=0)


def embedded_twice(log: Path) -> Twice:
    """Read what the runs of a home embedded (``soak_quick_cli``)."""
    first: dict[str, tuple[str, str]] = {}
    again: dict[str, set[str]] = defaultdict(set)
    texts = lines = 0
    for line in log.read_text().splitlines():
        process, text, document = line.split()
        lines += 1
        if text in first and first[text][0] != process:
            # The last one before is the one whose work was lost.
            again[first[text][0]].add(document)
            texts += 1
        first[text] = process, document
    return Twice({process: len(found) for process, found in again.items()}, texts, lines)
