"""A partitioned document to its sections and their chunks.

Each chunk is a piece of exactly one section. Its ``text`` is a stretch of the section's text as it stands
(with a table's header repeated above later rows); its ``embed_text`` has the heading path above it. No chunk
exceeds the profile's maximum or what the embedder reads, and every character of every element is in one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemark.domain.errors import ConfigurationError, DocumentError
from tidemark.domain.hashing import digest_text, fingerprint
from tidemark.domain.identity import point_ids
from tidemark.domain.model import Chunk, ChunkedDocument, PartitionedDocument, Profile
from tidemark.ports import Tokenizer
from tidemark.stages.chunking.atoms import Splitter
from tidemark.stages.chunking.breadcrumb import breadcrumb, names_of
from tidemark.stages.chunking.packing import Atom, Sizes, pack
from tidemark.stages.chunking.sections import SectionBody, build_sections

CHUNK_VERSION = 1
STRATEGIES = frozenset({"by_title"})
_BREADCRUMB_SHARE = 3
_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk before it has its id."""

    text: str
    embed_text: str
    first: int
    last: int


def chunk_fingerprint(profile: Profile, tokenizer_fingerprint: str, upstream: str = "") -> str:
    """Fingerprint of everything that decides a document's chunks; ``upstream`` is the partitioner's."""
    options = {
        "version": CHUNK_VERSION,
        "profile": profile.canonical(),
        "tokenizer": tokenizer_fingerprint,
    }
    return fingerprint("chunk", options, upstream)


def chunk_document(
    document_id: UUID, document: PartitionedDocument, profile: Profile, tokenizer: Tokenizer
) -> ChunkedDocument:
    """Fold a document's elements into sections and pack each section into chunks.

    Raises ``ConfigurationError`` for a profile that cannot be met, and ``DocumentError`` for a text that no
    cut brings under the limit.
    """
    limit = _limit(profile, tokenizer)
    bodies = build_sections(document_id, document)
    packer = _Packer(document.title, profile, tokenizer, limit)
    pieces = packer.pack_all(bodies)
    owners = [body for body, own in zip(bodies, pieces, strict=True) for _ in own]
    flat = [piece for own in pieces for piece in own]
    ids = point_ids(document_id, [piece.embed_text for piece in flat])
    counts = tokenizer.count([piece.embed_text for piece in flat]) if flat else []
    chunks = tuple(
        _chunk(owner, piece, index, identifier, count)
        for index, (owner, piece, identifier, count) in enumerate(
            zip(owners, flat, ids, counts, strict=True)
        )
    )
    return ChunkedDocument(tuple(body.section for body in bodies), chunks)


def _limit(profile: Profile, tokenizer: Tokenizer) -> int:
    """The hard maximum of an ``embed_text`` in tokens, special ones among them."""
    if profile.strategy not in STRATEGIES:
        raise ConfigurationError(
            f"Profile {profile.name} asks for the strategy {profile.strategy!r}.",
            f"Use one of: {', '.join(sorted(STRATEGIES))}.",
        )
    limit = min(profile.max_tokens, tokenizer.max_tokens)
    if limit <= tokenizer.special_tokens:
        raise ConfigurationError(
            f"Profile {profile.name} leaves no room for text: {limit} tokens, of which "
            f"{tokenizer.special_tokens} are the model's own.",
            "Raise max_tokens.",
        )
    return limit


@dataclass(frozen=True, slots=True)
class _Packer:
    title: str
    profile: Profile
    tokenizer: Tokenizer
    limit: int

    def pack_all(self, bodies: Sequence[SectionBody]) -> list[list[_Piece]]:
        """The pieces of each section; texts are tokenised in one batch, each once."""
        texts = [
            body.rendered.text[start:end] for body in bodies for start, end in body.rendered.spans
        ]
        counts = iter(self._count(texts))
        tokens = [[next(counts) for _ in body.elements] for body in bodies]
        room = self.limit - self.tokenizer.special_tokens
        pieces = [self._pack(body, own, room) for body, own in zip(bodies, tokens, strict=True)]
        # The tokens of a whole may differ from the sum of its parts: what was packed is counted again.
        sizes = iter(self._count([piece.embed_text for own in pieces for piece in own]))
        for index, own in enumerate(pieces):
            largest = max((next(sizes) for _ in own), default=0)
            if largest > room:
                pieces[index] = self._repack(bodies[index], tokens[index], room, largest)
        return pieces

    def _repack(
        self, body: SectionBody, tokens: Sequence[int], room: int, largest: int
    ) -> list[_Piece]:
        """Pack again with less room until every piece fits when it is counted as a whole."""
        allowed = room
        for _ in range(_ATTEMPTS):
            allowed = max(min(allowed - (largest - room) - 1, allowed * 9 // 10), 1)
            pieces = self._pack(body, tokens, allowed)
            largest = max(self._count([piece.embed_text for piece in pieces]))
            if largest <= room:
                return pieces
        raise DocumentError(
            "chunk",
            f"A text in the section {' > '.join(body.section.heading_path) or '(start)'} has "
            f"{largest} tokens however it is cut; {room} are allowed.",
            "Raise the profile's max_tokens or use a model that reads more.",
        )

    def _pack(self, body: SectionBody, tokens: Sequence[int], room: int) -> list[_Piece]:
        if not body.rendered.text:
            return []
        names = names_of(self.title, body.section.heading_path)
        above, above_tokens = breadcrumb(names, room // _BREADCRUMB_SHARE, self.tokenizer)
        budget = room - above_tokens
        splitter = Splitter(self.tokenizer, budget)
        atoms = splitter.atoms(body.elements, body.rendered, tokens)
        target = self.profile.target_tokens - self.tokenizer.special_tokens - above_tokens
        target = max(min(target, budget), budget // 2, 1)
        sizes = Sizes(target, budget, self.profile.min_tokens)
        return [_piece(body, atoms[first:last], above) for first, last in pack(atoms, sizes)]

    def _count(self, texts: Sequence[str]) -> list[int]:
        if not texts:
            return []
        return [count - self.tokenizer.special_tokens for count in self.tokenizer.count(texts)]


def _piece(body: SectionBody, atoms: Sequence[Atom], above: str) -> _Piece:
    start, end = atoms[0].start, atoms[-1].end
    text = body.rendered.text[start:end]
    if atoms[0].prefix:
        text = f"{atoms[0].prefix}\n{text}"
    return _Piece(text, f"{above}\n{text}" if above else text, atoms[0].first, atoms[-1].last)


def _chunk(owner: SectionBody, piece: _Piece, index: int, identifier: UUID, tokens: int) -> Chunk:
    section = owner.section
    elements = owner.elements[piece.first : piece.last + 1]
    page = next((e.page_number for e in elements if e.page_number is not None), section.page_number)
    return Chunk(
        chunk_id=identifier,
        document_id=section.document_id,
        section_id=section.section_id,
        chunk_index=index,
        text=piece.text,
        embed_text=piece.embed_text,
        token_count=tokens,
        heading_path=section.heading_path,
        page_number=page,
        kinds=tuple(sorted({element.kind.value for element in elements})),
        content_hash=digest_text(piece.text),
        anchor=elements[0].anchor or section.anchor,
    )
