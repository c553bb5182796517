"""Retrieval quality of Tidemark's chunks on public questions, by the scorers that the peers' rows come from.

    python benchmarks/chunking_quality.py --eval ../shared/eval --set condqa --set furnished --set chroma

runs `tidemark chunk` over each set's documents, embeds every `embed_text` with all-MiniLM-L6-v2 (dense only,
no reranking), and scores what a reader is handed: the chunk's own text, or its section's. Rows are given for
all questions and for the half to report on (odd places in the order of their ids; tune on the other): means
with the 95 % interval of a bootstrap over questions. Needs the scorers' folder and what its README lists.
"""

import argparse
import importlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

Documents = dict[str, dict[str, Any]]
SETS = {
    "condqa": ("condqa", "html"),
    "furnished": ("condqa", "html_furnished"),
    "chroma": ("chroma", "corpora"),
}
STRUCTURED = (
    ("b250", "R@250", 100), ("b500", "R@500", 100), ("b1000", "R@1000", 100), ("b2000", "R@2000", 100),
    ("r1", "R@1", 100), ("mrr", "MRR", 1), ("doc1", "doc@1", 100), ("ctx5", "tokens in 5", 1),
)  # fmt: skip
FLAT = (
    ("b250", "R@250", 100), ("b500", "R@500", 100), ("b1000", "R@1000", 100), ("rec", "recall@5", 100),
    ("om", "PΩ", 100), ("iou", "IoU@5", 100), ("ctx", "tokens in 5", 1),
)  # fmt: skip


def chunked(folder: Path, profile: str, command: str) -> tuple[Documents, float]:
    """The documents of a folder by their names without suffix, as `tidemark chunk` prints them; seconds."""
    started = time.perf_counter()
    run = subprocess.run(
        [command, "chunk", str(folder), "--profile", profile, "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    seconds = time.perf_counter() - started
    found: Documents = {}
    for line in run.stdout.splitlines():
        document = json.loads(line)
        if document["document"]["error"]:
            raise SystemExit(document["document"]["error"])
        found[Path(document["document"]["uri"]).stem] = document
    return found, seconds


def structured_items(
    documents: Documents, returned: str
) -> Callable[[dict[str, Any]], Iterator[dict[str, str]]]:
    """What the scorer of HTML pages embeds and returns for one of its pages."""

    def items(page: dict[str, Any]) -> Iterator[dict[str, str]]:
        document = documents[page["id"]]
        sections = {section["section_id"]: section["text"] for section in document["sections"]}
        for chunk in document["chunks"]:
            item = {"text": chunk["text"], "embed_text": chunk["embed_text"]}
            if returned == "section":
                item["return_text"] = sections[chunk["section_id"]]
            yield item

    return items


def flat_items(
    documents: Documents, names: dict[str, str], locator: Callable[[str], Any], returned: str
) -> Callable[[str], Iterator[dict[str, Any]]]:
    """What the scorer of flat texts embeds, with the spans it returns, for one of its texts."""

    def items(text: str) -> Iterator[dict[str, Any]]:
        document = documents[names[text]]
        sections = {section["section_id"]: section["text"] for section in document["sections"]}
        spans: dict[str, Any] = {}
        at, around = locator(text), locator(text)
        for chunk in document["chunks"]:
            span = at(chunk["text"])
            if span is None:
                print(f"not found in {names[text]}: {chunk['text'][:60]!r}", file=sys.stderr)
                continue
            item = {"start": span[0], "end": span[1], "embed_text": chunk["embed_text"]}
            if returned == "section":
                owner = chunk["section_id"]
                if owner not in spans:
                    spans[owner] = around(sections[owner])
                if spans[owner] is not None:
                    item["return"] = spans[owner]
            yield item

    return items


def structured(
    kit: Any, data: Path, cache: str, documents: Documents
) -> Iterator[tuple[str, Any, list[int]]]:
    scorer: ModuleType = importlib.import_module("struct_eval")
    bench = scorer.Bench(data, cache)
    order = [int(re.sub(r"\D", "", question["id"])) for question in bench.qs]
    for returned in ("chunk", "section"):
        items, lost = bench.items_of(structured_items(documents, returned))
        if lost:
            print(f"{lost} characters of chunks are not in the pages", file=sys.stderr)
        yield returned, bench.score(bench.rank(items)), order


def flat(
    kit: Any, data: Path, cache: str, documents: Documents
) -> Iterator[tuple[str, Any, list[int]]]:
    scorer: ModuleType = importlib.import_module("chunk_eval")
    bench = scorer.Bench(data, cache)
    names = {text: name for name, text in bench.texts.items()}
    for returned in ("chunk", "section"):
        chunks, _ = bench.chunks_of(flat_items(documents, names, kit.Locator, returned))
        spans = [(chunk.corpus, *chunk.ret) for chunk in chunks]
        yield returned, bench.score(bench.rank(chunks), spans), list(range(len(bench.q)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--eval", type=Path, required=True, help="the folder of the scorers and their data"
    )
    parser.add_argument("--set", action="append", choices=sorted(SETS), dest="sets")
    parser.add_argument("--profile", default="auto")
    parser.add_argument(
        "--cache", default="", help="embeddings by text (default: beside the other state)"
    )
    parser.add_argument("--tidemark", default=str(Path(sys.executable).parent / "tidemark"))
    parser.add_argument(
        "--out", type=Path, help="every score of every question, for the paired bootstrap"
    )
    asked = parser.parse_args()
    sys.path.insert(0, str(asked.eval.resolve()))
    kit = importlib.import_module("evalkit")
    cache = asked.cache or str(Path.cwd() / ".tidemark" / "benchmark-embeddings.sqlite")
    Path(cache).parent.mkdir(parents=True, exist_ok=True)
    dump: dict[str, dict[str, list[float]]] = {}
    for name in asked.sets or sorted(SETS):
        folder, pages = SETS[name]
        data = asked.eval / "data" / folder
        documents, seconds = chunked(data / pages, asked.profile, asked.tidemark)
        count = sum(len(document["chunks"]) for document in documents.values())
        print(f"\n{name}: {count} chunks, chunked in {seconds:.1f} s\n")
        measures, score = (FLAT, flat) if folder == "chroma" else (STRUCTURED, structured)
        rows: list[list[str]] = []
        for returned, scores, order in score(kit, data, cache, documents):
            dump[f"{name} {returned}"] = {key: values.tolist() for key, values in scores.items()}
            ranked = sorted(range(len(order)), key=order.__getitem__)
            for half, places in (("all", ranked), ("odd half", ranked[1::2])):
                row = [returned, half]
                for key, _, factor in measures:
                    values = scores[key][places] * factor
                    low, high = kit.boot_ci(values)
                    digits = 3 if key == "mrr" else 0 if factor == 1 else 1
                    row.append(f"{values.mean():.{digits}f} ({low:.{digits}f}–{high:.{digits}f})")
                rows.append(row)
        print(kit.table(["returned", "questions", *(label for _, label, _ in measures)], rows))
    if asked.out:
        asked.out.write_text(json.dumps(dump))


if __name__ == "__main__":
    main()
