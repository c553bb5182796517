"""What a document is called: by its properties, by its headings, by its file's name."""

import re
from dataclasses import replace
from io import BytesIO
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit
from zipfile import ZipFile

from lxml import etree

from tidemark.adapters.media import BY_SUFFIX
from tidemark.adapters.partition.html.tree import language_code
from tidemark.domain.documents import ElementKind, PartitionedDocument

_DUBLIN = "{http://purl.org/dc/elements/1.1/}"
_MEANINGLESS = re.compile(
    r"(untitled|document ?\d*|(microsoft )?word( document)?|powerpoint[ -]?(presentation|präsentation)?"
    r"|presentation ?\d*|book ?\d*|title|slide ?\d*|microsoft word - .*"
    r"|.*\.(docx?|pptx?|xlsx?|pdf|indd|tmp|qxd|dvi))",
    re.IGNORECASE,
)
_MEANINGLESS_STEMS = frozenset({"index", "readme", "default", "home", "untitled", "document"})


def sensible_title(title: str) -> str:
    """A title as it is, "" for what programs write when nobody gave one."""
    title = " ".join(title.split())
    return "" if _MEANINGLESS.fullmatch(title) else title


def core_properties(content: bytes) -> tuple[str, str | None]:
    """Title and language of an Office file; "" and None where they say nothing."""
    with ZipFile(BytesIO(content)) as archive:
        if "docProps/core.xml" not in archive.namelist():
            return "", None
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
        root = etree.fromstring(archive.read("docProps/core.xml"), parser)
    title = sensible_title(root.findtext(f"{_DUBLIN}title") or "")
    return title, language_code(root.findtext(f"{_DUBLIN}language") or "")


def with_title_of_headings(document: PartitionedDocument) -> PartitionedDocument:
    """With its heading of the first level as the title, where nothing else names it and there is one."""
    if document.title:
        return document
    tops = [e.text for e in document.elements if e.kind is ElementKind.TITLE and e.level == 1]
    leads = bool(tops) and document.elements[0].text == tops[0]
    return replace(document, title=tops[0]) if leads or len(tops) == 1 else document


def title_of_name(uri: str) -> str:
    """A title from a file's name, "" where it says nothing (index.html, a URL without a file)."""
    path = PurePosixPath(unquote(urlsplit(uri).path or uri))
    if path.suffix.lower() not in BY_SUFFIX:
        return ""
    words = re.sub(r"[-_.\s]+", " ", path.stem).strip()
    return "" if words.lower() in _MEANINGLESS_STEMS else words
