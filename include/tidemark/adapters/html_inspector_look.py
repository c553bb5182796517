"""What an inspector asks of a page beside its main text: title, headings, forms, buttons, mount points."""

import re
from dataclasses import dataclass
from html import unescape

from lxml import etree

from tidemark.adapters.html_cleaner import CleanPage, parse_page
from tidemark.adapters.html_furniture import HEADINGS, is_hidden, text_of, words_of
from tidemark.adapters.html_inspector_phrases import Phrases
from tidemark.adapters.html_titles import heading_text

_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_PARTS = re.compile(r"\s+[-|–—·•:»«/\\~]+\s+|\s*[|»·]\s*|\s*::\s*")
_ASIDE = frozenset({"header", "nav", "footer", "aside", "dialog"})
_MOUNTS = frozenset(
    {"root", "app", "__next", "__nuxt", "__docusaurus", "___gatsby", "svelte", "app-root", "react-root",
     "application", "main-app", "mount", "q-app", "__layout", "ember-app", "app-mount"}
)  # fmt: skip
_SHELL_TAGS = frozenset({"app-root", "ng-app", "my-app", "flt-glass-pane"})


@dataclass(frozen=True, slots=True)
class Look:
    """A page as its inspector sees it.

    text: the main text, white space folded; headings: its headings. title: the parts of ``<title>``. h1: the
    first h1, "" without one. documents: it has what an error page or a wall
    has not: code, a table of data, many headings.
    """

    text: str
    headings: tuple[str, ...]
    title: tuple[str, ...]
    h1: str
    documents: bool

    @property
    def names(self) -> tuple[str, ...]:
        """What the page calls itself, in the title and in its first heading."""
        return (*self.title, *filter(None, dict.fromkeys((self.h1, *self.headings[:1]))))

    def named(self, what: Phrases) -> str:
        """Which of its names is just this, "" when none is."""
        return next((name for name in self.names if what.names(name)), "")

    def says(self, what: Phrases) -> str:
        """What it says so beside its names: a heading and its echo in the text are one piece of evidence."""
        text = self.text
        for heading in self.headings:
            if what.names(heading):
                text = text.replace(heading, " ", 1)
        return what.says(text)

    @property
    def about_else(self) -> str:
        """Its h1, unless that is the name of the site."""
        return "" if self.h1 in self.title and len(self.title) > 1 else self.h1


@dataclass(frozen=True, slots=True)
class Structure:
    """What only the whole page tells, before it was cleaned.

    password, account: whether there is a field for a password, or for a name, in plain view of the page.
    buttons: texts of what can be pressed. noscript: what browsers without JavaScript show. scripts: how many.
    mount: the name of an empty element that a script would fill, "" without one. visible: characters of text.
    """

    password: bool
    account: bool
    buttons: tuple[str, ...]
    noscript: str
    scripts: int
    mount: str
    visible: int


def main_text(page: CleanPage) -> str:
    """The text of a cleaned page, white space folded, with a space between its parts."""
    return " ".join(" ".join(map(str, page.root.itertext())).split())


def look_at(page: CleanPage, html: str, text: str) -> Look:
    """The first look, at what the cleaner left; ``text`` is its ``main_text``."""
    found = _TITLE.search(html)
    declared = " ".join(unescape(found[1]).split()) if found else ""
    parts = [declared, *_PARTS.split(declared)] if declared else []
    headings = [h for h in page.root.iter(*HEADINGS) if text_of(h)]
    first = next((h for h in headings if h.tag == "h1"), None)
    return Look(
        text,
        tuple(" ".join(heading_text(h).split()) for h in headings),
        tuple(dict.fromkeys(part.strip() for part in parts if part.strip())),
        heading_text(first) if first is not None else "",
        len(headings) > 4 or next(page.root.iter("pre", "table", "dl", "math"), None) is not None,
    )


def structure_of(html: str, name: str) -> Structure:
    """A second look, at the whole page; takes as long as reading it again. Raises ``DocumentError``."""
    document = parse_page(html, name)
    noscript = " ".join(text_of(e) for e in document.iter("noscript"))
    scripts = sum(1 for _ in document.iter("script"))
    etree.strip_elements(document, "script", "style", "noscript", "template", with_tail=False)
    body = document.find(".//body")
    body = document if body is None else body
    fields = [e for e in body.iter("input") if _in_plain_view(e)]
    kinds = {(e.get("type") or "text").lower() for e in fields}
    names = {word for e in fields for word in _field_words(e)}
    buttons = [
        (e.get("value") or e.get("aria-label") or "") if e.tag == "input" else text_of(e)
        for e in body.iter("button", "a", "input", "summary")
        if e.tag != "input" or (e.get("type") or "").lower() in {"submit", "button"}
    ]
    return Structure(
        password="password" in kinds,
        account="email" in kinds
        or bool(names & {"user", "username", "login", "loginfmt", "email", "identifier"}),
        buttons=tuple(b for b in buttons if b and len(b) <= 60),
        noscript=noscript,
        scripts=scripts,
        mount=_mount(body),
        visible=len(text_of(body)),
    )


def _in_plain_view(element: etree._Element) -> bool:
    """Not in a header or a dialog, where many sites offer to log in beside what they say."""
    if (element.get("type") or "").lower() == "hidden":
        return False
    return not any(
        outer.tag in _ASIDE
        or is_hidden(outer)
        or outer.get("role") in {"dialog", "banner", "navigation"}
        or words_of(outer.get("class") or "")
        & {"modal", "dropdown", "popup", "offcanvas", "drawer"}
        for outer in (element, *element.iterancestors())
    )


def _field_words(element: etree._Element) -> frozenset[str]:
    return words_of(f"{element.get('name') or ''} {element.get('id') or ''}")


def _mount(body: etree._Element) -> str:
    for element in body.iter("div", "main", "section", *_SHELL_TAGS):
        name = element.get("id") or element.tag
        if (name.lower() in _MOUNTS or element.tag in _SHELL_TAGS) and len(text_of(element)) <= 40:
            return name
    return ""
