"""A partitioned document to its sections and their chunks.

Each chunk is a piece of exactly one section: the largest whole around it that a reader can take in. Its
``text`` is a stretch of that section's text as it stands (with a table's header or a signature repeated above
later pieces); its ``embed_text`` has the title and the heading path above it. No chunk exceeds the profile's
maximum or what the embedder reads, and every character of every element is in one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemark.domain.chunks import Chunk, ChunkedDocument, Section
from tidemark.domain.documents import Element, PartitionedDocument
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.hashing import Canonical, digest_text, fingerprint
from tidemark.domain.identity import Occurrences, point_ids, section_id
from tidemark.domain.profile import Profile, ProfileChoice
from tidemark.ports import CodeParser, Embedder, Tokenizer
from tidemark.stages.chunking.packing import Sizes, Split, pack
from tidemark.stages.chunking.pieces import Cutter, Piece, kinds_of
from tidemark.stages.chunking.sections import (
    Homes,
    Node,
    Region,
    as_one,
    find_homes,
    fold,
    regions_of,
)
from tidemark.stages.chunking.splits import size_of
from tidemark.stages.chunking.strategies import Strategy

CHUNK_VERSION = 2


@dataclass(frozen=True, slots=True)
class _Parent:
    """A section to be: a whole home, or a part of a long body.

    node: whose heading it has.
    part: which part of a long body it is, None for a whole home; equal parts are two sections.
    offset: characters of the region's text that are before its own, negative when text stands above it.
    """

    node: int
    text: str
    offset: int
    pieces: tuple[Piece, ...]
    part: int | None = None


def chunk_fingerprint(
    profile: Profile | ProfileChoice, tokenizer_fingerprint: str, upstream: str = "", code: str = ""
) -> str:
    """Fingerprint of everything that decides a document's chunks.

    upstream: the partitioner's. code: the code parser's.
    """
    options: dict[str, Canonical] = {
        "version": CHUNK_VERSION,
        "profile": profile.canonical(),
        "tokenizer": tokenizer_fingerprint,
        "code": code,
    }
    return fingerprint("chunk", options, upstream)


def chunk_document(
    document_id: UUID,
    document: PartitionedDocument,
    profile: Profile,
    tokenizer: Tokenizer,
    code: CodeParser | None = None,
    embedder: Embedder | None = None,
) -> ChunkedDocument:
    """Fold a document's elements into sections and cut each section into chunks.

    code: finds definitions in program code; without it, lines and indentation have to tell.
    embedder: needed by the strategy ``semantic`` alone.
    Raises ``ConfigurationError`` for a profile that cannot be met, and ``DocumentError`` for a text that no
    cut brings under the limit.
    """
    limit = _limit(profile, tokenizer)
    strategy = Strategy(profile, tokenizer, code, embedder)
    return _Chunker(document_id, document, strategy, limit).run()


def _limit(profile: Profile, tokenizer: Tokenizer) -> int:
    """The hard maximum of an ``embed_text`` in tokens, special ones among them."""
    limit = min(profile.max_tokens, tokenizer.max_tokens)
    if limit <= tokenizer.special_tokens:
        raise ConfigurationError(
            f"Profile {profile.name} leaves no room for text: {limit} tokens, of which "
            f"{tokenizer.special_tokens} are the model's own.",
            "Raise max_tokens.",
        )
    return limit


@dataclass(frozen=True, slots=True)
class _Chunker:
    document_id: UUID
    document: PartitionedDocument
    strategy: Strategy
    limit: int

    def run(self) -> ChunkedDocument:
        profile = self.strategy.profile
        nodes, counts = self._nodes()
        headings = self._count([node.name for node in nodes])
        sums = [sum(own) + heading for own, heading in zip(counts, headings, strict=True)]
        homes = find_homes(nodes, sums, profile.parent_tokens)
        regions = regions_of(nodes, counts, headings, homes, merge=profile.merge_sections)
        pieces = Cutter(self.document.title, self.strategy, self.limit).pieces(regions)
        parents = [
            parent
            for region, own in zip(regions, pieces, strict=True)
            for parent in self._parents(region, own, homes)
        ]
        return self._identified(nodes, homes, parents)

    def _nodes(self) -> tuple[list[Node], list[list[int]]]:
        """The nodes with the tokens of each element; texts are tokenised in one batch, each once."""
        nodes = fold(self.document.elements)
        counts = self._element_tokens(nodes)
        if self.strategy.profile.strategy == "whole":
            single = as_one(self.document.elements)
            own = self._element_tokens(single)
            title = sum(self._count([self.document.title]))
            room = self.limit - self.strategy.tokenizer.special_tokens - title
            if single and sum(own[0]) <= room:
                return single, own
        return nodes, counts

    def _element_tokens(self, nodes: Sequence[Node]) -> list[list[int]]:
        texts = [
            node.rendered.text[start:end] for node in nodes for start, end in node.rendered.spans
        ]
        counts = iter(map(size_of, self._count(texts), map(len, texts)))
        return [[next(counts) for _ in node.elements] for node in nodes]

    def _parents(self, region: Region, pieces: Sequence[Piece], homes: Homes) -> list[_Parent]:
        """The section that a region's chunks are read in: its home, or the parts of a long body."""
        node, profile = region.node, self.strategy.profile
        home = homes.home[node]
        if home != node or not pieces or sum(region.tokens) <= profile.parent_tokens:
            return [_Parent(home, homes.text[home], -homes.offset[node], tuple(pieces))]
        text = region.rendered.text
        sizes = self._count([text[piece.start : piece.end] for piece in pieces])
        above = self._count([piece.prefix for piece in pieces])
        splits = [
            Split(piece.start, piece.end, number, number, sizes[number], 0.0, "", above[number])
            for number, piece in enumerate(pieces)
        ]
        most = profile.parent_tokens
        parts = pack(splits, Sizes(max(most * 3 // 4, 1), most, most // 8))
        parents: list[_Parent] = []
        for first, last in parts:
            own = list(pieces[first:last])
            prefix = f"{own[0].prefix}\n" if own[0].prefix else ""
            start, end = own[0].start, max(piece.end for piece in own)
            offset = start - len(prefix)
            parents.append(_Parent(node, prefix + text[start:end], offset, tuple(own), first))
        return parents

    def _identified(
        self, nodes: Sequence[Node], homes: Homes, parents: Sequence[_Parent]
    ) -> ChunkedDocument:
        """Sections and chunks with their ids, in document order."""
        bodies: dict[int, list[_Parent]] = {}
        for parent in parents:
            bodies.setdefault(parent.node, []).append(parent)
        occurrences = Occurrences()
        first_of: dict[int, UUID] = {}
        sections: list[Section] = []
        owners: list[tuple[Piece, _Parent, UUID]] = []
        for index, node in enumerate(nodes):
            above = first_of[node.parent] if node.parent is not None else None
            # Several regions may share one home; only the parts of a long body are sections of their own.
            texts = {parent.part: parent.text for parent in bodies.get(index, ())}
            known: dict[int | None, UUID] = {}
            for part, text in (texts or {None: homes.text[index]}).items():
                identifier = section_id(self.document_id, node.path, occurrences.next(node.path))
                known[part] = identifier
                first_of.setdefault(index, identifier)
                pages = _pages(nodes, index, bodies.get(index, ()), part)
                sections.append(
                    Section(
                        section_id=identifier,
                        document_id=self.document_id,
                        parent_section_id=above,
                        heading_path=node.path,
                        ordinal=len(sections),
                        text=text,
                        page_number=min(pages, default=None),
                        page_end=max(pages, default=None),
                        anchor=node.heading.anchor if node.heading else None,
                    )
                )
            owners += [
                (piece, parent, known[parent.part])
                for parent in bodies.get(index, ())
                for piece in parent.pieces
            ]
        return ChunkedDocument(tuple(sections), self._chunks(owners))

    def _chunks(self, owners: Sequence[tuple[Piece, _Parent, UUID]]) -> tuple[Chunk, ...]:
        texts = [piece.embed_text for piece, _, _ in owners]
        ids = point_ids(self.document_id, texts)
        return tuple(
            self._chunk(piece, parent, section, index, ids[index])
            for index, (piece, parent, section) in enumerate(owners)
        )

    def _chunk(self, piece: Piece, parent: _Parent, section: UUID, index: int, own: UUID) -> Chunk:
        region, text = piece.region, piece.text
        elements = region.elements[piece.first : piece.last + 1]
        page = next((e.page_number for e in elements if e.page_number is not None), region.page)
        return Chunk(
            chunk_id=own,
            document_id=self.document_id,
            section_id=section,
            chunk_index=index,
            text=text,
            embed_text=piece.embed_text,
            token_count=piece.tokens + self.strategy.tokenizer.special_tokens,
            heading_path=region.path_of(piece.first, piece.last),
            page_number=page,
            kinds=kinds_of(elements),
            content_hash=digest_text(text),
            anchor=elements[0].anchor or region.anchor,
            start=piece.start - parent.offset,
            end=piece.end - parent.offset,
        )

    def _count(self, texts: Sequence[str]) -> list[int]:
        return self.strategy.count(texts)


def _pages(
    nodes: Sequence[Node], index: int, parents: Sequence[_Parent], part: int | None
) -> list[int]:
    """The pages of a section's text: of a part its pieces, else of heading, body and sub-sections."""
    elements: list[Element] = []
    if part is None:
        heading = nodes[index].heading
        elements = [*([heading] if heading is not None else []), *nodes[index].elements]
    for parent in parents:
        if parent.part == part:
            for piece in parent.pieces:
                elements += piece.region.elements[piece.first : piece.last + 1]
    return [element.page_number for element in elements if element.page_number is not None]
