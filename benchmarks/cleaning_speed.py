"""What looking at a page and cleaning it cost, beside parsing it.

    python benchmarks/cleaning_speed.py FOLDER... [--sample 60] [--most-ratio 8]

Each page is read three ways in turn; the fastest of three passes counts. The ratio to parsing hardly depends
on the machine, so that it can be asserted. Suspected pages are printed with their evidence.
"""

import argparse
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import process_time

from tidemark.adapters.inspection.inspector import DocumentInspector
from tidemark.adapters.partition.html.cleaner import clean_html
from tidemark.adapters.partition.html.tree import parse_page
from tidemark.domain.documents import RawDocument

PASSES = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--sample", type=int, default=60, help="pages of each folder, spread")
    parser.add_argument("--most-ratio", type=float, default=0.0)
    options = parser.parse_args()
    print("| | pages | KB a page | parse /s | clean /s | inspect /s | inspect MB/s | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    worst = 0.0
    for folder in options.folders:
        paths = sorted(folder.rglob("*.html"))
        sample = paths[:: max(1, len(paths) // options.sample)]
        worst = max(worst, report(folder.name, sample))
        suspected(paths)
    if options.most_ratio and worst > options.most_ratio:
        raise SystemExit(f"Inspecting takes {worst:.1f} times as long as parsing.")


def report(name: str, paths: Sequence[Path]) -> float:
    inspector = DocumentInspector()
    raws = [raw_of(path) for path in paths]
    pages = [raw.content.decode("utf-8", "replace") for raw in raws]
    parse, clean, inspect = fastest(
        lambda: [parse_page(page, "page") for page in pages],
        lambda: [clean_html(page, "page") for page in pages],
        lambda: [inspector.inspect(raw) for raw in raws],
    )
    size = sum(len(raw.content) for raw in raws)
    print(
        f"| {name} | {len(raws)} | {size / len(raws) / 1000:.0f} | {len(raws) / parse:.0f} | "
        f"{len(raws) / clean:.0f} | {len(raws) / inspect:.0f} | {size / inspect / 1e6:.1f} | "
        f"{inspect / parse:.1f} |"
    )
    return inspect / parse


def fastest(*ways: Callable[[], object]) -> list[float]:
    seconds = [float("inf")] * len(ways)
    for _ in range(PASSES):
        for place, way in enumerate(ways):
            before = process_time()
            way()
            seconds[place] = min(seconds[place], process_time() - before)
    return seconds


def suspected(paths: Sequence[Path]) -> None:
    inspector = DocumentInspector()
    for path in paths:
        found = inspector.inspect(raw_of(path))
        if found is None or found.anomaly is not None:
            print(f"  {path}: {found.detail if found else 'not read'}")


def raw_of(path: Path) -> RawDocument:
    return RawDocument(path.as_uri(), path.read_bytes(), "text/html", "utf-8", datetime.now(UTC))


if __name__ == "__main__":
    main()
