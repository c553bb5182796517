"""One visit: what a server's answer to one URL means. Runs in the crawl's worker threads."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import urldefrag, urljoin

from tidemark.adapters.media import DOCUMENT_TYPES, HTML_TYPES, parse_content_type, sniff
from tidemark.adapters.website_frontier import Target
from tidemark.adapters.website_http import Fetcher, Response, Wants
from tidemark.adapters.website_pages import NO_DIRECTIVES, Directives, header_directives
from tidemark.adapters.website_robots import Robots
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.model import RawDocument, Validators
from tidemark.domain.urls import canonical_url
from tidemark.ports import Clock

_SUCCESSES = frozenset({200, 203})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PERMANENT_REDIRECTS = frozenset({301, 308})
NOINDEX = "asks not to be indexed (noindex)"


class Kind(StrEnum):
    PAGE = "page"
    UNCHANGED = "unchanged"
    MOVED = "moved"
    GONE = "gone"
    FAILED = "failed"
    EXCLUDED = "excluded"
    THERE = "there"
    """Exists; nothing more was asked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a visit found.

    outage: FAILED because of the network or the server, not because of this URL.
    raw: of a PAGE.
    validators: of a PAGE or what is UNCHANGED.
    directives: of the X-Robots-Tag header.
    location: canonical, of MOVED; ``spelling`` as the server wrote it; ``permanent`` for good.
    """

    kind: Kind
    detail: str = ""
    outage: bool = False
    raw: RawDocument | None = None
    validators: Validators = Validators()
    directives: Directives = NO_DIRECTIVES
    location: str = ""
    spelling: str = ""
    permanent: bool = False


class Visitor:
    """Visits URLs politely; safe to share between threads."""

    def __init__(self, fetcher: Fetcher, robots: Robots, robot: str, clock: Clock) -> None:
        self._fetcher = fetcher
        self._robots = robots
        self._robot = robot
        self._clock = clock

    def visit(self, target: Target, validators: Validators | None) -> Answer:
        """Ask for a target, conditionally where validators are held; failures are answers."""
        conditions = _conditions(validators)
        try:
            if not self._robots.allows(target.url):
                return Answer(Kind.EXCLUDED, "is disallowed by robots.txt")
            response = self._fetcher.get(target.url, headers=conditions, wants=self._wants(target))
        except TransientError as error:
            return Answer(Kind.FAILED, str(error), outage=True)
        except PermanentError as error:
            return Answer(Kind.FAILED, str(error))
        if response.status in _SUCCESSES:
            return self._page(target, response)
        if response.status in _REDIRECTS:
            return _moved(target, response)
        if response.status in {404, 410}:
            return Answer(Kind.GONE, _with_referrer(f"answers {response.status}", target))
        if response.status == 304 and conditions and validators is not None:
            return Answer(
                Kind.UNCHANGED,
                validators=_renewed(validators, response.headers),
                directives=self._directives(response.headers),
            )
        return Answer(Kind.FAILED, _with_referrer(_refusal(target.url, response.status), target))

    def _directives(self, headers: Mapping[str, str]) -> Directives:
        return header_directives(headers.get("x-robots-tag", ""), self._robot)

    def _wants(self, target: Target) -> Wants:
        def judge(status: int, headers: Mapping[str, str]) -> str | None:
            if status not in _SUCCESSES or target.probe:
                return None
            media_type, _ = parse_content_type(headers.get("content-type", ""), target.uri)
            if media_type and media_type not in DOCUMENT_TYPES:
                return f"is no document ({media_type})"
            told = self._directives(headers)
            if told.noindex and (told.nofollow or media_type not in HTML_TYPES):
                return NOINDEX
            return ""

        return judge

    def _page(self, target: Target, response: Response) -> Answer:
        if response.refused:
            return Answer(Kind.EXCLUDED, response.refused)
        if response.body is None:
            return Answer(Kind.THERE)
        if not response.body:
            # An empty answer is what a broken server sends; it must not look like an emptied page.
            return Answer(Kind.FAILED, _with_referrer(f"{target.url} answered nothing", target))
        headers = response.headers
        media_type, charset = parse_content_type(headers.get("content-type", ""), target.uri)
        media_type = media_type or sniff(response.body)
        if media_type not in DOCUMENT_TYPES:
            return Answer(Kind.EXCLUDED, "does not say what it is (no Content-Type)")
        validators = _renewed(Validators(), headers)
        raw = RawDocument(target.uri, response.body, media_type, charset, self._clock(), validators)
        return Answer(
            Kind.PAGE, raw=raw, validators=validators, directives=self._directives(headers)
        )


def _conditions(validators: Validators | None) -> dict[str, str]:
    conditions: dict[str, str] = {}
    if validators is not None:
        if validators.etag:
            conditions["If-None-Match"] = validators.etag
        if validators.last_modified:
            conditions["If-Modified-Since"] = validators.last_modified
    return conditions


def _renewed(validators: Validators, headers: Mapping[str, str]) -> Validators:
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
        return Answer(Kind.FAILED, _with_referrer(detail, target))
    return Answer(
        Kind.MOVED,
        location=canonical,
        spelling=urldefrag(urljoin(target.url, location)).url,
        permanent=response.status in _PERMANENT_REDIRECTS,
    )


def _refusal(url: str, status: int) -> str:
    cure = " (does it want credentials in headers?)" if status in {401, 403} else ""
    return f"{url} answered {status}{cure}"


def _with_referrer(detail: str, target: Target) -> str:
    return f"{detail}; linked from {target.referrer}" if target.referrer else detail
