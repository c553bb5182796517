"""Which media types are documents, and which suffix means which."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

_TABLES: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("media.toml").read_text(encoding="utf-8")
)


def _inverted(table: Mapping[str, str]) -> dict[str, str]:
    return {word: name for name, words in table.items() for word in words.split()}


_CANONICAL = {name: name for name in _TABLES["languages"]} | _inverted(_TABLES["languages"])
_CODE_TYPES = {name: f"text/x-{name}" for name in _TABLES["code"]} | _TABLES["code_types"]
CODE_TYPE_BY_SUFFIX = {
    suffix: _CODE_TYPES[name] for suffix, name in _inverted(_TABLES["code"]).items()
}
"""The media types that files of source code go by here; those in use where there are any."""
_SYNTAX_BY_TYPE = {media_type: name for name, media_type in _CODE_TYPES.items()}

BY_SUFFIX = _inverted(_TABLES["suffixes"]) | CODE_TYPE_BY_SUFFIX
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
DOCUMENT_TYPES = frozenset(BY_SUFFIX.values()) - frozenset(
    _TABLES["websites"]["not_documents"].split()
)
"""What a website serves to be read."""
_NEVER_DOCUMENTS = frozenset(_TABLES["websites"]["never_documents"].split())
_ALIASES = _inverted(_TABLES["aliases"])
_VAGUE = frozenset({"", "text/plain", "application/octet-stream", "binary/octet-stream"})
"""What servers say when they do not know: the suffix knows better."""

# The first entry of an EPUB or OpenDocument file, stored as it is, names the type.
_MIMETYPE = re.compile(
    rb"PK\x03\x04.{26}mimetype(application/(?:epub\+zip|vnd\.oasis\.opendocument\.text(?!-)))",
    re.DOTALL,
)
_CLASS = re.compile(
    r"(?:language|lang|highlight-source|highlight|syntax|code)-([\w+#.-]+)", re.IGNORECASE
)
# Beside one of these, a class that is the name of a language tells the language.
_MARKERS = frozenset(
    {"hljs", "sourcecode", "code", "prettyprint", "literal-block", "prism-code", "shiki", "brush:"}
)
_ATTRIBUTES = ("data-lang", "data-language", "data-code-language", "data-syntax")
# A fence may go on after the name: "python {1,3}", "{.python .numbered}", "rust,no_run", "js:app.js".
_INFO = re.compile(r"\s*\{?\s*[.=]?([\w+#-]+)")
_DIRECTIVE = re.compile(r"\s*\{(?:code-block|code|code-cell|sourcecode)\}\s*([\w+#-]+)")


def canonical_syntax(name: str) -> str:
    """The canonical name of a language, "" for a name that is not known."""
    return _CANONICAL.get(name.strip().lower(), "")


def syntax_of_info(info: str) -> str:
    """The language that the info string of a Markdown fence names, "" when it names none."""
    match = _DIRECTIVE.match(info) or _INFO.match(info)
    return canonical_syntax(match[1]) if match else ""


def syntax_of_type(media_type: str) -> str:
    """The language of a media type of source code, "" for any other media type."""
    return _SYNTAX_BY_TYPE.get(media_type, "")


def syntax_of_attributes(get: Mapping[str, str], *, is_code: bool) -> str:
    """The language that the attributes of an element tell, "" when they tell none.

    is_code: the element is the code itself (``pre``, ``code``), where also a bare name in its classes and
    its ``lang`` may be meant so; around code, only classes like ``highlight-python``.
    """
    for attribute in _ATTRIBUTES:
        named = canonical_syntax(get.get(attribute, ""))
        if named:
            return named
    names = get.get("class", "").lower().rstrip(";").split()
    if "doctest" in names:
        return "pycon"
    for name in names:
        match = _CLASS.fullmatch(name)
        named = canonical_syntax(match[1]) if match else ""
        if named:
            return named
    if not is_code:
        return ""
    # "cs" as a ``lang`` is Czech, which is what that attribute is for.
    lang = get.get("lang", "").lower()
    bare = names if _MARKERS.intersection(names) else []
    return next(filter(None, map(canonical_syntax, [lang if lang != "cs" else "", *bare])), "")


def suffix_of(uri: str) -> str:
    """The lower-case suffix of a URI's path, with its dot; "" when it has none."""
    name = unquote(urlsplit(uri).path).rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return f".{suffix.lower()}" if stem and dot else ""


def media_type_of_suffix(suffix: str) -> str | None:
    """The media type of a document's suffix, None for what is no document."""
    return BY_SUFFIX.get(suffix)


def is_never_document(uri: str) -> bool:
    """Can a URL be passed over by its suffix alone (images, styles, archives, media)?"""
    return suffix_of(uri) in _NEVER_DOCUMENTS


def parse_content_type(value: str, uri: str) -> tuple[str, str | None]:
    """Media type and charset of a Content-Type header, helped by the URI's suffix where it is vague.

    The media type is "" when nothing tells it.
    """
    kind, _, parameters = value.partition(";")
    media_type = kind.strip().lower()
    media_type = _ALIASES.get(media_type, media_type)
    charset = None
    for parameter in parameters.split(";"):
        name, _, text = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = text.strip().strip("\"'").lower() or None
    if media_type in _VAGUE:
        named = media_type_of_suffix(suffix_of(uri)) or media_type
        # A page that is served as plain text is meant to be read as source.
        if not (media_type == "text/plain" and named in HTML_TYPES):
            media_type = named
    return media_type, charset


def detect(content: bytes) -> str:
    """The media type of bytes that came without a useful name; "" when they do not tell."""
    head = content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith(b"%pdf-"):
        return "application/pdf"
    if head.startswith(b"{\\rtf"):
        return "application/rtf"
    named = _MIMETYPE.match(content)
    if named:
        return named[1].decode("ascii")
    if head.startswith((b"<!doctype html", b"<html")) or b"<html" in head:
        return "text/html"
    return ""


def canonical_type(media_type: str) -> str:
    """A media type under the name that it goes by here."""
    return _ALIASES.get(media_type, media_type)
