"""What a site puts around the content of its pages: how it is told from content, and dropped.

Navigation, banners, breadcrumbs, tables of contents, feedback and sharing are told by landmarks, by words
in classes and ids (``boilerplate.toml``) and by links. Nothing of that is certain, so nothing that holds much
of the page is dropped on it. What stands on most pages of a site is told by its repetition
(``domain.boilerplate``).
"""

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lxml import etree

from tidemark.adapters.partition.html.tree import (
    HEADINGS,
    drop,
    is_permalink,
    text_of,
    words_of,
)
from tidemark.domain.boilerplate import LONGEST, block_of

_WORDS: dict[str, str] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
_STRONG_WORDS = frozenset(_WORDS["strong_words"].split())
_STRONG_PHRASES = tuple(_WORDS["strong_phrases"].split())
_WEAK_WORDS = frozenset(_WORDS["weak_words"].split())
_CALLOUTS = frozenset(_WORDS["callouts"].split())
_LANDMARK_ROLES = frozenset(_WORDS["landmarks"].split())
_ACTION = re.compile("|".join(_WORDS["actions"].split("\n")[:-1]), re.IGNORECASE)
_CONTENTS = re.compile("|".join(_WORDS["contents"].split("\n")[:-1]), re.IGNORECASE)
_ARROWS = "→›»«‹← "

_LANDMARK_TAGS = frozenset({"nav", "header", "footer", "aside", "form"})
_CALLOUT_ROLES = frozenset(
    {"note", "doc-footnote", "doc-endnotes", "doc-endnote", "doc-tip", "doc-notice"}
)
_ABOUT_THE_PAGE = re.compile(r"\b(doc|page|post|edit|article)-?info\b", re.IGNORECASE)
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_CONTAINERS = frozenset(
    {"div", "section", "ul", "ol", "aside", "header", "footer", "form", "table", "dl", "article",
     "menu", "p", "span", "a", "details"}
)  # fmt: skip
_PHRASES = frozenset(
    {"b", "br", "cite", "code", "em", "i", "kbd", "q", "samp", "small", "strong", "sub", "sup", "u",
     "var"}
)  # fmt: skip


@dataclass(slots=True)
class Weight:
    """What an element holds: characters of text, of link text, how many links, how many to "#…"."""

    chars: int = 0
    link_chars: int = 0
    links: int = 0
    fragments: int = 0
    headings: int = 0
    has_h1: bool = False

    @property
    def prose(self) -> int:
        """Characters that are no link."""
        return self.chars - self.link_chars

    @property
    def density(self) -> float:
        """Share of the characters that are links, 0 to 1."""
        return self.link_chars / self.chars if self.chars else 0.0


def weigh(root: etree._Element) -> dict[etree._Element, Weight]:
    """Weigh every element under ``root`` in one pass over the tree."""
    weights = {element: Weight(_visible(element.text)) for element in root.iter("*")}
    # Backwards, so that each is complete before it is added to its parent.
    for element in reversed(weights):
        weight, tag = weights[element], element.tag
        if tag == "a":
            weight.links, weight.link_chars = 1, weight.chars
            weight.fragments = int((element.get("href") or "").startswith("#"))
        elif tag in HEADINGS:
            weight.headings = 1
            weight.has_h1 = tag == "h1"
        parent = element.getparent()
        if element is root or parent is None:
            continue
        total = weights[parent]
        total.chars += weight.chars + _visible(element.tail)
        if weight.links:
            total.link_chars += weight.link_chars
            total.links += weight.links
            total.fragments += weight.fragments
        if weight.headings:
            total.headings += weight.headings
            total.has_h1 = total.has_h1 or weight.has_h1
    return weights


def _visible(text: str | None) -> int:
    return len(text.strip()) if text else 0


def is_hidden(element: etree._Element) -> bool:
    """Not shown to anybody; tab panels and closed details are, on a click, and stay."""
    if element.get("role") == "tabpanel" or element.tag in HEADINGS:
        return False
    hidden = element.get("hidden")
    style = element.get("style")
    if (hidden is not None and hidden != "until-found") or (style and _HIDDEN_STYLE.search(style)):
        return not _is_formula(element)
    # Decoration is hidden from screen readers; so are whole pages under an open dialog, hence the limit.
    decoration = element.get("aria-hidden") == "true" and len(text_of(element)) < 80
    return decoration and not _is_formula(element)


def is_landmark(element: etree._Element) -> bool:
    """Whether it says by itself that it stands beside the content."""
    role = element.get("role")
    return element.tag in _LANDMARK_TAGS or role in _LANDMARK_ROLES or _has_strong_name(element)


def _is_formula(element: etree._Element) -> bool:
    """Whether there is nothing but a formula in it, whose markup is hidden behind a picture of it."""
    math = next(element.iter("math"), None)
    return math is not None and len(text_of(element)) == len(text_of(math))


def _is_callout(element: etree._Element) -> bool:
    if element.get("role") in _CALLOUT_ROLES:
        return True
    if element.find("./p[@class='sidebar-title']") is not None:  # the sidebar of reStructuredText
        return True
    classes = element.get("class") or ""
    return bool(words_of(classes) & _CALLOUTS) and not _ABOUT_THE_PAGE.search(classes)


def _has_strong_name(element: etree._Element) -> bool:
    """Whether the class, or an id that is no heading's slug, names boilerplate without a doubt."""
    classes = element.get("class")
    if classes and (_is_strong(classes) or {"contents", "topic"} <= set(classes.split())):
        return True
    identifier = element.get("id")
    return bool(identifier and _is_strong(identifier) and _is_name(element, identifier))


@lru_cache(maxsize=8192)
def _is_strong(value: str) -> bool:
    lowered = value.lower().replace("_", "-")
    return bool(words_of(value) & _STRONG_WORDS) or any(p in lowered for p in _STRONG_PHRASES)


def _has_weak_name(element: etree._Element) -> bool:
    return _is_named(element, _WEAK_WORDS)


def _lists_the_contents(element: etree._Element) -> bool:
    """Whether it is named a table of contents, of this page or of the pages below it."""
    return _is_named(element, frozenset({"toc", "contents", "localtoc"}))


def _is_named(element: etree._Element, words: frozenset[str]) -> bool:
    """Whether one of some words is in its class, or in an id that is no heading's slug."""
    if words_of(element.get("class") or "") & words:
        return True
    identifier = element.get("id")
    return bool(identifier and words_of(identifier) & words and _is_name(element, identifier))


def _is_name(element: etree._Element, identifier: str) -> bool:
    """Not the slug of a heading, as sections have for an id: a chapter on "Navigation" is no navigation."""
    if element.tag == "section":
        return False
    heading = next(element.iter(*HEADINGS), None)
    if heading is None:
        return True
    slug = re.sub(r"[^a-z0-9]+", "", text_of(heading).lower())
    name = re.sub(r"[^a-z0-9]+", "", identifier.lower())
    return not slug or not (slug in name or name in slug)


class Pruner:
    """Walks a page from the top and drops what is boilerplate.

    strict: also judge by names and by links, not by landmarks alone.
    whole_page: no main content was declared, so the boilerplate of the whole page is still there.
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
            if element.tag not in _PHRASES and self._is_unwanted(element):
                self._drop_label(element)
                drop(element)
            else:
                pending.extend(element)

    def _is_unwanted(self, element: etree._Element) -> bool:
        tag, weight = element.tag, self._weights.get(element, Weight())
        if tag == "a":
            return self._is_unwanted_link(element, weight)
        if tag in {"nav", "search"} or (element.get("role") or "") in _LANDMARK_ROLES:
            return weight.prose < 0.5 * self._bulk or weight.density > 0.5
        if tag in HEADINGS:  # an h1 that only links home, above the page's own
            home = weight.density > 0.9 and not weight.fragments
            return tag == "h1" and self._headings > 1 and home
        if weight.has_h1 or (weight.prose >= 0.4 * self._bulk and weight.density < 0.6):
            return False  # it holds the page
        if self._is_unwanted_landmark(element, weight):
            return True
        if not self._strict:
            return False
        strong = _has_strong_name(element)
        by_name = self._is_unwanted_by_name(element, weight, strong=strong)
        if by_name and strong:
            return True
        if by_name or self._is_unwanted_by_links(element, weight):
            self.doubtful += weight.chars
            return True
        return False

    def _is_unwanted_link(self, element: etree._Element, weight: Weight) -> bool:
        if element.get("rel") in {"prev", "next"}:
            return True
        if not self._strict or weight.chars > 60:
            return False
        if _has_strong_name(element) and not is_permalink(element):
            return True
        # In running prose "see the page source" is content; alone in its block it is a button.
        return bool(_ACTION.fullmatch(text_of(element).strip(_ARROWS))) and _is_alone(element)

    def _is_unwanted_landmark(self, element: etree._Element, weight: Weight) -> bool:
        if element.tag == "header":
            # A header stays when it introduces content: it has a heading, or sits within a section.
            if weight.headings:
                return weight.density > 0.6
            return weight.density > 0.5 or weight.chars < 200 or self._whole_page
        if element.tag == "footer":
            # A footer goes, except the source of a quotation, and notes.
            if any(a.tag in {"blockquote", "figure", "table"} for a in element.iterancestors()):
                return False
            if any(
                "footnote" in (e.get("class") or "") or e.get("role") == "doc-endnotes"
                for e in element.iter()
            ):
                return False
            return not (weight.headings and weight.prose > 600 and weight.density < 0.2)
        if element.tag == "aside" and not _is_callout(element):
            beside = weight.density > 0.4 or _has_strong_name(element) or weight.prose < 40
            return self._whole_page or beside
        # Some frameworks put a whole page into one form; a form of fields has little to read.
        fields = weight.prose < 500 and not (weight.headings and weight.prose > 200)
        return element.tag == "form" and fields

    def _is_unwanted_by_name(
        self, element: etree._Element, weight: Weight, *, strong: bool
    ) -> bool:
        if element.tag not in _CONTAINERS:
            return False
        if strong:
            return not (_is_callout(element) or self._is_the_content(element, weight))
        if element.tag in {"p", "table", "dl"} or not _has_weak_name(element):
            return False
        little = weight.density > 0.5 or (weight.prose < 150 and not weight.headings)
        return little and not _is_callout(element)

    def _is_the_content(self, element: etree._Element, weight: Weight) -> bool:
        """A chapter's page is often nothing but the list of its sections."""
        elsewhere = weight.links > weight.fragments and weight.links >= 3
        return elsewhere and self._bulk - weight.prose < 600 and _lists_the_contents(element)

    def _is_unwanted_by_links(self, element: etree._Element, weight: Weight) -> bool:
        tag = element.tag
        short = tag in {"p", "div", "span", "section"} and 5 < weight.chars < 60
        if short and _ACTION.fullmatch(text_of(element).strip(_ARROWS)):
            return True
        of_this_page = weight.links >= 3 and weight.fragments == weight.links
        if tag in {"ul", "ol", "div", "dl"} and of_this_page and weight.density > 0.8:
            return self._weights[self._root].chars > 3 * weight.chars
        # A block of short links with no heading above it, on a page that has other things to say.
        return (
            self._whole_page
            and tag in {"ul", "ol", "div", "table"}
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
        if len(previous) < 4 and _CONTENTS.fullmatch(text_of(previous).rstrip(":")):
            drop(previous)


def _is_alone(anchor: etree._Element) -> bool:
    """Whether a link is all that its block says, or one of several such links."""
    parent = anchor.getparent()
    if parent is None:
        return False
    text = (parent.text or "") + "".join(child.tail or "" for child in parent)
    return not re.search(r"\w{3}", text)


# What stands on most pages of a site.

PAGE_BLOCKS = 400
"""Blocks told of a page: boilerplate is at its beginning and end; the middle of a long page is left out."""
_MOST_DROPPED = 0.5
"""Of a page's text beside links. What would go beyond it is not boilerplate but pages that say the same."""
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "center", "details", "div", "figure", "footer",
     "form", "header", "hgroup", "li", "main", "menu", "nav", "ol", "p", "section", "ul"}
)  # fmt: skip
_KEPT = frozenset({"pre", "table", "math", "h1", "dl", "figcaption"})
"""Never boilerplate by repetition, and neither is what holds one of them or is in one."""


def blocks_of(root: etree._Element) -> tuple[int, ...]:
    """The numbers of a page's blocks (see ``domain.boilerplate``) in order, each once."""
    numbers = list(dict.fromkeys(number for _, number in _numbered(root)))
    if len(numbers) > PAGE_BLOCKS:
        numbers = numbers[: PAGE_BLOCKS // 2] + numbers[-PAGE_BLOCKS // 2 :]
    return tuple(numbers)


def drop_blocks(root: etree._Element, boilerplate: frozenset[int]) -> None:
    """Drop the blocks that are boilerplate, unless that would be much of the page."""
    known = {element: None for element, number in _numbered(root) if number in boilerplate}
    if not known:
        return
    outermost = [e for e in known if not any(outer in known for outer in e.iterancestors())]
    prose, whole = sum(map(_prose, outermost)), _prose(root)
    rest = len(text_of(root)) - sum(len(text_of(e)) for e in outermost)
    if prose <= whole * _MOST_DROPPED and rest > 0:
        for element in outermost:
            drop(element)


def _prose(element: etree._Element) -> int:
    """Characters that are no link."""
    links = sum(len(text_of(a)) for a in element.iter("a"))
    return max(len(text_of(element)) - links, 0)


def _numbered(root: etree._Element) -> list[tuple[etree._Element, int]]:
    """The blocks under ``root`` with their numbers, in order, outer ones first."""
    barred = {root}
    for kept in root.iter(*_KEPT):
        if kept not in barred:
            barred.update(kept.iter(*_KEPT, *_BLOCKS))
            _bar_around(kept, barred)
    numbered: list[tuple[etree._Element, int]] = []
    # Inner ones first: what holds one that is too long is too long, and need not be read.
    for element in reversed(list(root.iter(*_BLOCKS))):
        if element not in barred:
            text = text_of(element)
            number = block_of(text)
            if number is not None:
                numbered.append((element, number))
            elif len(text) > LONGEST:
                _bar_around(element, barred)
    return numbered[::-1]


def _bar_around(element: etree._Element, barred: set[etree._Element]) -> None:
    for outer in element.iterancestors():
        if outer in barred:
            break
        barred.add(outer)
