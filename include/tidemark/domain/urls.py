"""One spelling for every URL: a document is known by its canonical URL.

Two spellings become equal only where every server must or in practice does answer them alike: case of
scheme and host, default port, fragment, dot segments, percent-encoding, order of query parameters of
different names, tracking parameters, session ids and credentials. ``/docs`` and ``/docs/``, and ``/``
and ``/index.html``, stay apart: only a redirect or ``rel=canonical`` says that they are one.
"""

import re
from ipaddress import IPv6Address
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

MAX_URL_LENGTH = 2_048
"""Characters. Longer ones are traps or mistakes, and proxies refuse them."""

_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH_SAFE = "/:@!$&'()*+,;=-._~%"
_QUERY_SAFE = "/:@!$'()*,;=?-._~%"
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?")
_PLAIN_PATH = re.compile(r"/?(?:[A-Za-z0-9_~.-]+/)*[A-Za-z0-9_~.-]*")
_PATH_SESSION = re.compile(
    r";(?:jsessionid|phpsessid|sid)=[^/;]*|(?<=/)\((?:[A-Z]\([0-9A-Za-z_-]{16,}\))+\)/",
    re.IGNORECASE,
)
"""``;jsessionid=...``, and ``/(S(...))/`` as ASP.NET writes it."""

_TRACKING = frozenset(
    {
        "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "twclid",
        "ttclid", "igshid", "li_fat_id", "srsltid", "mc_cid", "mc_eid", "_ga", "_gl", "_hsenc",
        "_hsmi", "__hstc", "__hssc", "__hsfp", "hsctatracking", "mkt_tok", "vero_id", "oly_anon_id",
        "oly_enc_id",
    }
)  # fmt: skip
_TRACKING_PREFIXES = ("utm_", "pk_campaign", "pk_kwd", "mtm_")
_SESSION = frozenset({"jsessionid", "phpsessid", "cfid", "cftoken", "asp.net_sessionid"})
_SESSION_PREFIXES = ("aspsessionid",)
_PERHAPS_SESSION = frozenset({"sid", "sessionid", "session_id"})
_SESSION_VALUE = re.compile(r"(?=.*[0-9])[0-9A-Za-z-]{20,}")
"""A short ``sid`` often names content; a long random one is a session."""


def canonical_url(url: str, base: str | None = None) -> str | None:
    """Give the canonical spelling of ``url``, resolved against ``base``.

    ``None`` for what is no http(s) URL, has no valid host or port, or is too long. Idempotent.
    """
    parts = _split(url, base)
    if parts is None or parts.scheme not in _DEFAULT_PORTS:
        return None
    authority = _authority(parts)
    if authority is None:
        return None
    path = _without_dots(_PATH_SESSION.sub("", _encoded(parts.path, _PATH_SAFE)))
    query = _query(parts.query)
    result = f"{parts.scheme}://{authority}{path}" + (f"?{query}" if query else "")
    return result if len(result) <= MAX_URL_LENGTH else None


class Resolver:
    """Resolves the many links of one page; gives what `canonical_url` gives for an http(s) ``base``.

    A menu repeats hundreds of plain relative paths on every page of a site. They need no parsing: resolved
    against a canonical base, characters that are never encoded are canonical already.
    """

    def __init__(self, base: str) -> None:
        self._base = canonical_url(base) or base
        self._origin = origin_of(self._base)
        self._folder = urlsplit(self._base).path.rpartition("/")[0] + "/"
        self._is_plain = "//" not in self._folder

    def __call__(self, reference: str) -> str | None:
        if not reference or not self._is_plain or not _PLAIN_PATH.fullmatch(reference):
            return canonical_url(reference, self._base)
        path = reference if reference.startswith("/") else self._folder + reference
        resolved = self._origin + (_without_dots(path) if "/." in path else path)
        return resolved if len(resolved) <= MAX_URL_LENGTH else None


def origin_of(url: str) -> str:
    """Scheme, host and port of a canonical URL, e.g. ``https://example.org``."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def site_of(url: str) -> tuple[str, int | None]:
    """Host without ``www.`` and the port where it is not the default: what people take for one site."""
    parts = urlsplit(url)
    return (parts.hostname or "").removeprefix("www."), parts.port


def has_credentials(url: str) -> bool:
    """Does the URL carry a user name or a password?"""
    parts = _split(url, None)
    return parts is not None and "@" in parts.netloc


def _split(url: str, base: str | None) -> SplitResult | None:
    # As browsers do: white space around and line breaks within mean nothing, "\" is "/" before the query.
    cleaned = re.sub(r"[\t\r\n]", "", url.strip("".join(map(chr, range(33)))))
    head = re.match(r"[^?#]*", cleaned)
    end = head.end() if head else 0
    cleaned = cleaned[:end].replace("\\", "/") + cleaned[end:]
    try:
        return urlsplit(urljoin(base, cleaned) if base else cleaned)
    except ValueError:
        return None


def _authority(parts: SplitResult) -> str | None:
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    name = _host(host) if host else None
    if name is None:
        return None
    if port is None or port == _DEFAULT_PORTS[parts.scheme]:
        return name
    return f"{name}:{port}"


def _host(host: str) -> str | None:
    if ":" in host:
        try:
            return f"[{IPv6Address(host).compressed}]"
        except ValueError:
            return None
    name = unquote(host).rstrip(".")
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    name = name.lower()
    return name if _HOST.fullmatch(name) else None


def _encoded(text: str, safe: str) -> str:
    """Percent-encode what must be, decode what need not be, spell the rest in capitals."""

    def spelled(match: re.Match[str]) -> str:
        if match[1] is None:
            return "%25"
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else f"%{match[1].upper()}"

    return _ESCAPE.sub(spelled, quote(text, safe=safe, errors="replace"))


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")[1:] if path.startswith("/") else path.split("/")
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)


def _query(query: str) -> str:
    named: list[tuple[str, str]] = []
    for part in query.split("&"):
        name, equals, value = part.replace("+", "%20").partition("=")
        if part and not _is_noise(unquote(name).lower(), unquote(value)):
            key = _encoded(name, _QUERY_SAFE.replace("=", ""))
            named.append((key, key + equals + _encoded(value, _QUERY_SAFE)))
    # Only by name: the order of equal names may mean something.
    return "&".join(part for _, part in sorted(named, key=lambda pair: pair[0]))


def _is_noise(name: str, value: str) -> bool:
    return (
        name in _TRACKING
        or name.startswith(_TRACKING_PREFIXES)
        or name in _SESSION
        or name.startswith(_SESSION_PREFIXES)
        or (name in _PERHAPS_SESSION and _SESSION_VALUE.fullmatch(value) is not None)
    )
