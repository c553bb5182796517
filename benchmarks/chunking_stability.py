"""How many vectors survive an edit: each document is edited in many ways and chunked before and after.

    python benchmarks/chunking_stability.py FOLDER [--limit 60] [--edits 1] [--show 10] [--out FILE]

Tidemark and the peers' splitters get the same documents: Tidemark the elements, the others the same elements
as one Markdown text. What is compared is the text that would be embedded; a piece whose text was there before
costs nothing. A piece counts as untouched when the edit changed no character of it: its own text, and for
Tidemark the headings above it. What the edit left of a piece that it
did touch counts as touched too. Three shares, each with a bootstrap over documents:

* re-used: pieces of the new version that were there before;
* unchanged: of the characters in the new version's untouched pieces, those in pieces that were there before;
* kept: of the characters in the old version's untouched pieces, those in pieces that are still there.

Each is the mean over documents of the mean over their edits, where a page of two pieces weighs as much as a
handbook; "all" is that of all characters together.

"Ripples" are edits after which more than one old piece was lost that the edit had not touched.
"""

import argparse
import difflib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from chunking_corpus import SAMPLES, Loaded, load, page_of, tokenizer_named
from chunking_edits import Edit, Range, edits_of
from chunking_peers import peers
from chunking_pieces import Cut, Piece, changes_of, peer_cut, tidemark_cut, touched, with_wake

from tidemark.domain.documents import PartitionedDocument
from tidemark.domain.profile import Profile

TIDEMARK = "Tidemark"
MEASURES = ("re-used", "unchanged", "kept")
DRAWS = 1000


Share = tuple[int, int]
"""What survived, of how much."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one edit did to one splitter's pieces.

    shares: pieces or characters that survived and all of them, by measure.
    embedded, removed: pieces that are new and pieces that are gone. pieces: of the new version.
    lost: texts of the old pieces that are gone though untouched. new: texts of the new pieces.
    """

    document: str
    edit: str
    splitter: str
    shares: dict[str, Share]
    embedded: int
    removed: int
    pieces: int
    lost: tuple[str, ...]
    new: tuple[str, ...]


def compare(
    name: str, edit: Edit, splitter: str, old: list[Piece], new: list[Piece],
    changes: tuple[list[Range], list[Range]],
) -> Row:  # fmt: skip
    were, are = Counter(p.text for p in old), Counter(p.text for p in new)
    lost = _missing(old, are)
    fresh = _missing(new, were)
    before = [(p, gone) for p, gone in zip(old, lost, strict=True) if not touched(p, changes[0])]
    wake = with_wake(old, *changes)
    after = [(p, gone) for p, gone in zip(new, fresh, strict=True) if not touched(p, wake)]
    shares = {
        "re-used": (len(new) - sum(fresh), len(new)),
        "unchanged": _share(after),
        "kept": _share(before),
    }
    return Row(
        name, edit.kind, splitter, shares, sum(fresh), sum(lost), len(new),
        tuple(p.text for p, gone in before if gone),
        tuple(p.text for p, gone in zip(new, fresh, strict=True) if gone),
    )  # fmt: skip


def _missing(pieces: Sequence[Piece], there: Counter[str]) -> list[bool]:
    """Whether each piece has no counterpart; equal texts are matched one to one."""
    left = there.copy()
    flags: list[bool] = []
    for piece in pieces:
        flags.append(left[piece.text] <= 0)
        left[piece.text] -= 1
    return flags


def _share(pieces: Sequence[tuple[Piece, bool]]) -> Share:
    return sum(p.size for p, gone in pieces if not gone), sum(p.size for p, _ in pieces)


def measure(loaded: Sequence[Loaded], cuts: dict[str, Cut], seed: int, times: int) -> list[Row]:
    rows: list[Row] = []
    for item in loaded:
        document = item.document
        old_page = page_of(document.elements)
        before = {name: cut(document, old_page) for name, cut in cuts.items()}
        for number in range(times):
            for edit in edits_of(document.elements, f"{seed}:{number}:{item.name}"):
                page = page_of(edit.elements)
                changes = changes_of(edit, old_page, page)
                edited = PartitionedDocument(document.title, edit.elements, document.language)
                rows += [
                    compare(item.name, edit, name, before[name], cut(edited, page), changes)
                    for name, cut in cuts.items()
                ]
    return rows


Interval = tuple[float, float, float]


def interval(
    rows: Sequence[Row], measure: str, seed: int, *, pooled: bool = False
) -> Interval | None:
    """A share in per cent and its 95 % interval by bootstrap over documents."""
    by_document: dict[str, list[Share]] = {}
    for row in rows:
        if row.shares[measure][1]:
            by_document.setdefault(row.document, []).append(row.shares[measure])
    if not by_document:
        return None
    parts = [
        (float(sum(good for good, _ in shares)), float(sum(total for _, total in shares)))
        if pooled
        else (fmean(good / total for good, total in shares), 1.0)
        for shares in by_document.values()
    ]

    def value(chosen: Sequence[tuple[float, float]]) -> float:
        return 100 * sum(good for good, _ in chosen) / sum(total for _, total in chosen)

    rng = random.Random(seed)
    drawn = sorted(value(rng.choices(parts, k=len(parts))) for _ in range(DRAWS))
    return value(parts), drawn[int(DRAWS * 0.025)], drawn[int(DRAWS * 0.975)]


def summary(rows: Sequence[Row], seed: int) -> dict[str, Any]:
    embedded = sorted(row.embedded for row in rows)
    return {
        **{name: interval(rows, name, seed) for name in MEASURES},
        **{f"{name}, all": interval(rows, name, seed, pooled=True) for name in MEASURES},
        "embedded_mean": fmean(embedded),
        "embedded_p90": embedded[min(len(embedded) * 9 // 10, len(embedded) - 1)],
        "embedded_max": embedded[-1],
        "ripples": 100 * sum(len(row.lost) > 1 for row in rows) / len(rows),
        "pieces": fmean(row.pieces for row in rows),
        "edits": len(rows),
    }


COLUMNS = ("re-used", "unchanged", "unchanged, all", "kept", "kept, all")


def table(groups: dict[str, list[Row]], seed: int) -> str:
    shares = " | ".join(f"{name} %" for name in COLUMNS)
    lines = [
        f"| | pieces | {shares} | embedded per edit: mean · p90 · max | ripples % |",
        "|---|---|" + "---|" * len(COLUMNS) + "---|---|",
    ]
    for name, rows in groups.items():
        found = summary(rows, seed)
        cells = " | ".join(_with_interval(found[column]) for column in COLUMNS)
        lines.append(
            f"| {name} | {found['pieces']:.1f} | {cells} | {found['embedded_mean']:.2f} · "
            f"{found['embedded_p90']} · {found['embedded_max']} | {found['ripples']:.1f} |"
        )
    return "\n".join(lines)


def _with_interval(found: Interval | None) -> str:
    return "–" if found is None else f"{found[0]:.1f} ({found[1]:.1f}–{found[2]:.1f})"


def worst(rows: Sequence[Row], count: int) -> Iterator[str]:
    for row in sorted(rows, key=lambda r: -len(r.lost))[:count]:
        if len(row.lost) < 2:
            return
        yield f"\n### {row.document}: {row.edit}, {len(row.lost)} untouched pieces lost\n\n```diff"
        diff = difflib.unified_diff(
            _heads_and_tails(row.lost), _heads_and_tails(row.new), n=0, lineterm=""
        )
        yield from list(diff)[3:43]
        yield "```"


def _heads_and_tails(texts: Sequence[str]) -> list[str]:
    flat = [" ".join(text.split("\n", 1)[-1].split()) for text in texts]
    return [t if len(t) < 110 else f"{t[:50]} … {t[-50:]} ({len(t)})" for t in flat]


def grouped(rows: Sequence[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="*", default=[SAMPLES])
    parser.add_argument("--limit", type=int, help="At most so many documents of each folder.")
    parser.add_argument("--edits", type=int, default=1, help="Edits of each kind a document.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--tokenizer", default="all-MiniLM-L6-v2", help='A model, or "words".')
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--show", type=int, default=0, help="Print the worst examples.")
    parser.add_argument("--out", type=Path, help="Write the numbers and every edit as JSON.")
    parser.add_argument(
        "--least", type=float, help="Fail under this share of unchanged text, in per cent."
    )
    asked = parser.parse_args()

    tokenizer = tokenizer_named(asked.tokenizer)
    cuts: dict[str, Cut] = {TIDEMARK: tidemark_cut(tokenizer, Profile())}
    if not asked.no_peers:
        found, missing = peers(tokenizer)
        print(*missing, sep="\n")
        cuts |= {peer.name: peer_cut(peer) for peer in found}
    rows: list[Row] = []
    for folder in asked.folders:
        loaded = load(folder, asked.limit)
        own = measure(loaded, cuts, asked.seed, asked.edits)
        by_splitter = grouped(own, lambda row: row.splitter)
        edits = len(own) // max(len(cuts), 1)
        print(f"\n## {folder.name}: {len(loaded)} documents, {edits} edits\n")
        print(table(by_splitter, asked.seed))
        rows += own
    ours = [row for row in rows if row.splitter == TIDEMARK]
    print(f"\n## {TIDEMARK}, by edit\n")
    print(table(grouped(ours, lambda row: row.edit), asked.seed))
    print(*worst(ours, asked.show), sep="\n")
    if asked.out:
        numbers = {
            name: summary(group, asked.seed)
            for name, group in grouped(rows, lambda row: row.splitter).items()
        }
        each = [
            {"document": r.document, "edit": r.edit, "splitter": r.splitter, **r.shares,
             "embedded": r.embedded, "removed": r.removed, "pieces": r.pieces, "lost": len(r.lost)}
            for r in rows
        ]  # fmt: skip
        asked.out.write_text(json.dumps({"splitters": numbers, "edits": each}, indent=1))
    reached = interval(ours, "unchanged", asked.seed)
    if asked.least is not None and (reached is None or reached[0] < asked.least):
        raise SystemExit(f"The share of unchanged text re-used is under {asked.least} %.")


if __name__ == "__main__":
    main()
