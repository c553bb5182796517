"""A partitioned document to its sections and their chunks.

Each chunk is a piece of exactly one section: the largest whole around it that a reader can take in. Its
``text`` is a stretch of that section's text as it stands (with a table's header or a signature repeated above
later pieces); its ``embed_text`` has the title and the heading path above it. No chunk exceeds the profile's
maximum or what the embedder reads, and every character of every element is in one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemark.domain.errors import ConfigurationError, DocumentError
from tidemark.domain.hashing import Canonical, digest_text, fingerprint
from tidemark.domain.identity import Occurrences, point_ids, section_id
from tidemark.domain.model import Chunk, ChunkedDocument, Element, PartitionedDocument, Section
from tidemark.domain.profile import Profile, ProfileChoice
from tidemark.ports import CodeParser, Embedder, Tokenizer
from tidemark.stages.chunking.atoms import size_of
from tidemark.stages.chunking.breadcrumb import breadcrumb, names_of
from tidemark.stages.chunking.packing import Atom, Sizes, pack
from tidemark.stages.chunking.parents import Homes, find_homes
from tidemark.stages.chunking.regions import Region, regions_of
from tidemark.stages.chunking.sections import Node, as_one, fold
from tidemark.stages.chunking.strategies import Room, Strategy

CHUNK_VERSION = 2
_BREADCRUMB_SHARE = 3
_ATTEMPTS = 6


@dataclass(slots=True)
class _Piece:
    """A chunk before it has its id; offsets are in its region's text.

    start: where its text begins, overlap included.
    first, last: indices of its elements.
    tokens: of ``embed_text`` without special ones, once it was counted as a whole.
    """

    region: Region
    start: int
    end: int
    first: int
    last: int
    text: str
    embed_text: str
    prefix: str = ""
    tokens: int = 0


def _piece(
    region: Region, bounds: tuple[int, int], elements: tuple[int, int], prefix: str, above: str
) -> _Piece:
    text = region.rendered.text[bounds[0] : bounds[1]]
    if prefix:
        text = f"{prefix}\n{text}"
    embed_text = f"{above}\n{text}" if above else text
    return _Piece(region, *bounds, *elements, text, embed_text, prefix)


@dataclass(frozen=True, slots=True)
class _Parent:
    """A section to be: a whole home, or a part of a long body.

    node: whose heading it has.
    offset: characters of the region's text that are before its own, negative when text stands above it.
    """

    node: int
    text: str
    offset: int
    pieces: tuple[_Piece, ...]


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
        pieces = self._pieces(regions)
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

    def _pieces(self, regions: Sequence[Region]) -> list[list[_Piece]]:
        room = self.limit - self.strategy.tokenizer.special_tokens
        pieces = [self._cut(region, room) for region in regions]
        # The tokens of a whole may differ from the sum of its parts: what was packed is counted as it is.
        self._weigh([piece for own in pieces for piece in own])
        for index, own in enumerate(pieces):
            largest = max((piece.tokens for piece in own), default=0)
            if largest > room:
                pieces[index] = self._cut_smaller(regions[index], room, largest)
        return pieces

    def _weigh(self, pieces: Sequence[_Piece]) -> None:
        for piece, tokens in zip(
            pieces, self._count([piece.embed_text for piece in pieces]), strict=True
        ):
            piece.tokens = tokens

    def _cut_smaller(self, region: Region, room: int, largest: int) -> list[_Piece]:
        """Cut again with less room until every piece fits when it is counted as a whole."""
        allowed = room
        for _ in range(_ATTEMPTS):
            allowed = max(min(allowed - (largest - room) - 1, allowed * 9 // 10), 1)
            pieces = self._cut(region, allowed)
            self._weigh(pieces)
            largest = max(piece.tokens for piece in pieces)
            if largest <= room:
                return pieces
        raise DocumentError(
            "chunk",
            f"A text in the section {' > '.join(region.path) or '(start)'} has "
            f"{largest} tokens however it is cut; {room} are allowed.",
            "Raise the profile's max_tokens or use a model that reads more.",
        )

    def _cut(self, region: Region, allowed: int) -> list[_Piece]:
        text = region.rendered.text
        if not text:
            return []
        profile = self.strategy.profile
        names = names_of(self.document.title, region.path)
        above, above_tokens = breadcrumb(
            names, allowed // _BREADCRUMB_SHARE, self.strategy.tokenizer
        )
        budget = allowed - above_tokens
        target = profile.target_tokens - self.strategy.tokenizer.special_tokens
        # A long path must not starve the text of a chunk that is small on purpose.
        target = max(min(max(target - above_tokens, target // 2), budget), 1)
        repeat = int(target * profile.overlap)
        room = Room(target, max(budget - repeat, 1), profile.min_tokens)
        total = sum(region.tokens)
        if total <= min(room.target, room.limit) and profile.strategy not in _ALWAYS_CUT:
            last = len(region.elements) - 1
            return [_piece(region, (0, len(text)), (0, last), "", above)]
        atoms = self.strategy.atoms(region.elements, region.rendered, region.tokens, room)
        pieces: list[_Piece] = []
        for first, last in self.strategy.pieces(atoms, room):
            begin = self._begin(atoms, first, region, repeat) if pieces and repeat else None
            head, tail = atoms[first], atoms[last - 1]
            bounds = (head.start if begin is None else begin, tail.end)
            pieces.append(_piece(region, bounds, (head.first, tail.last), head.prefix, above))
        return pieces

    def _begin(self, atoms: Sequence[Atom], first: int, region: Region, repeat: int) -> int | None:
        """Where a piece begins that repeats the end of the one before it; None when it does not."""
        head, before = atoms[first], atoms[first - 1]
        within = before.last == head.first
        prose = all(
            region.elements[i].kind.value in _OVERLAPPING for i in (before.last, head.first)
        )
        if head.prefix or not prose or not (within or self.strategy.overlaps_paragraphs):
            return None
        start: int | None = None
        left = repeat
        for atom in reversed(atoms[:first]):
            if atom.tokens > left or atom.prefix:
                break
            left -= atom.tokens
            start = atom.start
        if start is not None:
            return start
        text = region.rendered.text[before.start : before.end]
        tokens = self.strategy.tokenizer.spans(text)
        if self.strategy.profile.strategy != "fixed" or len(tokens) <= repeat:
            return None
        place = tokens[len(tokens) - repeat][0]
        while place < len(text) and not text[place - 1].isspace():
            place += 1
        return before.start + place if place < len(text) else None

    def _parents(self, region: Region, pieces: Sequence[_Piece], homes: Homes) -> list[_Parent]:
        """The section that a region's chunks are read in: its home, or the parts of a long body."""
        node, profile = region.node, self.strategy.profile
        home = homes.home[node]
        if home != node or not pieces or sum(region.tokens) <= profile.parent_tokens:
            return [_Parent(home, homes.text[home], -homes.offset[node], tuple(pieces))]
        text = region.rendered.text
        sizes = self._count([text[piece.start : piece.end] for piece in pieces])
        atoms = [
            Atom(piece.start, piece.end, number, number, size)
            for number, (piece, size) in enumerate(zip(pieces, sizes, strict=True))
        ]
        most = profile.parent_tokens
        parts = pack(atoms, Sizes(max(most * 3 // 4, 1), most, most // 8))
        parents: list[_Parent] = []
        for first, last in parts:
            own = list(pieces[first:last])
            prefix = f"{own[0].prefix}\n" if own[0].prefix else ""
            start, end = own[0].start, max(piece.end for piece in own)
            parents.append(_Parent(node, prefix + text[start:end], start - len(prefix), tuple(own)))
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
        owners: list[tuple[_Piece, _Parent, UUID]] = []
        for index, node in enumerate(nodes):
            above = first_of[node.parent] if node.parent is not None else None
            # Several regions may share one home; only the parts of a long body are sections of their own.
            texts = dict.fromkeys(parent.text for parent in bodies.get(index, ()))
            known: dict[str, UUID] = {}
            for part in texts or {homes.text[index]: None}:
                identifier = section_id(self.document_id, node.path, occurrences.next(node.path))
                known[part] = identifier
                first_of.setdefault(index, identifier)
                sections.append(self._section(node, identifier, above, len(sections), part))
            owners += [
                (piece, parent, known[parent.text])
                for parent in bodies.get(index, ())
                for piece in parent.pieces
            ]
        return ChunkedDocument(tuple(sections), self._chunks(owners))

    def _section(
        self, node: Node, identifier: UUID, above: UUID | None, ordinal: int, text: str
    ) -> Section:
        heading = (node.heading,) if node.heading is not None else ()
        pages = [
            element.page_number
            for element in (*heading, *node.elements)
            if element.page_number is not None
        ]
        return Section(
            section_id=identifier,
            document_id=self.document_id,
            parent_section_id=above,
            heading_path=node.path,
            ordinal=ordinal,
            text=text,
            page_number=min(pages, default=None),
            page_end=max(pages, default=None),
            anchor=node.heading.anchor if node.heading else None,
        )

    def _chunks(self, owners: Sequence[tuple[_Piece, _Parent, UUID]]) -> tuple[Chunk, ...]:
        texts = [piece.embed_text for piece, _, _ in owners]
        ids = point_ids(self.document_id, texts)
        return tuple(
            self._chunk(piece, parent, section, index, ids[index])
            for index, (piece, parent, section) in enumerate(owners)
        )

    def _chunk(self, piece: _Piece, parent: _Parent, section: UUID, index: int, own: UUID) -> Chunk:
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
            kinds=_kinds(elements),
            content_hash=digest_text(text),
            anchor=elements[0].anchor or region.anchor,
            start=piece.start - parent.offset,
            end=piece.end - parent.offset,
        )

    def _count(self, texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        special = self.strategy.tokenizer.special_tokens
        return [count - special for count in self.strategy.tokenizer.count(texts)]


_ALWAYS_CUT = frozenset({"paragraph", "faq", "contract", "semantic", "code"})
"""Strategies that part what would fit one chunk."""
_OVERLAPPING = frozenset({"text", "quote", "definition", "list_item"})


def _kinds(elements: Sequence[Element]) -> tuple[str, ...]:
    return tuple(sorted({element.kind.value for element in elements}))
