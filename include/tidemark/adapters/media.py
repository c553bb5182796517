"""Which media types are documents, and which suffix means which."""

import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

# Programming languages by all the names that they go by: on pages, in fences, as suffixes of files.

_NAMES = {
    "bash": "sh shell zsh ksh console shell-session sh-session shellsession terminal shellscript",
    "c": "h",
    "clojure": "clj",
    "cpp": "c++ cc cxx hpp cplusplus",
    "csharp": "cs c# c-sharp dotnet",
    "css": "",
    "dart": "",
    "diff": "patch",
    "dockerfile": "docker containerfile",
    "elixir": "ex exs",
    "erlang": "erl",
    "fsharp": "fs f#",
    "go": "golang",
    "graphql": "gql",
    "groovy": "gradle",
    "haskell": "hs",
    "hcl": "terraform tf",
    "html": "xhtml htm",
    "ini": "cfg",
    "java": "",
    "javascript": "js mjs cjs jsx node nodejs ecmascript",
    "json": "jsonc json5",
    "julia": "jl",
    "kotlin": "kt kts",
    "latex": "tex",
    "lua": "",
    "makefile": "make",
    "markdown": "md",
    "nginx": "",
    "objective-c": "objc objectivec obj-c",
    "ocaml": "ml",
    "perl": "pl",
    "php": "",
    "powershell": "ps1 pwsh posh",
    "protobuf": "proto",
    "pycon": "doctest",
    "python": "py python3 py3 python2 pyi ipython3",
    "r": "rlang",
    "ruby": "rb",
    "rust": "rs",
    "scala": "",
    "scss": "sass",
    "sql": "mysql postgresql postgres plpgsql psql sqlite tsql plsql pgsql",
    "svelte": "",
    "swift": "",
    "toml": "",
    "tsx": "",
    "typescript": "ts mts cts",
    "vue": "",
    "xml": "",
    "yaml": "yml",
    "zig": "",
}
_CANONICAL = {alias: name for name, aliases in _NAMES.items() for alias in (name, *aliases.split())}

_SUFFIXES = {
    "python": ".py .pyi",
    "javascript": ".js .mjs .cjs .jsx",
    "typescript": ".ts .mts .cts",
    "tsx": ".tsx",
    "go": ".go",
    "java": ".java",
    "c": ".c .h",
    "cpp": ".cc .cpp .cxx .hpp .hh",
    "rust": ".rs",
    "sql": ".sql",
    "bash": ".sh .bash",
    "ruby": ".rb",
    "php": ".php",
    "csharp": ".cs",
    "kotlin": ".kt .kts",
    "scala": ".scala",
    "swift": ".swift",
    "lua": ".lua",
    "powershell": ".ps1",
    "r": ".r",
}
_TYPES = {"bash": "text/x-sh", "cpp": "text/x-c++", "javascript": "text/javascript"}

CODE_TYPE_BY_SUFFIX = {
    suffix: _TYPES.get(name, f"text/x-{name}")
    for name, suffixes in _SUFFIXES.items()
    for suffix in suffixes.split()
}
"""The media types that files of source code go by here; those in use where there are any."""
_BY_TYPE = {_TYPES.get(name, f"text/x-{name}"): name for name in _SUFFIXES}

_CLASS = re.compile(
    r"(?:language|lang|highlight-source|highlight|syntax|code)-([\w+#.-]+)", re.IGNORECASE
)
# Beside one of these, a class that is the name of a language tells the language.
_MARKERS = frozenset(
    {"hljs", "sourcecode", "code", "prettyprint", "literal-block", "prism-code", "shiki", "brush:"}
)
_SAYING = ("data-lang", "data-language", "data-code-language", "data-syntax")
# A fence may go on after the name: "python {1,3}", "{.python .numbered}", "rust,no_run", "js:app.js".
_INFO = re.compile(r"\s*\{?\s*[.=]?([\w+#-]+)")
_DIRECTIVE = re.compile(r"\s*\{(?:code-block|code|code-cell|sourcecode)\}\s*([\w+#-]+)")


def canonical_syntax(name: str) -> str:
    """The canonical name of a language, "" for a name that is not known."""
    return _CANONICAL.get(name.strip().lower(), "")


def syntax_of_info(info: str) -> str:
    """The language that the info string of a Markdown fence names, "" when it names none."""
    found = _DIRECTIVE.match(info) or _INFO.match(info)
    return canonical_syntax(found[1]) if found else ""


def syntax_of_type(media_type: str) -> str:
    """The language of a media type of source code, "" for any other media type."""
    return _BY_TYPE.get(media_type, "")


def syntax_of_attributes(get: Mapping[str, str], *, is_code: bool) -> str:
    """The language that the attributes of an element tell, "" when they tell none.

    is_code: the element is the code itself (``pre``, ``code``), where also a bare name in its classes and
    its ``lang`` may be meant so; around code, only classes like ``highlight-python``.
    """
    for attribute in _SAYING:
        named = canonical_syntax(get.get(attribute, ""))
        if named:
            return named
    names = get.get("class", "").lower().rstrip(";").split()
    if "doctest" in names:
        return "pycon"
    for name in names:
        found = _CLASS.fullmatch(name)
        named = canonical_syntax(found[1]) if found else ""
        if named:
            return named
    if not is_code:
        return ""
    # "cs" as a ``lang`` is Czech, which is what that attribute is for.
    said = get.get("lang", "").lower()
    bare = names if _MARKERS.intersection(names) else []
    return next(filter(None, map(canonical_syntax, [said if said != "cs" else "", *bare])), "")


HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})

_OFFICE = "application/vnd.openxmlformats-officedocument"
BY_SUFFIX = {
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdx": "text/markdown",
    ".txt": "text/plain",
    ".text": "text/plain",
    ".rst": "text/x-rst",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".pdf": "application/pdf",
    ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".pptx": f"{_OFFICE}.presentationml.presentation",
    ".xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    ".eml": "message/rfc822",
    ".msg": "application/vnd.ms-outlook",
    ".epub": "application/epub+zip",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".rtf": "application/rtf",
    ".adoc": "text/asciidoc",
    ".asciidoc": "text/asciidoc",
    ".ipynb": "application/x-ipynb+json",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
    ".xml": "application/xml",
    ".docbook": "application/xml",
    ".dbk": "application/xml",
    ".dita": "application/xml",
    **CODE_TYPE_BY_SUFFIX,
}
_FOR_PROGRAMS = frozenset(
    {"text/javascript", "application/json", "application/x-ndjson", "application/xml",
     "application/x-ipynb+json"}
)  # fmt: skip
DOCUMENT_TYPES = frozenset(BY_SUFFIX.values()) - _FOR_PROGRAMS
"""What a website serves to be read. Its scripts, feeds, maps and data work for its pages, and its notebooks
are mostly copies of them; in a folder all these are documents.
"""

_ALIASES = {
    "text/x-markdown": "text/markdown",
    "text/prs.fallenstein.rst": "text/x-rst",
    "text/restructuredtext": "text/x-rst",
    "application/x-pdf": "application/pdf",
    "application/csv": "text/csv",
    "text/rtf": "application/rtf",
    "text/richtext": "application/rtf",
    "application/x-rtf": "application/rtf",
    "text/x-asciidoc": "text/asciidoc",
    "text/json": "application/json",
    "application/jsonl": "application/x-ndjson",
    "application/jsonlines": "application/x-ndjson",
    "application/x-jsonlines": "application/x-ndjson",
    "text/xml": "application/xml",
    "application/javascript": "text/javascript",
    "application/x-javascript": "text/javascript",
    "application/x-sh": "text/x-sh",
    "text/x-shellscript": "text/x-sh",
    "application/sql": "text/x-sql",
    "text/x-script.python": "text/x-python",
    "text/x-java-source": "text/x-java",
    "text/x-csrc": "text/x-c",
    "text/x-chdr": "text/x-c",
    "text/x-c++src": "text/x-c++",
    "text/x-c++hdr": "text/x-c++",
    "application/typescript": "text/x-typescript",
}
_VAGUE = frozenset({"", "text/plain", "application/octet-stream", "binary/octet-stream"})
"""What servers say when they do not know: the suffix knows better."""

# The first entry of an EPUB or OpenDocument file, stored as it is, names the type.
_MIMETYPE = re.compile(
    rb"PK\x03\x04.{26}mimetype(application/(?:epub\+zip|vnd\.oasis\.opendocument\.text(?!-)))",
    re.DOTALL,
)

_NEVER_DOCUMENTS = frozenset(
    {
        ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".bmp", ".tif", ".tiff",
        ".css", ".js", ".mjs", ".map", ".wasm", ".json", ".jsonl", ".ndjson", ".ipynb",
        ".xml", ".rss", ".atom", ".inv", ".ics",
        ".woff", ".woff2", ".ttf", ".otf", ".eot",
        ".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".whl", ".jar",
        ".exe", ".dmg", ".pkg", ".deb", ".rpm", ".msi", ".apk", ".iso", ".bin",
        ".sig", ".asc", ".sha256", ".md5",
        ".mp3", ".mp4", ".m4a", ".m4v", ".webm", ".ogg", ".oga", ".ogv", ".wav",
        ".flac", ".avi", ".mov", ".mkv",
    }
)  # fmt: skip


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
