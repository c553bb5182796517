"""The moment that a person means with --as-of."""

from datetime import UTC, datetime

import pytest
import typer

from tidemark.cli.explain import moment_of


@pytest.mark.parametrize("day", ["2026-11-03", "20261103", "2026-W45-2", "2026W452"])
def test_a_day_is_meant_to_its_end(day: str) -> None:
    assert moment_of(day) == datetime(2026, 11, 3, 23, 59, 59, 999999, tzinfo=UTC)


@pytest.mark.parametrize(
    "time", ["2026-11-03T08:00", "2026-11-03 08:00", "2026-11-03T10:00+02:00", "20261103T0800Z"]
)
def test_a_time_is_in_utc_unless_it_says_otherwise(time: str) -> None:
    assert moment_of(time) == datetime(2026, 11, 3, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", " ", "yesterday", "2026-13-01", "0001-01-01T00:00+14:00", "9999-12-31T23:59-12:00"]
)
def test_nonsense_is_refused_with_how_to_write_it(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="write 2026-11-03"):
        moment_of(text)


def test_a_day_that_is_yet_to_come_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="yet to come"):
        moment_of("2999-01-01")
