"""docs/chunking.md cannot drift: its tables, its example, its rules and its links are those of the code."""

import re
from dataclasses import fields
from types import ModuleType

import pytest

from tidemark.config.settings import PROJECT
from tidemark.config.sources_file import parse_declarations
from tidemark.domain.profile import BUILT_IN, STRATEGIES, Profile
from tidemark.wiring import SOURCE_KINDS

DOCS = PROJECT / "docs"
PAGE = DOCS / "chunking.md"
TEXT = PAGE.read_text(encoding="utf-8")
RULE = re.compile(r"^\| [^|]+ \| `([\w/]+\.py)` \| (`test_[^|]+) \|$", re.MULTILINE)


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    from drawing import tables

    return tables


def table(name: str) -> list[list[str]]:
    """The rows of a made table, below its head, as cells."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", TEXT, re.DOTALL)
    assert found is not None
    return [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in found[1].splitlines()[2:]
    ]


def test_the_options_are_the_fields_of_a_profile_with_their_defaults() -> None:
    rows = {name: default for name, default, _ in table("options")}
    wanted = {one.name: str(one.default).lower() for one in fields(Profile) if one.name != "name"}
    assert rows == wanted


def test_the_profiles_are_the_built_in_ones() -> None:
    rows = {row[0]: (row[1], int(row[2]), int(row[3])) for row in table("profiles")}
    wanted = {
        name: (one.strategy, one.target_tokens, one.max_tokens) for name, one in BUILT_IN.items()
    }
    assert rows == wanted


def test_the_tables_are_as_they_are_made(tables: ModuleType) -> None:
    assert tables.with_tables(TEXT) == TEXT, "run: python docs/make_pictures.py"


def test_every_strategy_has_a_heading() -> None:
    headings = set(re.findall(r"\w+", " ".join(re.findall(r"^### (.+)$", TEXT, re.MULTILINE))))
    assert set(STRATEGIES) <= headings


def test_its_example_of_a_sources_file_is_valid_and_does_what_it_says() -> None:
    example = re.search(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert example is not None
    declared = parse_declarations(example[1], SOURCE_KINDS)
    assert declared.broken == {}
    handbook = declared.choice(declared.source("handbook"))
    assert handbook.default == declared.profile("markdown")
    assert dict(handbook.by_path)["faq/*"].strategy == "faq"
    repository = declared.choice(declared.source("repository"))
    assert repository.default is None
    assert repository.by_content["docs"].target_tokens == declared.profile("docs").target_tokens
    assert declared.profile("docs") != BUILT_IN["docs"]
    assert declared.profile("transcripts").strategy == "semantic"


def test_each_rule_names_code_and_tests_that_exist() -> None:
    rules = RULE.findall(TEXT)
    assert len(rules) >= 14
    tests = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("unit", "properties")
        for path in (PROJECT / "tests" / folder).rglob("test_*.py")
    )
    for place, names in rules:
        assert (PROJECT / "include" / "tidemark" / place).is_file(), place
        for name in re.findall(r"`(test_\w+)`", names):
            assert f"def {name}(" in tests, name


def test_the_files_it_points_to_exist() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert [one for one in targets if not (DOCS / one).exists()] == []
