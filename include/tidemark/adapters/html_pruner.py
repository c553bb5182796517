"""Drops the furniture from a page that was weighed (see ``html_furniture``)."""

import re

from lxml import etree

from tidemark.adapters import html_furniture as furniture
from tidemark.adapters.html_furniture import HEADINGS, Weight, text_of


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


class Pruner:
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
        self.doubtful = 0
        """Characters dropped on circumstantial evidence: by their links or by a weak name."""

    def prune(self) -> None:
        pending = list(self._root)
        while pending:
            element = pending.pop()
            if element.tag in {"pre", "math"}:
                continue
            if element.tag in _PHRASES:
                pending.extend(element)
            elif self._unwanted(element):
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
        strong = furniture.strong_words(element)
        by_name = self._unwanted_by_name(element, weight, strong=strong)
        if strong and by_name:
            return True
        if by_name or self._unwanted_by_links(element, weight):
            self.doubtful += weight.chars
            return True
        return False

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
        if furniture.strong_words(element) and not furniture.is_permalink(element):
            return True
        # In running prose "see the page source" is content; alone in its block it is a button.
        return bool(furniture.ACTION.fullmatch(text_of(element).strip("→›»«‹← "))) and _alone(
            element
        )

    def _unwanted_by_name(self, element: etree._Element, weight: Weight, *, strong: bool) -> bool:
        if element.tag not in furniture.CONTAINERS:
            return False
        if strong:
            return not (furniture.is_callout(element) or self._is_the_content(element, weight))
        if element.tag in {"p", "table", "dl"} or not furniture.weak_words(element):
            return False
        if furniture.is_callout(element):
            return False
        return weight.density > 0.5 or (weight.prose < 150 and not weight.headings)

    def _is_the_content(self, element: etree._Element, weight: Weight) -> bool:
        """A chapter's page is often nothing but the list of its sections."""
        elsewhere = weight.links > weight.fragments and weight.links >= 3
        return (
            furniture.lists_the_contents(element) and elsewhere and self._bulk - weight.prose < 600
        )

    def _unwanted_by_links(self, element: etree._Element, weight: Weight) -> bool:
        if element.tag in {"p", "div", "span", "section"} and 5 < weight.chars < 60:
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


_PHRASES = frozenset(
    {
        "b",
        "br",
        "cite",
        "code",
        "em",
        "i",
        "kbd",
        "q",
        "samp",
        "small",
        "strong",
        "sub",
        "sup",
        "u",
        "var",
    }
)


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
