"""Index a folder as other indexing pipelines do, and print one JSON line to compare them by.

    python benchmarks/side_by_side.py --docs DIR --store DIR [--embed real|hash]

The same arguments and the same line as the harnesses of other pipelines: seconds of wall and CPU of the whole
process, texts embedded, peak memory, points. Run it again on the same store after an edit to see what a
run costs that has little to do. `--embed hash` isolates the pipeline's own cost from the model's.
STORE/embed.log gets a line with the number of texts at each call of the model; STORE/dump.json counts the
points by file and text.
"""

import argparse
import hashlib
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

BEGAN = time.perf_counter()
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / name) for name in ("include", "tests")]
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Below, since the clock starts before the product is imported and its path is set first.
from fakes.embedder import HashEmbedder  # noqa: E402
from tidemark.cli.adhoc import adhoc_files  # noqa: E402
from tidemark.config.settings import Settings  # noqa: E402
from tidemark.pipeline import new_run_id, run_source  # noqa: E402
from tidemark.ports.embedding import Embedder  # noqa: E402
from tidemark.wiring import Container  # noqa: E402


@dataclass
class Logged:
    """An embedder whose calls are written down at once, so that the count survives a kill."""

    inner: Embedder
    log: Path
    texts: int = 0
    calls: int = 0
    seconds: float = 0.0

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        started = time.perf_counter()
        vectors = self.inner.embed(texts)
        self.seconds += time.perf_counter() - started
        self.texts += len(texts)
        self.calls += 1
        with self.log.open("a") as log:
            log.write(f"{len(texts)}\n")
        return vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--docs", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--embed", choices=["real", "hash"], default="real")
    parser.add_argument("--opt", default="", help="Ignored.")
    asked = parser.parse_args()
    asked.store.mkdir(parents=True, exist_ok=True)

    container = Container(Settings(home=asked.store / "home"))
    declared = adhoc_files(asked.docs)
    deps = container.deps(declared)
    inner = HashEmbedder(dimension=384) if asked.embed == "hash" else deps.embedder
    embedder = Logged(inner, asked.store / "embed.log")
    deps = replace(deps, embedder=embedder)
    summary = run_source(
        container.job(declared, new_run_id(declared.name, deps)), deps, "benchmark"
    )
    wall = time.perf_counter() - BEGAN

    points: Counter[str] = Counter()
    files: set[str] = set()
    live = container.index.live()
    for point in container.index.scan_points(live) if live is not None else ():
        file = str(point.payload["source_uri"]).partition("#")[0].rsplit("/", 1)[-1]
        files.add(file)
        text = hashlib.md5(str(point.payload["text"]).encode(), usedforsecurity=False).hexdigest()
        points[f"{file}\0{text}"] += 1
    (asked.store / "dump.json").write_text(json.dumps(points))
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    line = {
        "peer": "tidemark",
        "embed": asked.embed,
        "docs": sum(summary.documents.values()),
        "status": summary.status,
        "wall": round(wall, 2),
        "cpu": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 2),
        "embedded": embedder.texts,
        "embed_calls": embedder.calls,
        "embed_wall": round(embedder.seconds, 2),
        "rss_mb": own.ru_maxrss // 1024,
        "points": sum(points.values()),
        "distinct": len(points),
        "sources": len(files),
        "documents": summary.documents,
        "seconds": {stage: round(s, 2) for stage, s in summary.seconds.items()},
    }
    print(json.dumps(line))
    _stop(container)


def _stop(container: Container) -> None:
    """Leave no server behind: the store is one benchmark's own."""
    from tidemark.adapters.services.postgres import EmbeddedPostgres

    EmbeddedPostgres(container.settings.home / "postgres").stop()


if __name__ == "__main__":
    main()
