"""An e-book: its chapters in the order of its spine, each a section under its heading."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from urllib.parse import unquote, urldefrag
from zipfile import ZipFile

from lxml import etree

from tidemark.adapters.decoding import decode
from tidemark.adapters.partition.data.xml import local_name, parse_xml, parse_xml_text
from tidemark.adapters.partition.formats import damaged
from tidemark.adapters.partition.html.cleaner import parse_content
from tidemark.adapters.partition.html.reader import elements_of
from tidemark.adapters.partition.html.tree import HEADINGS, drop, language_code, text_of
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.errors import DocumentError

_EPUB_TYPE = "{http://www.idpf.org/2007/ops}type"
_LISTS = re.compile(r"\b(toc|landmarks|page-list|loi|lot)\b")
_EMPTY_TITLES = frozenset({"cover", "title page", "titlepage", "unknown"})


@dataclass(frozen=True, slots=True)
class _Book:
    """chapters: paths of its pages in order. names: what its table of contents calls them."""

    title: str
    language: str | None
    chapters: tuple[str, ...]
    names: dict[str, str]


def partition_epub(content: bytes, name: str, max_depth: int) -> PartitionedDocument:
    """Partition an EPUB; ``name`` names it in errors. Raises ``DocumentError``."""
    with ZipFile(BytesIO(content)) as archive:
        book = _book(archive, name)
        elements: list[Element] = []
        for path in book.chapters:
            elements += _chapter(archive, path, name, book.names.get(path, ""), max_depth)
    return PartitionedDocument(book.title, tuple(elements), book.language)


def _book(archive: ZipFile, name: str) -> _Book:
    there = set(archive.namelist())
    opf = ""
    if "META-INF/container.xml" in there:
        container = parse_xml(archive.read("META-INF/container.xml"), name)
        files = [e.get("full-path") or "" for e in _all(container, "rootfile")]
        opf = next((path for path in files if path in there), "")
    opf = opf or next((path for path in sorted(there) if path.endswith(".opf")), "")
    if not opf:
        raise damaged(name, "it has no list of its chapters (OPF)")
    package = parse_xml(archive.read(opf), name)
    folder = posixpath.dirname(opf)
    items = {e.get("id"): e for e in _all(package, "item")}
    paths = {key: _path(folder, item.get("href") or "") for key, item in items.items()}
    spine = [e.get("idref") for e in _all(package, "itemref")]
    lists = {key for key, item in items.items() if "nav" in (item.get("properties") or "").split()}
    chapters = [paths[key] for key in spine if key in paths and key not in lists]
    if not any(path in there for path in chapters):
        raise damaged(name, "none of its chapters is in it")
    ncx = [key for key, e in items.items() if e.get("media-type") == "application/x-dtbncx+xml"]
    contents = [paths[key] for key in [*sorted(map(str, lists)), *map(str, ncx)]]
    names: dict[str, str] = {}
    for path in reversed([path for path in contents if path in there]):
        names |= _names(parse_xml(archive.read(path), name), posixpath.dirname(path))
    title = next((text_of(e) for e in _all(package, "title") if text_of(e)), "")
    language = next((text_of(e) for e in _all(package, "language")), "")
    return _Book(title, language_code(language), tuple(p for p in chapters if p in there), names)


def _names(contents: etree._Element, folder: str) -> dict[str, str]:
    """What a table of contents calls each page: the first name that points to it."""
    names: dict[str, str] = {}
    for entry in contents.iter("*"):
        if local_name(entry) == "a":
            target, text = entry.get("href") or "", text_of(entry)
        elif local_name(entry) == "navPoint":
            target = next((e.get("src") or "" for e in _all(entry, "content")), "")
            text = next((text_of(e) for e in _all(entry, "text")), "")
        else:
            continue
        if target and text:
            names.setdefault(_path(folder, target), text)
    return names


def _chapter(
    archive: ZipFile, path: str, name: str, called: str, max_depth: int
) -> Iterator[Element]:
    text = decode(archive.read(path), None, name)
    if not text.strip():
        return
    root = parse_content(_as_html(text, name), name, max_depth)
    for nav in list(root.iter("nav")):
        if _LISTS.search(nav.get("type") or ""):
            drop(nav)
    if not text_of(root):
        return
    headed = next(root.iter(*HEADINGS), None) is not None
    if not headed and called and called.lower() not in _EMPTY_TITLES:
        yield Element(ElementKind.TITLE, called, 1)
    for element in elements_of(root):
        yield replace(element, anchor=None) if element.anchor else element


def _as_html(text: str, name: str) -> str:
    """XHTML in the spelling of HTML, where `<title/>` or `<a id="x"/>` would swallow what follows."""
    try:
        root = parse_xml_text(text, name)
    except DocumentError:
        return text
    for element in root.iter("*"):
        kind = element.get(_EPUB_TYPE)
        element.tag = local_name(element).lower()
        for attribute in list(element.attrib):
            if str(attribute).startswith("{"):
                del element.attrib[attribute]
        if kind and element.get("type") is None and element.tag == "nav":
            element.set("type", kind)
    etree.cleanup_namespaces(root)
    return etree.tostring(root, method="html", encoding="unicode")


def _all(root: etree._Element, name: str) -> Iterator[etree._Element]:
    return (element for element in root.iter("*") if local_name(element) == name)


def _path(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(urldefrag(href).url)))
