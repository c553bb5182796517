"""What a source's pages have in common: learnt by a crawl, dropped by every partitioning after it."""

import json
from dataclasses import replace
from heapq import heappush, heappushpop

from tidemark.domain.hashing import digest_text
from tidemark.domain.site_furniture import learn
from tidemark.stages.job import Job, Tools, furniture_key

SAMPLE = 300
"""Pages that the furniture is learnt from: enough to tell half of a site, whatever its size."""
RELEARN_SHARE = 0.5
"""When so much of a site was fetched anew it may have another design."""


class FurnitureSample:
    """The blocks of a bounded number of pages, the same ones whatever order they come in."""

    def __init__(self) -> None:
        self.pages = 0
        # The page with the highest digest is at the top, and is the next to go.
        self._kept: list[tuple[int, tuple[int, ...]]] = []

    def add(self, uri: str, blocks: tuple[int, ...]) -> None:
        if not blocks:
            return
        self.pages += 1
        entry = (-int(digest_text(uri)[:15], 16), blocks)
        if len(self._kept) < SAMPLE:
            heappush(self._kept, entry)
        else:
            heappushpop(self._kept, entry)

    def learnt(self) -> frozenset[int]:
        return learn(blocks for _, blocks in self._kept)


def remember_furniture(job: Job, tools: Tools, sample: FurnitureSample, indexed: int) -> None:
    """Learn the site's furniture when enough of it was fetched, and keep it for this run.

    ``indexed``: documents that the source had before. In the ledger only when the run is to be applied.
    """
    partial = job.limit is not None or not job.learn
    if partial or not sample.pages or sample.pages < RELEARN_SHARE * indexed:
        return
    blocks = tuple(sorted(sample.learnt()))
    state = tools.ledger.source_state(job.source)
    learnt = {"now": blocks, "before": state.furniture}
    tools.artifacts.write(furniture_key(job.run_id), json.dumps(learnt).encode())
    if not job.dry_run:
        tools.ledger.save_source_state(
            replace(state, furniture=blocks, furniture_pages=sample.pages)
        )


def knowing_site(job: Job, tools: Tools) -> Tools:
    """The tools of a run once its crawl is done: the partitioner knows what is on every page."""
    now, _ = _furniture(job, tools)
    return replace(tools, partitioner=tools.partitioner.knowing(now))


def furniture_then_and_now(job: Job, tools: Tools) -> frozenset[int]:
    """What is furniture in the live versions of the site's pages, and in those that this run has fetched."""
    now, before = _furniture(job, tools)
    return now | before


def _furniture(job: Job, tools: Tools) -> tuple[frozenset[int], frozenset[int]]:
    try:
        learnt = json.loads(tools.artifacts.read(furniture_key(job.run_id)))
    except KeyError:
        known = frozenset(tools.ledger.source_state(job.source).furniture)
        return known, known
    return frozenset(learnt["now"]), frozenset(learnt["before"])


def remember_state(job: Job, tools: Tools, state: str) -> None:
    """Keep what the next crawl is to be told, once this one is applied whole."""
    if state:
        known = tools.ledger.source_state(job.source)
        tools.ledger.save_source_state(replace(known, state=state))
