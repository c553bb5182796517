"""Tables of AsciiDoc: cells begin with a bar, on one line a row or one line each."""

import csv
import re
from collections.abc import Callable, Iterator

from lxml import etree

from tidemark.adapters.unstructured_plain_text import add_block

_CELL = re.compile(r"(?:(\d{1,3})?(?:\.(\d{1,3}))?(\+)|(\d{1,3})(\*))?[<^>.]{0,4}([aehlmsdv])?\|")
_COLUMNS = re.compile(r"cols=\"?([^\"\]]*)")


def add_table(
    table: etree._Element, lines: list[str], mark: str, options: str, text: Callable[[str], str]
) -> None:
    """Fill ``table`` with the rows in ``lines``; ``mark`` begins its delimiter (a bar, "," or ":").

    options: the block's attributes as one text. text: reads a cell's inline marks.
    """
    blank_first = len(lines) > 1 and bool(lines[0].strip()) and not lines[1].strip()
    header = "header" in options or blank_first
    if mark in ",:":
        rows = [[(cell, 1, 1) for cell in row] for row in _separated(lines, mark)]
    else:
        rows = _in_rows(
            list(_cells(lines, "!" if mark == "!" else "|")), _width(lines, options, mark)
        )
    for number, row in enumerate(rows):
        line = etree.SubElement(table, "tr")
        for cell, columns, below in row:
            made = add_block(line, "th" if header and number == 0 else "td", text(cell.strip()))
            if columns > 1:
                made.set("colspan", str(columns))
            if below > 1:
                made.set("rowspan", str(below))


def _separated(lines: list[str], mark: str) -> Iterator[list[str]]:
    delimiter = "," if mark == "," else ":"
    try:
        yield from csv.reader([line for line in lines if line.strip()], delimiter=delimiter)
    except csv.Error:
        yield from ([line] for line in lines if line.strip())


def _width(lines: list[str], options: str, mark: str) -> int:
    """How many columns: as declared, else as many cells as the first line with any has."""
    declared = _COLUMNS.search(options)
    if declared:
        repeated = re.findall(r"(\d{1,3})\*", declared[1])
        plain = len([part for part in re.split("[,;]", declared[1]) if part.strip()])
        return sum(map(int, repeated)) or plain
    first = next((line for line in lines if mark in line), "")
    return sum(columns for _, columns, _ in _cells([first], mark))


def _cells(lines: list[str], mark: str) -> Iterator[tuple[str, int, int]]:
    """Text of each cell, and over how many columns and rows it reaches."""
    current: list[str] = []
    span = (1, 1)
    begun = False
    copies = 1
    for line in lines:
        place = 0
        if not line.strip() or len(line) > 100_000:
            continue
        for found in _CELL.finditer(line) if mark == "|" else re.finditer("!", line):
            if found.start() and line[found.start() - 1] == "\\":
                continue
            current.append(line[place : found.start()])
            if begun:
                for _ in range(copies):
                    yield " ".join(" ".join(current).split()), *span
            begun, current, place = True, [], found.end()
            span, copies = _reach(found)
        current.append(line[place:])
    if begun:
        for _ in range(copies):
            yield " ".join(" ".join(current).split()), *span


def _reach(found: re.Match[str]) -> tuple[tuple[int, int], int]:
    if found.re is not _CELL or not (found[3] or found[5]):
        return (1, 1), 1
    if found[5]:
        return (1, 1), min(int(found[4]), 200)
    return (int(found[1] or 1), int(found[2] or 1)), 1


def _in_rows(cells: list[tuple[str, int, int]], width: int) -> list[list[tuple[str, int, int]]]:
    rows: list[list[tuple[str, int, int]]] = []
    reached = 0
    for cell in cells:
        if not rows or reached >= max(width, 1):
            rows.append([])
            reached = 0
        rows[-1].append(cell)
        reached += cell[1]
    return rows
