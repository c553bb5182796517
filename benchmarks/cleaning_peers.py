"""Extractors of main content to compare the cleaner with, at settings that serve documentation."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from lxml import etree
from lxml import html as lxml_html

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6", "head")


@dataclass(frozen=True, slots=True)
class Output:
    """What an extractor gave: its text, and the texts of headings, tables and code (tables and code without
    white space)."""

    text: str
    headings: list[str]
    tables: list[str]
    codes: list[str]


def _read(text: str | None) -> Output:
    if not text or not text.strip():
        return Output("", [], [], [])
    root = lxml_html.fromstring(text.encode(), parser=lxml_html.HTMLParser(encoding="utf-8"))
    return Output(
        " ".join(map(str, root.itertext())),
        [_folded(e) for e in root.iter(*_HEADINGS)],
        [_squashed(e) for e in root.iter("table")],
        [_squashed(e) for e in root.iter("pre", "code")],
    )


def _folded(element: etree._Element) -> str:
    return " ".join("".join(map(str, element.itertext())).split()).rstrip("¶# ")


def _squashed(element: etree._Element) -> str:
    return "".join("".join(map(str, element.itertext())).split())


def _trafilatura(html: str, *, recall: bool) -> Output:
    extract = import_module("trafilatura").extract
    text = extract(
        html,
        output_format="xml",
        include_comments=False,
        include_tables=True,
        include_formatting=True,
        favor_recall=recall,
    )
    # <head> would be moved by an HTML parser, and <main> and <doc> mean nothing to it.
    return _read(re.sub(r"<(/?)head\b[^>]*>", r"<\1h2>", text) if text else None)


def _resiliparse(html: str) -> Output:
    extract = import_module("resiliparse.extract.html2text").extract_plain_text
    return _read(
        extract(html, main_content=True, preserve_formatting="minimal_html", alt_texts=False)
    )


def _readability(html: str) -> Output:
    return _read(import_module("readability").Document(html).summary(html_partial=True))


PEERS: dict[str, Callable[[str], Output]] = {
    "trafilatura": partial(_trafilatura, recall=False),
    "trafilatura, favor_recall": partial(_trafilatura, recall=True),
    "resiliparse": _resiliparse,
    "readability-lxml": _readability,
}
