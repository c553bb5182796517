"""What a page says to a crawler: links, canonical address, and what robots may do with it."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tidemark.domain.urls import Resolver, canonical_url

_REFRESH = re.compile(r"\s*(\d+)(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?[\"']?(.*?)[\"']?\s*", re.I)
_AT_ONCE_SECONDS = 1
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_RULES_WITH_VALUES = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)


@dataclass(frozen=True, slots=True)
class Directives:
    noindex: bool = False
    nofollow: bool = False


NO_DIRECTIVES = Directives()


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What is in a page.

    links: canonical URLs in document order, each once; none when the page says "nofollow".
    canonical: the canonical URL that ``rel=canonical`` or an immediate refresh names, if another.
    """

    links: tuple[str, ...] = ()
    canonical: str | None = None
    directives: Directives = NO_DIRECTIVES


def read_page(content: bytes, charset: str | None, url: str, robot: str) -> PageFacts:
    """Read an HTML page that was answered under ``url``; never raises for broken markup."""
    tree = _parsed(content, charset)
    head = _read_head(tree, robot)
    base = Resolver((canonical_url(head.base, url) if head.base else None) or url)
    links = () if head.directives.nofollow else tuple(dict.fromkeys(_links(tree, base)))
    canonical = base(head.canonical) if head.canonical else None
    same = canonical is None or canonical == canonical_url(url)
    return PageFacts(links, None if same else canonical, head.directives)


def header_directives(value: str, robot: str) -> Directives:
    """Read X-Robots-Tag headers, one a line: rules for all robots, and those that name this one."""
    rules: set[str] = set()
    for line in value.lower().split("\n"):
        addressee = ""
        for part in line.split(","):
            name, colon, rest = part.partition(":")
            # "unavailable_after: ..." is a rule with a value; any other "word:" names a robot, and what
            # follows is for that one.
            named = colon and name.strip() not in _RULES_WITH_VALUES
            if named:
                addressee = name.strip()
            if addressee in {"", robot.lower()}:
                rules.add((rest if named else part).strip())
    return _directives(rules)


def _directives(rules: set[str]) -> Directives:
    return Directives(
        noindex=bool(rules & {"noindex", "none"}), nofollow=bool(rules & {"nofollow", "none"})
    )


def _parsed(content: bytes, charset: str | None) -> LexborHTMLParser:
    """As browsers do: a byte order mark counts more than the header, that more than what the page says."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return LexborHTMLParser(content[len(mark) :].decode(encoding, "replace"))
    if charset:
        try:
            return LexborHTMLParser(content.decode(charset, "replace"))
        except LookupError:
            pass  # A charset nobody knows: let the bytes tell.
    return LexborHTMLParser(content, encoding=True)


def _attribute(node: LexborNode, name: str) -> str:
    return (node.attributes.get(name) or "").strip()


class _Head(NamedTuple):
    """What a page says of itself, as written."""

    base: str
    canonical: str
    directives: Directives


def _read_head(tree: LexborHTMLParser, robot: str) -> _Head:
    rules: set[str] = set()
    base, canonical, refresh = "", "", ""
    # Also outside of <head>: a parser ends that at the first element that does not belong there.
    for node in tree.css("base[href], meta[content], link[rel][href]"):
        if node.tag == "base":
            base = base or _attribute(node, "href")
        elif node.tag == "link":
            if not canonical and "canonical" in _attribute(node, "rel").lower().split():
                canonical = _attribute(node, "href")
        elif _attribute(node, "name").lower() in {"robots", robot.lower()}:
            rules.update(part.strip() for part in _attribute(node, "content").lower().split(","))
        elif _attribute(node, "http-equiv").lower() == "refresh":
            match = _REFRESH.fullmatch(_attribute(node, "content"))
            if match and int(match[1]) <= _AT_ONCE_SECONDS:
                refresh = refresh or match[2]
    return _Head(base, refresh or canonical, _directives(rules))


def _links(tree: LexborHTMLParser, resolve: Resolver) -> Iterator[str]:
    references: dict[str, None] = {}
    for node in tree.css("a[href], area[href], link[rel][href], frame[src]"):
        attributes = node.attributes
        words = (attributes.get("rel") or "").lower().split()
        if "nofollow" in words or (node.tag == "link" and not {"next", "prev"} & set(words)):
            continue
        reference = (attributes.get("href") or attributes.get("src") or "").partition("#")[0]
        references[reference.strip()] = None
    references.pop("", None)
    for reference in references:
        target = resolve(reference)
        if target is not None:
            yield target
