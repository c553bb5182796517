"""An audit, its repair and a search where a collection is lost, on the engines that operators run."""

from pathlib import Path

import pytest
from audits import Audited
from store_losses import What, lose, move_sections_alias
from vector_index_cases import ADAPTERS
from worlds import World

from tidemark.stages.search import search

pytestmark = pytest.mark.services


@pytest.mark.parametrize("lost", ["points", "sections"])
@pytest.mark.parametrize("name", ["edge", "server"])
def test_a_lost_collection_is_told_and_made_again(name: str, lost: What, tmp_path: Path) -> None:
    with ADAPTERS[name](tmp_path) as index:
        audited = Audited(World(index=index)).fill()
        before = audited.held()
        index.switch(1)
        lose(index, 1, lost)
        if lost == "sections":
            assert search(audited.world.searcher(), "the tide")[0].section is None
        report = audited.audit()
        assert report.counts[f"missing_{lost}"] == len(before[lost == "sections"])
        assert report.notes[f"missing_{lost}"] == [
            f"generation 1 has lost its collection of {lost}"
        ]
        assert not audited.audit(repair=True).differs
        assert audited.held() == before
        assert (index.live(), index.live_sections()) == (1, 1)
        assert audited.audit().clean


def test_an_alias_of_the_sections_that_is_lost_is_found_and_made_again(tmp_path: Path) -> None:
    with ADAPTERS["server"](tmp_path) as index:
        audited = Audited(World(index=index)).fill()
        for heal in (lambda: audited.audit(repair=True), audited.run):
            move_sections_alias(index, None)
            assert audited.audit().counts == {"live_name": 1}
            heal()
            assert index.live_sections() == 1
            assert audited.audit().clean
