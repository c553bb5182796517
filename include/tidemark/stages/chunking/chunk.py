"""A partitioned document to its sections and their chunks.

Each chunk is a piece of exactly one section: the largest whole around it that a reader can take in. Its
``text`` is a stretch of that section's text as it stands (with a table's header or a signature repeated above
later pieces); its ``embed_text`` has the title and the heading path above it. No chunk exceeds the profile's
maximum or what the embedder reads, and every character of every element is in one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemark.domain.chunks import Chunk, ChunkedDocument, Section
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.errors import ConfigurationError, DocumentError
from tidemark.domain.hashing import Canonical, digest_text, fingerprint
from tidemark.domain.identity import Occurrences, point_ids, section_id
from tidemark.domain.profile import Profile, ProfileChoice
from tidemark.ports.embedding import Embedder, Tokenizer
from tidemark.ports.partition import CodeParser
from tidemark.stages.chunking.packing import Sizes, Split, pack
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
from tidemark.stages.chunking.strategies import Room, Strategy

CHUNK_VERSION = 2


# The line above a chunk's text when it is embedded: where in which document it stands.

SEPARATOR = " > "
ELLIPSIS = "…"


def names_of(title: str, heading_path: Sequence[str]) -> tuple[str, ...]:
    """The document's title, where the first heading does not say it already, then the headings."""
    title = " ".join(title.split())
    if not title or (heading_path and _same(title, heading_path[0])):
        return tuple(heading_path)
    return (title, *heading_path)


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    return "".join(filter(str.isalnum, one.casefold())) == "".join(
        filter(str.isalnum, other.casefold())
    )


def heading_context(names: Sequence[str], budget: int, tokenizer: Tokenizer) -> tuple[str, int]:
    """Join names, shortened from the middle to at most ``budget`` tokens; the line and its tokens.

    The innermost name and the outermost go last, since they tell most; when even they are too long
    their own middles go.
    """
    if not names or budget < 1:
        return "", 0
    for line in _shorter_and_shorter(names):
        tokens = count_one(line, tokenizer)
        if tokens <= budget:
            return line, tokens
    return "", 0


def _shorter_and_shorter(names: Sequence[str]) -> Iterator[str]:
    yield SEPARATOR.join(names)
    for kept in range(len(names) - 1, 1, -1):
        head = (
            kept // 2
        )  # of an odd number the inner names, which are nearer to the text, keep one more
        yield SEPARATOR.join([*names[:head], ELLIPSIS, *names[len(names) - kept + head :]])
    ends = [names[0], names[-1]] if len(names) > 1 else [names[0]]
    gap = [ELLIPSIS] if len(names) > 2 else []
    for chars in (120, 60, 30):
        short = [_without_middle(name, chars) for name in ends]
        yield SEPARATOR.join([*short[:1], *gap, *short[1:]])
    for chars in (60, 30, 15):
        yield _without_middle(names[-1], chars)


def _without_middle(name: str, chars: int) -> str:
    if len(name) <= chars:
        return name
    half = chars // 2
    return f"{name[:half].rstrip()}{ELLIPSIS}{name[-half:].lstrip()}"


def count_one(text: str, tokenizer: Tokenizer) -> int:
    """Tokens of one text without the special ones."""
    return tokenizer.count([text])[0] - tokenizer.special_tokens


_CONTEXT_SHARE = 3
_ATTEMPTS = 6
_ALWAYS_CUT = frozenset({"paragraph", "faq", "contract", "semantic", "code"})
"""Strategies that part what would fit one chunk."""
_OVERLAPPING = frozenset({"text", "quote", "definition", "list_item"})


@dataclass(slots=True)
class Piece:
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


def piece_of(
    region: Region, bounds: tuple[int, int], elements: tuple[int, int], prefix: str, above: str
) -> Piece:
    text = region.rendered.text[bounds[0] : bounds[1]]
    caption, _, below = prefix.partition("\n")
    in_table = region.elements[elements[1]].kind is ElementKind.TABLE
    if not in_table and text.endswith(f"\n{caption}"):
        prefix = below  # it stands below its table, and is in the last piece anyway
    if prefix:
        text = f"{prefix}\n{text}"
    embed_text = f"{above}\n{text}" if above else text
    return Piece(region, *bounds, *elements, text, embed_text, prefix)


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts the regions of one document.

    limit: tokens of an ``embed_text``, special ones among them.
    """

    title: str
    strategy: Strategy
    limit: int

    def pieces(self, regions: Sequence[Region]) -> list[list[Piece]]:
        room = self.limit - self.strategy.tokenizer.special_tokens
        pieces = [self._cut(region, room) for region in regions]
        # The tokens of a whole may differ from the sum of its parts: what was packed is counted as it is.
        self._weigh([piece for own in pieces for piece in own])
        for index, own in enumerate(pieces):
            largest = max((piece.tokens for piece in own), default=0)
            if largest > room:
                pieces[index] = self._cut_smaller(regions[index], room, largest)
        return pieces

    def _weigh(self, pieces: Sequence[Piece]) -> None:
        for piece, tokens in zip(
            pieces, self.strategy.count([piece.embed_text for piece in pieces]), strict=True
        ):
            piece.tokens = tokens

    def _cut_smaller(self, region: Region, room: int, largest: int) -> list[Piece]:
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

    def _cut(self, region: Region, allowed: int) -> list[Piece]:
        text = region.rendered.text
        if not text:
            return []
        profile = self.strategy.profile
        names = names_of(self.title, region.path)
        above, above_tokens = heading_context(
            names, allowed // _CONTEXT_SHARE, self.strategy.tokenizer
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
            return [piece_of(region, (0, len(text)), (0, last), "", above)]
        splits = self.strategy.splits(region.elements, region.rendered, region.tokens, room)
        pieces: list[Piece] = []
        for first, last in self.strategy.pieces(splits, room):
            begin = self._begin(splits, first, region, repeat) if pieces and repeat else None
            head, tail = splits[first], splits[last - 1]
            if kinds_of(region.elements[head.first : tail.last + 1]) == (ElementKind.TITLE.value,):
                continue  # more headings on end than fit with a text: their place in the tree is enough
            bounds = (head.start if begin is None else begin, tail.end)
            pieces.append(piece_of(region, bounds, (head.first, tail.last), head.prefix, above))
        return pieces

    def _begin(
        self, splits: Sequence[Split], first: int, region: Region, repeat: int
    ) -> int | None:
        """Where a piece begins that repeats the end of the one before it; None when it does not."""
        head, before = splits[first], splits[first - 1]
        if head.prefix or not self._overlaps(region, before, head):
            return None
        start: int | None = None
        left = repeat
        for number in range(first - 1, -1, -1):
            split = splits[number]
            if split.tokens > left or split.prefix or not self._overlaps(region, split, head):
                break
            left -= split.tokens
            start = split.start
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

    def _overlaps(self, region: Region, split: Split, head: Split) -> bool:
        """Whether an split may be repeated above another: no structure is between them."""
        between = range(split.first, head.first + 1)
        prose = all(region.elements[index].kind.value in _OVERLAPPING for index in between)
        return prose and (split.first == head.first or self.strategy.overlaps_paragraphs)


def kinds_of(elements: Sequence[Element]) -> tuple[str, ...]:
    """The kinds of some elements, sorted, each once."""
    return tuple(sorted({element.kind.value for element in elements}))


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
