"""What tells boilerplate from content on a page: landmarks, words in classes and ids, links.

Boilerplate is what a site puts around each of its pages (navigation, banners, breadcrumbs, tables of
contents, feedback and sharing). Nothing here is certain, so the cleaner asks these predicates about an
element and then refuses to drop anything that holds much of the page.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from lxml import etree

from tidemark.domain.boilerplate import LONGEST, block_of

LANDMARKS = frozenset(
    {"navigation", "banner", "contentinfo", "search", "menu", "menubar", "toolbar", "tablist",
     "alertdialog", "dialog", "doc-toc", "doc-pagelist", "directory"}
)  # fmt: skip

# Enough by themselves on a container.
STRONG_WORDS = frozenset(
    {"breadcrumb", "breadcrumbs", "cookie", "cookies", "consent", "gdpr", "navbar", "navheader",
     "navfooter", "navigation", "sidebar", "sidenav", "sidetoc", "toc", "localtoc", "globaltoc",
     "pagination", "pager", "skiplink", "skiplinks", "footer", "masthead", "contentinfo",
     "sphinxsidebar", "searchbox", "newsletter", "colophon", "editlink", "topnav", "prevnext",
     "headerlink", "noprint", "sharing", "lastmod", "lastupdated", "editsection", "printfooter",
     "catlinks", "navbox", "relatedposts", "sitenotice"}
)  # fmt: skip
STRONG_PHRASES = (
    "table-of-contents", "skip-link", "skip-to", "edit-this-page", "edit-page", "page-edit",
    "prev-next", "next-prev", "previous-next", "last-updated", "last-modified", "source-file",
    "back-to-top", "scroll-to-top", "share-buttons", "social-links", "site-header", "site-footer",
    "page-actions", "page-metadata-actions", "cookie-banner", "global-header", "on-this-page",
    "page-nav", "nav-menu", "related-topics", "viewcode-link", "page-feedback", "git-revision",
    "print-none", "page-metadata", "labels-section", "likes-section", "likes-and-labels",
    "comments-section", "comments-area", "comment-respond", "sitenotice", "docinfo", "pageid",
    "version-badge", "feedback--", "related-articles", "share-this", "article-feedback",
    "md-feedback", "md-tags", "version-switcher", "language-switcher", "theme-switcher",
)  # fmt: skip
# Enough on a container that is short or made of links.
WEAK_WORDS = frozenset(
    {"nav", "menu", "search", "header", "related", "share", "social", "banner", "toolbar", "modal",
     "popup", "dropdown", "comments", "promo", "ads", "advert", "advertisement", "sponsor",
     "sponsors", "feedback", "rating", "subscribe", "announcement", "announce", "drawer",
     "offcanvas", "copyright", "topbar", "bottombar", "skip", "login", "signup", "languages",
     "versions", "badges", "tags", "byline", "utility"}
)  # fmt: skip
# An aside with one of these says something about the text beside it.
CALLOUTS = frozenset(
    {"note", "notes", "tip", "warning", "caution", "important", "danger", "hint", "info", "attention",
     "admonition", "callout", "alert", "footnote", "footnotes", "example", "caption", "definition",
     "quote", "pullquote", "topic", "seealso", "todo", "error", "box", "infobox", "call", "inset"}
)  # fmt: skip

ACTION = re.compile(
    r"(edit|improve|suggest (an )?edits? (to|on|for)|view|show|report( an)? (issue|bug|problem)s?( with| on)?"
    r"|print|share|copy|bookmark|download|star|fork|open)"
    r" (this |the )?(page|source|article|topic|document|section|on github|on gitlab|in github|as pdf|link)"
    r"( (on|in|with) [\w ]{2,20})?"
    r"|(back to |scroll to |return to )(the )?top|skip to( the)?( main)? ?(content|navigation|search)"
    r"|permalink|direct link|show source|page source|edit on github|edit on gitlab"
    r"|was this (page|article|information) (helpful|useful)\??",
    re.IGNORECASE,
)
CONTENTS = re.compile(
    r"(table of )?contents|on this page|in this (article|page|section|document|guide)|page contents"
    r"|jump to( section)?|quick links",
    re.IGNORECASE,
)
PERMALINK_TEXT = frozenset(
    {"", "¶", "#", "§", "🔗", "link", "permalink", "anchor", "\uf0c1", "\u200b"}
)
BACKLINK_TEXT = frozenset({"↩", "↩︎", "↑", "↵", "⏎", "^", "↩️", "⤴"})

_ABOUT_THE_PAGE = re.compile(r"\b(doc|page|post|edit|article)-?info\b", re.IGNORECASE)
_WORDS = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+")
HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
CONTAINERS = frozenset(
    {"div", "section", "ul", "ol", "aside", "header", "footer", "form", "table", "dl", "article", "menu",
     "p", "span", "a", "details"}
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


def text_of(element: etree._Element) -> str:
    """All text in an element with white space folded."""
    return " ".join("".join(map(str, element.itertext())).split())


@lru_cache(maxsize=8192)
def words_of(value: str) -> frozenset[str]:
    """The words of a class or id attribute: split at separators and at camel humps, lower case."""
    return frozenset(word.lower() for word in _WORDS.findall(value))


@lru_cache(maxsize=8192)
def _is_strong(value: str) -> bool:
    lowered = value.lower().replace("_", "-")
    return bool(words_of(value) & STRONG_WORDS) or any(p in lowered for p in STRONG_PHRASES)


def is_hidden(element: etree._Element) -> bool:
    """Not shown to anybody; tab panels and closed details are, on a click, and stay."""
    if element.get("role") == "tabpanel" or element.tag in HEADINGS:
        return False
    hidden = element.get("hidden")
    style = element.get("style")
    if (hidden is not None and hidden != "until-found") or (style and HIDDEN_STYLE.search(style)):
        return not _is_formula(element)
    # Decoration is hidden from screen readers; so are whole pages under an open dialog, hence the limit.
    decoration = element.get("aria-hidden") == "true" and len(text_of(element)) < 80
    return decoration and not _is_formula(element)


def _is_formula(element: etree._Element) -> bool:
    """Whether there is nothing but a formula in it, whose markup is hidden behind a picture of it."""
    math = next(element.iter("math"), None)
    return math is not None and len(text_of(element)) == len(text_of(math))


def is_callout(element: etree._Element) -> bool:
    role = element.get("role") or ""
    if role in {"note", "doc-footnote", "doc-endnotes", "doc-endnote", "doc-tip", "doc-notice"}:
        return True
    if element.find("./p[@class='sidebar-title']") is not None:  # the sidebar of reStructuredText
        return True
    classes = element.get("class") or ""
    return bool(words_of(classes) & CALLOUTS) and not _ABOUT_THE_PAGE.search(classes)


def lists_the_contents(element: etree._Element) -> bool:
    """Whether it is named a table of contents, of this page or of the pages below it."""
    return any(words_of(value) & {"toc", "contents", "localtoc"} for value in _names(element))


def strong_words(element: etree._Element) -> bool:
    """Whether the class, or an id that is no heading's slug, says boilerplate without a doubt."""
    classes = element.get("class")
    if classes and (_is_strong(classes) or _is_rst_contents(classes)):
        return True
    identifier = element.get("id")
    return bool(identifier and _is_strong(identifier) and _is_name(element, identifier))


def weak_words(element: etree._Element) -> bool:
    classes, identifier = element.get("class"), element.get("id")
    if classes and words_of(classes) & WEAK_WORDS:
        return True
    return bool(identifier and words_of(identifier) & WEAK_WORDS and _is_name(element, identifier))


@lru_cache(maxsize=8192)
def _is_rst_contents(classes: str) -> bool:
    return {"contents", "topic"} <= set(classes.split())


def _names(element: etree._Element) -> list[str]:
    classes, identifier = element.get("class"), element.get("id")
    names = [classes] if classes else []
    return [*names, identifier] if identifier and _is_name(element, identifier) else names


def _is_name(element: etree._Element, identifier: str) -> bool:
    """Not the slug of a heading, as sections have for an id: a chapter on "Navigation" is no navigation."""
    return element.tag != "section" and not _is_slug(element, identifier)


def _is_slug(element: etree._Element, identifier: str) -> bool:
    wanted = re.sub(r"[^a-z0-9]+", "", identifier.lower())
    for heading in element.iter(*HEADINGS):
        slug = re.sub(r"[^a-z0-9]+", "", text_of(heading).lower())
        return bool(slug) and (slug in wanted or wanted in slug)
    return False


def is_page_contents(element: etree._Element, weight: Weight) -> bool:
    """A list of links to places on the same page."""
    return (
        element.tag in {"ul", "ol", "div", "dl"}
        and weight.links >= 3
        and weight.fragments == weight.links
        and weight.density > 0.8
    )


def is_permalink(anchor: etree._Element) -> bool:
    """A link beside a heading that only points at the heading."""
    classes = words_of(anchor.get("class") or "")
    if classes & {"headerlink", "permalink", "anchorjs", "hash"}:
        return True
    return (anchor.get("href") or "").startswith("#") and text_of(anchor).lower() in PERMALINK_TEXT


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


# Drops the boilerplate from a page that was weighed (see ``html_furniture``).


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
        if element.tag in {"nav", "search"} or (element.get("role") or "") in LANDMARKS:
            return weight.prose < 0.5 * self._bulk or weight.density > 0.5
        if element.tag in HEADINGS:
            return self._is_site_name(element, weight)
        if self._holds_the_page(element, weight):
            return False
        if element.tag in _BY_TAG and _BY_TAG[element.tag](element, weight, self._whole_page):
            return True
        if not self._strict:
            return False
        strong = strong_words(element)
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
        if strong_words(element) and not is_permalink(element):
            return True
        # In running prose "see the page source" is content; alone in its block it is a button.
        return bool(ACTION.fullmatch(text_of(element).strip("→›»«‹← "))) and _alone(element)

    def _unwanted_by_name(self, element: etree._Element, weight: Weight, *, strong: bool) -> bool:
        if element.tag not in CONTAINERS:
            return False
        if strong:
            return not (is_callout(element) or self._is_the_content(element, weight))
        if element.tag in {"p", "table", "dl"} or not weak_words(element):
            return False
        if is_callout(element):
            return False
        return weight.density > 0.5 or (weight.prose < 150 and not weight.headings)

    def _is_the_content(self, element: etree._Element, weight: Weight) -> bool:
        """A chapter's page is often nothing but the list of its sections."""
        elsewhere = weight.links > weight.fragments and weight.links >= 3
        return lists_the_contents(element) and elsewhere and self._bulk - weight.prose < 600

    def _unwanted_by_links(self, element: etree._Element, weight: Weight) -> bool:
        if element.tag in {"p", "div", "span", "section"} and 5 < weight.chars < 60:
            text = text_of(element).strip("→›»«‹← ")
            if ACTION.fullmatch(text):
                return True
        if is_page_contents(element, weight):
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
        if len(previous) < 4 and CONTENTS.fullmatch(text_of(previous).rstrip(":")):
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
    if is_callout(element):
        return False
    return whole_page or weight.density > 0.4 or strong_words(element) or weight.prose < 40


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


# The blocks of a cleaned page, and what is left of it without those that are boilerplate of its site.

MOST_OF_A_PAGE = 400
"""Blocks of a page: boilerplate is at its beginning and end, so the middle of a long page is left out."""
_MOST_DROPPED = 0.5
"""Of a page's text beside links. What would go beyond it is not boilerplate but pages that say the same."""

_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "center", "details", "div", "figure", "footer",
     "form", "header", "hgroup", "li", "main", "menu", "nav", "ol", "p", "section", "ul"}
)  # fmt: skip
_KEPT = frozenset({"pre", "table", "math", "h1", "dl", "figcaption"})
"""Never boilerplate by repetition, and neither is what holds one of them or is in one."""


def blocks_of(root: etree._Element) -> tuple[int, ...]:
    """The numbers of a page's blocks (see ``domain.site_furniture``) in order, each once."""
    found = list(dict.fromkeys(number for _, number in _numbered(root)))
    if len(found) > MOST_OF_A_PAGE:
        found = found[: MOST_OF_A_PAGE // 2] + found[-MOST_OF_A_PAGE // 2 :]
    return tuple(found)


def drop_blocks(root: etree._Element, boilerplate: frozenset[int]) -> None:
    """Drop the blocks that are boilerplate, unless that would be much of the page."""
    known = [element for element, number in _numbered(root) if number in boilerplate]
    if not known:
        return
    inside = set(known)
    outermost = [e for e in known if not any(outer in inside for outer in e.iterancestors())]
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
    found: list[tuple[etree._Element, int]] = []
    # Inner ones first: what holds one that is too long is too long, and need not be read.
    for element in reversed(list(root.iter(*_BLOCKS))):
        if element not in barred:
            text = text_of(element)
            number = block_of(text)
            if number is not None:
                found.append((element, number))
            elif len(text) > LONGEST:
                _bar_around(element, barred)
    return found[::-1]


def _bar_around(element: etree._Element, barred: set[etree._Element]) -> None:
    for outer in element.iterancestors():
        if outer in barred:
            break
        barred.add(outer)
