"""Recount: before a person is asked about many changed pages, look whether only their frame has changed.

A banner that comes or goes on every page of a site changes the text of them all, and means nothing. What a
crawl has learnt of it is known only at its end; so, when a guard would ask, the changed pages are measured
once more, without the furniture of then and of now.
"""

from collections.abc import Iterable, Iterator

from tidemark.domain.guards import Census, Sort
from tidemark.domain.model import RawDocument
from tidemark.domain.plan import Action, is_shrunk
from tidemark.domain.records import DocumentRecord
from tidemark.stages.codec import Planned
from tidemark.stages.job import Tools, raw_key


def recount_changes(tools: Tools, planned: Iterable[Planned], furniture: frozenset[int]) -> Census:
    """Count the documents of a plan whose text is another one without these blocks.

    Reads both versions of each changed page: work in proportion to what changed, and only when asked for.
    """
    census = Census()
    for one in planned:
        if one.decision.action is Action.UPDATE and _is_another(tools, one, furniture):
            census.add(Sort.CHANGED, one.decision.uri)
    return census


def _is_another(tools: Tools, planned: Planned, furniture: frozenset[int]) -> bool:
    record, observed = tools.ledger.document(planned.decision.document_id), planned.observed
    if record is None or record.raw_hash in (None, planned.decision.raw_hash):
        return False
    if observed is not None and is_shrunk(observed, record):
        return False  # another guard counts it
    if tools.inspector is None:
        return True
    texts = []
    for raw in _versions(tools, planned, record):
        seen = tools.inspector.inspect(raw, furniture)
        texts.append(seen.text_hash if seen else None)
    return len(texts) < 2 or texts[0] is None or texts[0] != texts[1]


def _versions(tools: Tools, planned: Planned, record: DocumentRecord) -> Iterator[RawDocument]:
    """The live version and the one that is to follow it, as far as their bytes are at hand."""
    observed = planned.observed
    wanted = [(record.raw_hash, record.media_type, record.charset)]
    if observed is not None:
        kind = observed.media_type or record.media_type
        wanted.append((observed.raw_hash, kind, observed.charset))
    for raw_hash, media_type, charset in wanted:
        try:
            content = tools.artifacts.read(raw_key(raw_hash or "none"))
        except KeyError:
            continue
        yield RawDocument(record.uri, content, media_type, charset, record.fetched_at)
