"""How a new kind of source is added: one module with its options and its adapter, here for a mailbox.

What stands between the lines would be ``adapters/sources/mailbox.py``; one more line in ``SOURCE_KINDS`` of
``wiring.py`` makes it known. The cases below it are those that every source is held to: a new kind brings a
World and imports them.
"""

# ----------------------------------------------------------------------- adapters/sources/mailbox.py

import mailbox
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from email.message import Message
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import Field

from tidemark.adapters.sources.selection import too_large
from tidemark.config.sources import SourceContext, SourceDeclaration
from tidemark.domain.documents import (
    CrawlEnd,
    CrawlItem,
    Outcome,
    RawDocument,
    SourceItem,
    Validators,
)
from tidemark.domain.hashing import digest, fingerprint
from tidemark.ports.source import Known, Source


class MailboxOptions(SourceDeclaration):
    """What a person declares: ``kind: mailbox`` with the path of an mbox file."""

    kind: Literal["mailbox"] = "mailbox"
    path: Annotated[str, Field(pattern=r"\S")]

    def open(self, context: SourceContext) -> Source:
        return MailboxSource(Path(self.path), context.settings.max_document_bytes)


class MailboxSource:
    """The messages of an mbox file, each a document known by its Message-ID."""

    fingerprint = fingerprint("fetch", {"kind": "mailbox", "version": 1})

    def __init__(self, path: Path, max_bytes: int = 50_000_000) -> None:
        self._path, self._max_bytes = path, max_bytes

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        problem, count = "", 0
        try:
            with closing(mailbox.mbox(self._path, create=False)) as box:
                for message in box:
                    found = self._item(message, known)
                    yield found
                    count += found.outcome in {Outcome.FETCHED, Outcome.NOT_MODIFIED}
                    if count == limit:
                        problem = f"It was limited to {limit:,} documents."
                        break
        except (mailbox.NoSuchMailboxError, OSError):
            problem = f"The mailbox {self._path} cannot be read: is the share mounted?"
        yield CrawlEnd(complete=not problem, authoritative=True, problem=problem)

    def _item(self, message: Message, known: Known) -> CrawlItem:
        uri = "mid:" + quote(message.get("Message-ID", "").strip("<> "))
        content = message.get_payload(decode=True)
        if not isinstance(content, bytes):
            return CrawlItem(SourceItem(uri), Outcome.FAILED, detail="has no text of its own")
        content = content.rstrip(b"\n")  # An mbox ends each message with a line end of its own.
        item = SourceItem(uri, Validators(revision=digest(content)))
        if known.validators(uri) == item.validators:
            return CrawlItem(item, Outcome.NOT_MODIFIED)
        if len(content) > self._max_bytes:
            return too_large(item, self._max_bytes, len(content))
        kind, charset = message.get_content_type(), message.get_content_charset()
        raw = RawDocument(uri, content, kind, charset, datetime.now(UTC), item.validators)
        return CrawlItem(item, Outcome.FETCHED, raw)


# --------------------------------------------------- tests/contracts/source/test_mailbox_source.py

import pytest  # noqa: E402 - where the second of the two files begins
from test_sources import *  # noqa: E402, F403 - the cases, run on the world below
from test_sources import MAX_BYTES, World, _filled  # noqa: E402


class MailboxWorld:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._messages: dict[str, Message] = {}
        self._source = _Counted(MailboxSource(path, MAX_BYTES))

    def source(self) -> Source:
        return self._source

    def uri(self, name: str) -> str:
        return f"mid:{name}"

    def put(self, name: str, text: str) -> None:
        message = Message()
        message["Message-ID"] = f"<{name}>"
        message["Content-Type"] = "text/html; charset=utf-8"
        message.set_payload(text)
        self._messages[name] = message
        self._write()

    def delete(self, name: str) -> None:
        del self._messages[name]
        self._write()

    def break_(self, name: str) -> None:
        message = Message()
        message["Message-ID"] = f"<{name}>"
        message["Content-Type"] = "multipart/mixed; boundary=x"
        message.set_payload([Message()])
        self._messages[name] = message
        self._write()

    def vanish(self) -> None:
        self._path.unlink()

    def bodies(self) -> int:
        count, self._source.bodies = self._source.bodies, 0
        return count

    def _write(self) -> None:
        self._path.unlink(missing_ok=True)
        with closing(mailbox.mbox(self._path)) as box:
            for message in self._messages.values():
                box.add(message)


class _Counted:
    def __init__(self, source: Source) -> None:
        self.fingerprint = source.fingerprint
        self.bodies = 0
        self._source = source

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        for found in self._source.crawl(known, limit):
            self.bodies += isinstance(found, CrawlItem) and found.raw is not None
            yield found


@pytest.fixture
def world(tmp_path: Path) -> World:
    return _filled(MailboxWorld(tmp_path / "list.mbox"))


def test_it_is_declared_by_one_line_in_the_registry_and_opened_from_its_options(
    tmp_path: Path,
) -> None:
    from tidemark.config.settings import Settings
    from tidemark.config.sources_file import parse_declarations
    from tidemark.wiring import SOURCE_KINDS

    kinds = {**SOURCE_KINDS, "mailbox": f"{__name__}:MailboxOptions"}
    sys.modules.setdefault(__name__, sys.modules[MailboxOptions.__module__])
    text = f"sources:\n  post:\n    kind: mailbox\n    path: {tmp_path / 'post.mbox'}\n"
    declared = parse_declarations(text, kinds).source("post")
    assert isinstance(declared.open(SourceContext(Settings())), MailboxSource)
    broken = parse_declarations("sources:\n  post: {kind: mailbox}\n", kinds).broken["post"]
    assert "sources.post.path: this key is required" in str(broken)
