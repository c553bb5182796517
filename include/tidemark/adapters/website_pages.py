"""What a page says to a crawler: links, canonical address, and what robots may do with it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tidemark.domain.urls import Resolver, canonical_url

_REFRESH = re.compile(r"\s*(\d+)(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?[\"']?(.*?)[\"']?\s*", re.I)
_AT_ONCE_SECONDS = 1
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
    base = Resolver(_base(tree, url))
    directives = _meta_directives(tree, robot)
    links = () if directives.nofollow else tuple(dict.fromkeys(_links(tree, base)))
    return PageFacts(links, _canonical(tree, base, url), directives)


def header_directives(value: str, robot: str) -> Directives:
    """Read an X-Robots-Tag header: rules for all robots, and those that name this one."""
    rules: set[str] = set()
    addressee = ""
    for part in value.lower().split(","):
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
    if charset:
        try:
            return LexborHTMLParser(content.decode(charset, "replace"))
        except LookupError:
            pass  # A charset nobody knows: let the bytes tell.
    return LexborHTMLParser(content, encoding=True)


def _attribute(node: LexborNode, name: str) -> str:
    return (node.attributes.get(name) or "").strip()


def _base(tree: LexborHTMLParser, url: str) -> str:
    node = tree.css_first("base[href]")
    return (canonical_url(_attribute(node, "href"), url) if node else None) or url


def _meta_directives(tree: LexborHTMLParser, robot: str) -> Directives:
    rules: set[str] = set()
    for node in tree.css("meta[name][content]"):
        if _attribute(node, "name").lower() in {"robots", robot.lower()}:
            rules.update(part.strip() for part in _attribute(node, "content").lower().split(","))
    return _directives(rules)


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


def _canonical(tree: LexborHTMLParser, resolve: Resolver, url: str) -> str | None:
    for node in tree.css("meta[http-equiv][content]"):
        if _attribute(node, "http-equiv").lower() == "refresh":
            match = _REFRESH.fullmatch(_attribute(node, "content"))
            if match and int(match[1]) <= _AT_ONCE_SECONDS and match[2]:
                return _unless_same(resolve(match[2]), url)
    for node in tree.css("link[rel][href]"):
        if "canonical" in _attribute(node, "rel").lower().split():
            return _unless_same(resolve(_attribute(node, "href")), url)
    return None


def _unless_same(target: str | None, url: str) -> str | None:
    return target if target != canonical_url(url) else None
