"""An S3 bucket: listed page by page, each object read in the very version that was listed.

The listing tells ETag, size and time of every object, 1,000 with each request, so an unchanged bucket costs
its pages and nothing else. A changed object is read under the condition that its ETag still is the one
listed. With ``version_aware`` the versions are listed, and each is read by its id: the bytes are right
though the object is replaced meanwhile; it needs the right to list versions, and old versions are listed
too, so it is not the default.

``allow_private`` is not asked: the URL of a bucket names no host. The only host beside AWS's own is the
``endpoint_url`` of the connection, which whoever keeps the secrets has chosen, so it is trusted and may be
on a private address, as the servers of one's own network are.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tidemark.adapters.sources.credentials import storage_options
from tidemark.adapters.sources.files.store import (
    Body,
    ChangedError,
    Entry,
    Location,
    Store,
    missing_package,
)
from tidemark.adapters.sources.selection import media_type, quoted
from tidemark.domain.documents import Validators
from tidemark.domain.errors import ConfigurationError, PermanentError, TidemarkError, TransientError

_PAGE = 1_000
_ABSENT = frozenset({"NoSuchKey", "NoSuchVersion", "404"})
_REFUSED = frozenset(
    {
        "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken",
        "InvalidToken", "403", "401", "AllAccessDisabled", "AccountProblem", "RequestTimeTooSkewed",
    }
)  # fmt: skip
_PASSING = frozenset(
    {"SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "500", "503"}
)


class S3Store(Store):
    """A ``Store`` over one bucket, or one folder of it."""

    def __init__(self, location: Location) -> None:
        """Raises ``ConfigurationError`` without the package; connects with the first request."""
        try:
            from s3fs import S3FileSystem
        except ImportError as error:
            raise missing_package("An S3 bucket", "s3fs") from error
        path = location.url.partition("://")[2].split("/", 1)
        self._bucket = path[0]
        self._key = path[1] if len(path) > 1 else ""
        self._connection = location.credentials.name if location.credentials else ""
        options = storage_options("s3", location.credentials)
        self._versions = bool(options.get("version_aware"))
        config = options.get("config_kwargs") or {}
        options["config_kwargs"] = {"connect_timeout": 10, "read_timeout": 60, **config}
        try:
            self._system: Any = S3FileSystem(
                **options, skip_instance_cache=True, use_listings_cache=False
            )
        except (TypeError, KeyError, ValueError) as error:
            raise self._rejected(error) from None
        self.place = f"s3://{self._bucket}/{quoted(self._key)}".rstrip("/")

    def entries(self, problems: list[str]) -> Iterator[Entry]:
        """In order of keys. A key that names one object, and no folder, lists that object."""
        prefix = f"{self._key.rstrip('/')}/" if self._key.strip("/") else ""
        is_folder = False
        for entry in self._listed(prefix):
            is_folder = True
            yield entry
        if not is_folder and media_type(self._key) is not None:
            with suppress(FileNotFoundError):
                yield self._one(self._key, self._key.rpartition("/")[2])

    def read(self, entry: Entry, limit: int, held: Validators | None) -> Body:
        condition: dict[str, object] = {"IfMatch": entry.validators.etag}
        if entry.validators.revision is not None:
            condition["VersionId"] = entry.validators.revision
        answer = self._call("get_object", entry.key, Key=entry.key, **condition)
        content = self._body(answer["Body"], entry.key)
        if len(content) != entry.size:
            raise ChangedError(entry.key)
        return Body(content, entry.validators, entry.modified_at)

    def refresh(self, entry: Entry) -> Entry:
        """From a listing: the times in headers are coarser than those in listings."""
        return self._one(entry.key, entry.relative)

    def close(self) -> None:
        from fsspec.asyn import sync

        if self._system._s3 is not None:  # noqa: SLF001 - s3fs has no other way to close its client at once
            sync(self._system.loop, self._system._s3.close)  # noqa: SLF001 - as above

    def _one(self, key: str, relative: str) -> Entry:
        entry = next(self._listed(key, page=1), None)
        if entry is None or entry.key != key:
            raise FileNotFoundError(key)
        return replace(entry, relative=relative)

    def _listed(self, prefix: str, page: int = _PAGE) -> Iterator[Entry]:
        pages = self._version_pages if self._versions else self._pages
        for listed in pages(prefix, page):
            key = listed["Key"]
            relative = key[len(prefix) :]
            # An empty object named like a folder is how consoles draw one.
            if not key.endswith("/"):
                yield self._of(key, relative, listed)

    def _pages(self, prefix: str, page: int) -> Iterator[dict[str, Any]]:
        more: dict[str, object] = {}
        while True:
            answer = self._call("list_objects_v2", prefix, Prefix=prefix, MaxKeys=page, **more)
            yield from answer.get("Contents", ())
            if not answer.get("IsTruncated") or page == 1:
                return
            more = {"ContinuationToken": answer["NextContinuationToken"]}

    def _version_pages(self, prefix: str, page: int) -> Iterator[dict[str, Any]]:
        more: dict[str, object] = {}
        while True:
            answer = self._call("list_object_versions", prefix, Prefix=prefix, MaxKeys=page, **more)
            yield from (version for version in answer.get("Versions", ()) if version["IsLatest"])
            if not answer.get("IsTruncated") or page == 1:
                return
            more = {
                "KeyMarker": answer["NextKeyMarker"],
                "VersionIdMarker": answer.get("NextVersionIdMarker", ""),
            }

    def _of(self, key: str, relative: str, listed: dict[str, Any]) -> Entry:
        changed_at = listed["LastModified"]
        validators = Validators(
            etag=listed["ETag"],
            size=listed["Size"],
            mtime=changed_at.timestamp(),
            revision=listed.get("VersionId") if self._versions else None,
        )
        uri = f"s3://{self._bucket}/{quoted(key)}"
        return Entry(relative, uri, key, validators, listed["Size"], changed_at)

    def _call(self, method: str, what: str, **arguments: object) -> Any:
        from botocore.exceptions import BotoCoreError

        try:
            return self._system.call_s3(method, Bucket=self._bucket, **arguments)
        except (OSError, BotoCoreError) as error:
            raise self._translated(error, what) from error
        except (TypeError, ValueError) as error:
            raise self._rejected(error) from None

    def _rejected(self, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"The options for the bucket {self._bucket} are not accepted ({type(error).__name__}).",
            "Check the path, the connection's endpoint and its storage_options.",
        )

    def _body(self, body: Any, key: str) -> bytes:
        from aiohttp import ClientError
        from botocore.exceptions import BotoCoreError
        from fsspec.asyn import sync

        async def read() -> bytes:
            async with body as stream:
                return bytes(await stream.read())

        try:
            return bytes(sync(self._system.loop, read))
        except (OSError, BotoCoreError, ClientError) as error:
            raise self._translated(error, key) from error

    def _translated(self, error: Exception, what: str) -> Exception:
        response = getattr(error.__cause__, "response", None) or {}
        code = str(response.get("Error", {}).get("Code", ""))
        if code in _ABSENT:
            return FileNotFoundError(what)
        if code in {"PreconditionFailed", "412"}:
            return ChangedError(what)
        return self._outage(error, code)

    def _outage(self, error: Exception, code: str) -> TidemarkError:
        connection = f"the connection {self._connection!r}" if self._connection else "a connection"
        if code == "NoSuchBucket":
            return PermanentError(
                f"There is no bucket {self._bucket}.", "Check the path, or create the bucket."
            )
        if code in _REFUSED:
            return PermanentError(
                f"The bucket {self._bucket} refuses access ({code}).",
                f"Check the keys in {connection}, and that they may list and read it.",
            )
        if type(error).__name__ == "ParamValidationError":
            return self._rejected(error)
        if type(error).__name__ in {"NoCredentialsError", "PartialCredentialsError"}:
            return PermanentError(
                f"There are no credentials for the bucket {self._bucket}.",
                f'Put them into {connection}, or {{"anon": true}} into its extra for a public bucket.',
            )
        if code in {"PermanentRedirect", "AuthorizationHeaderMalformed", "301"}:
            return PermanentError(
                f"The bucket {self._bucket} is in another region ({code}).",
                f'Put {{"region_name": "..."}} into the extra of {connection}.',
            )
        name = code or type(error).__name__
        if code and code not in _PASSING:
            return PermanentError(
                f"The bucket {self._bucket} answers with an error ({name}).",
                "Look the code up with the store.",
            )
        return TransientError(
            f"The bucket {self._bucket} cannot be reached ({name}).",
            "Check the endpoint, the network and the store's health.",
        )
