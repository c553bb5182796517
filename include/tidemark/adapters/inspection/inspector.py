"""The first look at a fetched document: how much it says, its blocks, and whether to believe it.

A false anomaly keeps a good page out of the index, so none is told on one piece of evidence: the page must
say little, its title or heading must say just what is meant, and a sentence or the structure of the page must
agree. A page with code, tables or much text has none.

    anomaly          text up to  named so       and
    soft 404         800         yes            a sentence to its visitor, or hardly any text
                     250         no headings    a sentence to its visitor at the beginning
    server error     200         yes            a sentence, or hardly any text
    login wall       800         yes            a field for a password or a name in plain view, or a
                                                sentence and a button
    consent wall     2,500       yes            a sentence and a button to agree
    parked           1,200       yes            a sentence, or the page's own host in its name
    server default   4,000       yes            a sentence
    needs JavaScript 300         –              no text but that, hardly any text around it, and scripts

"Named so": a part of its title or its first heading says just that, and its h1 says nothing else. The phrases
are in ``phrases.toml``.
"""

import re
import tomllib
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

from lxml import etree

from tidemark.adapters.decoding import decode
from tidemark.adapters.media import HTML_TYPES
from tidemark.adapters.partition.html.boilerplate import blocks_of, drop_blocks, is_hidden
from tidemark.adapters.partition.html.cleaner import CleanPage, clean_html
from tidemark.adapters.partition.html.tree import (
    HEADINGS,
    heading_text,
    parse_page,
    text_of,
    words_of,
)
from tidemark.domain.documents import Anomaly, Inspection, RawDocument
from tidemark.domain.errors import DocumentError
from tidemark.domain.hashing import digest_text

_TEXT_TYPES = re.compile(
    r"(?:text|message)/.*|application/(?:.*[+-])?(?:json|ndjson|xml|yaml|toml|rtf|sql|javascript)"
)
"""What is text as it stands. Of all else the text is known when it was partitioned."""
_HARDLY = 90
"""Characters: a heading and a line, no more."""
_ECHO = 40
"""Characters beside headings: a server's signature, a link home."""
_LONGEST = 4000
"""Characters over which no page is asked whether to believe it."""

Finding = tuple[Anomaly, str]
"""An anomaly and its evidence."""


class DocumentInspector:
    """Looks at pages and texts (see ``ports.PageInspector``)."""

    def __init__(self, max_depth: int = 150) -> None:
        """``max_depth`` bounds the nesting of elements, as it does for the partitioner."""
        self._max_depth = max_depth

    def inspect(
        self, raw: RawDocument, boilerplate: frozenset[int] = frozenset()
    ) -> Inspection | None:
        """Look at a document; None for what is neither page nor text, or cannot be read.

        boilerplate: blocks of the site that are no part of its text; they are among ``blocks`` still.
        """
        is_page = raw.media_type in HTML_TYPES
        if not (is_page or _TEXT_TYPES.fullmatch(raw.media_type)):
            return None
        try:
            text = decode(raw.content, raw.charset, raw.uri)
            return self._page(text, raw.uri, boilerplate) if is_page else _measured(text)
        except DocumentError:
            return None  # the partitioner refuses it too, and says why

    def _page(self, html: str, uri: str, boilerplate: frozenset[int]) -> Inspection:
        page = clean_html(html, uri, self._max_depth)
        # Told before they are dropped: what is boilerplate is learned again from them.
        blocks = blocks_of(page.root)
        if boilerplate:
            drop_blocks(page.root, boilerplate)
        text = " ".join(" ".join(map(str, page.root.itertext())).split())
        finding = None
        if len(text) <= _LONGEST:
            finding = _anomaly(_features(page, html, text), html, uri)
        anomaly, detail = finding or (None, "")
        return Inspection(digest_text(text), len(text), blocks, anomaly, detail)


def _measured(text: str) -> Inspection:
    """Of a text that is no page, how much it says: nothing in it tells whether to believe it."""
    # Line by line: the words of a large table of data all at once would take ten times its size.
    lines = (" ".join(line.split()) for line in text.splitlines())
    folded = " ".join(filter(None, lines))
    return Inspection(digest_text(folded), len(folded))


# Phrases.

_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "\xa0": " "})
_AROUND = " \t\n!.,…:;?¿¡|·•—–-‑«»\"'()[]#。！？、…🙁😕😢🤔"


def _plain(text: str) -> str:
    """As the phrases expect it."""
    return " ".join(text.translate(_APOSTROPHES).casefold().split())


class _Phrases:
    """Whole headings and sentences by which a page says that it is something.

    So "Page not found" names what "Customise the page not found" does not.
    """

    def __init__(self, headings: str, sentences: str = "") -> None:
        one = _alternatives(headings)
        self._heading = re.compile(rf"(?:{one})(?:[\s!.,…:;|·—–-]+(?:{one}))*")
        self._sentence = re.compile(_alternatives(sentences))

    def names(self, heading: str) -> bool:
        """Whether a heading says this and nothing else."""
        text = _plain(heading).strip(_AROUND)
        return bool(text) and len(text) <= 120 and self._heading.fullmatch(text) is not None

    def says(self, text: str) -> str:
        """What says it in a text, the longest when there is more, "" when there is nothing."""
        return max(
            (m[0].strip() for m in self._sentence.finditer(_plain(text))), key=len, default=""
        )


def _alternatives(lines: str) -> str:
    """An expression from lines: an indented one goes on with the one above it."""
    joined = re.sub(r"\n +", "", lines).strip("\n")
    for name, phrase in _SHORTHAND.items():
        joined = joined.replace(name, re.sub(r"\n *", "", phrase))
    return joined.replace("\n", "|")


_PHRASES = tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8"))
_SHORTHAND: dict[str, str] = _PHRASES.pop("shorthand")
_NOT_FOUND = _Phrases(**_PHRASES["not_found"])
_SERVER_ERROR = _Phrases(**_PHRASES["server_error"])
_LOGIN = _Phrases(**_PHRASES["login"])
_CONSENT = _Phrases(**_PHRASES["consent"])
_AGREE = re.compile(_alternatives(_PHRASES["agree"]["headings"]))
_PARKED = _Phrases(**_PHRASES["parked"])
_PLACEHOLDER = _Phrases(**_PHRASES["placeholder"])
_JAVASCRIPT = _Phrases(**_PHRASES["javascript"])

# What is asked of a page.

_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_TITLE_PARTS = re.compile(r"\s+[-|–—·•:»«/\\~]+\s+|\s*[|»·]\s*|\s*::\s*")
_BESIDE = frozenset({"header", "nav", "footer", "aside", "dialog"})
_BESIDE_ROLES = frozenset({"dialog", "banner", "navigation"})
_BESIDE_WORDS = frozenset({"modal", "dropdown", "popup", "offcanvas", "drawer"})
_ACCOUNT_WORDS = frozenset({"user", "username", "login", "loginfmt", "email", "identifier"})
_MOUNTS = frozenset(
    {"root", "app", "__next", "__nuxt", "__docusaurus", "___gatsby", "svelte", "app-root", "react-root",
     "application", "main-app", "mount", "q-app", "__layout", "ember-app", "app-mount"}
)  # fmt: skip
_SHELL_TAGS = frozenset({"app-root", "ng-app", "my-app", "flt-glass-pane"})


@dataclass(frozen=True, slots=True)
class _Features:
    """What a cleaned page shows.

    text: the main text, white space folded. headings: its headings. title: the parts of ``<title>``. h1: the
    first h1, "" without one. documents: it has what an error page or a wall has not: code, a table of data,
    many headings.
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

    def named(self, phrases: _Phrases) -> str:
        """Which of its names is just this, "" when none is."""
        return next((name for name in self.names if phrases.names(name)), "")

    def says(self, phrases: _Phrases) -> str:
        """What it says so beside its names: a heading and its echo in the text are one piece of evidence."""
        text = self.text
        for heading in self.headings:
            if phrases.names(heading):
                text = text.replace(heading, " ", 1)
        return phrases.says(text)

    def is_about_else(self, phrases: _Phrases) -> bool:
        """Whether its h1 says something else, and is not the name of the site."""
        is_site = self.h1 in self.title and len(self.title) > 1
        return bool(self.h1) and not is_site and not phrases.names(self.h1)

    @property
    def length(self) -> str:
        return f"{len(self.text)} characters of text"


@dataclass(frozen=True, slots=True)
class _Structure:
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


def _features(page: CleanPage, html: str, text: str) -> _Features:
    declared = _TITLE.search(html)
    title = " ".join(unescape(declared[1]).split()) if declared else ""
    parts = [title, *_TITLE_PARTS.split(title)] if title else []
    headings = [h for h in page.root.iter(*HEADINGS) if text_of(h)]
    first = next((h for h in headings if h.tag == "h1"), None)
    return _Features(
        text,
        tuple(" ".join(heading_text(h).split()) for h in headings),
        tuple(dict.fromkeys(part.strip() for part in parts if part.strip())),
        heading_text(first) if first is not None else "",
        len(headings) > 4 or next(page.root.iter("pre", "table", "dl", "math"), None) is not None,
    )


def _structure(html: str, name: str) -> _Structure:
    """A second look, at the whole page; takes as long as reading it again. Raises ``DocumentError``."""
    document = parse_page(html, name)
    noscript = " ".join(text_of(e) for e in document.iter("noscript"))
    scripts = sum(1 for _ in document.iter("script"))
    etree.strip_elements(document, "script", "style", "noscript", "template", with_tail=False)
    body = document.find(".//body")
    body = document if body is None else body
    fields = [e for e in body.iter("input") if _is_in_plain_view(e)]
    kinds = {(e.get("type") or "text").lower() for e in fields}
    names = {w for e in fields for w in words_of(f"{e.get('name') or ''} {e.get('id') or ''}")}
    buttons = [
        (e.get("value") or e.get("aria-label") or "") if e.tag == "input" else text_of(e)
        for e in body.iter("button", "a", "input", "summary")
        if e.tag != "input" or (e.get("type") or "").lower() in {"submit", "button"}
    ]
    return _Structure(
        password="password" in kinds,
        account="email" in kinds or bool(names & _ACCOUNT_WORDS),
        buttons=tuple(b for b in buttons if b and len(b) <= 60),
        noscript=noscript,
        scripts=scripts,
        mount=_mount(body),
        visible=len(text_of(body)),
    )


def _is_in_plain_view(element: etree._Element) -> bool:
    """Not in a header or a dialog, where many sites offer to log in beside what they say."""
    return (element.get("type") or "").lower() != "hidden" and not any(
        outer.tag in _BESIDE
        or is_hidden(outer)
        or outer.get("role") in _BESIDE_ROLES
        or words_of(outer.get("class") or "") & _BESIDE_WORDS
        for outer in (element, *element.iterancestors())
    )


def _mount(body: etree._Element) -> str:
    for element in body.iter("div", "main", "section", *_SHELL_TAGS):
        name = element.get("id") or element.tag
        if (name.lower() in _MOUNTS or element.tag in _SHELL_TAGS) and len(text_of(element)) <= 40:
            return name
    return ""


# Whether to believe it.


def _anomaly(page: _Features, html: str, uri: str) -> Finding | None:
    """Why a page with little text is not to be believed. Raises ``DocumentError``."""
    if page.documents:
        return None
    finding = _parked(page, uri) or _not_found(page) or _server_error(page)
    may_stand_in_the_way = (
        len(page.text) <= 60
        or page.named(_LOGIN)
        or page.named(_CONSENT)
        or (len(page.text) <= 300 and "javascript" in _plain(page.text))
    )
    if finding or not may_stand_in_the_way:
        return finding
    structure = _structure(html, uri)
    return (
        _needs_javascript(page, structure) or _login(page, structure) or _consent(page, structure)
    )


def _evidence(named: str, sentence: str, *more: str) -> str:
    """In one line: what the page is named, what it says, what else counted."""
    parts = [
        f"named “{named[:80]}”" if named else "",
        f"says “{sentence[:100]}”" if sentence else "",
        *more,
    ]
    return ", ".join(filter(None, parts))


def _not_found(page: _Features) -> Finding | None:
    if len(page.text) > 800 or page.is_about_else(_NOT_FOUND):
        return None
    named, sentence = page.named(_NOT_FOUND), page.says(_NOT_FOUND)
    rest = len(page.text) - sum(map(len, page.headings))
    plainly = any(_is_unmistakable(name) for name in page.names if _NOT_FOUND.names(name))
    to_visitor = sentence and ("you" in sentence or plainly)
    begins = sentence and len(page.text) <= 250 and sentence in _plain(page.text)[:150]
    if (named and (to_visitor or (plainly and rest <= _ECHO))) or (begins and not page.headings):
        return Anomaly.SOFT_404, _evidence(named, sentence, page.length)
    return None


def _is_unmistakable(name: str) -> bool:
    """Whether it can mean nothing else: "Error" and "Not found" also head entries of a reference."""
    text = _plain(name)
    words = set(text.split())
    return bool(words & {"page", "seite", "pagina"} or re.search(r"\d", text)) or not text.isascii()


def _server_error(page: _Features) -> Finding | None:
    if len(page.text) > 200 or page.is_about_else(_SERVER_ERROR):
        return None
    named, sentence = page.named(_SERVER_ERROR), page.says(_SERVER_ERROR)
    numbered = any(char.isdigit() for char in named)
    if named and (sentence or (numbered and len(page.text) <= _HARDLY)):
        return Anomaly.SOFT_404, _evidence(named, sentence, page.length)
    return None


def _parked(page: _Features, uri: str) -> Finding | None:
    named, sentence = page.named(_PARKED), page.says(_PARKED)
    if named and len(page.text) <= 1200:
        host = (urlsplit(uri).hostname or "").removeprefix("www.")
        own = bool(host) and host in _plain(named)
        if own or sentence or len(page.text) <= _HARDLY:
            return Anomaly.PARKED, _evidence(named, sentence, page.length)
    named, sentence = page.named(_PLACEHOLDER), page.says(_PLACEHOLDER)
    if named and sentence:
        return Anomaly.PARKED, _evidence(named, sentence, "a server's default page")
    return None


def _needs_javascript(page: _Features, structure: _Structure) -> Finding | None:
    if len(page.text) > 300 or structure.scripts == 0 or structure.visible > 600:
        return None
    shown, hidden = page.says(_JAVASCRIPT), _JAVASCRIPT.says(structure.noscript)
    counts = (f"{structure.scripts} scripts", page.length)
    if shown and not (page.headings and len(page.text) > 120):
        return Anomaly.NEEDS_JAVASCRIPT, _evidence("", shown, *counts)
    empty = not page.text or _JAVASCRIPT.names(page.text)
    if empty and (hidden or structure.mount):
        where = f"an empty element “{structure.mount}”" if structure.mount else ""
        return Anomaly.NEEDS_JAVASCRIPT, _evidence("", hidden, where, *counts)
    return None


def _login(page: _Features, structure: _Structure) -> Finding | None:
    named = page.named(_LOGIN)
    if len(page.text) > 800 or not named or page.is_about_else(_LOGIN):
        return None
    sentence = page.says(_LOGIN)
    pressed = next((b for b in structure.buttons if _LOGIN.names(b)), "")
    if structure.password:
        proof = "a field for a password"
    elif structure.account and (pressed or sentence or len(page.text) <= 200):
        proof = "a field for an account"
    elif sentence and pressed and len(page.text) <= 300:
        proof = f"a button “{pressed}”"
    else:
        return None
    return Anomaly.LOGIN_WALL, _evidence(named, sentence, proof, page.length)


def _consent(page: _Features, structure: _Structure) -> Finding | None:
    if len(page.text) > 2500 or page.is_about_else(_CONSENT):
        return None
    named, sentence = page.named(_CONSENT), page.says(_CONSENT)
    agreeing = (b for b in structure.buttons if _AGREE.fullmatch(_plain(b).strip(" !.")))
    pressed = next(agreeing, "")
    if named and sentence and pressed:
        evidence = _evidence(named, sentence, f"a button “{pressed}”", page.length)
        return Anomaly.CONSENT_WALL, evidence
    return None
