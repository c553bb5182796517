"""Declared sources: each error names the line, the key and the cure."""

from pathlib import Path

import pytest

from tidemark.declarations import (
    Declarations,
    FilesDeclaration,
    WebsiteDeclaration,
    load_declarations,
    parse_declarations,
)
from tidemark.domain.errors import ConfigurationError
from tidemark.settings import PROJECT

GOOD = """\
defaults:
  owner: search
profiles:
  short: {target_tokens: 64, max_tokens: 96, min_tokens: 8}
sources:
  site:
    kind: website
    url: https://example.org/docs/
    profile: short
  share:
    kind: files
    path: data
    schedule: "*/15 * * * *"
"""


def broken(text: str, name: str = "site") -> str:
    return str(parse_declarations(text).broken[name])


def test_it_reads_sources_profiles_and_defaults() -> None:
    declared = parse_declarations(GOOD)
    site, share = declared.source("site"), declared.source("share")
    assert isinstance(site, WebsiteDeclaration)
    assert isinstance(share, FilesDeclaration)
    assert (site.owner, site.schedule) == ("search", "0 3 * * *")
    assert share.schedule == "*/15 * * * *"
    assert declared.profile("short").max_tokens == 96
    assert declared.profile("docs").name == "docs"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "    urll: https://example.org/",
            "line 4, sources.site.urll: unknown key. Did you mean 'url'?",
        ),
        ("    max_pages: many", "line 4, sources.site.max_pages: Input should be a valid integer"),
        ("    schedule: daily", "line 4, sources.site.schedule: a cron expression of five fields"),
        ("    schedule: '61 * * * *'", "line 4, sources.site.schedule: a cron expression"),
        ("    timezone: Mars/Base", "line 4, sources.site.timezone: an IANA timezone"),
        ("    profile: legal", "line 4, sources.site.profile: no profile is called 'legal'"),
        ("    headers: [a]", "line 4, sources.site.headers: Input should be a valid dictionary"),
    ],
)
def test_an_error_names_the_line_the_key_and_the_cure(line: str, message: str) -> None:
    text = f"sources:\n  site:\n    kind: website\n{line}\n    url: https://example.org/\n"
    assert message in broken(text)


def test_a_missing_key_is_named() -> None:
    assert "sources.site.url: this key is required" in broken(
        "sources:\n  site:\n    kind: website\n"
    )


@pytest.mark.parametrize("kind", ["", "    kind: gopher\n"])
def test_a_source_without_a_known_kind_is_told_which_there_are(kind: str) -> None:
    message = broken(f"sources:\n  site:\n    url: https://example.org/\n{kind}")
    assert "sources.site.kind: a source needs a kind. Use 'website' or 'files'." in message


def test_a_wrong_source_does_not_hide_the_others() -> None:
    declared = parse_declarations(GOOD + "  bad:\n    kind: files\n")
    assert set(declared.sources) == {"site", "share"}
    with pytest.raises(ConfigurationError, match=r"sources\.bad\.path: this key is required"):
        declared.source("bad")


def test_an_unknown_source_gets_the_nearest_name() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'share'"):
        parse_declarations(GOOD).source("shar")


def test_a_header_value_never_reaches_the_error() -> None:
    text = (
        "sources:\n  site:\n    kind: website\n    url: https://example.org/\n"
        "    headers: {Authorization: [s3cret]}\n"
    )
    assert "headers.Authorization" in broken(text)
    assert "s3cret" not in broken(text)


def test_sizes_of_a_profile_must_be_in_order() -> None:
    with pytest.raises(ConfigurationError, match="min_tokens <= target_tokens <= max_tokens"):
        parse_declarations("profiles:\n  odd: {target_tokens: 200, max_tokens: 100}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [("sources: [", "not valid YAML"), ("- a", "a mapping with the key 'sources'"),
     ("source: {}", "Did you mean 'sources'"), ("sources: [a]", "a mapping of names")],
)  # fmt: skip
def test_a_file_that_cannot_be_read_as_sources_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_declarations(text)


def test_an_empty_file_declares_nothing() -> None:
    assert parse_declarations("") == Declarations({}, parse_declarations("").profiles, {})


def test_a_missing_file_is_named_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="TIDEMARK_SOURCES_FILE"):
        load_declarations(tmp_path / "none.yaml")


def test_a_value_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "sources:\n  site:\n    kind: website\n    url: http://${SITE_HOST:-localhost}:${SITE_PORT}/\n"
    monkeypatch.setenv("SITE_PORT", "81")
    assert parse_declarations(text).source("site").url == "http://localhost:81/"  # type: ignore[union-attr]
    monkeypatch.delenv("SITE_PORT")
    assert "SITE_PORT is not set" in broken(text)


def test_the_sources_of_the_repository_are_valid() -> None:
    declared = load_declarations(PROJECT / "include" / "sources.yaml")
    assert set(declared.sources) == {"handbook", "documents"}
    assert not declared.broken
