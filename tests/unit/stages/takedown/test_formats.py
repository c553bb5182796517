"""A text that was taken down does not come back in other bytes, whatever format it is in."""

import io
import zipfile
from collections.abc import Callable

import pytest
from format_makers import odt
from takedowns import holders, live_uris, reasons, taken_down
from worlds import World

from tidemark.adapters.inspection.inspector import DocumentInspector
from tidemark.adapters.partition.partitioner import DocumentPartitioner
from tidemark.domain.documents import Outcome
from tidemark.stages.crawl import read_listing

pytestmark = pytest.mark.model

A, B, C, D = (f"https://example.org/{name}" for name in "abcd")
SECRET = "tide tables of the hidden harbour"
PARAGRAPHS = [
    f"Line {n} of the {SECRET}: it says at length what nobody is to read any more."
    for n in range(6)
]


def text(paragraphs: list[str], variant: int) -> bytes:
    return "\n\n".join(paragraphs).encode() + b"\n" * (variant + 1)


def markdown(paragraphs: list[str], variant: int) -> bytes:
    return b"# Tides\n\n" + text(paragraphs, variant) + b" " * variant


def html(paragraphs: list[str], variant: int) -> bytes:
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"<html><body><main><h1>Tides</h1>{body}</main></body></html>{' ' * variant}".encode()


def csv(paragraphs: list[str], variant: int) -> bytes:
    rows = "\n".join(f'{n},"{paragraph}"' for n, paragraph in enumerate(paragraphs))
    return f"number,text\n{rows}{chr(10) * variant}".encode()


def pdf(paragraphs: list[str], variant: int) -> bytes:
    from fpdf import FPDF

    document = FPDF()
    document.set_creator(f"Printer {variant}")
    document.add_page()
    for paragraph in paragraphs:
        document.set_font("Helvetica", size=11)
        document.multi_cell(0, 6, paragraph + " " * variant, new_x="LMARGIN", new_y="NEXT")
        document.ln(4)
    return bytes(document.output())


def docx(paragraphs: list[str], variant: int) -> bytes:
    import docx as word

    document = word.Document()
    document.core_properties.comments = f"Saved {variant} times"
    for paragraph in paragraphs:
        document.add_paragraph(paragraph + " " * variant)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def xlsx(paragraphs: list[str], variant: int) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    book.properties.description = f"Saved {variant} times"
    book.active.append(["Number", "Text"])
    for n, paragraph in enumerate(paragraphs):
        book.active.append([n, paragraph])
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def open_document(paragraphs: list[str], variant: int) -> bytes:
    written = odt("".join(f"<text:p>{p}</text:p>" for p in paragraphs))
    buffer = io.BytesIO(written)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("Thumbnails/thumbnail.png", bytes(variant))
    return buffer.getvalue()


OFFICE = "application/vnd.openxmlformats-officedocument"
FORMATS: dict[str, tuple[str, Callable[[list[str], int], bytes]]] = {
    "text": ("text/plain", text),
    "Markdown": ("text/markdown", markdown),
    "HTML": ("text/html", html),
    "CSV": ("text/csv", csv),
    "PDF": ("application/pdf", pdf),
    "DOCX": (f"{OFFICE}.wordprocessingml.document", docx),
    "XLSX": (f"{OFFICE}.spreadsheetml.sheet", xlsx),
    "ODT": ("application/vnd.oasis.opendocument.text", open_document),
}
UNKNOWN_UNTIL_PARTITIONED = {"PDF", "DOCX", "XLSX", "ODT"}


@pytest.mark.parametrize("kind", FORMATS)
def test_neither_a_new_document_nor_another_ones_next_version_says_it_again(kind: str) -> None:
    media_type, make = FORMATS[kind]
    world = World()
    world.source.media_type = media_type
    world.inspector = DocumentInspector()
    world.partitioner.inner = DocumentPartitioner()
    world.documents[A] = make(PARAGRAPHS, 0)
    innocent = [f"Another gauge at pier {n} shows what everybody may read." for n in range(6)]
    world.documents[B] = make(innocent, 0)
    world.run()
    assert live_uris(world) == {A, B}
    taken_down(world, A)
    stored = set(world.artifacts.keys("raw/"))

    world.documents[C] = make(PARAGRAPHS, 1)
    world.documents[B] = make(PARAGRAPHS, 2)
    assert len({world.documents[uri] for uri in (A, B, C)}) == 3, "other bytes each"
    for _ in range(2):
        assert world.run().status == "success"
        assert live_uris(world) == {B}
        assert list(holders(world, SECRET)) == []
        assert set(world.artifacts.keys("raw/")) == stored, "nor are its bytes kept"
        assert reasons(world, C) == ("skip", "taken_down", reasons(world, B)[2])
        assert reasons(world, B)[:2] == ("keep", "taken_down")
        assert f"has the text of {A}, which was taken down" in reasons(world, C)[2]
        assert world.audit().clean
    last = world.ledger.runs.recent()[0].run_id
    outcomes = {o.uri: o.outcome for o in read_listing(world.artifacts, last) if hasattr(o, "uri")}
    known_before = outcomes[C] is Outcome.EXCLUDED
    assert known_before == (kind not in UNKNOWN_UNTIL_PARTITIONED)

    world.documents[B] = make([*innocent, "And more."], 0)
    world.documents[D] = make([*PARAGRAPHS[:2], "The rest is another text, and may be read."], 0)
    world.run()
    assert live_uris(world) == {B, D}


def test_the_same_text_in_another_format_is_the_same_text() -> None:
    world = World()
    world.inspector = DocumentInspector()
    world.partitioner.inner = DocumentPartitioner()
    world.source.media_types = {A: FORMATS["DOCX"][0], C: "text/plain"}
    world.documents[A] = docx(PARAGRAPHS, 0)
    world.run()
    taken_down(world, A)
    world.documents[C] = text(PARAGRAPHS, 0)
    world.run()
    assert live_uris(world) == set()


def test_a_twin_keeps_its_text_when_it_is_read_again_or_renamed() -> None:
    world = World()
    world.inspector = DocumentInspector()
    world.partitioner.inner = DocumentPartitioner()
    world.source.media_type = FORMATS["DOCX"][0]
    world.documents[A] = docx(PARAGRAPHS, 0)
    world.documents[B] = docx(PARAGRAPHS, 1)
    world.run()
    taken_down(world, A)
    world.run(force=True)
    assert live_uris(world) == {B}, "it had the text all along"
    world.documents[B] = docx(PARAGRAPHS, 2)
    world.run()
    assert reasons(world, B)[:2] == ("keep", "furniture"), "the same content in other bytes"
    world.documents[D] = world.documents.pop(B)
    world.source.gone[B] = "404"
    world.run()
    assert live_uris(world) == {D}
    assert world.audit().clean
