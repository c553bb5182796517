"""What a website source is told."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from tidemark.adapters.sources.credentials import secret_headers
from tidemark.config.settings import PROJECT
from tidemark.config.sources import INTERNAL, Connection, Pattern, SourceContext, SourceDeclaration
from tidemark.domain.connections import Credentials
from tidemark.domain.hashing import fingerprint
from tidemark.domain.urls import canonical_url, has_credentials
from tidemark.ports.source import Source

DEFAULT_USER_AGENT = "Tidemark"
_ADAPTER_VERSION = 1
"""Raised when the same answer would be turned into other bytes than before."""
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _url(value: str) -> str:
    if has_credentials(value):
        raise ValueError("credentials do not belong in a URL; put them in headers")
    if canonical_url(value) is None or urlsplit(value.strip()).port == 0:
        raise ValueError(
            "an http(s) URL with a valid host and port is expected, e.g. 'https://example.org/docs/'"
        )
    return value


def _proxy(value: str) -> str:
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if value and not valid:
        raise ValueError("an http(s) URL of a proxy is expected, e.g. 'http://proxy:3128'")
    return value


def _header_names(value: object) -> object:
    for position, name in enumerate(value if isinstance(value, dict) else (), 1):
        # By position: a name with a colon in it may be a whole header, its secret included.
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ValueError(
                f"the name of header {position} is none; write it like 'Authorization: value', "
                "with letters, digits and '-' in the name"
            )
    return value


def _header_values(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not (text.isascii() and text.isprintable() and text == text.strip()):
            raise ValueError(
                f"the value of {name!r} cannot be sent; use plain ASCII without line breaks or "
                "spaces around it"
            )
    return value


Headers = Annotated[dict[str, str], BeforeValidator(_header_names), AfterValidator(_header_values)]


class WebsiteOptions(SourceDeclaration):
    """A website to crawl.

    url: the page to start from; everything under its path on its host is in scope.
    seeds: further start pages, each with its own scope.
    include, exclude: patterns over decoded paths (``selection.py``). What they do not admit is
        neither a document nor followed; a start page is always read for its links.
    max_pages: documents; a crawl that reaches it is incomplete.
    max_depth: links away from a start page; pages of the sitemap are one away.
    max_bytes: of one body, as sent and decoded; larger ones are not read to their end.
    concurrency: requests at a time per host.
    delay: seconds between the starts of two requests to a host; robots.txt may ask for more.
    timeout: seconds to connect and between two reads; a whole answer may take ten times that.
    request_retries: further tries after an outage (no answer, 5xx, 429).
    backoff: seconds before the first retry, doubled for each one after.
    user_agent: its first word is the name obeyed in robots.txt.
    contact: an address or a page where the site's owner finds a person; goes with the user agent.
    allow_private: may the host be on a loopback, link-local or private address?
    headers: sent only to the start pages' own origins; their values are secrets.
    use_sitemap: read the sitemaps that robots.txt names, else ``/sitemap.xml``.
    credentials: a connection that opens the site (``credentials.py``); sent as ``headers`` are, and
        before them where both have one.
    proxy: http(s) URL of a proxy that all requests go through; may carry a user name and a password.
    ca_file: a PEM file with further certificate authorities to trust.
    max_queries: query strings under one path that are asked for; more are taken for a trap.
    max_repeats: how often a piece of a path may follow itself before it is taken for a trap.
    judge: doubt versions that look wrong, and keep equal pages once.
    """

    kind: Literal["website"] = "website"
    url: Annotated[str, Field(description="http(s) start page."), AfterValidator(_url)]
    seeds: tuple[Annotated[str, AfterValidator(_url)], ...] = ()
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    max_pages: Annotated[int, Field(ge=1)] = 5_000
    max_depth: Annotated[int, Field(ge=0)] = 25
    max_queries: Annotated[int, Field(ge=1)] = 1_000
    max_repeats: Annotated[int, Field(ge=1)] = 3
    delay: Annotated[float, Field(ge=0, le=600, description="Seconds between requests.")] = 0.2
    concurrency: Annotated[int, Field(ge=1, le=16)] = 2
    timeout: Annotated[float, Field(gt=0, le=600)] = 30.0
    use_sitemap: bool = True
    allow_private: bool = False
    headers: Annotated[Headers, Field(repr=False)] = Field(default_factory=dict)
    connection: Connection = ""
    proxy: Annotated[str, AfterValidator(_proxy), Field(repr=False)] = ""
    ca_file: str = ""
    judge: bool = True
    max_bytes: Annotated[int, INTERNAL] = 20_000_000
    request_retries: Annotated[int, INTERNAL] = 2
    backoff: Annotated[float, INTERNAL] = 0.5
    user_agent: Annotated[str, INTERNAL] = DEFAULT_USER_AGENT
    contact: Annotated[str, INTERNAL] = ""
    credentials: Annotated[Credentials | None, INTERNAL] = None

    def open(self, context: SourceContext) -> Source:
        """The source itself."""
        from tidemark.adapters.sources.website.crawl import WebsiteSource

        # What cannot be sent is an error before anything is asked for.
        secret_headers(context.credentials)
        ca_file = str(PROJECT / self.ca_file) if self.ca_file else ""
        return WebsiteSource(
            self.in_context(context, user_agent=context.settings.user_agent, ca_file=ca_file)
        )

    @property
    def private_headers(self) -> tuple[tuple[str, str], ...]:
        """What only the start pages' own origins are told."""
        return (*self.headers.items(), *secret_headers(self.credentials))

    @property
    def starts(self) -> tuple[str, ...]:
        """The start pages as given, each once."""
        return tuple(dict.fromkeys(s for s in (self.url, *self.seeds) if s))

    @property
    def agent_header(self) -> str:
        return f"{self.user_agent} (+{self.contact})" if self.contact else self.user_agent

    @property
    def robots_name(self) -> str:
        """The product token that robots.txt addresses."""
        return self.user_agent.split()[0].split("/")[0]

    @property
    def fingerprint(self) -> str:
        """Of what decides the bytes that a server answers with.

        Of headers only the names, and the values of content negotiation: a renewed token is no other
        content, and a secret leaves no trace. Credentials are no part of it.
        """
        headers = sorted(
            [name.lower(), value if name.lower().startswith("accept") else ""]
            for name, value in self.headers.items()
        )
        return fingerprint(
            "fetch",
            {
                "kind": "website",
                "version": _ADAPTER_VERSION,
                "user_agent": self.user_agent,
                "headers": headers,
            },
        )
