"""A notebook: Markdown cells as Markdown, code cells in their kernel's language, with what they printed."""

import re
from collections.abc import Iterator

from tidemark.adapters.structured_data import Data
from tidemark.adapters.syntaxes import canonical_syntax
from tidemark.adapters.unstructured_html import elements_of
from tidemark.adapters.unstructured_json import load_json
from tidemark.adapters.unstructured_markdown import read_markdown
from tidemark.domain.errors import DocumentError
from tidemark.domain.model import Element, ElementKind, PartitionedDocument

_MAGIC = re.compile(r"%%(\w+)[^\n]*\n")
_MAGICS = {"sh": "bash", "bash": "bash", "sql": "sql", "html": "html", "javascript": "javascript",
           "js": "javascript", "latex": "latex", "perl": "perl", "ruby": "ruby", "r": "r",
           "R": "r"}  # fmt: skip
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_OBJECT = re.compile(r"<[\w.]+(?: .*)? at 0x[0-9a-fA-F]+>|<Figure size .*>|<Axes: .*>|None")


def partition_notebook(
    text: str, name: str, max_depth: int, max_output: int
) -> PartitionedDocument:
    """Partition a notebook. Raises ``DocumentError`` for what is none.

    max_output: characters of what a code cell printed that are kept; 0 keeps none.
    """
    notebook = load_json(text, name)
    cells = _cells(notebook)
    if not isinstance(notebook, dict) or cells is None:
        raise DocumentError(
            "partition", f"{name} has no cells: it is no notebook.", "Open and save it again."
        )
    metadata = _dict(notebook.get("metadata"))
    info, kernel = _dict(metadata.get("language_info")), _dict(metadata.get("kernelspec"))
    language = str(info.get("name") or kernel.get("language") or kernel.get("name") or "")
    syntax = canonical_syntax(language) or canonical_syntax(language.rstrip("0123456789"))
    elements: list[Element] = []
    for cell in cells:
        elements += _cell(_dict(cell), name, max_depth, syntax, max_output)
    return PartitionedDocument(str(metadata.get("title") or ""), tuple(elements))


def _cells(notebook: Data) -> list[Data] | None:
    if not isinstance(notebook, dict):
        return None
    cells = notebook.get("cells")
    if cells is None:  # before version 4 of the format
        sheets = notebook.get("worksheets")
        first = _dict(sheets[0]) if isinstance(sheets, list) and sheets else {}
        cells = first.get("cells")
    return cells if isinstance(cells, list) else None


def _cell(
    cell: dict[str, Data], name: str, max_depth: int, syntax: str, max_output: int
) -> Iterator[Element]:
    kind, source = cell.get("cell_type"), _joined(cell.get("source", cell.get("input")))
    if kind == "heading":
        level = str(cell.get("level") or "1")
        yield Element(
            ElementKind.TITLE, " ".join(source.split()), int(level) if level in "123456" else 1
        )
    elif kind in {"markdown", "raw"}:
        if source.strip():
            yield from elements_of(read_markdown(source, name, max_depth).root)
    elif kind == "code" and source.strip():
        magic = _MAGIC.match(source.lstrip())
        spoken = _MAGICS.get(magic[1], syntax) if magic else syntax
        yield Element(ElementKind.CODE, source.strip("\n").rstrip(), syntax=spoken)
        output = _output(cell.get("outputs"), max_output) if max_output else ""
        if output:
            yield Element(ElementKind.CODE, output)


def _output(outputs: Data, limit: int) -> str:
    """What a cell printed or returned, in text and cut at a line's end where it is long."""
    parts: list[str] = []
    for item in outputs if isinstance(outputs, list) else []:
        output = _dict(item)
        if output.get("output_type") in {"error", "pyerr"}:
            parts.append(f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}")
            continue
        data = _dict(output.get("data"))
        text = _joined(output.get("text")) or _joined(data.get("text/plain"))
        text = _ESCAPES.sub("", text)
        if not _OBJECT.fullmatch(text.strip()):
            # A progress bar writes its line over and over.
            parts.append("\n".join(line.rpartition("\r")[2] for line in text.split("\n")))
    text = "\n".join(part.strip("\n") for part in parts if part.strip()).rstrip()
    if len(text) <= limit:
        return text
    return text[:limit].rpartition("\n")[0] or text[:limit]


def _joined(value: Data) -> str:
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _dict(value: Data) -> dict[str, Data]:
    return value if isinstance(value, dict) else {}
