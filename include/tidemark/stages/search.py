"""Search: the chunks nearest to a query, each with the section that a reader or an LLM is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemark.domain.chunks import StoredPoint
from tidemark.domain.errors import PermanentError
from tidemark.domain.hashing import Canonical
from tidemark.ports.embedding import Embedder, LexicalEncoder
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger
from tidemark.stages.generations import current_generation
from tidemark.stages.job import embed_fingerprint

MODES = ("dense", "lexical", "hybrid")
EXPANSIONS = ("none", "section")
_AHEAD = 4
_MOST_ASKED = 10_000


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One chunk with its parent; ``section`` is None when it was not asked for."""

    chunk: StoredPoint
    section: StoredPoint | None

    def as_dict(self) -> dict[str, Canonical]:
        payload = self.chunk.payload
        result: dict[str, Canonical] = {
            "score": round(self.chunk.score, 6),
            "chunk_id": str(self.chunk.point_id),
            **payload,
        }
        if self.section is not None:
            result["section"] = {"section_id": str(self.section.point_id), **self.section.payload}
        return result


@dataclass(frozen=True, slots=True)
class Searcher:
    """What a search needs."""

    ledger: Ledger
    index: VectorIndex
    index_name: str
    embedder: Embedder
    lexical: LexicalEncoder


def search(
    deps: Searcher,
    query: str,
    k: int = 5,
    mode: str = "dense",
    expand: str = "section",
    where: Mapping[str, str | list[str]] | None = None,
) -> list[SearchResult]:
    """Find the ``k`` best chunks, best first.

    With ``expand`` "section" these are the best chunks of ``k`` different sections: several small chunks of
    one section would only hand a reader the same text again.
    Raises ``PermanentError`` when nothing is indexed under the configured model.
    """
    generation = _generation(deps)
    with deps.index.session():
        if expand != "section":
            return [
                SearchResult(hit, None) for hit in _hits(deps, generation, query, k, mode, where)
            ]
        hits = _one_a_section(deps, generation, query, k, mode, where)
        sections = _sections(deps.index, generation, hits)
    return [SearchResult(hit, sections.get(_section_id(hit))) for hit in hits]


def _generation(deps: Searcher) -> int:
    embed = embed_fingerprint(deps.embedder, deps.lexical)
    live = deps.index.live()
    if live is not None and deps.index.built_under(live) == embed:
        return live  # What every client finds, whatever else is being built.
    found = current_generation(deps.ledger, deps.index, deps.index_name, embed)
    if found is not None:
        return found
    if live is None:
        raise PermanentError(
            f"The index {deps.index_name!r} is empty.",
            "Index a source first: `tidemark index --all`.",
        )
    raise PermanentError(
        f"The index {deps.index_name!r} was built with another embedding model.",
        "Set TIDEMARK_EMBEDDING_MODEL back, or index with the new one: `tidemark index --all`.",
    )


def _one_a_section(
    deps: Searcher,
    generation: int,
    query: str,
    k: int,
    mode: str,
    where: Mapping[str, str | list[str]] | None,
) -> list[StoredPoint]:
    """The best hit of each of the ``k`` best sections; more is asked for until there are so many."""
    asked = k * _AHEAD
    while True:
        hits = _hits(deps, generation, query, asked, mode, where)
        best: dict[UUID, StoredPoint] = {}
        for hit in hits:
            best.setdefault(_section_id(hit), hit)
        if len(best) >= k or len(hits) < asked or asked >= _MOST_ASKED:
            return list(best.values())[:k]
        asked = min(asked * _AHEAD, _MOST_ASKED)


def _hits(
    deps: Searcher,
    generation: int,
    query: str,
    k: int,
    mode: str,
    where: Mapping[str, str | list[str]] | None,
) -> list[StoredPoint]:
    found = deps.index.search(
        generation,
        k,
        dense=None if mode == "lexical" else deps.embedder.embed([query])[0],
        lexical=None if mode == "dense" else deps.lexical.encode_query(query),
        where=where,
    )
    # A point whose payload was lost can neither be cited nor read; the audit names it.
    return [hit for hit in found if hit.payload.get("section_id")]


def _sections(
    index: VectorIndex, generation: int, hits: Sequence[StoredPoint]
) -> dict[UUID, StoredPoint]:
    ids = list(dict.fromkeys(_section_id(hit) for hit in hits))
    return {section.point_id: section for section in index.get_sections(generation, ids)}


def _section_id(hit: StoredPoint) -> UUID:
    return UUID(str(hit.payload["section_id"]))
