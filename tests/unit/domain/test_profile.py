"""Profiles as they are declared, and which of them a document gets."""

import pytest

from tidemark.config.sources_file import parse_declarations
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.profile import BUILT_IN, BY_CONTENT, STRATEGIES, Profile, ProfileChoice
from tidemark.stages.chunking.choose import choose_profile
from tidemark.wiring import SOURCE_KINDS

FAQ = PartitionedDocument(
    "",
    tuple(
        Element(ElementKind.TEXT, words)
        for n in range(4)
        for words in (f"May I use gate {n}?", "Yes, at low water, with the keeper.")
    ),
)
PLAIN = PartitionedDocument("", (Element(ElementKind.TEXT, "The gate is shut."),))


def declared(options: str, name: str = "mine") -> Profile:
    return parse_declarations(f"profiles:\n  {name}: {{{options}}}\n", SOURCE_KINDS).profile(name)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy_can_be_declared_and_starts_from_its_built_in_profile(strategy: str) -> None:
    profile = declared(f"strategy: {strategy}")
    assert (profile.name, profile.strategy) == ("mine", strategy)
    assert any(profile.canonical() == built_in.canonical() for built_in in BUILT_IN.values())


def test_what_is_given_stands_and_the_rest_is_as_in_the_built_in_profile() -> None:
    profile = declared("strategy: semantic, target_tokens: 100, percentile: 75, window: 3")
    assert (profile.target_tokens, profile.percentile, profile.window) == (100, 75, 3)
    assert profile.max_tokens == BUILT_IN["semantic"].max_tokens


def test_sizes_that_are_not_given_follow_those_that_are() -> None:
    assert declared("max_tokens: 64").target_tokens == 64
    assert declared("target_tokens: 600").max_tokens == 600
    assert declared("target_tokens: 16, min_tokens: 16").min_tokens == 16


@pytest.mark.parametrize(
    "option",
    [
        "target_tokens: 15", "target_tokens: 9000", "target_tokens: many", "max_tokens: 31",
        "max_tokens: 1.5", "min_tokens: -1", "parent_tokens: 31", "overlap: 0.6", "overlap: -0.1",
        "overlap: half", "merge_sections: perhaps", "percentile: 0", "percentile: 100", "window: 0",
        "window: 11", "strategy: astrology", "strategy: [code]",
    ],
)  # fmt: skip
def test_an_option_out_of_its_range_is_refused_with_its_line_and_a_cure(option: str) -> None:
    key = option.partition(":")[0]
    with pytest.raises(ConfigurationError) as error:
        parse_declarations(f"profiles:\n  mine:\n    # of a kind\n    {option}\n", SOURCE_KINDS)
    assert f"line 4, profiles.mine.{key}" in str(error.value)
    assert error.value.hint


def test_an_unknown_strategy_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"by_title.*whole"):
        declared("strategy: astrology")


def test_an_unknown_option_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigurationError, match="target_tokens") as error:
        declared("target_token: 100")
    assert "profiles.mine.target_token" in str(error.value)


@pytest.mark.parametrize(
    "sizes",
    ["target_tokens: 200, max_tokens: 100", "min_tokens: 90, target_tokens: 80",
     "min_tokens: 90, max_tokens: 80"],
)  # fmt: skip
def test_sizes_that_contradict_each_other_are_refused_with_their_place(sizes: str) -> None:
    with pytest.raises(ConfigurationError, match=r"line 2, profiles\.mine.*min_tokens <= target"):
        declared(sizes)


def test_a_declared_profile_replaces_the_built_in_one_of_its_name_everywhere() -> None:
    text = "profiles: {faq: {target_tokens: 222}}\nsources: {s: {kind: files, path: data}}\n"
    declarations = parse_declarations(text, SOURCE_KINDS)
    assert declarations.profile("faq").target_tokens == 222
    assert declarations.profile("faq").strategy == "faq"
    choice = declarations.choice(declarations.source("s"))
    assert choose_profile(choice, "file:///a.md", FAQ).target_tokens == 222


def test_auto_is_no_name_for_a_profile() -> None:
    with pytest.raises(ConfigurationError, match=r"line 2, profiles\.auto: 'auto' stands for"):
        declared("target_tokens: 100", "auto")


SOURCE = """\
sources:
  s:
    kind: files
    path: data
    profile: {profile}
    profile_by_path:
      "*.py": code
      "faq/*": {by_path}
"""


@pytest.mark.parametrize("name", ["fak", "auto"])
def test_a_path_with_an_unknown_profile_is_refused_with_its_line(name: str) -> None:
    broken = parse_declarations(SOURCE.format(profile="docs", by_path=name), SOURCE_KINDS).broken[
        "s"
    ]
    assert "line 8, sources.s.profile_by_path.faq/*" in str(broken)
    assert f"no profile is called {name!r}" in str(broken)


def test_a_path_decides_before_the_default_and_the_default_before_the_content() -> None:
    declarations = parse_declarations(SOURCE.format(profile="whole", by_path="table"), SOURCE_KINDS)
    choice = declarations.choice(declarations.source("s"))
    assert choose_profile(choice, "file:///data/x/run.py", FAQ).name == "code"
    assert choose_profile(choice, "file:///data/faq/a.md", FAQ).name == "table"
    assert choose_profile(choice, "file:///data/a.md", FAQ).name == "whole"


def test_the_first_pattern_that_fits_decides() -> None:
    code, table = BUILT_IN["code"], BUILT_IN["table"]
    both = ProfileChoice(None, (("a/*", code), ("*.md", table)))
    assert choose_profile(both, "https://example.org/a/x.md", PLAIN) is code
    assert choose_profile(both, "https://example.org/b/x.md", PLAIN) is table
    turned = ProfileChoice(None, (("*.md", table), ("a/*", code)))
    assert choose_profile(turned, "https://example.org/a/x.md", PLAIN) is table


@pytest.mark.parametrize(
    ("pattern", "uri", "fits"),
    [
        ("*.md", "https://example.org/a/b.md", True),
        ("b.md", "https://example.org/a/b.md", True),
        ("b.md", "https://example.org/a/bb.md", False),
        ("/a/*", "https://example.org/a/b/c", True),
        ("a b/*", "https://example.org/a%20b/c", True),
        ("*.md", "https://example.org/a?x=b.md", False),
        ("*.MD", "https://example.org/b.md", False),
    ],
)
def test_a_pattern_fits_a_path_or_its_end(pattern: str, uri: str, fits: bool) -> None:
    choice = ProfileChoice(BUILT_IN["docs"], ((pattern, BUILT_IN["code"]),))
    assert (choose_profile(choice, uri, PLAIN).name == "code") is fits


def test_content_decides_where_nothing_else_does() -> None:
    assert choose_profile(ProfileChoice(), "file:///a", FAQ).name == "faq"
    assert choose_profile(ProfileChoice(), "file:///a", PLAIN).name == "docs"
    mine = Profile("mine", "faq")
    choice = ProfileChoice(by_content={"faq": mine})
    assert choose_profile(choice, "file:///a", FAQ) is mine
    assert choose_profile(choice, "file:///a", PLAIN).name == "docs"


def test_each_kind_of_content_has_a_built_in_profile() -> None:
    assert set(BY_CONTENT) <= set(BUILT_IN)


def test_every_option_that_decides_a_chunk_is_in_the_fingerprint_and_the_name_is_not() -> None:
    base = Profile("a", "semantic")
    changed = [
        Profile("b", "semantic"), Profile("a", "faq"), Profile("a", "semantic", 97),
        Profile("a", "semantic", max_tokens=241), Profile("a", "semantic", min_tokens=13),
        Profile("a", "semantic", parent_tokens=401), Profile("a", "semantic", overlap=0.1),
        Profile("a", "semantic", merge_sections=True), Profile("a", "semantic", percentile=91),
        Profile("a", "semantic", window=2),
    ]  # fmt: skip
    assert changed[0].canonical() == base.canonical()
    assert all(profile.canonical() != base.canonical() for profile in changed[1:])
    assert Profile("a", "faq", percentile=91).canonical() == Profile("a", "faq").canonical()
