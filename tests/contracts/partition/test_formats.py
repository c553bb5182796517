"""What becomes of each format that Unstructured does not read, or not as its reader would."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from types import SimpleNamespace

import pytest
from format_makers import RTF, compound, epub, msg, odt, zipped
from test_partitioner import (
    blank_pdf,
    docx,
    encrypted_pdf,
    kinds,
    pdf,
    pptx,
    xlsx,
)

from tidemark.adapters.media import BY_SUFFIX, media_type_of_suffix
from tidemark.adapters.partition.options import PartitionOptions
from tidemark.adapters.partition.partitioner import DocumentPartitioner
from tidemark.domain.documents import PartitionedDocument, RawDocument
from tidemark.domain.errors import ConfigurationError, DocumentError

pytestmark = pytest.mark.model
PARTITIONER = DocumentPartitioner()
FETCHED_AT = datetime(2026, 1, 1, tzinfo=UTC)


def read(
    content: bytes | str,
    name: str,
    media_type: str | None = None,
    options: PartitionOptions | None = None,
) -> PartitionedDocument:
    """A file by its name, whose suffix tells its type unless that is given."""
    data = content.encode() if isinstance(content, str) else content
    kind = media_type_of_suffix("." + name.rpartition(".")[2]) or ""
    raw = RawDocument(
        f"file:///docs/{name}", data, kind if media_type is None else media_type, None,
        datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    return (DocumentPartitioner(options) if options else PARTITIONER).partition(raw)


def headings(document: PartitionedDocument) -> list[tuple[str, int | None]]:
    return [(e.text, e.level) for e in document.elements if e.kind.value == "title"]


def test_an_open_document_keeps_its_styles_lists_tables_and_notes() -> None:
    document = read(odt(), "survey.odt")
    assert (document.title, document.language) == ("Survey", "en")
    assert kinds(document) == [
        ("title", "Survey"),
        ("title", "The pier"),
        ("text", "It is sound[1]."),
        ("list_item", "Pile 4 moves"),
        ("list_item", "slowly"),
        ("table", "Pile\tDepth\n4\t3 m"),
        ("code", "read(4)\n  log()"),
        ("text", "In a box."),
        ("text", "[1] As of May."),
    ]
    assert headings(document) == [("Survey", 1), ("The pier", 2)]
    assert document.elements[5].header_rows == 1


def test_rich_text_keeps_its_headings_lists_tables_and_alphabets() -> None:
    document = read(RTF, "rules.rtf")
    assert document.title == "Rules of the pier"
    assert kinds(document) == [
        ("title", "The pier"),
        ("text", "It is sound, says the größte При € 😀 expert.[1]"),
        ("title", "Rules"),
        ("list_item", "1. No fires."),
        ("list_item", "None at all."),
        ("table", "Pile\tDepth\n4\t3 m"),
        ("code", "x = 1\n  y = {2}"),
        ("text", "The site is here."),
        ("text", "[1] See 5."),
    ]
    assert headings(document) == [("The pier", 1), ("Rules", 2)]
    assert document.elements[5].header_rows == 1


def test_a_book_is_read_in_the_order_of_its_spine_with_a_heading_for_each_chapter() -> None:
    document = read(epub(), "tides.epub")
    assert (document.title, document.language) == ("The tides", "en")
    assert kinds(document) == [
        ("title", "Of no name"),
        ("text", "A chapter without a heading."),
        ("code", "read()"),
        ("title", "The tide"),
        ("text", "It comes and it goes."),
        ("title", "Spring"),
        ("list_item", "high"),
    ]
    assert headings(document)[-2:] == [("The tide", 1), ("Spring", 2)]


def test_an_outlook_message_tells_who_wrote_it_and_names_what_is_attached() -> None:
    envelope = 'From: "The keepers" <keepers@example.org>\nTo: The board <board@example.org>'
    assert kinds(read(msg(), "mark.msg")) == [
        ("title", "Mark B"),
        ("text", envelope),
        ("text", "It has sunk."),
        ("text", "Who saw it?"),
        ("text", "Attachments: run.csv"),
    ]
    html = read(msg(html="<h1>Sunk</h1><p>It <b>has</b>.</p>"), "mark.msg")
    assert kinds(html)[2:4] == [("title", "Sunk"), ("text", "It has.")]
    assert headings(html) == [("Mark B", 1), ("Sunk", 2)]


ASCIIDOC = """= The lamp
Keepers' office
:product: Bright

This is *{product}* at https://example.org[the site], see <<care,care>>.

[[care]]
== Care

.Steps
. Off.
. Wipe
it.
+
NOTE: No acid.

Wick:: burns

[source,python]
----
a = 1
----

[cols="1,2",options="header"]
|===
|Part |Price

|Wick
|3
|Glass |12
|===

// a comment
include::other.adoc[]
____
Quoted.
____
"""


def test_asciidoc_keeps_titles_lists_code_tables_and_notes() -> None:
    document = read(ASCIIDOC, "lamp.adoc")
    assert document.title == "The lamp"
    assert kinds(document) == [
        ("title", "The lamp"),
        ("text", "This is Bright at the site, see care."),
        ("title", "Care"),
        ("caption", "Steps"),
        ("list_item", "1. Off."),
        ("list_item", "2. Wipe it."),
        ("caption", "Note"),
        ("text", "No acid."),
        ("term", "Wick"),
        ("definition", "burns"),
        ("code", "a = 1"),
        ("table", "Part\tPrice\nWick\t3\nGlass\t12"),
        ("quote", "Quoted."),
    ]
    assert document.elements[2].anchor == "care"
    assert document.elements[10].syntax == "python"
    assert document.elements[11].header_rows == 1


NOTEBOOK = {
    "nbformat": 4,
    "metadata": {"kernelspec": {"name": "python3"}},
    "cells": [
        {"cell_type": "markdown", "source": ["# Tides\n", "\n", "With `code`."]},
        {
            "cell_type": "code",
            "source": "load()",
            "outputs": [
                {"output_type": "stream", "text": ["\x1b[1mrow\x1b[0m\n", "more\n"]},
                {"output_type": "execute_result", "data": {"text/plain": "<Axes: >"}},
                {"output_type": "error", "ename": "KeyError", "evalue": "'x'"},
            ],
        },
        {"cell_type": "code", "source": "%%bash\nls"},
    ],
}


def test_a_notebook_is_its_text_and_its_code_with_what_that_printed() -> None:
    document = read(json.dumps(NOTEBOOK), "tides.ipynb")
    assert document.title == "Tides"
    assert kinds(document) == [
        ("title", "Tides"),
        ("text", "With code."),
        ("code", "load()"),
        ("code", "row\nmore\nKeyError: 'x'"),
        ("code", "%%bash\nls"),
    ]
    assert [e.syntax for e in document.elements[2:]] == ["python", "", "bash"]


def test_what_a_notebook_printed_is_cut_at_a_line_or_left_out() -> None:
    text = json.dumps(NOTEBOOK)
    short = read(text, "a.ipynb", options=PartitionOptions(max_output_characters=10))
    assert kinds(short)[3] == ("code", "row\nmore")
    none = read(text, "a.ipynb", options=PartitionOptions(max_output_characters=0))
    assert kinds(none)[3] == ("code", "%%bash\nls")


def test_json_is_names_and_values_as_they_are_written_and_tables_of_records() -> None:
    document = read(
        '{"title": "Stations", "version": 1.10, "open": true, "tags": ["a", "b"], "none": null,'
        '"stations": [{"name": "North", "depth": 3.50}, {"name": "South", "depth": 2}],'
        '"notes": [{"title": "On ice", "body": "<p>First.</p><ul><li>one</li></ul>"}],'
        '"limits": {"speed": 5}, "empty": {}}',
        "stations.json",
    )
    assert document.title == "Stations"
    assert kinds(document) == [
        ("text", "title: Stations\nversion: 1.10\nopen: true\ntags: a, b"),
        ("title", "stations"),
        ("table", "name\tdepth\nNorth\t3.50\nSouth\t2"),
        ("title", "notes"),
        ("title", "On ice"),
        ("text", "First."),
        ("list_item", "one"),
        ("title", "limits"),
        ("text", "speed: 5"),
    ]
    assert document.elements[2].header_rows == 1


def test_json_lines_are_one_record_a_line() -> None:
    long = "A long answer. " * 30
    document = read(
        f'{{"question": "Why?", "answer": "{long}"}}\n\n{{"question": "When?", "answer": "Now."}}\n',
        "faq.jsonl",
    )
    assert headings(document) == [("Why?", 1), ("When?", 1)]
    assert kinds(document)[1] == ("text", f"answer: {long.strip()}")
    with pytest.raises(DocumentError, match="no valid JSON in line 2"):
        read('{"a": 1}\n{"a": \n', "a.jsonl")


DOCBOOK = """<?xml version="1.0"?>
<!DOCTYPE book [<!ENTITY v "4.2"><!ENTITY ext SYSTEM "file:///etc/passwd">]>
<book xmlns="http://docbook.org/ns/docbook" xml:lang="en"><info><title>Pump</title><author>x</author></info>
<chapter xml:id="start"><title>Start</title><para>Version &v; of the <emphasis>pump</emphasis>.&ext;</para>
<itemizedlist><listitem><para>one</para></listitem></itemizedlist>
<section><title>Valves</title><warning><para>Hot.</para></warning>
<programlisting language="python">a = 1
  b = 2</programlisting>
<table><title>Sizes</title><tgroup><thead><row><entry>Size</entry><entry>Bar</entry></row></thead>
<tbody><row><entry>1</entry><entry>3</entry></row></tbody></tgroup></table></section></chapter></book>"""


def test_a_document_in_xml_is_read_by_its_blocks() -> None:
    document = read(DOCBOOK, "pump.xml")
    assert (document.title, document.language) == ("Pump", "en")
    assert kinds(document) == [
        ("title", "Pump"),
        ("title", "Start"),
        ("text", "Version 4.2 of the pump.ext"),
        ("list_item", "one"),
        ("title", "Valves"),
        ("caption", "Warning"),
        ("text", "Hot."),
        ("code", "a = 1\n  b = 2"),
        ("caption", "Sizes"),
        ("table", "Size\tBar\n1\t3"),
    ]
    assert headings(document) == [("Pump", 1), ("Start", 2), ("Valves", 3)]
    assert document.elements[1].anchor == "start"


def test_data_in_xml_is_records_and_a_feed_its_entries() -> None:
    data = read(
        '<books><book id="b1"><title>T1</title><price>3.50</price></book>'
        '<book id="b2"><title>T2</title><price>4.00</price></book></books>',
        "books.xml",
    )
    assert kinds(data) == [("table", "id\ttitle\tprice\nb1\tT1\t3.50\nb2\tT2\t4.00")]
    feed = read(
        '<rss version="2.0"><channel><title>News</title><item><title>Ice</title>'
        "<description>&lt;p&gt;There is &lt;b&gt;ice&lt;/b&gt;.&lt;/p&gt;</description></item></channel>"
        "</rss>",
        "news.xml",
    )
    assert feed.title == "News"
    assert kinds(feed) == [("title", "Ice"), ("text", "There is ice.")]


HTML = b"<!doctype html><html><body><h1>Page</h1><p>It says this.</p></body></html>"


@pytest.mark.parametrize(
    ("content", "name", "first"),
    [
        (pdf, "paper.html", "Chapter 1"),
        (docx, "paper.zip", "Survey"),
        (lambda: HTML, "page.md", "Page"),
        (lambda: HTML, "page.json", "Page"),
        (lambda: HTML.decode().encode("utf-16"), "page", "Page"),
        (lambda: "A line of words.\n\nAnd more.".encode("utf-16-le"), "a.txt", "A line of words."),
        (lambda: "A line of words.\n\nAnd more.".encode("utf-16-be"), "a.txt", "A line of words."),
        (lambda: gzip.compress(HTML), "page.html", "Page"),
        (lambda: gzip.compress(b"# Head\n\nText."), "page.md.gz", "Head"),
        (odt, "paper.docx", "Survey"),
        (epub, "book.zip", "Of no name"),
        (msg, "mail.doc", "Mark B"),
        (lambda: RTF, "rules.doc", "The pier"),
        (lambda: json.dumps(NOTEBOOK).encode(), "tides.json", "Tides"),
        (lambda: DOCBOOK.encode(), "pump", "Pump"),
        (lambda: b'{"a": {"b": "c"}}', "data", "a"),
    ],
)
def test_a_name_that_lies_does_not_mislead(
    content: Callable[[], bytes], name: str, first: str
) -> None:
    assert read(content(), name).elements[0].text == first


def ole(stream: str) -> bytes:
    return compound({stream: b"x" * 100})


@pytest.mark.parametrize(
    ("content", "name", "problem"),
    [
        (lambda: ole("EncryptedPackage"), "a.docx", "protected by a password"),
        (lambda: ole("WordDocument"), "a.doc", "Word format from before 2007"),
        (lambda: ole("Workbook"), "a.xls", "Excel format from before 2007"),
        (lambda: ole("Other"), "a.msg", "of a kind that is not read"),
        (encrypted_pdf, "a.pdf", "encrypted"),
        (lambda: odt(manifest="<m><encryption-data/></m>"), "a.odt", "encrypted"),
        (
            lambda: epub(
                more={"META-INF/encryption.xml": '<EncryptionMethod Algorithm="urn:aes128-cbc"/>'}
            ),
            "a.epub",
            "DRM",
        ),
        (lambda: zipped({"a.txt": "x"}), "a.zip", "an archive, not a document"),
        (lambda: zipped({"x": "y"}, "application/vnd.oasis.opendocument.spreadsheet"), "a.ods", "ODS"),
        (lambda: gzip.compress(zipped({"a": "x"})), "a.gz", "an archive"),
        (lambda: gzip.compress(HTML)[:40], "a.html.gz", "cut short"),
        (lambda: gzip.compress(b"\0" * 10_000_000), "a.txt.gz", "unpack"),
        (lambda: b"7z\xbc\xaf\x27\x1c" + bytes(50), "a.7z", "archive \\(7z\\), which is not read"),
        (lambda: b"hello", "a.epub", "declared as EPUB"),
        (lambda: b"hello", "a.rtf", "declared as RTF"),
        (lambda: b"<svg><text>x</text></svg>", "a.xml", "picture"),
        (lambda: b"<a><b></a>", "a.xml", "no well-formed XML"),
        (lambda: b'{"a": [1, 2', "a.json", "no valid JSON.*line 1"),
        (lambda: b'{"nbformat": 4}', "a.ipynb", "no cells"),
        (lambda: RTF[:-1], "a.rtf", "groups are not closed"),
        (lambda: zipped({"[Content_Types].xml": "<x", "word/document.xml": "<y"}), "a.docx", "damaged"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_apart_with_a_cure(
    content: Callable[[], bytes], name: str, problem: str
) -> None:
    with pytest.raises(DocumentError, match=problem) as caught:
        read(content(), name)
    assert name in caught.value.message
    assert caught.value.hint


def eml() -> bytes:
    mail = EmailMessage()
    mail["Subject"] = "Mark B"
    mail.set_content("It has sunk.")
    mail.add_attachment(b"x" * 500, maintype="text", subtype="csv", filename="run.csv")
    return mail.as_bytes()


EXAMPLES: dict[str, Callable[[], bytes]] = {
    ".docx": docx, ".pptx": pptx, ".xlsx": xlsx, ".pdf": pdf, ".odt": odt, ".epub": epub, ".msg": msg,
    ".eml": eml, ".rtf": lambda: RTF, ".adoc": lambda: ASCIIDOC.encode(), ".xml": lambda: DOCBOOK.encode(),
    ".ipynb": lambda: json.dumps(NOTEBOOK).encode(), ".json": lambda: json.dumps(NOTEBOOK["cells"]).encode(),
    ".jsonl": lambda: b'{"a": "b"}\n{"a": "c"}\n', ".html": lambda: HTML, ".csv": lambda: b"a,b\n1,2\n",
    ".md": lambda: b"---\ntitle: x\n---\n# Head\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    ".rst": lambda: b"Head\n====\n\nText.\n\n.. note::\n\n   Mind.\n", ".txt": lambda: b"Words.\n\nMore.",
    ".py": lambda: b"def f():\n    return 1\n",
}  # fmt: skip


def test_there_is_an_example_of_each_format() -> None:
    same = {".htm": ".html", ".xhtml": ".html", ".markdown": ".md", ".mdx": ".md", ".text": ".txt",
            ".tsv": ".csv", ".asciidoc": ".adoc", ".ndjson": ".jsonl", ".docbook": ".xml", ".dbk": ".xml",
            ".dita": ".xml"}  # fmt: skip
    types = {BY_SUFFIX[suffix] for suffix in EXAMPLES}
    left = {s for s, kind in BY_SUFFIX.items() if kind not in types and s not in same}
    assert {s for s in left if not BY_SUFFIX[s].startswith("text/")} == set()


@pytest.mark.parametrize("suffix", EXAMPLES)
def test_a_damaged_file_is_read_as_far_as_it_goes_or_refused_by_name(suffix: str) -> None:
    """Cut anywhere, filled with zeros, under any other name: never another exception."""
    whole = EXAMPLES[suffix]()
    assert outcome(whole, f"a{suffix}") == "read"
    middle = len(whole) // 2
    broken = [whole[: len(whole) * part // 8] for part in range(8)]
    broken += [whole[:1], whole[:-1], whole[:-30]]
    broken += [whole[:middle] + bytes(64) + whole[middle + 64 :]]
    assert {outcome(content, f"a{suffix}") for content in broken} <= {"read", "refused"}
    assert {outcome(whole, f"a{other}") for other in EXAMPLES} <= {"read", "refused"}


def outcome(content: bytes, name: str) -> str:
    """What becomes of a file: it has elements, or an error that names it and a hint."""
    try:
        return "read" if read(content, name).elements else "nothing"
    except DocumentError as error:
        return "refused" if name in error.message and error.hint else str(error)


@pytest.mark.parametrize("content", [b"", b" \n", bytes(1000)])
@pytest.mark.parametrize("suffix", EXAMPLES)
def test_an_empty_file_says_so(suffix: str, content: bytes) -> None:
    with pytest.raises(DocumentError, match=r"is empty|nothing but zero bytes"):
        read(content, f"a{suffix}")


def test_a_scan_says_what_to_install_and_how_to_switch_it_on() -> None:
    with pytest.raises(DocumentError, match="only images") as caught:
        read(blank_pdf(), "scan.pdf")
    assert "pytesseract" in caught.value.hint
    assert 'pdf_strategy to "ocr"' in caught.value.hint


@pytest.mark.parametrize(
    ("strategy", "package"), [("ocr", "pytesseract"), ("hi_res", "unstructured.partition.pdf")]
)
def test_a_strategy_whose_packages_are_missing_names_them(
    monkeypatch: pytest.MonkeyPatch, strategy: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    options = PartitionOptions(pdf_strategy=strategy)  # type: ignore[arg-type]  # of the parameters
    with pytest.raises(ConfigurationError, match=f'"{strategy}"') as caught:
        read(blank_pdf(), "scan.pdf", options=options)
    assert "Install" in caught.value.hint


def test_recognition_reads_the_pages_that_have_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[tuple[int, int]] = []

    def recognise(picture: object) -> str:
        sizes.append(picture.size)  # type: ignore[attr-defined]  # a picture of Pillow
        return (
            "THE PIER\n\nIt is sound, says the expert, and will be for years.\n\nMore of it here.\n"
        )

    found = SimpleNamespace(image_to_string=recognise, TesseractNotFoundError=FileNotFoundError)
    monkeypatch.setitem(sys.modules, "pytesseract", found)
    options = PartitionOptions(pdf_strategy="ocr")
    document = read(blank_pdf(), "scan.pdf", options=options)
    assert document.title == "THE PIER"
    assert {e.page_number for e in document.elements} == {1}
    assert len(sizes) == 1
    assert max(sizes[0]) > 1500
    assert read(pdf(), "paper.pdf", options=options) == read(pdf(), "paper.pdf")


def test_a_sheet_that_lies_about_its_size_is_read_whole() -> None:
    import re
    import zipfile

    with zipfile.ZipFile(io.BytesIO(xlsx())) as book:
        files: dict[str, bytes | str] = {name: book.read(name) for name in book.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    told = bytes(files[sheet])  # type: ignore[arg-type]  # read from the archive
    files[sheet] = re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1:B2"', told)
    assert files[sheet] != told
    assert read(zipped(files), "a.xlsx") == read(xlsx(), "a.xlsx")


def test_the_blocks_of_a_site_go_from_its_pages_and_change_the_fingerprint() -> None:
    from tidemark.adapters.inspection.inspector import DocumentInspector

    page = (
        "<html><body><main><h1>Page {0}</h1><p>What this page says, of which there is a good deal, and "
        "more than once for page {0}.</p><div><p>Join our keepers for a season by the sea, with "
        "lodging and boots.</p></div></main></body></html>"
    )
    raws = [
        RawDocument(f"http://h/{n}", page.format(n).encode(), "text/html", None, FETCHED_AT)
        for n in range(2)
    ]
    seen = [DocumentInspector().inspect(raw) for raw in raws]
    assert seen[0] is not None
    assert seen[1] is not None
    shared = frozenset(seen[0].blocks) & frozenset(seen[1].blocks)
    assert shared
    with_boilerplate = PARTITIONER.with_boilerplate(shared)
    before, after = PARTITIONER.partition(raws[0]), with_boilerplate.partition(raws[0])
    assert [e for e in before.elements if e not in after.elements] == [
        e for e in before.elements if "keepers" in e.text
    ]
    assert len(after.elements) < len(before.elements)
    assert with_boilerplate.fingerprint != PARTITIONER.fingerprint
    assert PARTITIONER.with_boilerplate(frozenset()).fingerprint == PARTITIONER.fingerprint
    assert PARTITIONER.with_boilerplate(frozenset({1})).fingerprint != PARTITIONER.fingerprint
