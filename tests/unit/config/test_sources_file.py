"""Declared sources: each error names the line, the key and the hint."""

from pathlib import Path

import pytest

from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.adapters.sources.git.options import GitOptions
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.config.settings import PROJECT
from tidemark.config.sources_file import Declarations, load_declarations, parse_declarations
from tidemark.domain.connections import is_url
from tidemark.domain.errors import ConfigurationError
from tidemark.wiring import SOURCE_KINDS

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


def parsed(text: str) -> Declarations:
    return parse_declarations(text, SOURCE_KINDS)


def broken(text: str, name: str = "site") -> str:
    return str(parsed(text).broken[name])


def test_it_reads_sources_profiles_and_defaults() -> None:
    declared = parsed(GOOD)
    site, share = declared.source("site"), declared.source("share")
    assert isinstance(site, WebsiteOptions)
    assert isinstance(share, FilesOptions)
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
        (
            "    headers: [a]",
            "line 4, sources.site.headers: a mapping of keys to values is expected",
        ),
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
    assert (
        "sources.site.kind: a source needs a kind. Use 'website' or 'files' or 'git' or" in message
    )


def test_a_wrong_source_does_not_hide_the_others() -> None:
    declared = parsed(GOOD + "  bad:\n    kind: files\n")
    assert set(declared.sources) == {"site", "share"}
    with pytest.raises(ConfigurationError, match=r"sources\.bad\.path: this key is required"):
        declared.source("bad")


def test_an_unknown_source_gets_the_nearest_name() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'share'"):
        parsed(GOOD).source("shar")


def test_a_header_value_never_reaches_the_error() -> None:
    text = (
        "sources:\n  site:\n    kind: website\n    url: https://example.org/\n"
        "    headers: {Authorization: [s3cret]}\n"
    )
    assert "headers.Authorization" in broken(text)
    assert "s3cret" not in broken(text)


def test_sizes_of_a_profile_must_be_in_order() -> None:
    with pytest.raises(ConfigurationError, match="min_tokens <= target_tokens <= max_tokens"):
        parsed("profiles:\n  odd: {target_tokens: 200, max_tokens: 100}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [("sources: [", "not valid YAML"), ("- a", "a mapping with the key 'sources'"),
     ("source: {}", "Did you mean 'sources'"), ("sources: [a]", "a mapping of names")],
)  # fmt: skip
def test_a_file_that_cannot_be_read_as_sources_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parsed(text)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "sources:\n"])
def test_an_empty_file_declares_nothing(text: str) -> None:
    assert parsed(text) == Declarations({}, parsed("").profiles, {})


@pytest.mark.parametrize("text", ["[]", "false", "null", "0", "sources"])
def test_a_file_that_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="a mapping with the key 'sources'"):
        parsed(text)


WEBSITE = "sources:\n  site:\n    kind: website\n    url: https://example.org/\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("timezone: Europe", "timezone: an IANA timezone"),
        (f"timezone: {'a' * 300}", "timezone: an IANA timezone"),
        (f"tags: [{'a' * 101}]", "tags.0: String should have at most 100"),
        ("tags: ['  ']", "tags.0: some text is expected"),
        ("owner: ''", "owner: some text is expected"),
        (f"owner: {'o' * 300}", "owner: String should have at most"),
        ("start_date: 0001-01-01", "start_date: Input should be greater than or equal to 1970"),
        ("start_date: 2026-02-31", "start_date: Input should be a valid date"),
        ("schedule: 0 0 31 2 *", "schedule: this schedule never fires"),
        ("schedule: R 3 * * *", "schedule: a random field (R)"),
        ("schedule: 0 R(1-3) * * *", "schedule: a random field (R)"),
        ("name: other", "name: unknown key"),
        ("max_pages: !!int x1", "max_pages: Input should be a valid integer"),
        ('description: "a\\0b"', "description: a NUL"),
        ('description: "\\ud800"', "description: a NUL or half a character"),
        ("headers: {'a b': c}", "headers: the name of header 1"),
        ("description: {{ var }}", "description: Input should be a valid string"),
    ],
)
def test_a_value_that_would_fail_later_is_refused_for_its_source_alone(
    line: str, message: str
) -> None:
    declared = parsed(f"{WEBSITE}    {line}\n  other: {{kind: files, path: data}}\n")
    assert f"line 5, sources.site.{message}" in str(declared.broken["site"])
    assert set(declared.sources) == {"other"}


@pytest.mark.parametrize("schedule", ["0 0 29 2 *", "0 3 * mar,apr fri", "0 0 L * *"])
def test_a_rare_schedule_is_accepted(schedule: str) -> None:
    source = parsed(f"{WEBSITE}    schedule: {schedule}\n").source("site")
    assert source.schedule == schedule


@pytest.mark.parametrize(
    "url",
    ["https://example.org:99999/", "http://[::1/", "http://", "ftp://example.org/", "http://a:0/",
     "https://exa mple.org/", "example.org"],
)  # fmt: skip
def test_a_url_that_cannot_be_asked_is_refused(url: str) -> None:
    message = broken(f"sources:\n  site:\n    kind: website\n    url: '{url}'\n")
    assert "line 4, sources.site.url: an http(s) URL with a valid host and port" in message


def test_credentials_in_a_url_are_refused_and_not_shown() -> None:
    message = broken("sources:\n  site: {kind: website, url: 'https://me:s3cret@example.org/'}\n")
    assert "put them in headers" in message
    assert "s3cret" not in message


@pytest.mark.parametrize("value", ['"s3cret\\r\\nX: y"', '"s3cret€"', '" s3cret"', '"s3cret\\x07"'])
def test_a_header_value_that_cannot_be_sent_is_refused_and_not_shown(value: str) -> None:
    message = broken(f"{WEBSITE}    headers: {{Authorization: {value}}}\n")
    assert "the value of 'Authorization' cannot be sent" in message
    assert "s3cret" not in message


def test_a_whole_header_in_place_of_its_name_is_not_shown() -> None:
    message = broken(f"{WEBSITE}    headers: {{'Authorization: s3cret': [1]}}\n")
    assert "the name of header 1" in message
    assert "s3cret" not in message


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://key:secret@b/c", "The path 's3://…@b/c' has credentials in it"),
        ("file://server/c", "a file URL names a folder of this machine"),
        ("~no-such-user-here/x", "the home folder"),
        ("' '", "some text is expected"),
        ('"a\\0b"', "a NUL"),
        ("file:///a%00b", "a path cannot have this character"),
    ],
)
def test_a_path_that_cannot_be_read_is_refused(path: str, message: str) -> None:
    text = f"sources:\n  site:\n    kind: files\n    path: {path}\n"
    assert f"line 4, sources.site.path: {message}" in broken(text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("~/x", "/home/someone/x"), ("file:///srv/my%20docs", "/srv/my docs"), ("data", "data")],
)
def test_a_path_is_given_as_the_folder_it_means(
    path: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    source = parsed(f"sources:\n  a: {{kind: files, path: {path}}}\n").source("a")
    assert source.path == expected  # type: ignore[union-attr]


def test_a_key_that_is_there_twice_breaks_its_source_alone() -> None:
    declared = parsed(GOOD + "    path: other\n  site: {kind: files, path: a}\n")
    assert "line 14, sources.share.path: this key is there twice" in str(declared.broken["share"])
    assert "line 15, sources.site: this key is there twice" in str(declared.broken["site"])
    assert not declared.sources


def test_a_section_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="line 14, sources: this key is there twice"):
        parsed(GOOD + "sources: {}\n")


@pytest.mark.parametrize("name", ["My Site!", "a/b", "~", "[a]", "a" * 42, "'a\n\n  b'"])
def test_a_source_with_an_impossible_name_breaks_alone(name: str) -> None:
    declared = parsed(f"{WEBSITE}  ? {name}\n  : {{kind: files, path: data}}\n")
    assert set(declared.sources) == {"site"}
    assert ["a source cannot have this name" in str(e) for e in declared.broken.values()] == [True]


def test_a_name_that_yaml_takes_for_something_else_is_the_text_as_written() -> None:
    text = "sources:\n  on: {kind: files, path: a}\n  1: {kind: files, path: b}\n"
    assert set(parsed(text).sources) == {"on", "1"}


@pytest.mark.parametrize("value", ["0", "[]", "[target_tokens]", "false"])
def test_a_profile_that_is_no_mapping_is_refused(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"line 1, profiles\.p: a mapping is expected"):
        parsed(f"profiles: {{p: {value}}}\n")


def test_a_default_goes_to_the_kinds_that_know_it() -> None:
    declared = parsed("defaults: {delay: 3}\n" + GOOD.partition("\n  owner: search\n")[2])
    assert not declared.broken
    assert declared.source("site").delay == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("key", ["dellay", "name"])
def test_a_default_that_no_kind_knows_is_refused(key: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"line 1, defaults\.{key}: unknown key"):
        parsed(f"defaults: {{{key}: x}}\n")


def test_a_wrong_default_is_shown_where_it_stands() -> None:
    message = str(parsed("defaults:\n  retries: many\n" + WEBSITE).broken["site"])
    assert "line 2, defaults.retries: Input should be a valid integer" in message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("token: 's3cret\n", "line 2, column 1,"),
        ("a: b\n  token: s3cret: x\n", "line 2, column 8,"),
        ("token: *s3cret\n", "line 1, column 8,"),
        ("token: !s3cret x\n", "line 1, column 8,"),
        ("token: s3cret\x07\n", "line 1, column 14,"),
    ],
)
def test_a_syntax_error_gives_the_place_and_never_the_text(text: str, place: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parsed(text)
    assert f"sources.yaml, {place} is not valid YAML" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_what_has_no_end_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        parsed("sources: " + "[" * 3_000 + "]" * 3_000)
    declared = parsed(GOOD + "  loop: &a {kind: files, path: a, tags: *a}\n")
    assert "sources.loop: an alias contains itself" in str(declared.broken["loop"])
    assert set(declared.sources) == {"site", "share"}


def test_a_file_in_another_encoding_is_named_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_bytes("# one\n# Übersicht\n".encode("latin-1"))
    with pytest.raises(ConfigurationError, match="line 2: this is not UTF-8 text"):
        load_declarations(file, SOURCE_KINDS)


def test_a_missing_file_is_named_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="TIDEMARK_SOURCES_FILE"):
        load_declarations(tmp_path / "none.yaml", SOURCE_KINDS)


def test_a_value_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "sources:\n  site:\n    kind: website\n    url: http://${SITE_HOST:-localhost}:${SITE_PORT}/\n"
    monkeypatch.setenv("SITE_PORT", "81")
    assert parsed(text).source("site").url == "http://localhost:81/"  # type: ignore[union-attr]
    monkeypatch.delenv("SITE_PORT")
    assert "SITE_PORT is not set" in broken(text)


def test_the_sources_of_the_repository_are_valid() -> None:
    declared = load_declarations(PROJECT / "include" / "sources.yaml", SOURCE_KINDS)
    assert set(declared.sources) == {"handbook", "documents"}
    assert not declared.broken


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("url: 'ext::sh -c id'", "url: The URL of the repository is none that git may be given"),
        ("url: 'ftp://example.org/r'", "url: The URL of the repository is of no kind that is read"),
        ("url: 'https://example.org:port/r'", "url: The URL of the repository is of no kind"),
        ("branch: --upload-pack=x", "branch: The branch '--upload-pack=x' is no name"),
        ("folder: ../..", "folder: The folder '../..' is no folder of a repository"),
        (
            "link: '{foo}'",
            "link: The link '{foo}' is no pattern. Write it with {commit} and {path}",
        ),
        ("link: '{path:>99999999999}'", "link: The link"),
        ("link: '{path'", "link: The link"),
        ("exclude: ['[a']", "exclude.0: the '[' of this pattern is never closed"),
        ("include: [/]", "include.0: this pattern names nothing"),
        ("profile_by_path: {'[': docs}", "profile_by_path.[: the '[' of this pattern is never"),
        ("gone_after: true", "gone_after: a number is expected (got True)"),
        ("guards: {gone_documents: yes}", "guards.gone_documents: a number is expected (got True)"),
        ("guards: {gone_percent: .nan}", "guards.gone_percent: Input should be a finite number"),
    ],
)
def test_a_git_source_that_could_never_run_is_refused(line: str, message: str) -> None:
    url = "" if line.startswith("url") else "    url: https://example.org/r\n"
    text = f"sources:\n  site:\n    kind: git\n    {line}\n{url}"
    assert f"line 4, sources.site.{message}" in broken(text)


GOOD_FOR_GIT = {
    "git@example.org:team/r", "/srv/git/r.git", "ssh://git@h/r", "main", "docs/v2", "docs/en", "/docs/",
    "https://h/{commit}/{path}", "{{x}}",
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (
            "url",
            (
                "", "--upload-pack=x", "ext::sh -c true", "ftp://example.org/r",
                "https://token@example.org/r", "ssh://-oProxyCommand=x/r", "https://",
                "https://example.org:port/r", "git@example.org:team/r", "/srv/git/r.git", "ssh://git@h/r",
            ),
        ),
        ("branch", ("--all", "a..b", "a b", "refs/*", "a.lock", "@", "a@{1}", "main", "docs/v2")),
        ("folder", ("docs/../..", "a//b", ".", "docs/en", "/docs/")),
        ("link", ("{commit", "{}", "{0}", "{comit}", "{path.x}", "https://h/{commit}/{path}", "{{x}}")),
    ],
)  # fmt: skip
def test_a_declaration_refuses_what_git_would_refuse_and_nothing_else(
    key: str, values: tuple[str, ...]
) -> None:
    for value in values:
        refused = False
        try:
            GitOptions(**{"url": "https://example.org/r", key: value})  # type: ignore[arg-type]
        except ValueError:
            refused = True
        assert refused is (value not in GOOD_FOR_GIT), value


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s4://bucket", "The path 's4://bucket' begins with 's4', which is no kind of store"),
        ("zip://a::zip://b::s3://c/d.zip", "The path 'zip://a::zip://b::s3://c/d.zip' chains"),
        ("zip://a", "The path 'zip://a' names no archive"),
        ("sftp://host:port/docs", "The path 'sftp://host:port/docs' has no valid port"),
    ],
)
def test_a_store_that_there_is_not_is_refused(path: str, message: str) -> None:
    text = f"sources:\n  site:\n    kind: files\n    path: {path}\n"
    assert f"line 4, sources.site.path: {message}" in broken(text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("http://[2001:db8::1]/docs/", True),
        ("zip://in::s3://bucket/a.zip", True),
        ("memory://docs", True),
        ("./minutes::2026", False),
        ("data", False),
    ],
)
def test_two_colons_alone_make_no_url(path: str, expected: bool) -> None:
    source = parsed(f"sources:\n  a: {{kind: files, path: '{path}'}}\n").source("a")
    assert isinstance(source, FilesOptions)
    assert (is_url(source.path), source.path.endswith(path.removeprefix("./"))) == (expected, True)


def test_guards_are_inherited_one_by_one() -> None:
    text = "defaults:\n  guards:\n    gone_percent: 10\n    at_least: 20\n" + WEBSITE
    guards = parsed(text + "    guards: {changed_percent: 5}\n").source("site").guards
    assert (guards.gone_percent, guards.at_least, guards.changed_percent) == (10, 20, 5)
    guards = parsed(text + "    guards: {at_least: 3}\n").source("site").guards
    assert (guards.gone_percent, guards.at_least) == (10, 3)


@pytest.mark.parametrize(
    ("usual", "own", "place"),
    [
        ("many", "5", "line 3, defaults.guards.gone_percent: Input should be a valid number"),
        ("true", "5", "line 3, defaults.guards.gone_percent: a number is expected"),
        ("10", "many", "line 9, sources.site.guards.at_least: Input should be a valid integer"),
        ("10", "true", "line 9, sources.site.guards.at_least: a number is expected"),
    ],
)
def test_a_wrong_guard_is_shown_where_it_stands(usual: str, own: str, place: str) -> None:
    text = f"defaults:\n  guards:\n    gone_percent: {usual}\n{WEBSITE}    guards:\n      at_least: {own}\n"
    assert place in broken(text)


def test_true_is_no_size_of_a_profile() -> None:
    with pytest.raises(ConfigurationError, match=r"profiles\.p\.window: a number is expected"):
        parsed("profiles: {p: {window: true}}\n")


@pytest.mark.parametrize("key", ["include", "exclude", "labels", "tags", "seeds"])
def test_a_list_that_is_none_is_told_how_it_is_written(key: str) -> None:
    message = broken(f"{WEBSITE}    {key}: '*.pdf'\n")
    assert f"sources.site.{key}: a list is expected, e.g. [" in message
    assert "tuple" not in message


@pytest.mark.parametrize("value", ["", "[1]", "{url: x}"])
def test_what_each_kind_needs_is_said_where_a_source_says_too_little(value: str) -> None:
    message = broken(f"sources:\n  site: {value}\n")
    for need in (
        "website with url",
        "files with path",
        "git with url",
        "table with query and conn",
    ):
        assert f"kind: {need}" in message
