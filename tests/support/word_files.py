"""A Word file with what writers of it leave in files and readers of it miss."""

from io import BytesIO
from typing import Any

_MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def word_file() -> bytes:
    """Tracked changes, a content control, a simple field, a formula, hidden text, pages, own styles."""
    from docx import Document
    from docx.enum.style import WD_STYLE_TYPE
    from docx.oxml import parse_xml
    from docx.oxml.ns import nsdecls

    document = Document()
    own = document.styles.add_style("Unterkapitel", WD_STYLE_TYPE.PARAGRAPH)
    own.base_style = document.styles["Heading 2"]
    document.add_heading("Lamps", 1)
    deleted = "<w:r><w:delText>ten</w:delText></w:r>"
    changed = (
        f"<w:ins w:id='1' w:author='a'>{_run('sixteen')}</w:ins><w:del w:id='2'>{deleted}</w:del>"
    )
    hidden = _run("secret", "<w:rPr><w:vanish/></w:rPr>")
    control = f"<w:sdt><w:sdtContent>{_run('Keeper: Fen, ')}</w:sdtContent></w:sdt>"
    field = f"<w:fldSimple w:instr='DATE'>{_run('12 May')}</w:fldSimple>"
    rest = _run("and then goes out.", "<w:br/>")
    for part in (
        _run("It burns ") + changed + _run(" hours") + hidden + rest,
        control + field,
        f"<m:oMath xmlns:m='{_MATH}'><m:r><m:t>E=mc</m:t></m:r></m:oMath>",
    ):
        _add(document, f"<w:p {nsdecls('w')}>{part}</w:p>", parse_xml)
    document.add_paragraph("Wicks", style="Unterkapitel")
    outlined = "<w:pPr><w:outlineLvl w:val='2'/></w:pPr>"
    page = "<w:r><w:lastRenderedPageBreak/><w:t>Outlined</w:t></w:r>"
    _add(document, f"<w:p {nsdecls('w')}>{outlined}{page}</w:p>", parse_xml)
    document.add_paragraph("Cotton", style="List Bullet")
    document.add_paragraph("Long", style="List Bullet 2")
    target = BytesIO()
    document.save(target)
    return target.getvalue()


def _run(text: str, before: str = "") -> str:
    return f"<w:r>{before}<w:t xml:space='preserve'>{text}</w:t></w:r>"


def _add(document: Any, xml: str, parse: Any) -> None:
    document.element.body.insert(len(document.element.body) - 1, parse(xml))
