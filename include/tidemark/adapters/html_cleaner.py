"""A page without its furniture: only what the page says, in the page's own structure.

The cleaner reads the page's own evidence (landmarks, roles, names, links) and drops navigation, banners,
tables of contents and the like. It never drops what holds much of the page, and when a careful reading
leaves next to nothing it reads again, more gently, so that a page made of links stays.
"""

import re
from dataclasses import dataclass

from lxml import etree

from tidemark.adapters import html_furniture as furniture
from tidemark.adapters.html_furniture import HEADINGS, Weight, text_of, weigh
from tidemark.adapters.html_titles import page_language, page_title, site_name
from tidemark.domain.errors import DocumentError

CLEANER_VERSION = 1

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
    etree.strip_elements(document, *_NOISE, with_tail=False)
    body = document.find(".//body")
    return body if body is not None else document


def _read(html: str, name: str, max_depth: int, gentleness: int) -> tuple[CleanPage, bool]:
    document = _parse(html, name)
    _check_depth(document, name, max_depth)
    declared = " ".join((document.findtext(".//head/title") or "").split())
    site = site_name(document)
    language = page_language(document)
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
    if gentleness < 2:
        _Pruner(root, weights, strict=gentleness == 0, whole_page=root is body).prune()
    if heading is not None:
        root.insert(0, heading)
        heading.tail, root.text = root.text, None
    kept = len(text_of(root))
    enough = gentleness == 2 or kept >= 200 or (kept > 0 and kept >= 0.3 * total_prose)
    title = page_title(declared, site, root)
    return CleanPage(root, title, language), enough


def _parse(html: str, name: str) -> etree._Element:
    parser = etree.HTMLParser(
        huge_tree=True, remove_comments=True, remove_pis=True, encoding="utf-8", no_network=True
    )
    root = etree.fromstring(html.encode("utf-8", "replace"), parser)
    if root is None:
        raise DocumentError(
            "partition", f"{name} holds no HTML element.", "Check the file at its source."
        )
    return root


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


def drop(element: etree._Element) -> None:
    """Remove an element and keep the text that follows it."""
    parent = element.getparent()
    if parent is None:
        return
    if element.tail:
        previous = element.getprevious()
        if previous is not None:
            previous.tail = (previous.tail or "") + element.tail
        else:
            parent.text = (parent.text or "") + element.tail
    parent.remove(element)


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


class _Pruner:
    """Walks a page from the top and drops what is furniture.

    strict: also judge by names and by links, not by landmarks alone.
    whole_page: no main content was declared, so the furniture of the whole page is still there.
    """

    def __init__(
        self,
        root: etree._Element,
        weights: dict[etree._Element, Weight],
        *,
        strict: bool,
        whole_page: bool,
    ) -> None:
        self._root = root
        self._weights = weights
        self._strict = strict
        self._whole_page = whole_page
        self._bulk = max(weights[root].prose, 1)
        self._headings = sum(1 for _ in root.iter("h1"))

    def prune(self) -> None:
        pending = list(self._root)
        while pending:
            element = pending.pop()
            if element.tag in {"pre", "math"}:
                continue
            if self._unwanted(element):
                self._drop_label(element)
                drop(element)
            else:
                pending.extend(element)

    def _unwanted(self, element: etree._Element) -> bool:
        weight = self._weights.get(element, Weight())
        if element.tag == "a":
            return self._unwanted_link(element, weight)
        if element.tag in {"nav", "search"} or (element.get("role") or "") in furniture.LANDMARKS:
            return weight.prose < 0.5 * self._bulk or weight.density > 0.5
        if element.tag in HEADINGS:
            return self._is_site_name(element, weight)
        if self._holds_the_page(element, weight):
            return False
        if element.tag in _BY_TAG and _BY_TAG[element.tag](element, weight, self._whole_page):
            return True
        if not self._strict:
            return False
        return self._unwanted_by_name(element, weight) or self._unwanted_by_links(element, weight)

    def _is_site_name(self, heading: etree._Element, weight: Weight) -> bool:
        """An h1 that only links home, above the page's own."""
        return (
            heading.tag == "h1"
            and self._headings > 1
            and weight.density > 0.9
            and not weight.fragments
        )

    def _holds_the_page(self, element: etree._Element, weight: Weight) -> bool:
        return weight.has_h1 or (weight.prose >= 0.4 * self._bulk and weight.density < 0.6)

    def _unwanted_link(self, element: etree._Element, weight: Weight) -> bool:
        if element.get("rel") in {"prev", "next"}:
            return True
        if not self._strict or weight.chars > 60:
            return False
        # In running prose "see the page source" is content; alone in its block it is a button.
        return bool(furniture.ACTION.fullmatch(text_of(element).strip("→›»«‹← "))) and _alone(
            element
        )

    def _unwanted_by_name(self, element: etree._Element, weight: Weight) -> bool:
        if element.tag not in furniture.CONTAINERS or furniture.is_callout(element):
            return False
        if furniture.strong_words(element):
            return not self._is_the_content(element, weight)
        if element.tag in {"p", "table", "dl"} or not furniture.weak_words(element):
            return False
        return weight.density > 0.5 or (weight.prose < 150 and not weight.headings)

    def _is_the_content(self, element: etree._Element, weight: Weight) -> bool:
        """A chapter's page is often nothing but the list of its sections."""
        elsewhere = weight.links > weight.fragments and weight.links >= 3
        return (
            furniture.lists_the_contents(element) and elsewhere and self._bulk - weight.prose < 600
        )

    def _unwanted_by_links(self, element: etree._Element, weight: Weight) -> bool:
        if element.tag in {"p", "div", "span", "section"} and weight.chars < 60:
            text = text_of(element).strip("→›»«‹← ")
            if furniture.ACTION.fullmatch(text):
                return True
        if furniture.is_page_contents(element, weight):
            return self._weights[self._root].chars > 3 * weight.chars
        return self._whole_page and self._is_link_block(element, weight)

    def _is_link_block(self, element: etree._Element, weight: Weight) -> bool:
        """A block of short links with no heading above it, on a page that has other things to say."""
        return (
            element.tag in {"ul", "ol", "div", "table"}
            and weight.links >= 4
            and weight.density > 0.8
            and not weight.headings
            and weight.chars / weight.links < 40
            and self._bulk > 4 * weight.chars
            and not any(
                e.tag in HEADINGS or e.tag == "p" for e in element.itersiblings(preceding=True)
            )
        )

    def _drop_label(self, element: etree._Element) -> None:
        """Drop "On this page" above a table of contents together with it."""
        previous = element.getprevious()
        if previous is None or not self._strict:
            return
        if len(previous) < 4 and furniture.CONTENTS.fullmatch(text_of(previous).rstrip(":")):
            drop(previous)


def _unwanted_header(element: etree._Element, weight: Weight, whole_page: bool) -> bool:
    """A header stays when it introduces content: it has a heading, or sits within a section."""
    if weight.headings:
        return weight.density > 0.6
    return weight.density > 0.5 or weight.chars < 200 or whole_page


def _unwanted_footer(element: etree._Element, weight: Weight, whole_page: bool) -> bool:
    """A footer goes, except the source of a quotation, and notes."""
    if any(a.tag in {"blockquote", "figure", "table"} for a in element.iterancestors()):
        return False
    if any(
        "footnote" in (e.get("class") or "") or e.get("role") == "doc-endnotes"
        for e in element.iter()
    ):
        return False
    return not (weight.headings and weight.prose > 600 and weight.density < 0.2)


def _unwanted_aside(element: etree._Element, weight: Weight, whole_page: bool) -> bool:
    if furniture.is_callout(element):
        return False
    return (
        whole_page or weight.density > 0.4 or furniture.strong_words(element) or weight.prose < 40
    )


def _unwanted_form(element: etree._Element, weight: Weight, whole_page: bool) -> bool:
    """Some frameworks put a whole page into one form; a form of fields has little to read."""
    return weight.prose < 500 and not (weight.headings and weight.prose > 200)


_BY_TAG = {
    "header": _unwanted_header,
    "footer": _unwanted_footer,
    "aside": _unwanted_aside,
    "form": _unwanted_form,
}


def _alone(anchor: etree._Element) -> bool:
    """Whether a link is all that its block says, or one of several such links."""
    parent = anchor.getparent()
    if parent is None:
        return False
    said = (parent.text or "") + "".join(child.tail or "" for child in parent)
    return not re.search(r"\w{3}", said)
