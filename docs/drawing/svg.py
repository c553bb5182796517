"""A small SVG writer: shapes, and text that is measured, so that it fits whatever font draws it.

Lengths are in user units (pixels at the picture's own size).
"""

from collections.abc import Sequence
from html import escape

SANS = "Arial, Helvetica, 'Liberation Sans', sans-serif"
MONO = "Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace"
INK, SOFT, FAINT = "#1c2733", "#55636f", "#c9d2da"
PAPER, CARD = "#f7f9fb", "#ffffff"
ACCENT, WARN = "#1f6f8b", "#c2560c"
RADIUS = 5
_MONO_WIDTH = 0.6
# Thousandths of the font size, from the space to the tilde: the metrics that Arial, Helvetica and
# Liberation Sans share. Other fonts are stretched or squeezed to them by `textLength`.
_WIDTHS = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778,
    722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278,
    278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)  # fmt: skip
_OTHERS = {"…": 1000, "—": 1000, "→": 1000, "·": 278, "’": 222, "“": 333, "”": 333, "°": 400}
_BOLD = 1.07


def measure(text: str, size: float, *, bold: bool = False, mono: bool = False) -> float:
    """How wide a text is."""
    if mono:
        return len(text) * size * _MONO_WIDTH
    total = 0
    for char in text:
        code = ord(char) - 32
        total += _WIDTHS[code] if 0 <= code < len(_WIDTHS) else _OTHERS.get(char, 556)
    return total * size / 1000 * (_BOLD if bold else 1)


def shorten(text: str, width: float, size: float, *, bold: bool = False, mono: bool = False) -> str:
    """The text, or as much of its begin as fits with an ellipsis."""
    if measure(text, size, bold=bold, mono=mono) <= width:
        return text
    while text and measure(f"{text}…", size, bold=bold, mono=mono) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def wrap(text: str, width: float, size: float, *, mono: bool = False) -> list[str]:
    """Lines that fit; the first keeps its indentation. A word that is wider than a line is cut."""
    indent = text[: len(text) - len(text.lstrip())]
    lines: list[str] = []
    line = indent
    for word in text.split():
        fitting = f"{line} {word}" if line.strip() else f"{line}{word}"
        if measure(fitting, size, mono=mono) <= width:
            line = fitting
            continue
        if line.strip():
            lines.append(line)
        rest = f"{indent}{word}"
        while measure(rest, size, mono=mono) > width:
            keep = len(rest) - 1
            while keep > 1 and measure(rest[:keep], size, mono=mono) > width:
                keep -= 1
            lines.append(rest[:keep])
            rest = rest[keep:]
        line = rest
    return [*lines, line] if line.strip() or not lines else lines


class Picture:
    """An SVG with its own background, a title, and a description for those who do not see it."""

    def __init__(self, title: str, description: str, width: int) -> None:
        self.title = title
        self.description = description
        self.width = width
        self.bottom = 0.0
        self._parts: list[str] = []

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = CARD,
        stroke: str = "",
        radius: float = RADIUS,
        dashed: bool = False,
    ) -> None:
        border = f' stroke="{stroke}"' if stroke else ""
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self._parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
            f' rx="{_n(radius)}" fill="{fill}"{border}{dash}/>'
        )
        self.bottom = max(self.bottom, y + height)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 11,
        *,
        fill: str = INK,
        bold: bool = False,
        mono: bool = False,
        anchor: str = "start",
    ) -> None:
        """One line; ``y`` is its base line. Leading spaces move its begin."""
        shown = text.strip()
        if not shown:
            return
        x += measure(text[: len(text) - len(text.lstrip())], size, mono=mono)
        length = measure(shown, size, bold=bold, mono=mono)
        name = ("m" if mono else "s") + ("b" if bold else "")
        where = f' text-anchor="{anchor}"' if anchor != "start" else ""
        fit = (
            f' textLength="{_n(length)}" lengthAdjust="spacingAndGlyphs"' if len(shown) > 1 else ""
        )
        self._parts.append(
            f'<text class="{name}" x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" fill="{fill}"'
            f"{where}{fit}>{escape(shown, quote=False)}</text>"
        )
        self.bottom = max(self.bottom, y + size * 0.3)

    def path(
        self,
        points: Sequence[tuple[float, float]],
        *,
        stroke: str = SOFT,
        width: float = 1.2,
        dashed: bool = False,
    ) -> None:
        dash = ' stroke-dasharray="5 3"' if dashed else ""
        places = " L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        self._parts.append(
            f'<path d="M{places}" fill="none" stroke="{stroke}" stroke-width="{_n(width)}"{dash}/>'
        )

    def curve(self, start: tuple[float, float], end: tuple[float, float], *, stroke: str) -> None:
        """From left to right, level at both ends."""
        middle = (start[0] + end[0]) / 2
        self._parts.append(
            f'<path d="M{_n(start[0])} {_n(start[1])} C{_n(middle)} {_n(start[1])} {_n(middle)}'
            f' {_n(end[1])} {_n(end[0])} {_n(end[1])}" fill="none" stroke="{stroke}"'
            ' stroke-width="1.4"/>'
        )

    def heading(self, text: str, note: str = "") -> float:
        """The picture's title and a line below it; where the rest may begin."""
        self.text(16, 28, text, 16, bold=True)
        y = 34.0
        for line in wrap(note, self.width - 32, 11) if note else ():
            y += 14
            self.text(16, y, line, 11, fill=SOFT)
        return y + 14

    def render(self) -> str:
        height = self.bottom + 16
        size = f'width="{self.width}" height="{_n(height)}"'
        root = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {_n(height)}" {size}'
            ' role="img" aria-labelledby="t d" xml:space="preserve">'
        )
        style = (
            f"<style>text{{white-space:pre}}.s,.sb{{font-family:{SANS}}}.m,.mb{{font-family:{MONO}}}"
            ".sb,.mb{font-weight:700}</style>"
        )
        return "\n".join(
            (
                root,
                f'<title id="t">{escape(self.title, quote=False)}</title>',
                f'<desc id="d">{escape(self.description, quote=False)}</desc>',
                style,
                f'<rect {size} rx="8" fill="{PAPER}" stroke="{FAINT}"/>',
                *self._parts,
                "</svg>",
                "",
            )
        )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
