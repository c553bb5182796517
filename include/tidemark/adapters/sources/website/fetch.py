"""One page fetch: what a server's answer to one URL means. Runs in the crawl's event loop."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from urllib.parse import urldefrag, urljoin

from tidemark.adapters.media import DOCUMENT_TYPES, HTML_TYPES, detect, parse_content_type
from tidemark.adapters.sources.network import http_date
from tidemark.adapters.sources.website.frontier import Target
from tidemark.adapters.sources.website.http import Budget, Fetcher, Response, Wants
from tidemark.adapters.sources.website.pages import NO_DIRECTIVES, Directives, header_directives
from tidemark.adapters.sources.website.robots import Robots
from tidemark.domain.documents import RawDocument, Validators
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.urls import canonical_url
from tidemark.ports.progress import Clock

_SUCCESSES = frozenset({200, 203})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PERMANENT_REDIRECTS = frozenset({301, 308})
_HINTS = {
    401: " (does it want credentials?)",
    403: " (does it want credentials?)",
    407: " (the proxy wants a user name and a password in its URL)",
}
NOINDEX = "asks not to be indexed (noindex)"


class Kind(StrEnum):
    PAGE = "page"
    UNCHANGED = "unchanged"
    MOVED = "moved"
    GONE = "gone"
    FAILED = "failed"
    EXCLUDED = "excluded"
    TOO_LARGE = "too_large"
    THERE = "there"
    """Exists; nothing more was asked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page fetch gave.

    outage: FAILED because of the network or the server, not because of this URL.
    refusal: FAILED because the server will not show it (4xx), and would show nothing behind it either.
    raw: of a PAGE.
    validators: of a PAGE, of what is UNCHANGED or TOO_LARGE.
    directives: of the X-Robots-Tag header.
    location: canonical, of MOVED; ``spelling`` as the server wrote it; ``permanent`` for good.
    """

    kind: Kind
    detail: str = ""
    outage: bool = False
    refusal: bool = False
    raw: RawDocument | None = None
    validators: Validators = Validators()
    directives: Directives = NO_DIRECTIVES
    location: str = ""
    spelling: str = ""
    permanent: bool = False


class PageFetcher:
    """Fetches pages politely, and no more than the budget allows."""

    def __init__(
        self, fetcher: Fetcher, robots: Robots, robot: str, clock: Clock, budget: Budget
    ) -> None:
        self._fetcher = fetcher
        self._robots = robots
        self._robot = robot
        self._clock = clock
        self._budget = budget

    async def fetch(
        self, number: int, target: Target, validators: Validators | None, sitemap_date: str = ""
    ) -> Answer:
        """Ask for a target, conditionally where validators are held; failures are answers.

        ``number`` is its place in the order of asking (``Budget``), ``sitemap_date`` when the sitemap
        says that it was changed.
        """
        conditions = _conditions(validators)
        try:
            if not await self._robots.allows(target.url):
                return Answer(Kind.EXCLUDED, "is disallowed by robots.txt")
            response = await self._fetcher.get(
                target.url,
                headers=conditions,
                wants=self._wants(target),
                turn=(self._budget, number),
            )
        except TransientError as error:
            return Answer(Kind.FAILED, str(error), outage=True)
        except PermanentError as error:
            return Answer(Kind.FAILED, str(error), refusal=True)
        if response.status in _SUCCESSES:
            return self._page(target, response, sitemap_date)
        if response.status in _REDIRECTS:
            return _moved(target, response)
        if response.status in {404, 410}:
            return Answer(Kind.GONE, _with_referrer(f"answers {response.status}", target))
        if response.status == 304 and conditions and validators is not None:
            return Answer(
                Kind.UNCHANGED,
                validators=_updated(validators, response.headers),
                directives=self._directives(response.headers),
            )
        detail = _with_referrer(_refusal(target.url, response.status), target)
        return Answer(Kind.FAILED, detail, refusal=response.status < 500)

    def _directives(self, headers: Mapping[str, str]) -> Directives:
        return header_directives(headers.get("x-robots-tag", ""), self._robot)

    def _wants(self, target: Target) -> Wants:
        def judge(status: int, headers: Mapping[str, str]) -> str | None:
            if status not in _SUCCESSES or target.probe:
                return None
            media_type, _ = parse_content_type(headers.get("content-type", ""), target.uri)
            if media_type and media_type not in DOCUMENT_TYPES:
                return f"is no document ({media_type})"
            directives = self._directives(headers)
            if directives.noindex and (directives.nofollow or media_type not in HTML_TYPES):
                return NOINDEX
            return ""

        return judge

    def _page(self, target: Target, response: Response, sitemap_date: str) -> Answer:
        if response.too_large:
            validators = _updated(Validators(), response.headers)
            return Answer(Kind.TOO_LARGE, response.refused, validators=validators)
        if response.refused:
            return Answer(Kind.EXCLUDED, response.refused)
        if response.body is None:
            return Answer(Kind.THERE)
        if not response.body:
            # An empty answer is what a broken server sends; it must not look like an emptied page.
            return Answer(Kind.FAILED, _with_referrer(f"{target.url} answered nothing", target))
        headers = response.headers
        media_type, charset = parse_content_type(headers.get("content-type", ""), target.uri)
        media_type = media_type or detect(response.body)
        if media_type not in DOCUMENT_TYPES:
            return Answer(Kind.EXCLUDED, "does not say what it is (no Content-Type)")
        validators = _updated(Validators(), headers)
        self._budget.fetched(len(response.body))
        modified_at = http_date(headers.get("last-modified")) or _date(sitemap_date)
        raw = RawDocument(
            target.uri, response.body, media_type, charset, self._clock(), validators, modified_at
        )
        return Answer(
            Kind.PAGE, raw=raw, validators=validators, directives=self._directives(headers)
        )


def _date(text: str) -> datetime | None:
    """A date of the sitemap's kind (2026, 2026-03, 2026-03-01, with or without a time), UTC."""
    padded = f"{text}-01" if len(text) == 7 else f"{text}-01-01" if len(text) == 4 else text
    try:
        at = datetime.fromisoformat(padded)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return http_date(text)


def _conditions(validators: Validators | None) -> dict[str, str]:
    conditions: dict[str, str] = {}
    if validators is not None:
        if validators.etag:
            conditions["If-None-Match"] = validators.etag
        if validators.last_modified:
            conditions["If-Modified-Since"] = validators.last_modified
    return conditions


def _updated(validators: Validators, headers: Mapping[str, str]) -> Validators:
    return replace(
        validators,
        etag=headers.get("etag", validators.etag),
        last_modified=headers.get("last-modified", validators.last_modified),
    )


def _moved(target: Target, response: Response) -> Answer:
    location = response.headers.get("location", "")
    canonical = canonical_url(location, target.url) if location else None
    if canonical is None:
        detail = f"{target.url} redirects to what is no http(s) URL"
        return Answer(Kind.FAILED, _with_referrer(detail, target), refusal=True)
    return Answer(
        Kind.MOVED,
        location=canonical,
        spelling=urldefrag(urljoin(target.url, location)).url,
        permanent=response.status in _PERMANENT_REDIRECTS,
    )


def _refusal(url: str, status: int) -> str:
    return f"{url} answered {status}{_HINTS.get(status, '')}"


def _with_referrer(detail: str, target: Target) -> str:
    return f"{detail}; linked from {target.referrer}" if target.referrer else detail
