"""What tells furniture from content on a page: landmarks, words in classes and ids, links.

Furniture is what a site puts around each of its pages (navigation, banners, breadcrumbs, tables of
contents, feedback and sharing). Nothing here is certain, so the cleaner asks these predicates about an
element and then refuses to drop anything that holds much of the page.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from lxml import etree

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
    """Whether the class, or an id that is no heading's slug, says furniture without a doubt."""
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
