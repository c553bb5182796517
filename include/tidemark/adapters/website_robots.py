"""robots.txt, as RFC 9309 has it: the longest match wins, and silence is not consent.

answer to /robots.txt             means
--------------------------------  ------------------------------------------------
200                               what it says (its first 500 KiB)
other 4xx, a redirect elsewhere   everything is allowed
429, 5xx, no answer               nothing is allowed: the site cannot be crawled now
"""

import threading
from dataclasses import dataclass

from protego import Protego

from tidemark.adapters.website_http import Fetcher
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.urls import canonical_url, origin_of

_READ_BYTES = 512_000
_MAX_ANSWER_BYTES = 20_000_000
_MAX_REDIRECTS = 5


@dataclass(frozen=True, slots=True)
class Rules:
    """One origin's rules; ``rules`` None allows everything, ``problem`` forbids it."""

    rules: Protego | None = None
    problem: str = ""


class Robots:
    """Answers for every origin of a crawl, asking each for its rules once; safe between threads."""

    def __init__(self, fetcher: Fetcher, name: str) -> None:
        self._fetcher = fetcher
        self._name = name
        self._rules: dict[str, Rules] = {}
        self._lock = threading.Lock()

    def allows(self, url: str) -> bool:
        """May the URL be asked for? Raises ``TransientError`` when its site does not tell."""
        found = self.rules(url)
        if found.problem:
            raise TransientError(found.problem)
        return found.rules is None or bool(found.rules.can_fetch(url, self._name))

    def sitemaps(self, url: str) -> list[str]:
        """The sitemaps that the rules of the URL's origin name."""
        found = self.rules(url)
        return list(found.rules.sitemaps) if found.rules else []

    def rules(self, url: str) -> Rules:
        """The rules of the URL's origin."""
        origin = origin_of(url)
        with self._lock:
            if origin not in self._rules:
                self._rules[origin] = self._read(origin)
            return self._rules[origin]

    def _read(self, origin: str) -> Rules:
        url = f"{origin}/robots.txt"
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                response = self._fetcher.get(url, max_bytes=_MAX_ANSWER_BYTES)
            except (TransientError, PermanentError) as error:
                return Rules(problem=f"The site does not tell what may be crawled: {error}")
            if response.status == 200:
                if response.body is None:
                    return Rules(problem=f"{url} {response.refused}.")
                return self._parsed(origin, response.body)
            location = response.headers.get("location")
            target = canonical_url(location, url) if location else None
            if response.status not in {301, 302, 303, 307, 308} or target is None:
                break
            url = target
        return Rules()

    def _parsed(self, origin: str, body: bytes) -> Rules:
        rules = Protego.parse(body[:_READ_BYTES].decode("utf-8-sig", "replace"))
        delay = rules.crawl_delay(self._name)
        if delay:
            self._fetcher.gate(origin).slow_down(float(delay))
        return Rules(rules)
