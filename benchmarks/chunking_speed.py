"""How fast chunking is: partitioned documents in memory in, chunks out, without the model.

    python benchmarks/chunking_speed.py FOLDER... [--profile] [--memory 10] [--most-ratio 8] [--out FILE]

Cold is the first pass with a new tokenizer, warm the fastest of the next. The text of a document is that of
its elements, in UTF-8; a MB is 10**6 bytes. The ratio tells how often the tokens of the text could have been
counted in the time that chunking takes (in the same process, by the same tokenizer, warm): it hardly depends
on the machine, so that it can be asserted. The peers split the same documents as one Markdown text.
"""

import argparse
import cProfile
import gc
import json
import pstats
import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from uuid import UUID

from chunking_corpus import SAMPLES, Loaded, load, page_of, tokenizer_named
from chunking_peers import peers

from tidemark.domain.documents import Element, ElementKind
from tidemark.domain.profile import Profile
from tidemark.ports.embedding import Tokenizer
from tidemark.stages.chunking.chunk import chunk_document

DOCUMENT = UUID(int=1)
MEGABYTE = 10**6
LEAST_BYTES = 2 * MEGABYTE
LEAST_PASSES = 7


@dataclass(frozen=True, slots=True)
class Timed:
    """A pass over documents: bytes of text, pieces made, seconds of wall and CPU."""

    name: str
    size: int
    pieces: int
    wall: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.size / MEGABYTE / self.cpu if self.cpu else 0.0

    def line(self) -> str:
        return (
            f"| {self.name} | {self.size / MEGABYTE:.2f} | {self.pieces} | {self.wall:.3f} | "
            f"{self.cpu:.3f} | {self.rate:.1f} | {self.pieces / max(self.cpu, 1e-9):,.0f} |"
        )


HEAD = "| | MB | pieces | wall s | CPU s | MB per CPU s | pieces per CPU s |\n|---|---|---|---|---|---|---|"


def timed(name: str, size: int, work: Callable[[], int]) -> Timed:
    gc.collect()
    wall, cpu = perf_counter(), process_time()
    pieces = work()
    return Timed(name, size, pieces, perf_counter() - wall, process_time() - cpu)


def fastest(name: str, size: int, work: Callable[[], int], times: int) -> Timed:
    return min((timed(name, size, work) for _ in range(times)), key=lambda t: t.cpu)


def size_of(documents: Sequence[Loaded]) -> int:
    return sum(len(e.text.encode()) for item in documents for e in item.document.elements)


def chunk_all(documents: Sequence[Loaded], profile: Profile, tokenizer: Tokenizer) -> int:
    return sum(
        len(chunk_document(DOCUMENT, item.document, profile, tokenizer).chunks)
        for item in documents
    )


def count_all(documents: Sequence[Loaded], tokenizer: Tokenizer) -> int:
    return sum(sum(tokenizer.count([e.text for e in d.document.elements])) for d in documents)


def tidemark_rows(
    documents: Sequence[Loaded], make: Callable[[], Tokenizer], profile: Profile, times: int
) -> Iterator[Timed]:
    size = size_of(documents)
    tokenizer = make()
    yield timed("Tidemark, cold", size, lambda: chunk_all(documents, profile, tokenizer))
    yield fastest("Tidemark, warm", size, lambda: chunk_all(documents, profile, tokenizer), times)
    kinds = sorted({item.kind for item in documents})
    for kind in kinds if len(kinds) > 1 else ():
        own = [item for item in documents if item.kind == kind]
        # A few small files are over before a clock sees them.
        again = max(LEAST_BYTES // max(size_of(own), 1), 1)
        name = f"Tidemark, warm: .{kind}"
        yield fastest(
            name,
            size_of(own) * again,
            lambda own=own, again=again: chunk_all(own * again, profile, tokenizer),  # type: ignore[misc]
            times,
        )


def peer_rows(documents: Sequence[Loaded], tokenizer: Tokenizer) -> Iterator[Timed]:
    size = size_of(documents)
    texts = [page_of(item.document.elements).text for item in documents]
    found, missing = peers(tokenizer)
    for peer in found:
        split = peer.split
        yield timed(peer.name, size, lambda split=split: sum(len(split(text)) for text in texts))  # type: ignore[misc]
    yield _by_title(documents, size)
    print(*missing, sep="\n")


def _by_title(documents: Sequence[Loaded], size: int) -> Timed:
    from unstructured.chunking.title import chunk_by_title
    from unstructured.documents import elements as kinds

    types = {
        ElementKind.TITLE: kinds.Title,
        ElementKind.LIST_ITEM: kinds.ListItem,
        ElementKind.TABLE: kinds.Table,
        ElementKind.CODE: kinds.CodeSnippet,
    }

    def made(element: Element) -> kinds.Element:
        return types.get(element.kind, kinds.NarrativeText)(element.text)

    inputs = [[made(element) for element in item.document.elements] for item in documents]
    return timed(
        "Unstructured by title, 1000 chars",
        size,
        lambda: sum(len(chunk_by_title(own, max_characters=1000)) for own in inputs),
    )


def ratio_of(
    documents: Sequence[Loaded], profile: Profile, tokenizer: Tokenizer, times: int
) -> float:
    """CPU time of chunking by that of counting: the least of each over alternating passes."""
    count_all(documents, tokenizer)
    counting, chunking = [], []
    for _ in range(max(times, LEAST_PASSES)):
        counting.append(timed("", 0, lambda: count_all(documents, tokenizer)).cpu)
        chunking.append(timed("", 0, lambda: chunk_all(documents, profile, tokenizer)).cpu)
    return min(chunking) / max(min(counting), 1e-9)


def memory_over(
    documents: Sequence[Loaded], profile: Profile, tokenizer: Tokenizer, passes: int
) -> list[float]:
    """The peak resident set of the process in MB after each pass over the same documents."""
    peaks: list[float] = []
    for _ in range(passes):
        chunk_all(documents, profile, tokenizer)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return peaks


def profiled(documents: Sequence[Loaded], profile: Profile, tokenizer: Tokenizer) -> str:
    """Where the time goes, warm: by module, and the dearest functions by own and cumulative time."""
    recorder = cProfile.Profile()
    recorder.runcall(chunk_all, documents, profile, tokenizer)
    stats = pstats.Stats(recorder)
    entries = [
        (_module(file), name, int(calls), float(own), float(cumulative))
        for (file, _, name), (_, calls, own, cumulative, _) in stats.stats.items()  # type: ignore[attr-defined]
    ]
    total = sum(own for _, _, _, own, _ in entries) or 1.0
    modules: dict[str, float] = {}
    for module, _, _, own, _ in entries:
        modules[module] = modules.get(module, 0.0) + own
    lines = ["", "| module | own s | share % |", "|---|---|---|"]
    for module, own in sorted(modules.items(), key=lambda pair: -pair[1])[:12]:
        lines.append(f"| {module} | {own:.3f} | {100 * own / total:.1f} |")
    orders: dict[str, Callable[[tuple[str, str, int, float, float]], float]] = {
        "own": lambda entry: -entry[3],
        "cumulative": lambda entry: -entry[4],
    }
    for title, order in orders.items():
        lines += ["", f"| function, by {title} time | calls | own s | cumulative s |"]
        lines.append("|---|---|---|---|")
        for module, name, calls, own, cumulative in sorted(entries, key=order)[:15]:
            lines.append(f"| {module}: {name} | {calls} | {own:.3f} | {cumulative:.3f} |")
    return "\n".join(lines)


def _module(file: str) -> str:
    if file == "~":
        return "built in"
    return ".".join(Path(file).with_suffix("").parts[-2:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="*", default=[SAMPLES])
    parser.add_argument("--limit", type=int, help="At most so many documents of each folder.")
    parser.add_argument("--tokenizer", default="all-MiniLM-L6-v2", help='A model, or "words".')
    parser.add_argument("--times", type=int, default=3, help="Warm passes, of which the fastest.")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--memory", type=int, default=0, help="Passes to watch the memory over.")
    parser.add_argument("--most-ratio", type=float, help="Fail over this ratio to counting.")
    parser.add_argument("--most-growth", type=float, help="Fail over this growth of memory, in MB.")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()

    documents = [
        replace(item, name=f"{folder.name}/{item.name}")
        for folder in asked.folders
        for item in load(folder, asked.limit)
    ]
    profile = Profile()
    make = partial(tokenizer_named, asked.tokenizer)
    print(f"{len(documents)} documents\n\n{HEAD}")
    rows: list[Timed] = []
    for row in tidemark_rows(documents, make, profile, asked.times):
        print(row.line(), flush=True)
        rows.append(row)
    tokenizer = make()
    # Before the peers, whose own memory would hide what chunking takes.
    peaks = memory_over(documents, profile, tokenizer, asked.memory)
    ratio = ratio_of(documents, profile, tokenizer, asked.times)
    for row in () if asked.no_peers else peer_rows(documents, tokenizer):
        print(row.line(), flush=True)
        rows.append(row)
    print(f"\nChunking takes {ratio:.2f} times what counting the tokens of its text takes.")
    growth = peaks[-1] - peaks[0] if peaks else 0.0
    if peaks:
        print(f"Peak memory over {len(peaks)} passes: {peaks[0]:.1f} to {peaks[-1]:.1f} MB.")
    if asked.profile:
        print(profiled(documents, profile, tokenizer))
    if asked.out:
        found = {"rows": [asdict(r) for r in rows], "ratio": ratio, "peaks_mb": peaks}
        asked.out.write_text(json.dumps(found, indent=1))
    if asked.most_ratio is not None and ratio > asked.most_ratio:
        raise SystemExit(f"Chunking takes {ratio:.2f} times counting; {asked.most_ratio} allowed.")
    if asked.most_growth is not None and growth > asked.most_growth:
        raise SystemExit(f"Memory grew by {growth:.1f} MB; {asked.most_growth} allowed.")


if __name__ == "__main__":
    main()
