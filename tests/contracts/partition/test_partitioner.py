"""What every partitioner does, and what the real one makes of each format."""

import io
import socket
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from subprocess import run
from sys import executable

import pytest

from fakes.partitioner import MemoryPartitioner
from tidemark.adapters.partition.options import PartitionOptions
from tidemark.adapters.partition.partitioner import DocumentPartitioner
from tidemark.domain.documents import ElementKind, PartitionedDocument, RawDocument
from tidemark.domain.errors import DocumentError
from tidemark.ports.partition import Partitioner

OFFICE = "application/vnd.openxmlformats-officedocument"
DOCX = f"{OFFICE}.wordprocessingml.document"
PPTX = f"{OFFICE}.presentationml.presentation"
XLSX = f"{OFFICE}.spreadsheetml.sheet"
MARKDOWN = """# Gauges

They measure the water.

## Parts

- mast
- box

| Part | Price |
| --- | --- |
| mast | 90 |

```
read()
```
"""


def raw(
    content: bytes | str, media_type: str = "text/markdown", uri: str = "file:///docs/gauges.md"
) -> RawDocument:
    data = content.encode() if isinstance(content, str) else content
    return RawDocument(uri, data, media_type, None, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture(params=["memory", pytest.param("unstructured", marks=pytest.mark.model)])
def partitioner(request: pytest.FixtureRequest) -> Partitioner:
    return MemoryPartitioner() if request.param == "memory" else DocumentPartitioner()


def kinds(document: PartitionedDocument) -> list[tuple[str, str]]:
    return [(element.kind.value, element.text) for element in document.elements]


def test_blocks_become_typed_elements_in_order(partitioner: Partitioner) -> None:
    document = partitioner.partition(raw(MARKDOWN))
    assert document.title == "Gauges"
    found = kinds(document)
    assert found[:5] == [
        ("title", "Gauges"),
        ("text", "They measure the water."),
        ("title", "Parts"),
        ("list_item", "mast"),
        ("list_item", "box"),
    ]
    assert found[-1] == ("code", "read()")
    assert found[5][1].split("\n")[0] == "Part\tPrice"
    assert [e.level for e in document.elements if e.kind is ElementKind.TITLE] == [1, 2]
    assert document.elements[5].header_rows == 1


def test_equal_bytes_give_equal_documents(partitioner: Partitioner) -> None:
    assert partitioner.partition(raw(MARKDOWN)) == partitioner.partition(raw(MARKDOWN))


@pytest.mark.parametrize("content", [b"", b" \n\t "])
def test_an_empty_document_is_refused_by_name_with_a_cure(
    partitioner: Partitioner, content: bytes
) -> None:
    with pytest.raises(DocumentError, match=r"gauges\.md is empty") as caught:
        partitioner.partition(raw(content))
    assert caught.value.hint
    assert caught.value.stage == "partition"


def test_bytes_that_are_no_text_are_refused(partitioner: Partitioner) -> None:
    with pytest.raises(DocumentError, match="text"):
        partitioner.partition(raw(bytes(range(256)) * 4))


def test_the_fingerprint_is_known_without_importing_unstructured() -> None:
    program = (
        "import sys\n"
        "from tidemark.adapters.partition.partitioner import DocumentPartitioner\n"
        "assert len(DocumentPartitioner().fingerprint) == 16\n"
        "heavy = {'unstructured', 'spacy', 'pandas', 'torch', 'docx', 'pptx', 'docutils'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    assert run([executable, "-c", program], check=False).returncode == 0


def test_the_fingerprint_changes_with_the_options() -> None:
    changed = DocumentPartitioner(PartitionOptions(max_pages=7))
    assert changed.fingerprint != DocumentPartitioner().fingerprint


def test_the_boilerplate_of_a_site_is_in_the_fingerprint_and_none_is_not(
    partitioner: Partitioner,
) -> None:
    some = partitioner.with_boilerplate(frozenset({3, 2**63}))
    assert some.fingerprint == partitioner.with_boilerplate(frozenset({2**63, 3})).fingerprint
    assert some.fingerprint != partitioner.fingerprint
    assert some.fingerprint != partitioner.with_boilerplate(frozenset({3})).fingerprint
    assert some.with_boilerplate(frozenset()).fingerprint == partitioner.fingerprint
    assert partitioner.with_boilerplate(frozenset()).fingerprint == partitioner.fingerprint
    assert some.partition(raw(MARKDOWN)) == partitioner.partition(raw(MARKDOWN))


# What follows is about formats, which only the real one reads.


def docx() -> bytes:
    from docx import Document

    document = Document()
    document.sections[0].header.paragraphs[0].text = "FURNITURE"
    document.add_heading("Survey", 0)
    document.add_heading("The pier", 1)
    document.add_paragraph("It is sound.")
    document.add_paragraph("Pile 4 moves", style="List Bullet")
    table = document.add_table(2, 2)
    for place, value in zip(
        [(0, 0), (0, 1), (1, 0), (1, 1)], ["Pile", "Depth", "4", "3 m"], strict=True
    ):
        table.cell(*place).text = value
    return saved(document.save)


def pptx() -> bytes:
    from pptx import Presentation

    deck = Presentation()
    for number, name in enumerate(["Safety", "Dependencies"]):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = name
        slide.placeholders[1].text = f"First point {number}\nSecond point {number}"
        slide.notes_slide.notes_text_frame.text = f"Say it slowly {number}."
    return saved(deck.save)


def xlsx() -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    book.active.title = "Spares"
    for row in (
        ["Part", "Code", "Stock"],
        ["Fuse", "007", 5],
        ["Mast", "010", None],
        ["Box", "011", 2.5],
    ):
        book.active.append(row)
    hidden = book.create_sheet("Secret")
    hidden.append(["FURNITURE", "x"])
    hidden.sheet_state = "hidden"
    return saved(book.save)


def pdf() -> bytes:
    from fpdf import FPDF

    class Paper(FPDF):
        def header(self) -> None:
            self.set_font("helvetica", size=8)
            self.cell(0, 5, "Harbour board FURNITURE", new_x="LMARGIN", new_y="NEXT")

        def footer(self) -> None:
            self.set_y(-12)
            self.set_font("helvetica", size=8)
            self.cell(0, 5, f"Page {self.page_no()} of 3")

    paper = Paper()
    for number in range(1, 4):
        paper.add_page()
        paper.set_font("helvetica", "B", 16)
        paper.cell(0, 12, f"Chapter {number}", new_x="LMARGIN", new_y="NEXT")
        paper.set_font("helvetica", size=11)
        paper.multi_cell(
            0, 6, f"The text of chapter {number} runs over some lines of the page. " * 6
        )
        if number == 2:
            with paper.table() as table:
                for cells in (["Place", "Depth"], ["Pier", "3 m"], ["Bar", "5 m"]):
                    table.row(cells)
    return bytes(paper.output())


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def read(
    content: bytes | str, media_type: str, uri: str = "file:///docs/a-file"
) -> PartitionedDocument:
    return DocumentPartitioner().partition(raw(content, media_type, uri))


@pytest.mark.model
def test_html_keeps_what_unstructured_leaves_out() -> None:
    document = read(
        "<html lang=de><body><main><h1 id=top>Pegel</h1>"
        "<details><summary>Mehr</summary><p>Inhalt</p></details>"
        "<dl><dt id=n>n</dt><dd>Anzahl</dd></dl><ol start=3><li>drei<ol type=a><li>innen</li></ol></li></ol>"
        "<figure><figcaption>Bild 1</figcaption></figure><blockquote><p>Zitat</p></blockquote>"
        "<p>Siehe<sup><a href='#fn1'>1</a></sup></p><pre>  x\n    y</pre></main></body></html>",
        "text/html",
    )
    assert kinds(document) == [
        ("title", "Pegel"),
        ("term", "Mehr"),
        ("text", "Inhalt"),
        ("term", "n"),
        ("definition", "Anzahl"),
        ("list_item", "3. drei"),
        ("list_item", "a. innen"),
        ("caption", "Bild 1"),
        ("quote", "Zitat"),
        ("text", "Siehe[1]"),
        ("code", "  x\n    y"),
    ]
    assert [e.level for e in document.elements if e.kind is ElementKind.LIST_ITEM] == [1, 2]
    assert (document.elements[0].anchor, document.elements[3].anchor) == ("top", "n")
    assert document.language == "de"


@pytest.mark.model
def test_a_changed_footer_leaves_the_content_hash_as_it_is() -> None:
    def page(footer: str, words: str = "Body of the page.") -> str:
        main = f"<main><h1>T</h1><p>{words}</p></main><footer>{footer}</footer>"
        return f"<html><body>{main}</body></html>"

    before = read(page("2025"), "text/html").content_hash
    assert read(page("2026"), "text/html").content_hash == before
    assert read(page("2025", "Another."), "text/html").content_hash != before


@pytest.mark.model
def test_markdown_reads_front_matter_ids_admonitions_and_definitions() -> None:
    document = read(
        "---\ntitle: Hand book\nlang: fr\n---\n## Setup { #set-up }\n\n/// note | Mind\n\nThe gap.\n\n///\n\n"
        '!!! warning "Stop"\n    Not here.\n\n```md\n!!! note\n```\n\nTerm\n: Meaning\n\n'
        "## Next steps\n\nGo.\n",
        "text/markdown",
    )
    assert (document.title, document.language) == ("Hand book", "fr")
    assert kinds(document) == [
        ("title", "Setup"),
        ("caption", "Mind"),
        ("text", "The gap."),
        ("caption", "Stop"),
        ("text", "Not here."),
        ("code", "!!! note"),
        ("term", "Term"),
        ("definition", "Meaning"),
        ("title", "Next steps"),
        ("text", "Go."),
    ]
    assert [e.anchor for e in document.elements if e.kind is ElementKind.TITLE] == [
        "set-up",
        "next-steps",
    ]


@pytest.mark.model
def test_restructured_text_keeps_the_text_of_directives_it_does_not_know() -> None:
    document = read(
        "Title\n=====\n\nSee :ref:`the page <target>` and :meth:`~a.b.run`.\n\n.. method:: open(name)\n\n"
        "   Opens it.\n\n.. code-block:: python\n\n   x = 1\n\n.. toctree::\n\n   other\n",
        "text/x-rst",
    )
    assert kinds(document) == [
        ("title", "Title"),
        ("text", "See the page and run."),
        ("term", "open(name)"),
        ("definition", "Opens it."),
        ("code", "x = 1"),
    ]


@pytest.mark.model
def test_plain_text_finds_headings_that_are_drawn_or_numbered() -> None:
    document = read(
        "Manual\n======\n\n1. Scope\n\nThese rules apply to the outer wall and to all who moor there.\n\n"
        "2. Rules\n\n2.1 Length of stay\nA vessel may lie along the wall for no longer than three days.\n\n"
        "- first\n- second\n",
        "text/plain",
    )
    assert [(e.text, e.level) for e in document.elements if e.kind is ElementKind.TITLE] == [
        ("Manual", 1),
        ("1. Scope", 2),
        ("2. Rules", 2),
        ("2.1 Length of stay", 3),
    ]
    assert kinds(document)[-2:] == [("list_item", "first"), ("list_item", "second")]


@pytest.mark.model
def test_docx_follows_styles_and_drops_running_headers() -> None:
    document = read(docx(), DOCX)
    assert document.title == "Survey"
    assert [(k, t) for k, t in kinds(document)] == [
        ("title", "Survey"),
        ("title", "The pier"),
        ("text", "It is sound."),
        ("list_item", "Pile 4 moves"),
        ("table", "Pile\tDepth\n4\t3 m"),
    ]
    assert [e.level for e in document.elements[:2]] == [1, 2]
    assert document.elements[-1].header_rows == 1


@pytest.mark.model
def test_pptx_makes_each_slide_a_section_with_its_notes_last() -> None:
    document = read(pptx(), PPTX)
    assert [(e.kind.value, e.text, e.level, e.page_number) for e in document.elements][:5] == [
        ("title", "Safety", 1, 1),
        ("list_item", "First point 0", 1, 1),
        ("list_item", "Second point 0", 1, 1),
        ("title", "Notes", 2, 1),
        ("text", "Say it slowly 0.", None, 1),
    ]
    assert document.elements[5].page_number == 2


@pytest.mark.model
def test_xlsx_keeps_values_as_they_were_written_and_leaves_hidden_sheets() -> None:
    document = read(xlsx(), XLSX)
    assert kinds(document) == [
        ("title", "Spares"),
        ("table", "Part\tCode\tStock\nFuse\t007\t5\nMast\t010\nBox\t011\t2.5"),
    ]
    assert document.elements[1].header_rows == 1


@pytest.mark.model
def test_csv_finds_its_delimiter_and_its_header() -> None:
    document = read('id;name\n007;"a; b"\n1.10;c\n', "text/csv", "file:///docs/price-list.csv")
    assert kinds(document) == [("table", "id\tname\n007\ta; b\n1.10\tc")]
    assert (document.title, document.elements[0].header_rows) == ("price list", 1)


@pytest.mark.model
def test_pdf_finds_pages_headings_and_tables_without_running_lines() -> None:
    document = read(pdf(), "application/pdf")
    found = kinds(document)
    assert not any("FURNITURE" in text or text.startswith("Page ") for _, text in found)
    headings = [(e.text, e.page_number) for e in document.elements if e.kind is ElementKind.TITLE]
    assert headings == [("Chapter 1", 1), ("Chapter 2", 2), ("Chapter 3", 3)]
    assert ("table", "Place\tDepth\nPier\t3 m\nBar\t5 m") in found
    text = next(e for e in document.elements if e.kind is ElementKind.TEXT)
    assert text.text.startswith("The text of chapter 1 runs over some lines of the page. The text")


@pytest.mark.model
def test_a_mail_tells_who_wrote_it_and_what() -> None:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Mark B", "keepers@example.org", "board@example.org"
    mail["Date"] = "Thu, 16 Jul 2026 10:00:00 +0200"
    mail.set_content("Plain.")
    mail.add_alternative("<p>It has <b>sunk</b>.</p>", subtype="html")
    mail.add_attachment(b"x", maintype="text", subtype="csv", filename="run.csv")
    document = read(mail.as_bytes(), "message/rfc822")
    assert document.title == "Mark B"
    envelope = "From: keepers@example.org\nTo: board@example.org\nDate: 2026-07-16 10:00+02:00"
    assert kinds(document) == [
        ("title", "Mark B"),
        ("text", envelope),
        ("text", "It has sunk."),
        ("text", "Attachments: run.csv"),
    ]


@pytest.mark.model
@pytest.mark.parametrize(
    ("make", "first"),
    [
        (docx, "Survey"),
        (pptx, "Safety"),
        (xlsx, "Spares"),
        (pdf, "Chapter 1"),
        (lambda: b"<!doctype html><html><body><h1>Page</h1><p>x</p></body></html>", "Page"),
    ],
)
def test_a_media_type_that_lies_does_not_mislead(make: Callable[[], bytes], first: str) -> None:
    assert read(make(), "text/plain").elements[0].text == first
    assert read(make(), "application/octet-stream").elements[0].text == first


def encrypted_pdf() -> bytes:
    from fpdf import FPDF

    paper = FPDF()
    paper.set_encryption(owner_password="a", user_password="b")
    paper.add_page()
    return bytes(paper.output())


def blank_pdf() -> bytes:
    from fpdf import FPDF

    paper = FPDF()
    paper.add_page()
    return bytes(paper.output())


def bomb() -> bytes:
    def save(buffer: io.BytesIO) -> None:
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("[Content_Types].xml", "<x/>")
            archive.writestr("word/document.xml", b"\0" * 50_000_000)

    return saved(save)


@pytest.mark.model
@pytest.mark.parametrize(
    ("make", "media_type", "problem"),
    [
        (lambda: docx()[:3000], DOCX, "damaged"),
        (lambda: xlsx()[:2000], XLSX, "damaged"),
        (lambda: pdf()[:300], "application/pdf", "damaged|no text"),
        (lambda: b"hello", "application/pdf", "declared as PDF"),
        (encrypted_pdf, "application/pdf", "encrypted"),
        (blank_pdf, "application/pdf", "only images"),
        (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), DOCX, "damaged"),
        (bomb, DOCX, "unpack"),
        (lambda: b"\x89PNG\r\n\x1a\n" + bytes(100), "image/png", "not read"),
        (lambda: b"<html><body><img src=x></body></html>", "text/html", "no text"),
        (lambda: b"<div>" * 500 + b"x", "text/html", "deep"),
    ],
)
def test_a_document_at_fault_is_named_with_a_cure(
    make: Callable[[], bytes], media_type: str, problem: str
) -> None:
    with pytest.raises(DocumentError, match=problem) as caught:
        read(make(), media_type)
    assert "a-file" in caught.value.message
    assert caught.value.hint


@pytest.mark.model
def test_a_document_over_the_bound_is_refused_before_it_is_read() -> None:
    small = DocumentPartitioner(PartitionOptions(max_bytes=10))
    with pytest.raises(DocumentError, match="limit is 10"):
        small.partition(raw(MARKDOWN))


@pytest.mark.model
def test_nothing_is_sent_or_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for content, media_type in [
        (MARKDOWN, "text/markdown"),
        (docx(), DOCX),
        (pptx(), PPTX),
        (pdf(), "application/pdf"),
    ]:
        assert read(content, media_type).elements


@pytest.mark.model
def test_a_windows_page_without_a_declared_charset_is_read() -> None:
    page = "<html><body><h1>Größe</h1><p>für “alle”</p></body></html>"
    assert kinds(read(page.encode("cp1252"), "text/html"))[1] == ("text", "für “alle”")


@pytest.mark.model
@pytest.mark.parametrize("media_type", ["text/plain", "text/markdown"])
def test_wiki_headings_and_rulers_become_sections(media_type: str) -> None:
    document = read(
        " = Old pier = \n The pier is old . \n = = History = = \n It was built in 1900 . \n"
        "==== Body\nIts planks are new .\n",
        media_type,
    )
    assert kinds(document) == [
        ("title", "Old pier"),
        ("text", "The pier is old ."),
        ("title", "History"),
        ("text", "It was built in 1900 ."),
        ("title", "Body"),
        ("text", "Its planks are new ."),
    ]
    assert [e.level for e in document.elements if e.kind is ElementKind.TITLE][:2] == [1, 2]


@pytest.mark.model
def test_the_clauses_of_an_agreement_in_plain_text_become_sections() -> None:
    document = read(
        "LEASE\n\nARTICLE I\nTHE HALL\n\nThe hall is let with its yard.\n\n1.1 Rent\n\n"
        "The rent is 500 euros.\n\n1.2 The tenant pays by the third of the month, without being\n"
        "asked for it.\n\nSchedule A\n\n1. a key\n2. a lamp\n",
        "text/plain",
    )
    assert document.title == "LEASE"
    assert kinds(document) == [
        ("title", "LEASE"),
        ("title", "ARTICLE I THE HALL"),
        ("text", "The hall is let with its yard."),
        ("title", "1.1 Rent"),
        ("text", "The rent is 500 euros."),
        ("text", "1.2 The tenant pays by the third of the month, without being asked for it."),
        ("title", "Schedule A"),
        ("list_item", "1. a key"),
        ("list_item", "2. a lamp"),
    ]


@pytest.mark.model
def test_markdown_keeps_placeholders_in_angle_brackets() -> None:
    document = read("Run git switch <branch> and `git log <file>`.\n", "text/markdown")
    assert kinds(document) == [("text", "Run git switch <branch> and git log <file>.")]
