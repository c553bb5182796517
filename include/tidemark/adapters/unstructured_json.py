"""JSON and JSON lines to Elements, each value just as the file writes it (1.10 stays 1.10)."""

import json
from collections.abc import Iterator
from typing import Any

from tidemark.adapters.structured_data import Data, data_elements, title_of
from tidemark.domain.errors import DocumentError
from tidemark.domain.model import Element, PartitionedDocument

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
        raise DocumentError("partition", f"{name} is nested too deeply.", "Simplify it.") from error


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
            raise DocumentError(
                "partition", f"{name} is nested too deeply in line {number}.", "Simplify it."
            ) from error


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
