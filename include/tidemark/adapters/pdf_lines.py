"""A PDF's text as lines with their place and font, without running headers and footers."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO

from pdfminer.converter import PDFPageAggregator
from pdfminer.layout import LAParams, LTChar, LTFigure, LTItem, LTPage, LTTextBox, LTTextLine
from pdfminer.pdfdocument import PDFDocument, PDFEncryptionError, PDFPasswordIncorrect
from pdfminer.pdfexceptions import PDFException
from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
from pdfminer.pdfpage import PDFPage
from pdfminer.pdfparser import PDFParser
from pdfminer.pdftypes import resolve1
from pdfminer.psexceptions import PSException
from pdfminer.utils import decode_text

from tidemark.adapters.pdf_running_lines import running_lines
from tidemark.adapters.pdf_tables import ruled_tables
from tidemark.domain.errors import DocumentError

_BOLD = re.compile(r"bold|black|heavy|semib|demi", re.IGNORECASE)
_MONO = re.compile(r"mono|courier|consol|menlo|typewriter|cmtt|code|fixed", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page.

    page: from 1. box: number of the text block on the page. x0, x1, top, bottom: points, from the upper
    left corner of the page. size: of its font in points. height: of the page. table: the cells of a ruled
    table that stands here; its text is "".
    """

    text: str
    page: int
    box: int
    x0: float
    x1: float
    top: float
    bottom: float
    size: float
    bold: bool
    mono: bool
    height: float
    table: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class PdfText:
    """lines: in reading order. title, language: what the file says of itself, "" where it does not."""

    lines: list[Line]
    title: str
    language: str


def read_pdf(content: bytes, name: str, max_pages: int) -> PdfText:
    """Read a PDF's text layer; ``name`` names it in errors.

    Raises ``DocumentError`` for a file that is locked, damaged, too long or without text.
    """
    try:
        document = PDFDocument(PDFParser(BytesIO(content)))
        lines = list(_lines(document, name, max_pages))
        title, language = _of_itself(document)
    except (PDFPasswordIncorrect, PDFEncryptionError) as error:
        raise DocumentError(
            "partition", f"{name} is encrypted.", "Save it without a password."
        ) from error
    except DocumentError:
        raise
    except (
        PDFException,
        PSException,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        OSError,
        AssertionError,
        RecursionError,
    ) as error:
        # pdfminer lets whatever a broken file provokes through.
        raise DocumentError(
            "partition",
            f"{name} is damaged or was cut short ({type(error).__name__}: {error}).",
            "Fetch or export the file again.",
        ) from error
    running = running_lines(lines)
    kept = [line for index, line in enumerate(lines) if index not in running]
    if not any(line.table or re.search(r"\w", line.text) for line in kept):
        raise DocumentError(
            "partition",
            f"{name} has no text, only images.",
            "Recognise its text (OCR) and save it again.",
        )
    return PdfText(kept, title, language)


def _lines(document: PDFDocument, name: str, max_pages: int) -> Iterator[Line]:
    resources = PDFResourceManager()
    device = PDFPageAggregator(resources, laparams=LAParams())
    interpreter = PDFPageInterpreter(resources, device)
    for number, page in enumerate(PDFPage.create_pages(document), start=1):
        if number > max_pages:
            raise DocumentError(
                "partition",
                f"{name} has more than {max_pages} pages.",
                "Exclude it from the source, or split it: this limit is no setting.",
            )
        interpreter.process_page(page)
        layout = device.get_result()
        yield from _page_lines(layout, number)


def _page_lines(layout: LTPage, number: int) -> Iterator[Line]:
    """The lines of a page; a table stands where the first of its lines would."""
    tables = ruled_tables(layout)
    given: set[int] = set()
    for box_number, box in enumerate(_boxes(layout)):
        for line in box:
            if not isinstance(line, LTTextLine) or not line.get_text().strip():
                continue
            x, y = (line.x0 + line.x1) / 2, (line.y0 + line.y1) / 2
            inside = next((i for i, table in enumerate(tables) if table.holds(x, y)), None)
            if inside is None:
                yield _line(line, number, box_number, layout.height)
            elif inside not in given:
                given.add(inside)
                table = tables[inside]
                drawn = _line(line, number, -1 - inside, layout.height)
                yield replace(drawn, text="", table=table.rows)


def _boxes(container: Iterable[LTItem]) -> Iterator[LTTextBox]:
    for item in container:
        if isinstance(item, LTTextBox):
            yield item
        elif isinstance(item, LTFigure):
            yield from _boxes(item)


def _line(line: LTTextLine, page: int, box: int, height: float) -> Line:
    fonts: Counter[tuple[float, str]] = Counter()
    for char in line:
        if isinstance(char, LTChar) and not char.get_text().isspace():
            fonts[(round(char.size * 2) / 2, char.fontname)] += 1
    size, font = fonts.most_common(1)[0][0] if fonts else (0.0, "")
    return Line(
        text=re.sub(r"\(cid:\d+\)", "", line.get_text()).rstrip("\n").replace("\xa0", " "),
        page=page,
        box=box,
        x0=line.x0,
        x1=line.x1,
        top=height - line.y1,
        bottom=height - line.y0,
        size=size,
        bold=bool(_BOLD.search(font)),
        mono=bool(_MONO.search(font)),
        height=height,
    )


def _of_itself(document: PDFDocument) -> tuple[str, str]:
    title = next((resolve1(info["Title"]) for info in document.info if "Title" in info), b"")
    language = resolve1(document.catalog.get("Lang", b""))
    return _text(title), _text(language)


def _text(value: object) -> str:
    return decode_text(value).strip() if isinstance(value, bytes) else ""
