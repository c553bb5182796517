"""Small documents of formats that only programs write, each made here."""
# ruff: noqa: E501, ISC004

import io
import struct
import zipfile

OFFICE_NS = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"'
)
ODT_BODY = """
<text:tracked-changes><text:p>FURNITURE deleted</text:p></text:tracked-changes>
<text:p text:style-name="Title">Survey</text:p>
<text:table-of-content><text:p>FURNITURE contents</text:p></text:table-of-content>
<text:h text:outline-level="1">The pier</text:h>
<text:p text:style-name="P1">It is<text:s text:c="2"/>sound<text:note><text:note-citation>1</text:note-citation>
<text:note-body><text:p>As of May.</text:p></text:note-body></text:note>.
<office:annotation><text:p>FURNITURE comment</text:p></office:annotation></text:p>
<text:list><text:list-item><text:p>Pile 4 moves</text:p>
<text:list><text:list-item><text:p>slowly</text:p></text:list-item></text:list></text:list-item></text:list>
<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Pile</text:p></table:table-cell>
<table:table-cell><text:p>Depth</text:p></table:table-cell></table:table-row></table:table-header-rows>
<table:table-row><table:table-cell><text:p>4</text:p></table:table-cell>
<table:table-cell><text:p>3 m</text:p></table:table-cell></table:table-row></table:table>
<text:p text:style-name="Preformatted_20_Text">read(4)</text:p>
<text:p text:style-name="Preformatted_20_Text"><text:s text:c="2"/>log()</text:p>
<text:p><draw:frame><draw:text-box><text:p>In a box.</text:p></draw:text-box></draw:frame></text:p>
"""


_WHEN = (2026, 1, 1, 0, 0, 0)


def zipped(files: dict[str, bytes | str], first: str = "") -> bytes:
    """A ZIP file; ``first`` is stored as its first entry, "mimetype"."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        if first:
            archive.writestr(zipfile.ZipInfo("mimetype", _WHEN), first, zipfile.ZIP_STORED)
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, _WHEN), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def odt(body: str = ODT_BODY, before: str = "", manifest: str = "<manifest/>") -> bytes:
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?>{before}<office:document-content {OFFICE_NS}>'
        '<office:automatic-styles><style:style style:name="P1" style:parent-style-name="Standard"/>'
        f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body>"
        "</office:document-content>"
    )
    meta = (
        f"<office:document-meta {OFFICE_NS}><office:meta><dc:language>en-GB</dc:language></office:meta>"
        "</office:document-meta>"
    )
    return zipped(
        {"content.xml": content, "meta.xml": meta, "META-INF/manifest.xml": manifest},
        "application/vnd.oasis.opendocument.text",
    )


CHAPTERS = (
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body><h1 id="a">The tide</h1>'
    '<p>It comes<a id="x"/> and it&nbsp;goes.</p><h2>Spring</h2><ul><li>high</li></ul></body></html>',
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body>'
    "<p>A chapter without a heading.</p><pre>read()</pre></body></html>",
)


def epub(chapters: tuple[str, ...] = CHAPTERS, more: dict[str, bytes | str] | None = None) -> bytes:
    items = "".join(f'<item id="c{n}" href="c{n}.xhtml"/>' for n in range(len(chapters)))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in reversed(range(len(chapters))))
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>The tides</dc:title><dc:language>en</dc:language></metadata><manifest>"
        f'<item id="nav" href="nav.xhtml" properties="nav"/>{items}</manifest>'
        f'<spine><itemref idref="nav"/>{spine}</spine></package>'
    )
    nav = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><nav><ol><li><a href="c1.xhtml">Of no name</a></li>'
        '<li><a href="c0.xhtml">The tide</a></li></ol></nav></body></html>'
    )
    files: dict[str, bytes | str] = {
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
        "OPS/book.opf": opf,
        "OPS/nav.xhtml": nav,
    }
    files |= {f"OPS/c{n}.xhtml": text for n, text in enumerate(chapters)}
    return zipped(files | (more or {}), "application/epub+zip")


RTF = rb"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\froman Times;}{\f1\fmodern Courier New;}{\f2\fcharset204 Arial;}}
{\stylesheet{\s0 Normal;}{\s1 heading 1;}{\s2 heading 2;}}{\info{\title Rules of the pier}{\author FURNITURE}}
{\header FURNITURE\par}{\pard\s1 The pier\par}
\pard It is \b sound\b0 , says the gr\'f6\'dfte {\f2\'cf\'f0\'e8} {\u8364?} \u-10179?\u-8704? expert.{\footnote\pard See 5.}\par
\pard\s2\outlinelevel1 Rules\par
{\listtext\tab 1.\tab}\pard\ls1\ilvl0 No fires.\par
{\listtext\bullet\tab}\pard\ls1\ilvl1 None at all.\par
\trowd\trhdr\cellx1000\cellx2000\pard\intbl Pile\cell Depth\cell\row
\trowd\cellx1000\cellx2000\pard\intbl 4\cell 3 m\cell\row
\pard {\f1 x = 1}\par
\pard {\f1   y = \{2\}}\par
\pard {\field{\*\fldinst HYPERLINK "http://h"}{\fldrslt The site}} is here.{\*\unknown FURNITURE}{\v FURNITURE}\par
{\pict\pngblip 89504e47}}"""


def compound(tree: dict[str, bytes | dict[str, bytes]]) -> bytes:
    """A compound (OLE) file of streams under 4 KiB, and of folders with such streams."""
    entries: list[list[int | str]] = [["Root Entry", 5, _NONE, _NONE, 0, 0]]
    mini, mini_fat = _place_streams(tree, entries)
    mini = mini.ljust(-(-len(mini) // 512) * 512, b"\0")
    directory = b"".join(_directory_entry(*entry) for entry in entries)  # type: ignore[arg-type]
    parts = [
        mini,
        _padded(directory),
        _padded(struct.pack(f"<{len(mini_fat)}I", *mini_fat), b"\xff"),
    ]
    fat: list[int] = []
    starts = []
    for part in parts:
        starts.append(len(fat))
        count = len(part) // 512
        fat += [*range(len(fat) + 1, len(fat) + count), _END]
    entries[0][4:] = [starts[0], len(mini)]
    parts[1] = _padded(b"".join(_directory_entry(*entry) for entry in entries))  # type: ignore[arg-type]
    fat.append(0xFFFFFFFD)
    assert len(fat) <= 128, "one sector of the table is enough for what is made here"
    header = (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
        + struct.pack("<HHHHH", 62, 3, 0xFFFE, 9, 6) + bytes(6)
        + struct.pack("<9I", 0, 1, starts[1], 0, 4096, starts[2], len(parts[2]) // 512, _END, 0)
        + struct.pack("<109I", len(fat) - 1, *[_NONE] * 108)
    )  # fmt: skip
    return header + b"".join(parts) + _padded(struct.pack(f"<{len(fat)}I", *fat), b"\xff")


_NONE, _END = 0xFFFFFFFF, 0xFFFFFFFE


def _padded(data: bytes, filler: bytes = b"\0") -> bytes:
    return data.ljust(-(-len(data) // 512) * 512, filler)


def _place_streams(
    tree: dict[str, bytes | dict[str, bytes]], entries: list[list[int | str]]
) -> tuple[bytes, list[int]]:
    """Give each stream and folder its entry; the siblings of one folder are a chain to the right."""
    mini, fat = b"", []

    def children(owner: int, content: dict[str, bytes | dict[str, bytes]]) -> None:
        nonlocal mini
        before = None
        for name, value in sorted(
            content.items(), key=lambda pair: (len(pair[0]), pair[0].upper())
        ):
            place = len(entries)
            if before is None:
                entries[owner][3] = place
            else:
                entries[before][2] = place
            before = place
            if isinstance(value, dict):
                entries.append([name, 1, _NONE, _NONE, 0, 0])
                children(place, dict(value))
                continue
            assert len(value) < 4096
            count = -(-len(value) // 64)
            entries.append([name, 2, _NONE, _NONE, len(fat) if count else _END, len(value)])
            fat.extend([*range(len(fat) + 1, len(fat) + count), _END] if count else [])
            mini += value.ljust(count * 64, b"\0")

    children(0, tree)
    return mini, fat


def _directory_entry(name: str, kind: int, right: int, child: int, start: int, size: int) -> bytes:
    text = name.encode("utf-16-le")
    return (
        text.ljust(64, b"\0")
        + struct.pack("<HBBIII", len(text) + 2, kind, 1, _NONE, right, child)
        + bytes(36)
        + struct.pack("<IQ", start, size)
    )


def msg(
    body: str = "It has sunk.\r\n\r\nWho saw it?", html: str = "", subject: str = "Mark B"
) -> bytes:
    """An Outlook message with an attachment."""
    fields = {"0037": subject, "1000": body, "0C1A": "The keepers", "0C1F": "keepers@example.org"}
    streams: dict[str, bytes | dict[str, bytes]] = {}
    properties = bytes(8) + struct.pack("<IIII", 1, 1, 1, 1) + bytes(8)
    for tag, text in fields.items():
        properties += _property(tag, 0x1F, len(text) * 2 + 2)
        streams[f"__substg1.0_{tag}001F"] = text.encode("utf-16-le")
    if html:
        properties += _property("1013", 0x102, len(html))
        streams["__substg1.0_10130102"] = html.encode()
    streams["__properties_version1.0"] = properties
    streams["__recip_version1.0_#00000000"] = {
        "__properties_version1.0": bytes(8)
        + _property("3001", 0x1F, 20)
        + _property("39FE", 0x1F, 36),
        "__substg1.0_3001001F": "The board".encode("utf-16-le"),
        "__substg1.0_39FE001F": "board@example.org".encode("utf-16-le"),
    }
    streams["__attach_version1.0_#00000000"] = {
        "__properties_version1.0": bytes(8) + _property("3707", 0x1F, 16),
        "__substg1.0_3707001F": "run.csv".encode("utf-16-le"),
    }
    streams["__nameid_version1.0"] = {"__substg1.0_00020102": b""}
    return compound(streams)


def _property(tag: str, kind: int, size: int) -> bytes:
    return struct.pack("<HHIII", kind, int(tag, 16), 6, size, 0)
