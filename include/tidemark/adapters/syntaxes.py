"""Programming languages by all the names that they go by: on pages, in fences, as suffixes of files."""

import re
from collections.abc import Mapping

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
