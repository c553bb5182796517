"""Killing runs at moments spread over all of their work, and what each kill cost."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from uuid import UUID

from soak_corpus import Corpus
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
    orphans: children that outlived a killed parent. begun: documents that each killed run had noted and not
    committed. committed: what it had committed, by its process: the names of documents.
    """

    home: Home
    random: Random
    usual: Usual
    kills: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)
    late: int = 0
    orphans: list[str] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)
    committed: dict[str, set[str]] = field(default_factory=dict)
    _noted: set[UUID] = field(default_factory=set)

    def settled(self) -> None:
        """A run that nobody killed has made everything good."""
        self._noted = set()

    def strike(self, source: str, corpus: Corpus) -> str:
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
            self.settled()
            return "ended"
        death = self.random.choice(DEATHS)
        children = kill(run, death, self.home.postgres)
        self.orphans += outlived(children)
        self.deaths[death] += 1
        wrote = log.exists() and log.stat().st_size > before
        phase = self._phase(source, run, runs, corpus, wrote=wrote)
        self.kills[phase] += 1
        return phase

    def _phase(self, source: str, run: Run, runs: set[str], corpus: Corpus, *, wrote: bool) -> str:
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
            noted = set(ledger.writes.pending(source))
        committed = committed_by(self.home, folder, corpus)
        self.committed[str(run.process.pid)] = committed
        # Notes of runs that were killed before stay until their documents' turn comes.
        begun = len(noted - self._noted)
        self._noted = noted
        self.begun.append(begun)
        if begun:
            return "write"
        return ("between writes" if wrote else "sweep, audit") if committed else "prepare, embed"


def committed_by(home: Home, run_id: str, corpus: Corpus) -> set[str]:
    """The names of the documents that a run did something to, of those that still are where they were."""
    names = {document.path.as_uri(): document.name for document in corpus.documents}
    with home.ledger() as ledger:
        events = ledger.runs.events(run_id) if run_id else iter(())
        return {names[event.uri] for event in events if event.uri in names}


def latest_run(home: Home, source: str) -> str:
    """The id of the latest run of a source that has listed anything, "" for none."""
    return max((run for run in _run_folders(home) if run.startswith(f"{source}__")), default="")


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
    """What was done twice: embedded by a run that was killed before it was committed, and embedded again.

    documents: how many, by killed process. texts: how many texts of theirs, of how many altogether. A text
    that was committed, went with an edit or a rename and came back with another one, is no such text.
    """

    documents: dict[str, int]
    texts: int
    all_texts: int

    @property
    def most(self) -> int:
        return max(self.documents.values(), default=0)


def embedded_twice(log: Path, committed: Mapping[str, set[str]]) -> Twice:
    """Read what the runs of a home embedded (``soak_quick_cli``).

    ``committed``: by killed process, what it had committed; all other processes committed everything.
    """
    last: dict[str, str] = {}
    in_vain: dict[str, set[str]] = defaultdict(set)
    texts = lines = 0
    for line in log.read_text().splitlines():
        process, text, document = line.split()
        lines += 1
        before = last.get(text, process)
        lost = before in committed and document not in committed[before]
        if before != process and lost:
            in_vain[before].add(document)
            texts += 1
        last[text] = process
    return Twice({process: len(found) for process, found in in_vain.items()}, texts, lines)
