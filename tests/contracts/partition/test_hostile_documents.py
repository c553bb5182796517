"""Documents made to harm: each is read within bounds or refused by name, and the next one is read."""

import io
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from format_makers import epub, odt, zipped
from test_partitioner import docx, xlsx

from tidemark.adapters.media import media_type_of_suffix
from tidemark.adapters.partition.options import PartitionOptions
from tidemark.adapters.partition.sandbox.parent import SandboxedPartitioner, SandboxLimits
from tidemark.domain.documents import PartitionedDocument, RawDocument
from tidemark.domain.errors import DocumentError

pytestmark = pytest.mark.model
DEEP = 10_000
LIMITS = SandboxLimits(memory_bytes=500 * 2**20, seconds=30, seconds_per_mebibyte=0)
OPTIONS = PartitionOptions(max_cells=20_000)
LAUGHS = (
    '<!DOCTYPE l [<!ENTITY l0 "ha">'
    + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    + "]>"
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxedPartitioner]:
    made = SandboxedPartitioner(OPTIONS, LIMITS)
    yield made
    made.close()


def read(sandbox: SandboxedPartitioner, content: bytes, name: str) -> PartitionedDocument:
    kind = media_type_of_suffix("." + name.rpartition(".")[2]) or ""
    return sandbox.partition(
        RawDocument(f"file:///docs/{name}", content, kind, None, datetime(2026, 1, 1, tzinfo=UTC))
    )


def changed(document: bytes, part: str, content: bytes | str) -> bytes:
    """An Office file with another content of one part."""
    with zipfile.ZipFile(io.BytesIO(document)) as archive:
        files: dict[str, bytes | str] = {name: archive.read(name) for name in archive.namelist()}
    return zipped(files | {part: content})


def lying_zip(document: bytes, part: str) -> bytes:
    """One part unpacks to 60 MB, and its entries say 100 bytes."""
    packed = bytearray(changed(document, part, b"<x>" + b" " * 60_000_000))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        size = archive.getinfo(part).file_size
    told, said = size.to_bytes(4, "little"), (100).to_bytes(4, "little")
    assert packed.count(told) >= 2
    return bytes(packed.replace(told, said))


def honest_bomb(document: bytes, part: str) -> bytes:
    return changed(document, part, b" " * 60_000_000)


def pdf_of(*objects: bytes, circular: bool = False) -> bytes:
    """A PDF of these objects; circular: its table of objects comes before itself."""
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n" % number + body + b"\nendobj\n")
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    before = b"/Prev %d" % start if circular else b""
    out.write(b"trailer\n<</Size %d/Root 1 0 R%b>>\n" % (len(places) + 1, before))
    out.write(b"startxref\n%d\n%%%%EOF" % start)
    return out.getvalue()


def pdf_bomb() -> bytes:
    packer = zlib.compressobj(1)
    stream = (
        b"".join(packer.compress(b"BT (a) Tj ET " * 80_000) for _ in range(600)) + packer.flush()
    )
    return pdf_of(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>\nstream\n%b\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )


def pdf_loop() -> bytes:
    """Pages that hold each other, and a table of objects that comes before itself."""
    return pdf_of(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[2 0 R 3 0 R]/Parent 3 0 R/Count 1>>",
        b"<</Type/Pages/Kids[2 0 R 3 0 R]/Parent 2 0 R/Count 9>>",
        circular=True,
    )


def sheet_rows(count: int, column: str) -> bytes:
    cell = '<row r="{0}"><c r="{1}{0}" t="inlineStr"><is><t>x</t></is></c></row>'
    rows = "".join(cell.format(n, column) for n in range(1, count + 1))
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    content = f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'
    return changed(xlsx(), "xl/worksheets/sheet1.xml", content)


def word_cells(count: int) -> bytes:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    cells = "<w:tc><w:p/></w:tc>" * count
    body = f"<w:body><w:tbl><w:tr>{cells}</w:tr></w:tbl></w:body>"
    return changed(
        docx(), "word/document.xml", f'<w:document xmlns:w="{space}">{body}</w:document>'
    )


def laughing_word() -> bytes:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = "<w:body><w:p><w:r><w:t>&l9;</w:t></w:r></w:p></w:body>"
    return changed(
        docx(), "word/document.xml", f'{LAUGHS}<w:document xmlns:w="{space}">{body}</w:document>'
    )


REFUSED: list[tuple[str, Callable[[], bytes], str]] = [
    ("honest.docx", lambda: honest_bomb(docx(), "word/document.xml"), "would unpack"),
    ("honest.xlsx", lambda: honest_bomb(xlsx(), "xl/worksheets/sheet1.xml"), "would unpack"),
    ("honest.epub", lambda: honest_bomb(epub(), "OPS/c0.xhtml"), "would unpack"),
    ("honest.odt", lambda: honest_bomb(odt(), "content.xml"), "would unpack"),
    ("lying.docx", lambda: lying_zip(docx(), "word/document.xml"), "DOCX|damaged"),
    ("lying.xlsx", lambda: lying_zip(xlsx(), "xl/worksheets/sheet1.xml"), "XLSX|damaged"),
    ("lying.epub", lambda: lying_zip(epub(), "OPS/c0.xhtml"), "EPUB|damaged"),
    ("lying.odt", lambda: lying_zip(odt(), "content.xml"), "ODT|damaged"),
    ("laughs.xml", lambda: f"{LAUGHS}<x>&l9;</x>".encode(), "multiply without bound"),
    ("attribute.xml", lambda: f'{LAUGHS}<x a="&l9;">t</x>'.encode(), "multiply without bound"),
    ("laughs.odt", lambda: odt("<text:p>&l9;</text:p>", LAUGHS), "multiply without bound"),
    ("laughs.docx", laughing_word, "multiply without bound"),
    ("deep.html", lambda: b"<html><body>" + b"<div>" * DEEP + b"x", "deep"),
    ("deep.xml", lambda: b"<a>" * DEEP + b"x" + b"</a>" * DEEP, "nested too deeply"),
    ("deep.json", lambda: b"[" * DEEP + b"]" * DEEP, "nested too deeply"),
    ("deep.jsonl", lambda: b'{"a":' * 500 + b"1" + b"}" * 500, "nested too deeply"),
    ("deep.md", lambda: b">" * DEEP + b" x", "nested too deeply"),
    ("deep.adoc", lambda: b"\n".join(b"=" * (4 + n) for n in range(500)), "nested too deeply"),
    ("deep.odt", lambda: odt("<text:section>" * DEEP + "x" + "</text:section>" * DEEP), "deeply"),
    ("deep.epub", lambda: epub((f"<html><body>{'<div>' * DEEP}x</body></html>",)), "deep"),
    ("cells.csv", lambda: b"1,2,3,4,5,6,7,8,9,0\n" * 5000, "more than 20,000 cells"),
    ("far.xlsx", lambda: sheet_rows(3000, "XFD"), "more than 20,000 cells"),
    ("cells.docx", lambda: word_cells(30_000), "more than 20,000 cells"),
    ("bomb.pdf", pdf_bomb, "ran out of memory"),
    ("loop.pdf", pdf_loop, "damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "problem"), REFUSED, ids=[name for name, _, _ in REFUSED])
def test_it_is_refused_by_name_and_the_next_document_is_read(
    sandbox: SandboxedPartitioner, name: str, make: Callable[[], bytes], problem: str
) -> None:
    with pytest.raises(DocumentError, match=problem) as caught:
        read(sandbox, make(), name)
    assert name in caught.value.message
    assert caught.value.hint
    assert read(sandbox, b"# Head\n\nText.\n", "next.md").title == "Head"


READ: list[tuple[str, Callable[[], bytes], str]] = [
    ("deep.rtf", lambda: b"{\\rtf1 calm" + b"{" * DEEP + b"}" * DEEP + b"\\par}", "calm"),
    ("picture.html", lambda: (
        f"<html><body><h1>Calm</h1><p>It has a picture.</p><svg>{LAUGHS}<text>&l9;</text></svg></body></html>"
    ).encode(), "Calm"),
    ("outside.xml", lambda: (
        b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a><p>calm &e; water</p></a>'
    ), "calm e water"),
    ("cells.html", lambda: (
        b"<html><body><h1>Calm</h1><table>" + (b"<tr>" + b"<td>1</td>" * 10 + b"</tr>") * 3000 + b"</table>"
    ), "Calm"),
    ("line.txt", lambda: b"a( " * 1_700_000, "a( a("),
    ("numbers.txt", lambda: b"1.1." * 200_000, "1.1."),
    ("line.adoc", lambda: b"*a `b http://x[ " * 100_000, "*a"),
    ("strong.md", lambda: b"*a _b " * 3000, "*a"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "make", "begin"), READ, ids=[name for name, _, _ in READ])
def test_it_is_read_in_bounded_time(
    sandbox: SandboxedPartitioner, name: str, make: Callable[[], bytes], begin: str
) -> None:
    started = time.monotonic()
    assert read(sandbox, make(), name).elements[0].text.startswith(begin)
    assert time.monotonic() - started < 30
