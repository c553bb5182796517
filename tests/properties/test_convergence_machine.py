"""Whatever happens to a source, its runs and its stores: one clean run makes the index right again."""

import os
import sqlite3
from dataclasses import replace

import pytest
from convergence import Convergence
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from site_model import SICK, URIS, Page, expected, held
from store_copies import MemoryStores, Stores
from worlds import SOURCE

from tidemark.stages.temp_database import TempDatabase

pytestmark = pytest.mark.slow

BY_HAND = os.environ.get("TIDEMARK_MACHINE_EXAMPLES")
"""How many histories to try, others each time; without, the same ones each time."""
EXAMPLES = int(BY_HAND or 120)
"""Of ``STEPS`` steps at most."""
STEPS = 30


class InMemory(Convergence):
    def stores(self) -> Stores:
        return MemoryStores()


LONG = "A line that no page is without, " * 8
"""So that equal pages are not equal by chance (``survey.DUPLICATE_FROM``)."""


class Judging(InMemory):
    """Of a website: what is suspected is doubted, and equal pages are kept once, wherever they come up.

    Which address keeps a page depends on what was there before, and takes more than one run to settle.
    """

    takes_down = False

    def lay(self, uri: str, page: Page) -> None:
        self.setup = replace(self.setup, judge=True)
        if page.kind in {"page", *SICK}:
            paragraphs = (*(p for p in page.paragraphs if p != LONG), LONG)
            page = replace(page, kind="page", paragraphs=paragraphs)
        super().lay(uri, page)

    def _watch(self, *_: object, **__: object) -> None:
        self.lost = []

    def _clean_run(self) -> None:
        self.setup = replace(self.setup, judge=True)
        if self.hand == "changed":
            self._repair()
        for _ in range(5):
            self._prepare("", URIS[0])
            summary, line = self._clean(accept=frozenset("*"))
            assert (summary.status, summary.findings) == ("success", {}), summary
        assert line.writes == [], summary
        assert self.world.embedder.texts == [], summary
        assert self.world.ledger.writes.pending(SOURCE) == {}
        assert self.world.audit().clean
        pages = {uri: page for uri, page in self.site.items() if page.kind == "page"}
        points = held(self.world, "scan_points")
        assert points.keys() <= pages.keys()
        plain = replace(self.setup, judge=False)
        for uri, found in points.items():
            assert found == expected({uri: pages[uri]}, plain).points[uri]
        texts = {uri: (page.title, page.paragraphs) for uri, page in pages.items()}
        assert {texts[uri] for uri in points} == set(texts.values()), "each text stands somewhere"
        self.hand = ""


@pytest.mark.parametrize(("machine", "share"), [(InMemory, 1), (Judging, 4)])
def test_it_converges_after_whatever_happened(
    machine: type[Convergence], share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a run notes on disk is little here, and to make and remove its folders takes longer than the run.
    monkeypatch.setattr(TempDatabase, "__init__", in_memory)
    monkeypatch.setattr(TempDatabase, "close", lambda temp_db: temp_db.database.close())
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES // share,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
            database=None,
            derandomize=BY_HAND is None,
            print_blob=False,
        ),
    )


def in_memory(temp_db: TempDatabase, *schema: str) -> None:
    temp_db.database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    for statement in schema:
        temp_db.database.execute(statement)
