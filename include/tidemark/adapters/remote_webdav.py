"""A WebDAV folder: listed by PROPFIND, one folder with each request, and read by GET."""

from collections.abc import Iterator
from urllib.parse import unquote, urljoin, urlsplit

from lxml import etree

from tidemark.adapters.files_rules import quoted
from tidemark.adapters.files_walk import is_hidden
from tidemark.adapters.remote_http import WebFolder, http_time
from tidemark.adapters.remote_types import Body, ChangedError, Entry, Location
from tidemark.domain.errors import PermanentError, TidemarkError
from tidemark.domain.model import Validators

_MAX_LISTING_BYTES = 100_000_000
_DEEPEST = 100
_ASKED = (
    b'<?xml version="1.0"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/>'
    b"<getlastmodified/><getetag/></prop></propfind>"
)


class WebdavStore:
    """A ``Store`` over one folder, or one file."""

    def __init__(self, location: Location) -> None:
        self._web = WebFolder(location)
        self.place = self._web.url

    def entries(self, problems: list[str]) -> Iterator[Entry]:
        """Walk it in order of names; holds one folder's listing at a time for each level."""
        try:
            found = self._listed(self._web.url, 0)
        except FileNotFoundError as error:
            raise PermanentError(f"There is no {self.place}.", "Check the path.") from error
        url, (entry, is_folder) = next(iter(found.items()), ("", (None, True)))
        if entry is not None and not is_folder:
            yield entry
        else:
            yield from self._folder(url or self._web.url, "", problems)

    def read(self, entry: Entry, limit: int, held: Validators | None) -> Body:
        _, content = self._web.request("GET", entry.key, limit)
        now = self.again(entry)
        if now.validators != entry.validators or (
            now.size is not None and now.size != len(content) <= limit
        ):
            raise ChangedError(entry.key)
        return Body(content, entry.validators, entry.modified_at)

    def again(self, entry: Entry) -> Entry:
        """See ``Store.again``."""
        for found, _ in self._listed(entry.key, 0).values():
            return Entry(
                entry.relative,
                found.uri,
                entry.key,
                found.validators,
                found.size,
                found.modified_at,
            )
        raise FileNotFoundError(entry.key)

    def close(self) -> None:
        self._web.close()

    def _folder(self, url: str, relative: str, problems: list[str]) -> Iterator[Entry]:
        url = url if url.endswith("/") else f"{url}/"
        try:
            children = self._listed(url, 1)
        except (FileNotFoundError, TidemarkError) as error:
            if not relative:
                raise
            problems.append(f"The folder {relative} cannot be listed: {error}")
            return
        if relative.count("/") >= _DEEPEST:
            problems.append(f"The folder {relative} is nested too deep.")
            return
        for found, (entry, is_folder) in sorted(children.items()):
            name = unquote(found.removeprefix(url).rstrip("/"), errors="surrogateescape")
            is_child = found.startswith(url) and name and "/" not in name
            if not is_child or is_hidden(name):
                continue
            below = f"{relative}/{name}" if relative else name
            if is_folder:
                yield from self._folder(found, below, problems)
            else:
                yield Entry(
                    below, entry.uri, entry.key, entry.validators, entry.size, entry.modified_at
                )

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
        told = {
            name: (item.findtext(f".//{{DAV:}}{name}") or "").strip()
            for name in ("getcontentlength", "getlastmodified", "getetag")
        }
        size = int(told["getcontentlength"]) if told["getcontentlength"].isdigit() else None
        etag, last_modified = told["getetag"] or None, told["getlastmodified"] or None
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
            http_time(last_modified),
        )
        return url, (entry, is_folder)
