"""A folder that a web server shows as a page of links: every page that a "directory index" module makes.

Only what is directly below a folder's own URL is followed, so nothing leads out of it; redirects are not
followed. Each file costs one conditional request. Without an ETag or Last-Modified it is read every time.
Addresses are judged as the crawler's are: on the connection made, not on the name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from urllib.parse import unquote, urljoin, urlsplit

import httpx
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from tidemark.adapters.sources.credentials import secret_headers
from tidemark.adapters.sources.files.store import Body, Entry, FolderStore, Location
from tidemark.adapters.sources.network import GuardedTransport, declared_size, http_date, retry
from tidemark.adapters.sources.selection import quoted
from tidemark.domain.documents import Validators
from tidemark.domain.errors import ConfigurationError, PermanentError, TidemarkError, TransientError
from tidemark.domain.urls import canonical_url

_TIMEOUT_SECONDS = 30.0
_MAX_PAGE_BYTES = 50_000_000
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

        Nothing is read of one that declares to have more (``declared_size``). An outage is tried again.
        Raises ``FileNotFoundError`` for 404 and 410, ``TidemarkError`` for every other failure.
        """
        return retry(lambda: self._request(method, url, limit, headers or {}, content))

    def _request(
        self, method: str, url: str, limit: int, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[httpx.Response, bytes]:
        try:
            with self._client.stream(method, url, headers=headers, content=content) as answer:
                body = bytearray()
                if answer.is_success and (declared_size(answer.headers) or 0) <= limit:
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


class HttpIndexStore(FolderStore):
    """A ``Store`` over one such folder, or one file."""

    _deepest = 40

    def __init__(self, location: Location) -> None:
        self._web = WebFolder(location)
        self.place = self._web.url

    def entries(self, problems: list[str]) -> Iterator[Entry]:
        """Walk it; an address with a file's suffix is that file alone."""
        url = self._web.url
        if not url.endswith("/") and "." in url.rpartition("/")[2]:
            yield Entry(unquote(url.rpartition("/")[2]), url, url)
            return
        yield from self._walk(url if url.endswith("/") else f"{url}/", problems)

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
        size = declared_size(answer.headers)
        modified_at = http_date(validators.last_modified)
        return Body(body, validators, modified_at, size if (size or 0) > limit else None)

    def close(self) -> None:
        self._web.close()

    def _children(self, folder: str, relative: str) -> list[tuple[str, Entry | str]]:
        try:
            links = self._links(folder)
        except (FileNotFoundError, TidemarkError) as error:
            why = "it is not there. Check the path." if isinstance(error, OSError) else str(error)
            raise PermanentError(
                why if relative else f"{folder} cannot be listed: {why}"
            ) from error
        children: list[tuple[str, Entry | str]] = []
        for link in links:
            name, url = unquote(link.rstrip("/"), errors="surrogateescape"), folder + link
            if "/" not in name:
                children.append((name, url if link.endswith("/") else Entry(name, url, url)))
        return children

    def _links(self, url: str) -> list[str]:
        """The names directly below a folder, as its page links them, sorted."""
        answer, page = self._web.request("GET", url, _MAX_PAGE_BYTES)
        if len(page) > _MAX_PAGE_BYTES or (declared_size(answer.headers) or 0) > _MAX_PAGE_BYTES:
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


# A WebDAV folder: listed by PROPFIND, one folder with each request, and read by GET.

_MAX_LISTING_BYTES = 100_000_000
_ASKED = (
    b'<?xml version="1.0"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/>'
    b"<getlastmodified/><getetag/></prop></propfind>"
)


class WebdavStore(FolderStore):
    """A ``Store`` over one folder, or one file."""

    def __init__(self, location: Location) -> None:
        self._web = WebFolder(location)
        self.place = self._web.url

    def entries(self, problems: list[str]) -> Iterator[Entry]:
        """Walk it; a place that is one file is that file alone."""
        try:
            listed = self._listed(self._web.url, 0)
        except FileNotFoundError as error:
            raise PermanentError(f"There is no {self.place}.", "Check the path.") from error
        url, (entry, is_folder) = next(iter(listed.items()), ("", (None, True)))
        if entry is not None and not is_folder:
            yield entry
        else:
            yield from self._walk(url or self._web.url, problems)

    def read(self, entry: Entry, limit: int, held: Validators | None) -> Body:
        _, content = self._web.request("GET", entry.key, limit)
        return self._checked(entry, content, limit)

    def refresh(self, entry: Entry) -> Entry:
        for now, _ in self._listed(entry.key, 0).values():
            return replace(now, relative=entry.relative, key=entry.key)
        raise FileNotFoundError(entry.key)

    def close(self) -> None:
        self._web.close()

    def _children(self, folder: str, relative: str) -> list[tuple[str, Entry | str]]:
        folder = folder if folder.endswith("/") else f"{folder}/"
        children: list[tuple[str, Entry | str]] = []
        for url, (entry, is_folder) in sorted(self._listed(folder, 1).items()):
            name = unquote(url.removeprefix(folder).rstrip("/"), errors="surrogateescape")
            if url.startswith(folder) and name and "/" not in name:
                children.append((name, url if is_folder else entry))
        return children

    def _listed(self, url: str, depth: int) -> dict[str, tuple[Entry, bool]]:
        """By URL what a PROPFIND tells: the file or folder, and whether it is a folder."""
        answer, body = self._web.request(
            "PROPFIND",
            url,
            _MAX_LISTING_BYTES,
            {"Depth": str(depth), "Content-Type": "application/xml"},
            _ASKED,
        )
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        try:
            root = etree.fromstring(body, parser)
        except etree.XMLSyntaxError as error:
            raise PermanentError(
                f"{url} does not answer as a WebDAV server.", "Check the URL of the folder."
            ) from error
        if answer.status_code != 207:
            raise PermanentError(
                f"{url} does not answer as a WebDAV server.", "Check the URL of the folder."
            )
        return dict(self._response(url, item) for item in root.iterfind("{DAV:}response"))

    def _response(self, asked: str, item: "etree._Element") -> tuple[str, tuple[Entry, bool]]:
        path = urlsplit(urljoin(asked, item.findtext("{DAV:}href", ""))).path
        # By its own spelling: servers encode differently in their answers from how they were asked.
        parts = urlsplit(self._web.url)
        url = f"{parts.scheme}://{parts.netloc}{quoted(unquote(path, errors='surrogateescape'))}"
        length, last_modified, etag = (
            (item.findtext(f".//{{DAV:}}{name}") or "").strip() or None
            for name in ("getcontentlength", "getlastmodified", "getetag")
        )
        size = int(length) if length and length.isdigit() else None
        validators = Validators()
        if etag or last_modified:
            validators = Validators(etag=etag, last_modified=last_modified, size=size)
        is_folder = item.find(".//{DAV:}resourcetype/{DAV:}collection") is not None
        entry = Entry(
            unquote(path).rstrip("/").rpartition("/")[2],
            url,
            url,
            validators,
            size,
            http_date(last_modified),
        )
        return url, (entry, is_folder)
