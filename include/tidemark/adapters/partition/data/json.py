"""JSON and JSON lines to Elements, each value just as the file writes it (1.10 stays 1.10)."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tidemark.adapters.media import canonical_syntax
from tidemark.adapters.partition.data.structured import Data, data_elements, title_of
from tidemark.adapters.partition.formats import nested_too_deeply
from tidemark.adapters.partition.html.reader import elements_of
from tidemark.adapters.partition.text.markdown import read_markdown
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.errors import DocumentError

_SAME_PLACE = "Correct it at its source, or exclude it."


def load_json(text: str, name: str) -> Data:
    """Parse JSON; numbers stay texts. Raises ``DocumentError`` for what is none or nested too deeply."""
    try:
        return _texts(_decoder().decode(text.strip()))
    except json.JSONDecodeError as error:
        raise DocumentError(
            "partition",
            f"{name} is no valid JSON: {error.msg} in line {error.lineno}, column {error.colno}.",
            "It is damaged or was cut short: fetch or export it again.",
        ) from error
    except RecursionError as error:
        raise nested_too_deeply(name) from error


def partition_json(text: str, name: str, max_depth: int) -> PartitionedDocument:
    """Partition JSON. Raises ``DocumentError``."""
    data = load_json(text, name)
    return PartitionedDocument(title_of(data), tuple(data_elements(data, name, max_depth)))


def partition_json_lines(text: str, name: str, max_depth: int) -> PartitionedDocument:
    """Partition JSON lines: one record a line, read as a list of them. Raises ``DocumentError``."""
    records = list(_lines(text, name))
    elements: tuple[Element, ...] = tuple(data_elements(records, name, max_depth))
    return PartitionedDocument("", elements)


def _lines(text: str, name: str) -> Iterator[Data]:
    decoder = _decoder()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip(" \t\r\x1e"):
            continue
        try:
            yield _texts(decoder.decode(line.strip(" \t\r\x1e")))
        except json.JSONDecodeError as error:
            raise DocumentError(
                "partition",
                f"{name} is no valid JSON in line {number}: {error.msg}.",
                _SAME_PLACE if number > 1 else "Is it JSON lines? " + _SAME_PLACE,
            ) from error
        except RecursionError as error:
            raise nested_too_deeply(name, f" in line {number}") from error


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False)


def _texts(value: Any) -> Data:
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None else str(value)


# A notebook: Markdown cells as Markdown, code cells in their kernel's language, with what they printed.

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
