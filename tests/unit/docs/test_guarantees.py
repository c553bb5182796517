"""docs/guarantees.md names tests: each of them must be there, and be able to fail."""

import re

import pytest

from tidemark.config.settings import PROJECT

TEXT = (PROJECT / "docs" / "guarantees.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", TEXT)))


@pytest.mark.parametrize("path", NAMED)
def test_every_test_that_holds_a_promise_exists(path: str) -> None:
    code = (PROJECT / path).read_text(encoding="utf-8")
    assert re.search(
        r"^\s*(def test_|test_\w+ = |class \w*Machine|TestCase|Test\w+ = )", code, re.MULTILINE
    )


def test_every_promise_names_one() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    assert [row for row in rows if "`tests/" not in row] == []


def test_the_settings_it_names_exist() -> None:
    from tidemark.config.settings import Settings

    named = set(re.findall(r"`TIDEMARK_([A-Z_]+)`", TEXT))
    assert named <= {name.upper() for name in Settings.model_fields}
