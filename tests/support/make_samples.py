"""Make the bundled samples: ``PYTHONPATH=include:tests/support python -m make_samples [--out FOLDER]``.

The website (``samples/site``) comes from ``samples/site_content``: one fragment of HTML a page,
``_page.html`` for what every page shares, and files copied as they are. A fragment begins with a comment of
two keys: ``nav`` (the name of the page in menus) and ``updated`` (an ISO date). Links in it are written from
the root ("/guide/power.html").

The documents of binary formats (in ``samples/files``, beside some written by hand) come from
``samples/files_content``, one ``NAME.FORMAT.md`` each, in a small part of Markdown. Running it twice changes
no byte: dates are fixed and nothing is compressed, since compressors differ between machines.

Results are committed, so nothing has to be built to use them. Needs the development requirements.
"""

import argparse
import io
import posixpath
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from html import escape
from pathlib import Path
from string import Template

import docx
import fpdf
import openpyxl
import pptx
from docx.document import Document
from docx.enum.style import WD_STYLE_TYPE
from openpyxl.styles import Font
from pptx.util import Inches

SAMPLES = Path(__file__).resolve().parents[2] / "include" / "samples"
SITE_CONTENT = SAMPLES / "site_content"
SITE = SAMPLES / "site"
FILES_CONTENT = SAMPLES / "files_content"
FILES = SAMPLES / "files"

BUILT_ON = date(2026, 11, 2)

TREE: dict[str, tuple[str, ...]] = {
    "Start": ("index", "guide/getting-started", "guide/siting"),
    "Guide": (
        "guide/installation",
        "guide/levelling",
        "guide/power",
        "guide/telemetry",
        "guide/maintenance",
    ),
    "Reference": (
        "reference/configuration",
        "reference/sensors",
        "reference/alarms",
        "reference/data-format",
        "reference/api",
        "reference/command-line",
    ),
    "Harbour": ("harbour/passage-planning", "harbour/signals", "harbour/storm-surge"),
    "Help": ("help/faq", "help/troubleshooting"),
    "Policies": ("policies/calibration", "policies/returns", "policies/data"),
    "About": ("about/changelog", "about/glossary", "about/contributing"),
}
UNLISTED = ("internal/depot-stock",)

HEADER = re.compile(r"\A<!--\nnav: (?P<nav>.+)\nupdated: (?P<updated>[\d-]+)\n-->\n")
FIRST_HEADING = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)
HEADING = re.compile(r'<h(?P<level>[23]) id="(?P<id>[^"]+)">(?P<text>.*?)</h(?P=level)>', re.DOTALL)
LOCAL_LINK = re.compile(r'(?P<name>href|src)="(?P<target>/[^"]*)"')
TAG = re.compile(r"<[^>]+>")


@dataclass(frozen=True, slots=True)
class Page:
    """One page before its menus, header and footer.

    name: path from the root without ".html".
    group: the heading it stands under in the menus, "" when it is in none.
    nav: its name in menus, as text.
    title: its h1, as text.
    updated: shown at its foot.
    body: HTML.
    """

    name: str
    group: str
    nav: str
    title: str
    updated: date
    body: str

    @property
    def path(self) -> str:
        """Its URL path; the home page is known by its folder alone."""
        return "/" if self.name == "index" else f"/{self.name}.html"


def read_page(content: Path, name: str, group: str) -> Page:
    """Read one fragment. Raises ``ValueError`` naming the file when its head or its h1 is missing."""
    text = (content / f"{name}.html").read_text("utf-8")
    header = HEADER.match(text)
    heading = FIRST_HEADING.search(text)
    if header is None or heading is None:
        raise ValueError(f"{name}.html must begin with its nav and updated keys and have an h1")
    return Page(
        name=name,
        group=group,
        nav=header["nav"],
        title=TAG.sub("", heading[1]).strip(),
        updated=date.fromisoformat(header["updated"]),
        body=text[header.end() :].strip(),
    )


def render(page: Page, listed: list[Page], template: Template) -> str:
    """Put the shared parts around a page, with links made relative to where it lies."""
    position = listed.index(page) if page in listed else None
    html = template.substitute(
        title=page.title,
        path=page.path,
        name=page.name,
        site_nav=_site_nav(page, listed),
        sidebar=_sidebar(page, listed),
        breadcrumb=_breadcrumb(page),
        contents=_contents(page),
        body=HEADING.sub(_with_permalink, page.body),
        pager=_pager(position, listed),
        updated=f'<time datetime="{page.updated}">{_spelt(page.updated)}</time>',
        built=f'<time datetime="{BUILT_ON}">{_spelt(BUILT_ON)}</time>',
    )
    folder = posixpath.dirname(f"/{page.name}")
    return LOCAL_LINK.sub(
        lambda link: f'{link["name"]}="{_relative(link["target"], folder)}"', html
    )


def _spelt(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _relative(target: str, folder: str) -> str:
    path, mark, fragment = target.partition("#")
    relative = posixpath.relpath(path, folder) + ("/" if path.endswith("/") else "")
    return relative + mark + fragment


def _link(page: Page, text: str, attributes: str = "") -> str:
    return f'<a href="{page.path}"{attributes}>{escape(text)}</a>'


def _with_permalink(heading: re.Match[str]) -> str:
    level, anchor, text = heading["level"], heading["id"], heading["text"]
    permalink = f'<a class="headerlink" href="#{anchor}" title="Link to this heading">¶</a>'
    return f'<h{level} id="{anchor}">{text}{permalink}</h{level}>'


def _site_nav(page: Page, listed: list[Page]) -> str:
    first = {p.group: p for p in reversed(listed)}
    return "\n".join(
        f"<li>{_link(first[group], group, _current(group == page.group))}</li>" for group in TREE
    )


def _sidebar(page: Page, listed: list[Page]) -> str:
    lines = []
    for group in TREE:
        lines.append(f'<p class="sidebar-group">{group}</p>\n<ul>')
        lines += [
            f"<li>{_link(p, p.nav, _current(p == page))}</li>" for p in listed if p.group == group
        ]
        lines.append("</ul>")
    return "\n".join(lines)


def _current(is_current: bool) -> str:
    return ' aria-current="page"' if is_current else ""


def _breadcrumb(page: Page) -> str:
    steps = ['<li><a href="/">Wrackline</a></li>']
    if page.group:
        steps.append(f"<li>{page.group}</li>")
    steps.append(f'<li aria-current="page">{escape(page.nav)}</li>')
    return "\n".join(steps)


def _contents(page: Page) -> str:
    entries = [h for h in HEADING.finditer(page.body) if h["level"] == "2"]
    return "\n".join(f'<li><a href="#{h["id"]}">{h["text"]}</a></li>' for h in entries)


def _pager(position: int | None, listed: list[Page]) -> str:
    if position is None:
        return ""
    links = []
    if position > 0:
        before = listed[position - 1]
        links.append(_link(before, f"← Previous: {before.nav}", ' rel="prev"'))
    if position + 1 < len(listed):
        after = listed[position + 1]
        links.append(_link(after, f"Next: {after.nav} →", ' rel="next"'))
    return "\n".join(links)


def build_site(content: Path = SITE_CONTENT) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the site, as its path under the root and its bytes."""
    template = Template((content / "_page.html").read_text("utf-8"))
    listed = [read_page(content, name, group) for group, names in TREE.items() for name in names]
    unlisted = [read_page(content, name, "") for name in UNLISTED]
    for page in listed + unlisted:
        yield f"{page.name}.html", render(page, listed, template).encode()
    static = content / "_static"
    for file in sorted(static.rglob("*")):
        if file.is_file():
            yield file.relative_to(static).as_posix(), file.read_bytes()


class Kind(Enum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    BULLET = "bullet"
    NUMBERED = "numbered"
    NOTE = "note"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a content file.

    level: of a heading from 1, else 0.
    rows: of a table, its header first.
    """

    kind: Kind
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()


BLOCK_LINE = re.compile(r"(?P<mark>#{1,3}|-|\d+\.|>) (?P<text>.+)")
BLOCK_MARKS = {"-": Kind.BULLET, ">": Kind.NOTE}


def read_blocks(text: str) -> Iterator[Block]:
    """Blocks of the Markdown that content files use: one line a block, tables several lines."""
    rows: list[tuple[str, ...]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
            continue
        if rows:
            # The second row is the rule under the header.
            yield Block(Kind.TABLE, rows=(rows[0], *rows[2:]))
            rows = []
        if line:
            yield _line_block(line)


def _line_block(line: str) -> Block:
    match = BLOCK_LINE.fullmatch(line)
    if match is None:
        return Block(Kind.PARAGRAPH, line)
    mark, text = match["mark"], match["text"]
    if mark.startswith("#"):
        return Block(Kind.HEADING, text, level=len(mark))
    return Block(BLOCK_MARKS.get(mark, Kind.NUMBERED), text)


def under_headings(blocks: list[Block]) -> Iterator[tuple[Block, list[Block]]]:
    """Each heading with the blocks up to the next one."""
    starts = [i for i, block in enumerate(blocks) if block.kind is Kind.HEADING]
    for start, end in zip(starts, [*starts[1:], len(blocks)], strict=True):
        yield blocks[start], blocks[start + 1 : end]


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


def build_files(content: Path = FILES_CONTENT) -> Iterator[tuple[str, bytes]]:
    """Yield each generated file as its name and its bytes."""
    for source in sorted(content.glob("*.md")):
        name = source.stem
        blocks = list(read_blocks(source.read_text("utf-8")))
        yield name, MAKERS[name.rpartition(".")[2]](blocks)


def main(argv: list[str] | None = None) -> int:
    """Replace the site and write the documents over those that are there; returns the exit status."""
    parser = argparse.ArgumentParser(description="Make the bundled samples.")
    parser.add_argument("--out", type=Path, default=SAMPLES, help="folder to write to")
    out: Path = parser.parse_args(argv).out
    site = dict(build_site())
    shutil.rmtree(out / "site", ignore_errors=True)
    made = {f"site/{path}": data for path, data in site.items()}
    made |= {f"files/{name}": data for name, data in build_files()}
    for path, data in made.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(data)
    sys.stdout.write(f"{len(made)} files in {out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
