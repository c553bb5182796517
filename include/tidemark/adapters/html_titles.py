"""What a page says of itself: its title, its language, the text of its headings."""

import re

from lxml import etree

from tidemark.adapters.html_furniture import is_permalink

_SEPARATORS = re.compile(r"\s+[-|–—·•:»«/\\~]+\s+|\s*[|»·]\s*|\s*::\s*")


def site_name(document: etree._Element) -> str:
    """The name of the site, as a page declares it; "" when it does not."""
    for attribute, value in (("property", "og:site_name"), ("name", "application-name")):
        found = document.find(f".//meta[@{attribute}='{value}']")
        if found is not None:
            return " ".join((found.get("content") or "").split())
    return ""


def page_language(document: etree._Element) -> str | None:
    """ISO 639-1 of the language that a page declares."""
    for element in document.iter("html", "body", "main"):
        value = element.get("lang") or element.get("{http://www.w3.org/XML/1998/namespace}lang")
        value = value or element.get("xml:lang")
        if value:
            return language_code(value)
    for meta in document.iter("meta"):
        if (meta.get("http-equiv") or meta.get("name") or "").lower() in {
            "content-language",
            "language",
        }:
            return language_code(meta.get("content") or "")
    return None


def language_code(tag: str) -> str | None:
    """The ISO 639-1 code of a language tag such as "en-GB", else None."""
    found = re.match(r"\s*([A-Za-z]{2})(?![A-Za-z])", tag)
    return found.group(1).lower() if found else None


def heading_text(heading: etree._Element) -> str:
    """A heading's text without the permalink beside it."""
    links = {a for a in heading.iter("a") if is_permalink(a)}
    parts: list[str] = []
    for event, element in etree.iterwalk(heading, events=("start", "end")):
        inside = any(e in links for e in [element, *element.iterancestors()])
        if event == "start" and not inside:
            parts.append(element.text or "")
        if event == "end" and element is not heading:
            outer = element.getparent()
            if outer is not None and not any(e in links for e in [outer, *outer.iterancestors()]):
                parts.append(element.tail or "")
    return " ".join("".join(parts).split()).rstrip("¶ ")


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
