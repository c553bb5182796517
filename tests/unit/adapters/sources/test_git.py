import pytest

from tidemark.adapters.sources.git.options import GitOptions
from tidemark.adapters.sources.git.program import Addresses

PATH = "docs/über uns.md"
QUOTED = "docs/%C3%BCber%20uns.md"


@pytest.mark.parametrize(
    ("url", "document", "link"),
    [
        (
            "https://github.com/team/handbook.git",
            "https://github.com/team/handbook/blob/main/",
            "https://github.com/team/handbook/blob/abc/",
        ),
        (
            "git@github.com:team/handbook.git",
            "https://github.com/team/handbook/blob/main/",
            "https://github.com/team/handbook/blob/abc/",
        ),
        (
            "ssh://git@gitlab.example.org:2222/team/sub/handbook",
            "https://gitlab.example.org/team/sub/handbook/-/blob/main/",
            "https://gitlab.example.org/team/sub/handbook/-/blob/abc/",
        ),
        (
            "https://bitbucket.org/team/handbook",
            "https://bitbucket.org/team/handbook/src/main/",
            "https://bitbucket.org/team/handbook/src/abc/",
        ),
        (
            "https://codeberg.org/team/handbook.git",
            "https://codeberg.org/team/handbook/src/branch/main/",
            "https://codeberg.org/team/handbook/src/commit/abc/",
        ),
        ("https://git.example.org:8443/h.git", "git+https://git.example.org:8443/h/blob/main/", ""),
        ("/srv/git/handbook.git", "git+file:///srv/git/handbook/blob/main/", ""),
    ],
)
def test_a_file_is_addressed_where_its_host_shows_it(url: str, document: str, link: str) -> None:
    addresses = Addresses.of(GitOptions(url=url), "main")
    assert addresses.uri(PATH) == document + QUOTED
    assert addresses.link(PATH, "abc") == (link + QUOTED if link else "")
    assert addresses.link(PATH, "") == ""


def test_a_declared_link_is_preferred() -> None:
    options = GitOptions(
        url="https://github.com/t/h", link="https://docs.example.org/{path}?at={commit}"
    )
    link = Addresses.of(options, "main").link("a.md", "abc")
    assert link == "https://docs.example.org/a.md?at=abc"
    assert options.fingerprint != GitOptions(url="https://github.com/t/h").fingerprint


@pytest.mark.parametrize(
    "url",
    [
        "", "--upload-pack=touch /tmp/x", "ext::sh -c true", "https://login:word@example.org/r",
        "https://token@example.org/r", "ftp://example.org/r", "ssh://-oProxyCommand=x/r",
        "https://example.org:port/r", "https://", "https://example.org/r\nx",
    ],
)  # fmt: skip
def test_a_url_that_git_would_misunderstand_is_refused(url: str) -> None:
    with pytest.raises(ValueError) as raised:
        GitOptions(url=url)
    assert "word" not in str(raised.value)


@pytest.mark.parametrize(
    "branch", ["--all", "a..b", "a b", "a:b", "refs/*", "a.lock", "@", "a@{1}", "/a", "a/", "a\n"]
)
def test_a_branch_that_git_would_misunderstand_is_refused(branch: str) -> None:
    with pytest.raises(ValueError, match="branch"):
        GitOptions(url="https://example.org/r", branch=branch)


@pytest.mark.parametrize("link", ["{commit", "{}", "{0}", "{comit}", "{path.x}"])
def test_a_link_pattern_with_other_names_is_refused(link: str) -> None:
    with pytest.raises(ValueError, match="link"):
        GitOptions(url="https://example.org/r", link=link)


def test_a_folder_never_leads_out_of_the_repository() -> None:
    with pytest.raises(ValueError, match="folder"):
        GitOptions(url="https://example.org/r", folder="docs/../..")
