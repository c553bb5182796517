from datetime import UTC, date, datetime, timedelta, timezone
from uuid import UUID

import pytest

from tidemark.adapters.sources.table.source import as_document, as_text, as_time, column_of
from tidemark.domain.errors import ConfigurationError


@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        ("text/plain", "Text.", "A <b> title\n===========\n\nText."),
        ("text/plain", "A <b> title\n\nText.", "A <b> title\n===========\n\n\nText."),
        ("text/markdown", "Text.", "# A \\<b\\> title\n\nText."),
        ("text/markdown", "# A <b> title\nText.", "# A <b> title\nText."),
        ("text/markdown", "# Another\nText.", "# A \\<b\\> title\n\n# Another\nText."),
    ],
)
def test_the_title_is_the_first_heading_once(media_type: str, body: str, expected: str) -> None:
    assert as_document(" A <b>\n title", body, media_type) == expected


def test_a_title_in_html_is_text_and_not_markup() -> None:
    page = as_document("A <b> & c", "<p>Text.</p>", "text/html")
    assert "<title>A &lt;b&gt; &amp; c</title>" in page
    assert "<h1>A &lt;b&gt; &amp; c</h1>\n<p>Text.</p>" in page


def test_without_a_title_the_body_stays_as_it_is() -> None:
    assert as_document(" ", "<p>x</p>", "text/html") == "<p>x</p>"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            datetime(2026, 5, 1, 12, tzinfo=UTC).replace(tzinfo=None),
            datetime(2026, 5, 1, 12, tzinfo=UTC),
        ),
        (
            datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2))),
            datetime(2026, 5, 1, 10, tzinfo=UTC),
        ),
        (date(2026, 5, 1), datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-05-01T12:00:00Z", datetime(2026, 5, 1, 12, tzinfo=UTC)),
        (1_777_636_800, datetime(2026, 5, 1, 12, tzinfo=UTC)),
        (1_777_636_800_000, datetime(2026, 5, 1, 12, tzinfo=UTC)),
        ("yesterday", None),
        (10**40, None),
        (True, None),
        (None, None),
    ],
)
def test_times_are_read_in_every_form_that_databases_keep(
    value: object, expected: datetime | None
) -> None:
    assert as_time(value) == expected


def test_values_become_text_or_say_why_not() -> None:
    assert as_text(None) == ""
    assert as_text(b"caf\xc3\xa9") == "café"
    assert as_text(UUID(int=7)) == "00000000-0000-0000-0000-000000000007"
    assert as_text(memoryview(b"\xff\x00"), binary=True) == "ff00"
    with pytest.raises(UnicodeDecodeError):
        as_text(b"\xff")
    with pytest.raises(TypeError, match="cast it"):
        as_text({"a": 1})


def test_a_column_is_found_in_any_case_unless_two_differ_in_it_alone() -> None:
    assert column_of(["ID", "Body"], "id_column", "id") == 0
    assert column_of(["ID", "id"], "id_column", "id") == 1
    assert column_of(["a"], "title_column", "") is None
    with pytest.raises(ConfigurationError, match="more than once"):
        column_of(["Id", "iD"], "id_column", "ID")
    with pytest.raises(ConfigurationError, match="more than once"):
        column_of(["id", "id"], "id_column", "id")
