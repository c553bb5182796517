"""What a website source is told, validated once."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tidemark.adapters.sources.credentials import is_header_text, secret_headers
from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.hashing import fingerprint
from tidemark.domain.urls import canonical_url, has_credentials

DEFAULT_USER_AGENT = "Tidemark"
_ADAPTER_VERSION = 1
"""Raised when the same answer would be turned into other bytes than before."""


@dataclass(frozen=True, slots=True)
class WebsiteOptions:
    """A website to crawl.

    url: the page to start from; everything under its path on its host is in scope.
    seeds: further start pages, each with its own scope.
    include, exclude: patterns over decoded paths (``adapters/patterns.py``). What they do not admit is
        neither a document nor followed; a start page is always read for its links.
    max_pages: documents; a crawl that reaches it is incomplete.
    max_depth: links away from a start page; pages of the sitemap are one away. None: no limit.
    max_bytes: of one body, as sent and decoded; larger ones are not read to their end.
    concurrency: requests at a time per host.
    delay: seconds between the starts of two requests to a host; robots.txt may ask for more.
    timeout: seconds to connect and between two reads; a whole answer may take ten times that.
    retries: further tries after an outage (no answer, 5xx, 429).
    backoff: seconds before the first retry, doubled for each one after.
    user_agent: its first word is the name obeyed in robots.txt.
    contact: an address or a page where the site's owner finds a person; goes with the user agent.
    allow_private: may the host be on a loopback, link-local or private address?
    headers: sent only to the start pages' own origins; their values are secrets.
    use_sitemap: read the sitemaps that robots.txt names, else ``/sitemap.xml``.
    credentials: a connection that opens the site (``website_credentials.py``); sent as ``headers`` are, and
        before them where both have one.
    proxy: http(s) URL of a proxy that all requests go through; may carry a user name and a password.
    ca_file: a PEM file with further certificate authorities to trust.
    max_queries: query strings under one path that are asked for; more are taken for a trap.
    max_repeats: how often a piece of a path may follow itself before it is taken for a trap.
    """

    url: str = ""
    seeds: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_pages: int = 5_000
    max_depth: int | None = 25
    max_bytes: int = 20_000_000
    concurrency: int = 2
    delay: float = 0.0
    timeout: float = 20.0
    retries: int = 2
    backoff: float = 0.5
    user_agent: str = DEFAULT_USER_AGENT
    contact: str = ""
    allow_private: bool = False
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    use_sitemap: bool = True
    credentials: Credentials | None = field(default=None, repr=False)
    proxy: str = field(default="", repr=False)
    ca_file: str = ""
    max_queries: int = 1_000
    max_repeats: int = 3

    def __post_init__(self) -> None:
        if not self.starts:
            raise ConfigurationError("A website source has no start page.", "Give it a url.")
        for start in self.starts:
            if has_credentials(start):
                raise ConfigurationError(
                    "A start page has credentials in its URL.",
                    "Take them out of url and send them in headers.",
                )
            if canonical_url(start) is None:
                raise ConfigurationError(
                    f"The start page {start!r} is no http(s) URL.",
                    "Write it like https://example.org/docs/.",
                )
        self._check_numbers()
        self._check_headers()
        self._check_proxy()

    def _check_numbers(self) -> None:
        minimums = {
            "max_pages": 1,
            "max_bytes": 1,
            "concurrency": 1,
            "delay": 0,
            "retries": 0,
            "backoff": 0,
            "max_queries": 1,
            "max_repeats": 1,
        }
        for name, minimum in minimums.items():
            if getattr(self, name) < minimum:
                raise ConfigurationError(
                    f"{name} is {getattr(self, name)}.", f"It must be {minimum} or more."
                )
        if self.timeout <= 0:
            raise ConfigurationError(f"timeout is {self.timeout}.", "It must be more than 0.")

    def _check_headers(self) -> None:
        if not self.user_agent.strip() or not is_header_text(self.agent_header):
            raise ConfigurationError(
                "user_agent or contact is no plain text.", "Write it like Tidemark."
            )
        for name, value in self.headers:
            if not (name.strip() and is_header_text(name) and is_header_text(value)):
                raise ConfigurationError(
                    f"The header {name!r} cannot be sent as it is.",
                    "Use plain text without line breaks.",
                )
        secret_headers(self.credentials)

    def _check_proxy(self) -> None:
        if not self.proxy:
            return
        try:
            parts = urlsplit(self.proxy)
            valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise ConfigurationError(
                "proxy is no http(s) URL.", "Write it like http://proxy.example.org:3128."
            )

    @property
    def private_headers(self) -> tuple[tuple[str, str], ...]:
        """What only the start pages' own origins are told."""
        return (*self.headers, *secret_headers(self.credentials))

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
            for name, value in self.headers
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
