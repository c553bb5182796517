"""What is in a Word file beside its plain paragraphs."""

import zipfile
from io import BytesIO

from word_files import word_file

from tidemark.adapters.partition.office.word import partition_docx
from tidemark.domain.documents import Element


def elements(content: bytes) -> list[tuple[str, str, int | None, int | None]]:
    found: tuple[Element, ...] = partition_docx(content, "file:///a.docx", 1000).elements
    return [(e.kind.value, e.text, e.level, e.page_number) for e in found]


def test_it_reads_changes_controls_fields_formulas_and_headings_by_what_their_style_is_based_on() -> (
    None
):
    assert elements(word_file()) == [
        ("title", "Lamps", 1, 1),
        ("text", "It burns sixteen hours\nand then goes out.", None, 1),
        ("text", "Keeper: Fen, 12 May", None, 1),
        ("text", "E=mc", None, 1),
        ("title", "Wicks", 2, 1),
        ("title", "Outlined", 3, 2),
        ("list_item", "Cotton", 1, 2),
        ("list_item", "Long", 2, 2),
    ]


def test_it_joins_a_note_at_the_foot_of_a_page_with_its_mark() -> None:
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r" '
        f'Type="{relations}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship '
        f'Id="r" Type="{relations}/footnotes" Target="footnotes.xml"/></Relationships>',
        "word/document.xml": f"<w:document {space}><w:body><w:p><w:r><w:t>Berths are free</w:t></w:r>"
        '<w:r><w:footnoteReference w:id="2"/></w:r></w:p></w:body></w:document>',
        "word/footnotes.xml": f'<w:footnotes {space}><w:footnote w:id="2"><w:p><w:r><w:t>In winter.</w:t>'
        "</w:r></w:p></w:footnote></w:footnotes>",
    }
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    assert elements(target.getvalue()) == [
        ("text", "Berths are free[1]", None, None),
        ("text", "[1] In winter.", None, None),
    ]
