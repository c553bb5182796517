"""Make the sample documents of binary formats: ``python -m tidemark_local.make_sample_files``.

Their text is in ``samples/files_content``, one ``NAME.FORMAT.md`` each, in a small part of Markdown;
the results in ``samples/files``, beside documents written by hand, are committed. Running it twice
changes no byte: dates are fixed and nothing is compressed, since compressors differ between machines.
Needs the development requirements (python-docx, python-pptx, openpyxl, fpdf2).
"""

import argparse
import io
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import docx
import fpdf
import openpyxl
import pptx
from docx.document import Document
from docx.enum.style import WD_STYLE_TYPE
from openpyxl.styles import Font
from pptx.util import Inches

from tidemark_local.sample_blocks import Block, Kind, read_blocks, under_headings

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
CONTENT = SAMPLES / "files_content"
FILES = SAMPLES / "files"
MADE_AT = datetime(2026, 10, 19, 8, 0, tzinfo=UTC)
AUTHOR = "Merrow district keepers"
TABLE_STYLE = "Light Grid Accent 1"
MODIFIED = re.compile(rb"(<dcterms:modified[^>]*>)[^<]*(</dcterms:modified>)")


def make_docx(blocks: list[Block]) -> bytes:
    """Headings, lists and tables in Word's own styles, with a running header and footer."""
    document = docx.Document()
    properties = document.core_properties
    properties.author = properties.last_modified_by = AUTHOR
    properties.title = blocks[0].text
    properties.comments = ""
    properties.created = properties.modified = MADE_AT.replace(tzinfo=None)
    section = document.sections[0]
    section.header.paragraphs[0].text = "Merrow district: surveys"
    section.footer.paragraphs[0].text = "For the harbour board. Not a chart."
    styles = {Kind.BULLET: "List Bullet", Kind.NUMBERED: "List Number"}
    for block in blocks:
        if block.kind is Kind.HEADING:
            document.add_heading(block.text, block.level)
        elif block.kind is Kind.TABLE:
            table = document.add_table(len(block.rows), len(block.rows[0]), TABLE_STYLE)
            for cells, row in zip(table.rows, block.rows, strict=True):
                for cell, text in zip(cells.cells, row, strict=True):
                    cell.text = text
        else:
            paragraph = document.add_paragraph(style=styles.get(block.kind))
            for index, run in enumerate(block.text.split("**")):
                paragraph.add_run(run).bold = True if index % 2 else None
    _drop_unused_styles(document)
    return _saved(document.save)


def _drop_unused_styles(document: Document) -> None:
    """Leave out what python-docx's template brings and nobody needs: 0.7 MB of table styles."""
    for style in list(document.styles):
        if style.type is WD_STYLE_TYPE.TABLE and style.name not in ("Normal Table", TABLE_STYLE):
            style.delete()
    for identity, relation in list(document.part.rels.items()):
        if relation.target_part.partname == "/word/stylesWithEffects.xml":
            document.part.drop_rel(identity)


class _Handbook(fpdf.FPDF):
    """Pages with a running header and footer."""

    running_title = ""

    def header(self) -> None:
        self.set_font("Helvetica", "I", 8)
        self.cell(0, 6, self.running_title, align="C", new_x="LMARGIN", new_y="NEXT")
        self.line(self.l_margin, self.get_y(), self.w - self.r_margin, self.get_y())
        self.ln(4)

    def footer(self) -> None:
        self.set_y(-14)
        self.set_font("Helvetica", "", 8)
        self.cell(0, 6, "Edition 3, October 2026", align="L")
        self.set_x(self.l_margin)
        self.cell(0, 6, f"Page {self.page_no()} of {{nb}}", align="R")


# Positions in the layouts of python-pptx's own template.
TITLE_SLIDE, TITLE_AND_CONTENT, TITLE_ONLY = 0, 1, 5
HEADING_POINTS = {1: 19, 2: 14, 3: 11.5}


def make_pdf(blocks: list[Block]) -> bytes:
    """A5 pages, numbered, with a running header and footer, an outline and a table."""
    document = _Handbook(format=(148, 210))
    document.running_title = blocks[0].text
    document.set_compression(False)
    document.set_creation_date(MADE_AT)
    document.set_title(blocks[0].text)
    document.set_author(AUTHOR)
    document.set_producer("make_sample_files")
    document.set_lang("en")
    document.set_margins(17, 12)
    document.set_auto_page_break(True, margin=18)
    document.add_page()
    for block in blocks:
        if block.kind is Kind.HEADING:
            _pdf_heading(document, block)
        elif block.kind is Kind.TABLE:
            document.set_font("Helvetica", "", 8.5)
            with document.table(line_height=5, text_align="LEFT") as table:
                for row in block.rows:
                    table.row(row)
            document.ln(3)
        else:
            document.set_font("Helvetica", "", 10)
            mark = "- " if block.kind is Kind.BULLET else ""
            document.multi_cell(0, 5, mark + block.text, align="L", new_x="LMARGIN", new_y="NEXT")
            document.ln(1 if mark else 2.5)
    return bytes(document.output())


def _pdf_heading(document: _Handbook, block: Block) -> None:
    # A heading keeps two lines of what follows on its page.
    if document.will_page_break(28):
        document.add_page()
    document.ln(3)
    document.set_font("Helvetica", "B", HEADING_POINTS[block.level])
    document.start_section(block.text, block.level - 1)
    document.multi_cell(0, 7, block.text, align="L", new_x="LMARGIN", new_y="NEXT")
    document.ln(1.5)


def make_pptx(blocks: list[Block]) -> bytes:
    """One slide for each heading, with bullets or a table, and speaker's notes."""
    deck = pptx.Presentation()
    properties = deck.core_properties
    properties.author = properties.last_modified_by = AUTHOR
    properties.title = blocks[0].text
    properties.created = properties.modified = MADE_AT.replace(tzinfo=None)
    for number, (heading, body) in enumerate(under_headings(blocks)):
        tables = [block for block in body if block.kind is Kind.TABLE]
        lines = [b.text for b in body if b.kind in (Kind.PARAGRAPH, Kind.BULLET)]
        layout = TITLE_SLIDE if number == 0 else TITLE_ONLY if tables else TITLE_AND_CONTENT
        slide = deck.slides.add_slide(deck.slide_layouts[layout])
        slide.shapes.title.text = heading.text
        if lines:
            slide.placeholders[1].text_frame.text = "\n".join(lines)
        for table in tables:
            shape = slide.shapes.add_table(
                len(table.rows),
                len(table.rows[0]),
                Inches(0.7),
                Inches(1.7),
                Inches(8.6),
                Inches(3),
            )
            for row, texts in enumerate(table.rows):
                for column, text in enumerate(texts):
                    shape.table.cell(row, column).text = text
        notes = [block.text for block in body if block.kind is Kind.NOTE]
        if notes:
            slide.notes_slide.notes_text_frame.text = "\n".join(notes)
    return _saved(deck.save)


def make_xlsx(blocks: list[Block]) -> bytes:
    """One sheet for each heading, holding its table; numbers are stored as numbers."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    book.properties.creator = AUTHOR
    book.properties.created = MADE_AT.replace(tzinfo=None)
    for heading, body in under_headings(blocks):
        sheet = book.create_sheet(heading.text)
        for row in (row for block in body for row in block.rows):
            sheet.append([_value(cell) for cell in row])
        sheet.freeze_panes = "A2"
        for cell in sheet[1]:
            cell.font = Font(bold=True)
        for column in sheet.columns:
            width = max(len(str(cell.value)) for cell in column)
            sheet.column_dimensions[column[0].column_letter].width = width + 2
    return _saved(book.save)


def _value(text: str) -> str | int | float:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _saved(save: Callable[[io.BytesIO], object]) -> bytes:
    """The bytes of an Office file, with fixed times and nothing compressed."""
    saved, fixed = io.BytesIO(), io.BytesIO()
    save(saved)
    made_at = MADE_AT.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(fixed, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "docProps/core.xml":
                # openpyxl puts the present time there, whatever it is told.
                data = MODIFIED.sub(rb"\g<1>" + made_at + rb"\g<2>", data)
            member = zipfile.ZipInfo(name, MADE_AT.timetuple()[:6])
            # Otherwise the system that ran this is noted in the file.
            member.create_system = 3
            target.writestr(member, data, zipfile.ZIP_STORED)
    return fixed.getvalue()


MAKERS: dict[str, Callable[[list[Block]], bytes]] = {
    "docx": make_docx,
    "pdf": make_pdf,
    "pptx": make_pptx,
    "xlsx": make_xlsx,
}


def build(content: Path = CONTENT) -> Iterator[tuple[str, bytes]]:
    """Yield each generated file as its name and its bytes."""
    for source in sorted(content.glob("*.md")):
        name = source.stem
        blocks = list(read_blocks(source.read_text("utf-8")))
        yield name, MAKERS[name.rpartition(".")[2]](blocks)


def main(argv: list[str] | None = None) -> int:
    """Write the files, over those that are there; returns the exit status."""
    parser = argparse.ArgumentParser(description="Make the sample documents of binary formats.")
    parser.add_argument("--out", type=Path, default=FILES, help="folder to write to")
    out: Path = parser.parse_args(argv).out
    out.mkdir(parents=True, exist_ok=True)
    for name, data in build():
        (out / name).write_bytes(data)
        sys.stdout.write(f"{out / name} ({len(data):,} bytes)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
