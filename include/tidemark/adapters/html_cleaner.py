"""A page without its furniture: only what the page says, in the page's own structure.

The cleaner reads the page's own evidence (landmarks, roles, names, links) and drops navigation, banners,
tables of contents and the like. It never drops what holds much of the page, and when a careful reading
leaves next to nothing it reads again, more gently, so that a page made of links stays.
"""

import re
from dataclasses import dataclass

from lxml import etree

from tidemark.adapters import html_furniture as furniture
from tidemark.adapters.html_furniture import Weight, text_of, weigh
from tidemark.adapters.html_math import script_formulas
from tidemark.adapters.html_pruner import Pruner, drop
from tidemark.adapters.html_titles import page_language, page_title, site_name
from tidemark.domain.errors import DocumentError

CLEANER_VERSION = 4

_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What the parser lets pass, as itself or as a reference, and refuses to be given again."""
_PARTING = "\x0b\x0c"
"""Those of them that part words: vertical tab and form feed."""

_NOISE = (
    "script", "style", "template", "svg", "iframe", "object", "embed", "canvas", "audio", "video", "map",
    "link", "meta", "base", "select", "textarea", "datalist", "input", "progress", "noscript", "frame",
    "applet", "noembed", "dialog",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CleanPage:
    """A page's content.

    root: the element that holds it; ids, classes and roles are still there.
    title: of the document, without the site's name where that can be told; "" when it has none.
    language: ISO 639-1, as declared by the page, else None.
    """

    root: etree._Element
    title: str
    language: str | None


def clean_html(html: str, name: str, max_depth: int = 150) -> CleanPage:
    """Parse a page and drop its furniture.

    ``name`` names the document in errors; ``max_depth`` bounds the nesting of elements. Raises
    ``DocumentError`` when the page has no element or is nested deeper.
    """
    for gentleness in range(3):
        page, enough = _read(html, name, max_depth, gentleness)
        if enough:
            break
    return page


def parse_content(html: str, name: str, max_depth: int = 150) -> etree._Element:
    """Parse HTML that has no furniture (made from Markdown, a mail's body); scripts and forms still go."""
    document = _parse(html, name)
    _check_depth(document, name, max_depth)
    script_formulas(document)
    etree.strip_elements(document, *_NOISE, with_tail=False)
    body = document.find(".//body")
    return body if body is not None else document


def _read(html: str, name: str, max_depth: int, gentleness: int) -> tuple[CleanPage, bool]:
    document = _parse(html, name)
    _check_depth(document, name, max_depth)
    declared = " ".join((document.findtext(".//head/title") or "").split())
    site = site_name(document)
    language = page_language(document)
    script_formulas(document)
    etree.strip_elements(document, *_NOISE, with_tail=False)
    body = document if document.tag == "body" else document.find(".//body")
    if body is None:
        body = document
    for element in list(body.iter("*")):
        if element is not body and furniture.is_hidden(element):
            drop(element)
    weights = weigh(body)
    total_prose = weights[body].prose
    root = _main(body, weights) if gentleness < 2 else body
    heading = _heading_outside(root, body, declared, weights)
    doubtful = 0
    if gentleness < 2:
        pruner = Pruner(root, weights, strict=gentleness == 0, whole_page=root is body)
        pruner.prune()
        doubtful = pruner.doubtful
    if heading is not None:
        root.insert(0, heading)
        heading.tail, root.text = root.text, None
    kept = len(text_of(root))
    enough = gentleness == 2 or kept >= 200 or (kept > 0 and kept >= 0.3 * total_prose)
    # A short page keeps little because it says little, when nothing was dropped in doubt.
    enough = enough or (root is not body and not doubtful and _says_something(root))
    title = page_title(declared, site, root)
    return CleanPage(root, title, language), enough


def _says_something(root: etree._Element) -> bool:
    """Whether there is an h1 and, beside headings, a sentence at least."""
    headings = sum(len(text_of(h)) for h in root.iter(*furniture.HEADINGS))
    return root.find(".//h1") is not None and len(text_of(root)) - headings >= 20


def _parse(html: str, name: str) -> etree._Element:
    parser = etree.HTMLParser(
        huge_tree=True, remove_comments=True, remove_pis=True, encoding="utf-8", no_network=True
    )
    root = etree.fromstring(html.encode("utf-8", "ignore"), parser)
    if root is None:
        raise DocumentError(
            "partition", f"{name} holds no HTML element.", "Check the file at its source."
        )
    if "&#" in html or _NOT_XML.search(html):
        _drop_control_characters(root)
    return root


def _drop_control_characters(root: etree._Element) -> None:
    for element in root.iter("*"):
        if element.text and _NOT_XML.search(element.text):
            element.text = _legal(element.text)
        if element.tail and _NOT_XML.search(element.tail):
            element.tail = _legal(element.tail)
        for name, value in [(str(k), str(v)) for k, v in element.attrib.items()]:
            if _NOT_XML.search(value):
                # Taken off first: names that only HTML knows (`@click`) cannot be set.
                del element.attrib[name]
                if re.fullmatch(r"[A-Za-z_][\w.-]*", name):
                    element.set(name, _legal(value))


def _legal(text: str) -> str:
    return _NOT_XML.sub(lambda found: " " if found[0] in _PARTING else "", text)


def _check_depth(root: etree._Element, name: str, limit: int) -> None:
    depth = deepest = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        deepest = max(deepest, depth)
    if deepest > limit:
        raise DocumentError(
            "partition",
            f"{name} nests HTML elements {deepest} deep; the limit is {limit}.",
            "Simplify the page or raise the partitioner's max_html_depth.",
        )


def _main(body: etree._Element, weights: dict[etree._Element, Weight]) -> etree._Element:
    """The element that holds the bulk of the page, else the body."""
    total = weights[body]
    root = body
    declared = [e for e in body.iter("*") if e.tag == "main" or e.get("role") == "main"]
    if declared:
        best = max(declared, key=lambda e: weights[e].prose)
        if weights[best].prose >= 0.4 * total.prose or weights[best].has_h1:
            root = best
    articles = [
        e for e in root.iter("article") if not any(a.tag == "article" for a in e.iterancestors())
    ]
    if articles and root.tag != "article":
        best = max(articles, key=lambda e: weights[e].prose)
        bulk = weights[best].prose >= 0.7 * weights[root].prose and weights[best].headings > 0
        # The h1 above a lone article is brought along; other articles of an overview must stay.
        if bulk and (len(articles) == 1 or weights[best].prose >= 0.9 * weights[root].prose):
            root = best
    return root


def _heading_outside(
    root: etree._Element, body: etree._Element, declared: str, weights: dict[etree._Element, Weight]
) -> etree._Element | None:
    """A copy of the page's h1 where it stands above the main content and agrees with the title."""
    if root is body or weights[root].has_h1:
        return None
    for heading in body.iter("h1"):
        text = text_of(heading)
        if text and text.casefold() in declared.casefold():
            copy = etree.fromstring(etree.tostring(heading, with_tail=False), etree.HTMLParser())
            return copy.find(".//h1")
    return None
