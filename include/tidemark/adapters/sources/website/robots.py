"""robots.txt, as RFC 9309 has it: the longest match wins, and silence is not consent.

answer to /robots.txt             means
--------------------------------  ------------------------------------------------
200                               what it says (its first 500 KiB)
other 4xx, more than 5 redirects  everything is allowed
429, 5xx, no answer               nothing is allowed: the site cannot be crawled now
an address that is refused        nothing is allowed (``sources/network.py``)
"""

import asyncio
from dataclasses import dataclass

from protego import Protego

from tidemark.adapters.sources.website.http import Fetcher
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.urls import canonical_url, origin_of

_READ_BYTES = 512_000
_MAX_ANSWER_BYTES = 20_000_000
_MAX_REDIRECTS = 5


@dataclass(frozen=True, slots=True)
class Rules:
    """One origin's rules.

    rules: None allows everything.
    problem: forbids everything, for today, or until somebody changes something (``lasting``).
    """

    rules: Protego | None = None
    problem: str = ""
    lasting: bool = False


class Robots:
    """Answers for every origin of a crawl, asking each for its rules once; in the fetcher's loop.

    problems: the origins that do not tell, each in a sentence.
    """

    def __init__(self, fetcher: Fetcher, name: str) -> None:
        self._fetcher = fetcher
        self._name = name
        self._rules: dict[str, Rules] = {}
        self._lock = asyncio.Lock()
        self.problems: list[str] = []

    async def allows(self, url: str) -> bool:
        """May the URL be asked for?

        Raises ``TransientError`` when its site does not tell, ``PermanentError`` when it cannot be asked.
        """
        fetched = await self.rules(url)
        if fetched.lasting:
            raise PermanentError(fetched.problem)
        if fetched.problem:
            raise TransientError(fetched.problem)
        return fetched.rules is None or bool(fetched.rules.can_fetch(url, self._name))

    async def sitemaps(self, url: str) -> list[str]:
        """The sitemaps that the rules of the URL's origin name."""
        fetched = await self.rules(url)
        return list(fetched.rules.sitemaps) if fetched.rules else []

    async def rules(self, url: str) -> Rules:
        """The rules of the URL's origin."""
        origin = origin_of(url)
        if origin not in self._rules:
            async with self._lock:
                if origin not in self._rules:
                    self._rules[origin] = await self._read(origin)
        return self._rules[origin]

    async def _read(self, origin: str) -> Rules:
        url = f"{origin}/robots.txt"
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                response = await self._fetcher.get(url, max_bytes=_MAX_ANSWER_BYTES)
            except PermanentError as error:
                return Rules(problem=str(error), lasting=True)
            except TransientError as error:
                return self._untold(f"The site does not tell what may be crawled: {error}")
            if response.status == 200:
                if response.body is None:
                    return self._untold(f"{url} {response.refused}.")
                return self._parsed(origin, response.body)
            location = response.headers.get("location")
            target = canonical_url(location, url) if location else None
            if response.status not in {301, 302, 303, 307, 308} or target is None:
                break
            url = target
        return Rules()

    def _untold(self, problem: str) -> Rules:
        self.problems.append(problem)
        return Rules(problem=problem)

    def _parsed(self, origin: str, body: bytes) -> Rules:
        text = body[:_READ_BYTES].decode("utf-8-sig", "replace")
        if len(body) > _READ_BYTES:
            # Half a rule could mean its opposite.
            text = text[: text.rfind("\n") + 1]
        rules = Protego.parse(text)
        delay = rules.crawl_delay(self._name)
        if delay:
            self._fetcher.gate(origin).slow_down(float(delay))
        return Rules(rules)
