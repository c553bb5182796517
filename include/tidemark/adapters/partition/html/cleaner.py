"""A page without its boilerplate: only what the page says, in the page's own structure.

The cleaner reads the page's own evidence (landmarks, roles, names, links) and drops navigation, banners,
tables of contents and the like. It never drops what holds much of the page, and when a careful reading
leaves next to nothing it reads again, more gently, so that a page made of links stays.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lxml import etree

from tidemark.adapters.partition.html.boilerplate import (
    Pruner,
    Weight,
    drop_blocks,
    is_hidden,
    is_landmark,
    weigh,
)
from tidemark.adapters.partition.html.math import script_formulas
from tidemark.adapters.partition.html.tree import (
    HEADINGS,
    drop,
    heading_text,
    language_code,
    parse_page,
    text_of,
)
from tidemark.domain.errors import DocumentError

CLEANER_VERSION = 5

_HIDDEN: Callable[[etree._Element], Any] = etree.XPath(
    "descendant::*[@hidden or @style or @aria-hidden='true']"
)
_FORMULAS = ("math", "Math", "MATH", "katex", "mjx")
_STRAY = 200
"""Characters outside the main part and all landmarks that nobody misses."""
_DEEPEST_ASKED = 250
"""Steps that an XPath may have in libxml2 (a little under its bound)."""
_NOISE = (
    "script", "style", "template", "svg", "iframe", "object", "embed", "canvas", "audio", "video",
    "map", "link", "meta", "base", "select", "textarea", "datalist", "input", "progress", "noscript",
    "frame", "applet", "noembed", "dialog",
)  # fmt: skip
_SEPARATORS = re.compile(r"\s+[-|–—·•:»«/\\~]+\s+|\s*[|»·]\s*|\s*::\s*")
"""Between the parts of a title."""


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


def clean_html(
    html: str, name: str, max_depth: int = 150, boilerplate: frozenset[int] = frozenset()
) -> CleanPage:
    """Parse a page and drop its boilerplate: by its structure, then the blocks known to be the site's.

    ``name`` names the document in errors; ``max_depth`` bounds the nesting of elements; ``boilerplate`` is
    of ``domain.boilerplate.detect_boilerplate``. Raises ``DocumentError`` when the page has no element or is
    nested deeper.
    """
    for gentleness in range(3):
        page, enough = _read(html, name, max_depth, gentleness)
        if enough:
            break
    if boilerplate:
        drop_blocks(page.root, boilerplate)
    return page


def parse_content(html: str, name: str, max_depth: int = 150) -> etree._Element:
    """Parse HTML that has no boilerplate (made from Markdown, a mail's body); scripts and forms still go."""
    document = parse_page(html, name)
    _check_depth(document, name, max_depth)
    script_formulas(document)
    etree.strip_elements(document, *_NOISE, with_tail=False)
    body = document.find(".//body")
    return body if body is not None else document


def _read(html: str, name: str, max_depth: int, gentleness: int) -> tuple[CleanPage, bool]:
    document = parse_page(html, name)
    _check_depth(document, name, max_depth)
    declared = " ".join((document.findtext(".//head/title") or "").split())
    site = _site_name(document)
    language = _page_language(document)
    if any(word in html for word in _FORMULAS):
        script_formulas(document)
    etree.strip_elements(document, *_NOISE, with_tail=False)
    body = document if document.tag == "body" else document.find(".//body")
    if body is None:
        body = document
    for element in _HIDDEN(body):
        if is_hidden(element):
            drop(element)
    weights = weigh(body)
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
    enough = gentleness == 2 or _is_enough(root, body, weights, doubtful)
    title = page_title(declared, site, root)
    return CleanPage(root, title, language), enough


def _is_enough(
    root: etree._Element,
    body: etree._Element,
    weights: dict[etree._Element, Weight],
    doubtful: int,
) -> bool:
    """Whether what is left can be all that the page says.

    ``weights`` are from before the pruning, ``doubtful`` is what went by it in doubt.
    """
    kept = len(text_of(root))
    body_chars = kept - sum(len(text_of(h)) for h in root.iter(*HEADINGS))
    if kept >= 200:
        return True
    if body_chars > 0 and kept >= 0.3 * weights[body].prose:
        return True
    if root is body or root.find(".//h1") is None:
        return kept >= 0.3 * weights[body].prose and kept >= 0.9 * weights[root].chars > 0
    # A short page keeps little because it says little, when nothing was dropped in doubt.
    if body_chars >= 20 and not doubtful:
        return True
    # A main part that is a heading alone ("404") says no more when no text stands beside it either.
    stray = weights[body].prose - weights[root].prose - _around(body, root, weights)
    return kept >= 0.9 * weights[root].chars and stray <= _STRAY


def _around(
    body: etree._Element, root: etree._Element, weights: dict[etree._Element, Weight]
) -> int:
    """Characters of prose in the landmarks around the main part."""
    above = set(root.iterancestors())
    around = 0
    pending = list(body)
    while pending:
        element = pending.pop()
        if element is root or element not in weights:
            continue
        if element not in above and is_landmark(element):
            around += weights[element].prose
        else:
            pending.extend(element)
    return around


def _check_depth(root: etree._Element, name: str, limit: int) -> None:
    if limit <= _DEEPEST_ASKED and not etree.XPath(f"boolean({'/*' * (limit + 1)})")(
        root.getroottree()
    ):
        return
    depth = deepest = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        deepest = max(deepest, depth)
    if deepest > limit:
        raise DocumentError(
            "partition",
            f"{name} nests HTML elements {deepest} deep; the limit is {limit}.",
            "Exclude it from the source, or simplify it: this limit is no setting.",
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
        around = _around(root, best, weights) if weights[best].has_h1 else 0
        rest = weights[root].prose - around
        bulk = weights[best].prose >= 0.7 * rest and weights[best].headings > 0
        # The h1 above a lone article is brought along; other articles of an overview must stay.
        if bulk and (len(articles) == 1 or weights[best].prose >= 0.9 * rest):
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


# What a page says of itself: its title and its language.


def _site_name(document: etree._Element) -> str:
    """The name of the site, as a page declares it; "" when it does not."""
    for attribute, value in (("property", "og:site_name"), ("name", "application-name")):
        meta = document.find(f".//meta[@{attribute}='{value}']")
        if meta is not None:
            return " ".join((meta.get("content") or "").split())
    return ""


def _page_language(document: etree._Element) -> str | None:
    """ISO 639-1 of the language that a page declares."""
    for element in document.iter("html", "body", "main"):
        value = element.get("lang") or element.get("{http://www.w3.org/XML/1998/namespace}lang")
        value = value or element.get("xml:lang")
        if value:
            return language_code(value)
    for meta in document.iter("meta"):
        named = (meta.get("http-equiv") or meta.get("name") or "").lower()
        if named in {"content-language", "language"}:
            return language_code(meta.get("content") or "")
    return None


def page_title(declared: str, site: str, root: etree._Element) -> str:
    """A page's own title: its h1, else what ``<title>`` says without the site's name.

    An h1 with text above it that ``<title>`` does not know heads a part of the page, not the page.
    """
    first = next((h for h in root.iter("h1") if heading_text(h)), None)
    parts = [part.strip() for part in _SEPARATORS.split(declared) if part.strip()]
    if first is not None:
        own = heading_text(first)
        known = own.casefold() in declared.casefold()
        if known or not parts or not _has_text_above(first, root):
            return own
        return next(part for part in parts if part.casefold() != site.casefold() or len(parts) == 1)
    if site and len(parts) > 1:
        kept = [part for part in parts if part.casefold() != site.casefold()]
        return declared[: declared.find(kept[-1]) + len(kept[-1])].strip() if kept else declared
    for heading in root.iter("h2"):
        # DocBook and some blogs head a page with h2: its text in the title marks where the site begins.
        if heading_text(heading).casefold() in (part.casefold() for part in parts):
            return heading_text(heading)
        break
    return declared


def _has_text_above(heading: etree._Element, root: etree._Element) -> bool:
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if element is heading:
            return False
        text = element.text if event == "start" else element.tail
        if (text or "").strip():
            return True
    return False
