"""The first look at a fetched page: its main text, its blocks, and whether to believe it.

A false suspicion keeps a good page out of the index, so nothing is suspected on one piece of evidence: the
page must say little, its title or heading must say just what is suspected, and a sentence or the structure of
the page must agree. A page with code, tables or much text is never suspected.

    suspected        text up to  named so       and
    soft 404         800         yes            a sentence to its visitor, or hardly any text
                     250         no headings    a sentence to its visitor at the beginning
    server error     200         yes            a sentence, or hardly any text
    login wall       800         yes            a field for a password or a name in plain view, or a
                                                sentence and a button
    consent wall     2,500       yes            a sentence and a button to agree
    parked           1,200       yes            a sentence, or the page's own host in its name
    server default   4,000       yes            a sentence
    needs JavaScript 300         –              no text but that, hardly any text around it, and scripts

"Named so": a part of its title or its first heading says just that, and its h1 says nothing else.
"""

import re
from urllib.parse import urlsplit

from tidemark.adapters import html_inspector_phrases as phrases
from tidemark.adapters import html_inspector_walls as walls
from tidemark.adapters.html_cleaner import clean_html
from tidemark.adapters.html_inspector_look import Look, Structure, look_at, main_text, structure_of
from tidemark.adapters.html_inspector_phrases import plain
from tidemark.adapters.html_site_blocks import blocks_of, drop_blocks
from tidemark.adapters.text_decoding import decode
from tidemark.domain.errors import DocumentError
from tidemark.domain.hashing import digest_text
from tidemark.domain.inspection import Inspection, Suspicion
from tidemark.domain.model import RawDocument

_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_HARDLY = 90
"""Characters: a heading and a line, no more."""
_ECHO = 40
"""Characters beside headings: a server's signature, a link home."""
_LONGEST_WALL = 4000

Verdict = tuple[Suspicion, str]


class HtmlInspector:
    """Looks at HTML pages (see ``ports.PageInspector``)."""

    def __init__(self, max_depth: int = 150) -> None:
        """``max_depth`` bounds the nesting of elements, as it does for the partitioner."""
        self._max_depth = max_depth

    def inspect(
        self, raw: RawDocument, furniture: frozenset[int] = frozenset()
    ) -> Inspection | None:
        """Look at a page; None for what is no web page, or one that cannot be read.

        ``furniture``: blocks of the site that are no part of its text; they are among ``blocks`` still.
        """
        if raw.media_type not in _PAGES:
            return None
        try:
            html = decode(raw.content, raw.charset, raw.uri)
            page = clean_html(html, raw.uri, self._max_depth)
            # Told before they are dropped: what is furniture is learned again from them.
            blocks = blocks_of(page.root)
            if furniture:
                drop_blocks(page.root, furniture)
            text = main_text(page)
            verdict = None
            if len(text) <= _LONGEST_WALL:
                verdict = judge(look_at(page, html, text), html, raw.uri)
        except DocumentError:
            return None  # the partitioner refuses it too, and says why
        suspicion, detail = verdict or (None, "")
        return Inspection(digest_text(text), len(text), blocks, suspicion, detail)


def _measured(raw: RawDocument) -> Inspection | None:
    """Of a text that is no page, how much it says: nothing in it tells whether to believe it."""
    if not raw.media_type.startswith("text/"):
        return None
    try:
        text = " ".join(decode(raw.content, raw.charset, raw.uri).split())
    except DocumentError:
        return None  # the partitioner refuses it too, and says why
    return Inspection(digest_text(text), len(text))


def judge(look: Look, html: str, uri: str) -> Verdict | None:
    """Whether a page with little text is to be suspected, and on which evidence. Raises ``DocumentError``."""
    if look.documents:
        return None
    for rule in (_parked, _not_found, _server_error):
        verdict = rule(look, uri)
        if verdict is not None:
            return verdict
    if not _may_be_a_wall(look, html):
        return None
    structure = structure_of(html, uri)
    return (
        _needs_javascript(look, structure) or _login(look, structure) or _consent(look, structure)
    )


def _quoted(named: str, said: str, *more: str) -> str:
    """Evidence in one line: what the page is named, what it says, what else counted."""
    parts = [
        f"named “{named[:80]}”" if named else "",
        f"says “{said[:100]}”" if said else "",
        *more,
    ]
    return ", ".join(filter(None, parts))


def _length(look: Look) -> str:
    return f"{len(look.text)} characters of text"


def _not_found(look: Look, uri: str) -> Verdict | None:
    if len(look.text) > 800:
        return None
    named, said = look.named(phrases.NOT_FOUND), look.says(phrases.NOT_FOUND)
    if look.about_else and not phrases.NOT_FOUND.names(look.about_else):
        return None
    rest = len(look.text) - sum(map(len, look.headings))
    plainly = any(_is_plain(name) for name in look.names if phrases.NOT_FOUND.names(name))
    to_visitor = said and ("you" in said or plainly)
    begins = said and len(look.text) <= 250 and said in plain(look.text)[:150]
    if (named and (to_visitor or (plainly and rest <= _ECHO))) or (begins and not look.headings):
        return Suspicion.SOFT_404, _quoted(named, said, _length(look))
    return None


def _is_plain(name: str) -> bool:
    """Whether it can mean nothing else: "Error" and "Not found" also head entries of a reference."""
    text = plain(name)
    words = set(text.split())
    return bool(words & {"page", "seite", "pagina"} or re.search(r"\d", text)) or not text.isascii()


def _server_error(look: Look, uri: str) -> Verdict | None:
    if len(look.text) > 200:
        return None
    named, said = look.named(phrases.SERVER_ERROR), look.says(phrases.SERVER_ERROR)
    numbered = any(char.isdigit() for char in named)
    if look.about_else and not phrases.SERVER_ERROR.names(look.about_else):
        return None
    if named and (said or (numbered and len(look.text) <= _HARDLY)):
        return Suspicion.SOFT_404, _quoted(named, said, _length(look))
    return None


def _parked(look: Look, uri: str) -> Verdict | None:
    named, said = look.named(walls.PARKED), look.says(walls.PARKED)
    if named and len(look.text) <= 1200:
        host = (urlsplit(uri).hostname or "").removeprefix("www.")
        own = bool(host) and host in plain(named)
        if own or said or len(look.text) <= _HARDLY:
            return Suspicion.PARKED, _quoted(named, said, _length(look))
    named, said = look.named(walls.PLACEHOLDER), look.says(walls.PLACEHOLDER)
    if named and said:
        return Suspicion.PARKED, _quoted(named, said, "a server's default page")
    return None


def _may_be_a_wall(look: Look, html: str) -> bool:
    """Whether a second look pays."""
    return (
        len(look.text) <= 60
        or bool(look.named(walls.LOGIN) or look.named(walls.CONSENT))
        or (len(look.text) <= 300 and "javascript" in plain(look.text))
    )


def _needs_javascript(look: Look, structure: Structure) -> Verdict | None:
    if len(look.text) > 300 or structure.scripts == 0 or structure.visible > 600:
        return None
    shown = look.says(walls.JAVASCRIPT)
    hidden = walls.JAVASCRIPT.says(structure.noscript)
    counts = (f"{structure.scripts} scripts", _length(look))
    if shown and not (look.headings and len(look.text) > 120):
        return Suspicion.NEEDS_JAVASCRIPT, _quoted("", shown, *counts)
    empty = not look.text or walls.JAVASCRIPT.names(look.text)
    if empty and (hidden or structure.mount):
        where = f"an empty element “{structure.mount}”" if structure.mount else ""
        return Suspicion.NEEDS_JAVASCRIPT, _quoted("", hidden, where, *counts)
    return None


def _login(look: Look, structure: Structure) -> Verdict | None:
    if len(look.text) > 800:
        return None
    named = look.named(walls.LOGIN)
    if not named or (look.about_else and not walls.LOGIN.names(look.about_else)):
        return None
    said = look.says(walls.LOGIN)
    pressed = next((b for b in structure.buttons if walls.LOGIN.names(b)), "")
    if structure.password:
        return Suspicion.LOGIN_WALL, _quoted(named, said, "a field for a password", _length(look))
    if structure.account and (pressed or said or len(look.text) <= 200):
        return Suspicion.LOGIN_WALL, _quoted(named, said, "a field for an account", _length(look))
    if said and pressed and len(look.text) <= 300:
        return Suspicion.LOGIN_WALL, _quoted(named, said, f"a button “{pressed}”", _length(look))
    return None


def _consent(look: Look, structure: Structure) -> Verdict | None:
    if len(look.text) > 2500:
        return None
    named, said = look.named(walls.CONSENT), look.says(walls.CONSENT)
    pressed = next(
        (b for b in structure.buttons if walls.AGREE.fullmatch(plain(b).strip(" !."))), ""
    )
    if look.about_else and not walls.CONSENT.names(look.about_else):
        return None
    if named and said and pressed:
        return Suspicion.CONSENT_WALL, _quoted(named, said, f"a button “{pressed}”", _length(look))
    return None
