"""What is never parted while it fits: the same lines cut by size and by structure."""

from dataclasses import dataclass, replace

from drawing.blocks import KINDS, blocks_of, draw_block, legend
from drawing.pages import SOURCES, chunked, profile_of, section_of
from drawing.svg import ACCENT, SOFT, WARN, Picture
from tidemark.domain.documents import ElementKind, PartitionedDocument

WIDTH = 960
SIZE = 10.5
GAP = 28.0
TABLE_ROWS = 8


@dataclass(frozen=True, slots=True)
class _Vignette:
    """One bond: what it is, where it is seen, and the strategy that does not know of it."""

    title: str
    page: str
    heading: str
    target: int
    other: str
    most: int = 240

    def elements(self) -> PartitionedDocument:
        """The section, a long table in it shortened."""
        section = section_of(self.page, self.heading)
        elements = [
            replace(e, text="\n".join(e.text.split("\n")[: e.header_rows + TABLE_ROWS]))
            if e.kind is ElementKind.TABLE
            else e
            for e in section.elements
        ]
        return replace(section, elements=tuple(elements))


VIGNETTES = (
    _Vignette(
        "A table and its header: repeated above each piece, a row is never cut",
        "places",
        "All landing places",
        64,
        "fixed",
        most=92,
    ),
    _Vignette(
        "A list and the sentence that introduces it",
        "calibration",
        "Calibration out of turn",
        36,
        "sentence",
    ),
    _Vignette("A term and its definition", "options", "When it is copied", 44, "sentence"),
    _Vignette("A rule and its exception", "contract", "2. Contract and payment", 36, "sentence"),
)


def picture() -> Picture:
    title = "Never parted while it fits"
    drawn = Picture(
        title,
        "Four sections, each cut twice to the same target. Left: by size alone; boundaries that part what "
        "belongs together are marked. Right: by the strategy by_title, which keeps it together.",
        WIDTH,
    )
    y = drawn.heading(
        title,
        "Left: by size (fixed windows, or whole sentences). Right: by_title with the same target. A dashed "
        "line marks a boundary that by_title does not make. The targets are small, so that little text shows "
        "it.",
    )
    for vignette in VIGNETTES:
        y = _draw(drawn, vignette, y + 6) + 16
    legend(
        drawn,
        drawn.bottom + 10,
        [kind for kind in ("text", "list", "table", "term") if kind in KINDS],
        ["on orange ground: repeated from further up"],
    )
    return drawn


def _draw(drawn: Picture, vignette: _Vignette, y: float) -> float:
    page = vignette.elements()
    drawn.text(16, y + 12, vignette.title, 12, bold=True)
    y += 18
    width = (WIDTH - 32 - GAP) / 2
    kept = set()
    ends = [y]
    for number, strategy in ((1, "by_title"), (0, vignette.other)):
        profile = replace(
            profile_of(strategy),
            target_tokens=vignette.target,
            max_tokens=vignette.most,
            overlap=0.0,
        )
        chunks = chunked(page, profile).chunks
        x, at = 16 + number * (width + GAP), y
        where = SOURCES[vignette.page]
        said = f"{strategy}, target {vignette.target}, at most {vignette.most}"
        if number == 0:
            said = f"{said} · {where}"
        drawn.text(x, at + 12, said, 10, fill=SOFT)
        at += 18
        if number:
            kept = {chunk.start for chunk in chunks}
        bare = [replace(block, headings=()) for block in blocks_of(page, chunks, width, SIZE)]
        for block, chunk in zip(bare, chunks, strict=True):
            bad = number == 0 and block.number > 0 and chunk.start not in kept
            if bad:
                drawn.path([(x, at + 1), (x + width, at + 1)], stroke=WARN, width=2, dashed=True)
                at += 6
            _, end = draw_block(drawn, block, (x, at), width, SIZE, stroke=ACCENT)
            at = end + 8
        ends.append(at)
    return max(ends)
