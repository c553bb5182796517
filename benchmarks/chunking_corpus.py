"""Documents for the benchmarks of chunking: partitioned, and as the text that all splitters get."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / name) for name in ("include", "tests")]

# Below, since its path is set first.
from fakes.embedder import WordTokenizer  # noqa: E402
from tidemark.adapters.partition.partitioner import DocumentPartitioner  # noqa: E402
from tidemark.adapters.sources.files.options import FilesOptions  # noqa: E402
from tidemark.adapters.sources.files.source import FilesSource  # noqa: E402
from tidemark.domain.documents import (  # noqa: E402
    CELL,
    CrawlItem,
    Element,
    ElementKind,
    PartitionedDocument,
    Validators,
)
from tidemark.domain.errors import DocumentError  # noqa: E402
from tidemark.ports.embedding import Tokenizer  # noqa: E402

SAMPLES = Path(__file__).resolve().parents[1] / "include" / "samples"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A partitioned document: its path under the folder, the kind of its file, and what was read."""

    name: str
    kind: str
    document: PartitionedDocument


class _Nothing:
    """A Known that knows nothing: everything is read."""

    def validators(self, uri: str) -> Validators | None:
        return None

    def uris(self) -> Iterator[str]:
        return iter(())

    def content(self, uri: str) -> tuple[bytes, str] | None:
        return None


def load(folder: Path, limit: int | None = None) -> list[Loaded]:
    """Partition a folder's documents, evenly sampled down to ``limit``."""
    root = folder.resolve()
    items = [
        item
        for item in FilesSource(FilesOptions(path=str(root))).crawl(_Nothing())
        if isinstance(item, CrawlItem) and item.raw is not None
    ]
    items.sort(key=lambda item: item.item.uri)
    if limit is not None and len(items) > limit:
        items = [items[i * len(items) // limit] for i in range(limit)]
    partitioner = DocumentPartitioner()
    loaded: list[Loaded] = []
    for item in items:
        if item.raw is None:
            continue
        name = item.raw.uri.removeprefix(root.as_uri()).lstrip("/")
        try:
            document = partitioner.partition(item.raw)
        except DocumentError as error:
            print(f"Left out: {error}", file=sys.stderr)
            continue
        loaded.append(Loaded(name, Path(name).suffix.lstrip(".") or "none", document))
    return loaded


def tokenizer_named(name: str) -> Tokenizer:
    """The tokenizer of a packaged model or folder, or "words" for one that needs no model."""
    if name == "words":
        return WordTokenizer()
    from tidemark.adapters.embedding.models import resolve_model
    from tidemark.adapters.embedding.tokenizer import HuggingFaceTokenizer

    return HuggingFaceTokenizer(resolve_model(name))


@dataclass(frozen=True, slots=True)
class Page:
    """A document as Markdown, and its letters and digits alone, by which any chunk is found again.

    ranges: of each element in ``letters``, half-open.
    """

    text: str
    letters: str
    ranges: tuple[tuple[int, int], ...]


def letters_of(text: str) -> str:
    """Letters and digits alone: bullets, bars, fences and white space differ between renderings."""
    return "".join(filter(str.isalnum, text))


def page_of(elements: Sequence[Element]) -> Page:
    """Render elements as one Markdown text."""
    parts: list[str] = []
    letters: list[str] = []
    ranges: list[tuple[int, int]] = []
    position = 0
    for index, element in enumerate(elements):
        own = letters_of(element.text)
        letters.append(own)
        ranges.append((position, position + len(own)))
        position += len(own)
        if index:
            both = element.kind is elements[index - 1].kind is ElementKind.LIST_ITEM
            parts.append("\n" if both else "\n\n")
        parts.append(_markdown(element))
    return Page("".join(parts), "".join(letters), tuple(ranges))


def _markdown(element: Element) -> str:
    text = element.text
    if element.kind is ElementKind.TITLE:
        return f"{'#' * min(max(element.level or 1, 1), 6)} {' '.join(text.split())}"
    if element.kind is ElementKind.LIST_ITEM:
        return f"{'  ' * (max(element.level or 1, 1) - 1)}- {text}"
    if element.kind is ElementKind.CODE:
        return f"```\n{text}\n```"
    if element.kind is ElementKind.QUOTE:
        return f"> {text}"
    if element.kind is ElementKind.TABLE:
        columns = max(row.count(CELL) for row in text.split("\n")) + 1
        rows = text.replace(CELL, " | ").split("\n")
        lines = [f"| {row} |" for row in rows]
        head = min(max(element.header_rows, 1), len(lines))
        return "\n".join([*lines[:head], "|" + " --- |" * columns, *lines[head:]])
    return text
