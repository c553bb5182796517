"""What every ``PageInspector`` promises: the fake that the tests of the stages trust, and the real one."""

from datetime import UTC, datetime

import pytest

from fakes.inspector import MarkInspector
from tidemark.adapters.inspection.inspector import DocumentInspector
from tidemark.domain.documents import Inspection, RawDocument
from tidemark.ports.partition import PageInspector

TEXT = "# Berths\n\nThe fee is 14 euros a night.\nWater is free.\n\n* north pier\n* south pier\n"
PAGE = f"<html><body><h1>Berths</h1><p>{TEXT}</p></body></html>"
READ_AS_THEY_STAND = (
    "text/plain", "text/markdown", "text/x-rst", "text/asciidoc", "text/csv", "text/x-python",
    "text/javascript", "application/json", "application/x-ndjson", "application/x-ipynb+json",
    "application/xml", "application/rtf", "message/rfc822",
)  # fmt: skip
PAGES = ("text/html", "application/xhtml+xml")
KNOWN_WHEN_PARTITIONED = (
    "application/pdf", "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/epub+zip", "application/vnd.ms-outlook", "application/octet-stream", "image/png", "",
)  # fmt: skip


@pytest.fixture(params=[MarkInspector, DocumentInspector])
def inspector(request: pytest.FixtureRequest) -> PageInspector:
    made: PageInspector = request.param()
    return made


def document(content: str | bytes, media_type: str) -> RawDocument:
    content = content.encode() if isinstance(content, str) else content
    return RawDocument("https://h.example/a", content, media_type, None, datetime.now(UTC))


def look(inspector: PageInspector, content: str, media_type: str) -> Inspection:
    inspection = inspector.inspect(document(content, media_type))
    assert inspection is not None
    return inspection


def written_as(media_type: str) -> str:
    return PAGE if media_type in PAGES else TEXT


@pytest.mark.parametrize("media_type", READ_AS_THEY_STAND + PAGES)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: f"{text}\n",
        lambda text: f"\n\n{text}",
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(" is ", "  is\t"),
        lambda text: text.replace("fee is", "fee\u2028\x85is"),
    ],
)
def test_white_space_makes_no_other_text(inspector: PageInspector, media_type: str, change) -> None:  # type: ignore[no-untyped-def]
    before = look(inspector, written_as(media_type), media_type)
    after = look(inspector, change(written_as(media_type)), media_type)
    assert (after.text_hash, after.text_length) == (before.text_hash, before.text_length)


@pytest.mark.parametrize("media_type", READ_AS_THEY_STAND + PAGES)
def test_another_word_makes_another_text(inspector: PageInspector, media_type: str) -> None:
    text = written_as(media_type)
    before, after = (look(inspector, t, media_type) for t in (text, text.replace("14", "15")))
    assert after.text_hash != before.text_hash


@pytest.mark.parametrize("media_type", READ_AS_THEY_STAND)
def test_a_text_is_as_long_as_its_words_with_a_space_between_two(
    inspector: PageInspector, media_type: str
) -> None:
    assert look(inspector, TEXT, media_type).text_length == len(" ".join(TEXT.split()))


@pytest.mark.parametrize("media_type", READ_AS_THEY_STAND + PAGES)
def test_an_honest_text_is_believed(inspector: PageInspector, media_type: str) -> None:
    inspection = look(inspector, written_as(media_type), media_type)
    assert (inspection.anomaly, inspection.detail) == (None, "")


@pytest.mark.parametrize("media_type", READ_AS_THEY_STAND + PAGES)
def test_boilerplate_that_it_does_not_hold_takes_nothing_from_a_text(
    inspector: PageInspector, media_type: str
) -> None:
    raw = document(written_as(media_type), media_type)
    assert inspector.inspect(raw, frozenset({2, 4})) == inspector.inspect(raw)


@pytest.mark.parametrize("media_type", KNOWN_WHEN_PARTITIONED)
def test_what_is_no_text_as_it_stands_is_not_looked_at(
    inspector: PageInspector, media_type: str
) -> None:
    assert inspector.inspect(document(TEXT, media_type)) is None


@pytest.mark.parametrize("media_type", READ_AS_THEY_STAND + PAGES)
@pytest.mark.parametrize(
    "content",
    [b"", b" \n", b"\0\1\2\xff", b"\xff\xfe<\0p\0", b"caf\xe9 \x1b", b"<p" * 400, b"{" * 400],
)
def test_it_raises_for_no_content(
    inspector: PageInspector, media_type: str, content: bytes
) -> None:
    inspection = inspector.inspect(document(content, media_type))
    assert inspection is None or inspection.text_length >= 0
