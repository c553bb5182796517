"""A folder that a web server shows as a page of links: every page that a "directory index" module makes.

Only what is directly below a folder's own URL is followed, so nothing leads out of it; redirects are not
followed. Each file costs one conditional request. Without an ETag or Last-Modified it is read every time.
Addresses are judged as the crawler's are: on the connection made, not on the name.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import unquote, urlsplit

import httpx
from selectolax.lexbor import LexborHTMLParser

from tidemark.adapters.files_walk import is_hidden
from tidemark.adapters.network_tries import tried
from tidemark.adapters.remote_connection import GuardedTransport
from tidemark.adapters.remote_types import Body, Entry, Location
from tidemark.adapters.website_credentials import secret_headers
from tidemark.domain.errors import ConfigurationError, PermanentError, TidemarkError, TransientError
from tidemark.domain.model import Validators
from tidemark.domain.urls import canonical_url

_TIMEOUT_SECONDS = 30.0
_MAX_PAGE_BYTES = 50_000_000
_DEEPEST = 40
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


class WebFolder:
    """A folder's URL and the client that asks for what is in it; credentials go to its host alone."""

    def __init__(self, location: Location) -> None:
        url = canonical_url(location.url)
        if url is None:
            raise ConfigurationError(
                "The path of the files source is no valid URL.", "Write http(s)://host/folder/."
            )
        self.url = url
        self._client = httpx.Client(
            transport=GuardedTransport(allow_private=location.allow_private),
            headers=[*secret_headers(location.credentials), ("Accept-Encoding", "identity")],
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,
            follow_redirects=False,
        )

    def request(
        self,
        method: str,
        url: str,
        limit: int,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> tuple[httpx.Response, bytes]:
        """An answer that succeeded (2xx, 304) and at most ``limit`` + 1 bytes of its body.

        Nothing is read of one that declares to have more (``declared_size``). An outage is tried again
        (``network_tries.py``).
        Raises ``FileNotFoundError`` for 404 and 410, ``TidemarkError`` for every other failure.
        """
        return tried(lambda: self._request(method, url, limit, headers or {}, content))

    def _request(
        self, method: str, url: str, limit: int, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[httpx.Response, bytes]:
        try:
            with self._client.stream(method, url, headers=headers, content=content) as answer:
                body = bytearray()
                if answer.is_success and (declared_size(answer) or 0) <= limit:
                    for part in answer.iter_bytes():
                        body += part
                        if len(body) > limit:
                            del body[limit + 1 :]
                            break
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise TransientError(
                f"{url} cannot be read ({type(error).__name__}).",
                "Check that the server and the network are up.",
            ) from error
        _judge(answer, url)
        return answer, bytes(body)

    def close(self) -> None:
        self._client.close()


class HttpIndexStore:
    """A ``Store`` over one such folder, or one file."""

    def __init__(self, location: Location) -> None:
        self._web = WebFolder(location)
        self.place = self._web.url

    def entries(self, problems: list[str]) -> Iterator[Entry]:
        """Walk it in order of names; holds one page's links at a time for each level."""
        url = self._web.url
        if not url.endswith("/") and "." in url.rpartition("/")[2]:
            yield Entry(unquote(url.rpartition("/")[2]), url, url)
            return
        yield from self._folder(url if url.endswith("/") else f"{url}/", "", problems)

    def read(self, entry: Entry, limit: int, held: Validators | None) -> Body | None:
        conditions = {}
        if held is not None and held.etag:
            conditions["If-None-Match"] = held.etag
        if held is not None and held.last_modified:
            conditions["If-Modified-Since"] = held.last_modified
        answer, body = self._web.request("GET", entry.key, limit, conditions)
        if answer.status_code == 304:
            return None
        validators = Validators(
            etag=answer.headers.get("ETag"), last_modified=answer.headers.get("Last-Modified")
        )
        if validators and validators == held:
            return None  # A server without conditional requests.
        size = declared_size(answer)
        modified_at = http_time(validators.last_modified)
        return Body(body, validators, modified_at, size if (size or 0) > limit else None)

    def again(self, entry: Entry) -> Entry:
        """A listing tells nothing of versions, so there is nothing to look at."""
        return entry

    def close(self) -> None:
        self._web.close()

    def _folder(self, url: str, relative: str, problems: list[str]) -> Iterator[Entry]:
        try:
            links = self._links(url)
        except (FileNotFoundError, TidemarkError) as error:
            told = "it is not there. Check the path." if isinstance(error, OSError) else str(error)
            if not relative:
                raise PermanentError(f"{url} cannot be listed: {told}") from error
            problems.append(f"The folder {relative} cannot be listed: {told}")
            return
        if relative.count("/") >= _DEEPEST:
            problems.append(f"The folder {relative} is nested too deep.")
            return
        for name in links:
            shown = unquote(name.rstrip("/"), errors="surrogateescape")
            below = f"{relative}/{shown}" if relative else shown
            if is_hidden(shown) or "/" in shown:
                continue
            if name.endswith("/"):
                yield from self._folder(url + name, below, problems)
            else:
                yield Entry(below, url + name, url + name)

    def _links(self, url: str) -> list[str]:
        """The names directly below a folder, as its page links them, sorted."""
        answer, page = self._web.request("GET", url, _MAX_PAGE_BYTES)
        if len(page) > _MAX_PAGE_BYTES or (declared_size(answer) or 0) > _MAX_PAGE_BYTES:
            # A part of it would look like a folder that lost the rest.
            raise PermanentError(
                f"its page of links has more than {_MAX_PAGE_BYTES:,} bytes.", "Split the folder."
            )
        if "html" not in answer.headers.get("Content-Type", ""):
            raise PermanentError(
                "it is no page of links.", "Give the URL of a folder whose index the server shows."
            )
        names = set()
        for link in LexborHTMLParser(page).css("a[href]"):
            target = canonical_url(link.attributes.get("href") or "", url) or ""
            name = target.removeprefix(url)
            is_below = target.startswith(url) and "?" not in name
            if is_below and name and "/" not in name.rstrip("/") and not name.startswith("/"):
                names.add(name)
        return sorted(names)


def declared_size(answer: httpx.Response) -> int | None:
    """How many bytes an answer says that it has."""
    declared = answer.headers.get("Content-Length", "")
    return int(declared) if declared.isdecimal() else None


def http_time(text: str | None) -> datetime | None:
    """A time as HTTP writes it, in UTC; None for none, and for what is no time."""
    try:
        return parsedate_to_datetime(text).astimezone(UTC) if text else None
    except ValueError:
        return None


def _judge(answer: httpx.Response, url: str) -> None:
    status = answer.status_code
    if answer.is_success or status == 304:
        return
    if status in {404, 410}:
        raise FileNotFoundError(url)
    if answer.is_redirect:
        host = urlsplit(answer.headers.get("Location", "")).hostname or "another address"
        raise PermanentError(
            f"{url} redirects (to {host}).", "Give the address that it redirects to."
        )
    if status in {401, 403, 407}:
        raise PermanentError(
            f"{url} refuses access ({status}).", "Check the connection's login, password or token."
        )
    kind = TransientError if status in _PASSING else PermanentError
    raise kind(f"{url} answers with status {status}.", "Check the server.")
