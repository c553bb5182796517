"""A git repository as a source: its promises as a source, and what only repositories do."""

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sites import Crawled, crawl_all
from stores import index_server
from test_sources import *  # noqa: F403 - the cases, run on the world below
from test_sources import MAX_BYTES, World, _filled

from fakes.source import MemoryKnown
from tidemark.adapters.sources.git.options import GitOptions
from tidemark.adapters.sources.git.program import GitProgram
from tidemark.adapters.sources.git.source import BlobReader, GitSource
from tidemark.domain.connections import Credentials
from tidemark.domain.documents import Outcome
from tidemark.domain.errors import PermanentError
from tidemark.ports.source import Source

pytestmark = pytest.mark.slow

T0 = 1_750_000_000


class Repository:
    """A repository that a test commits to; commits are an hour apart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._clock = T0
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        moment = f"{self._clock} +0000"
        return subprocess.run(
            ["git", "-c", "user.name=docs", "-c", "user.email=docs@example.org", *arguments],
            cwd=self.path,
            env={
                "PATH": os.environ["PATH"],
                "GIT_AUTHOR_DATE": moment,
                "GIT_COMMITTER_DATE": moment,
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_NOSYSTEM": "1",
            },
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def commit(self, **texts: str | None) -> str:
        """Write (or with None delete) NAME.md, where "__" parts folders; gives the commit's id."""
        for name, text in texts.items():
            self.put(name.replace("__", "/") + ".md", text)
        return self.save()

    def put(self, name: str, text: str | None) -> None:
        file = self.path / name
        if text is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def save(self) -> str:
        self._clock += 3600
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "change")
        return self.git("rev-parse", "HEAD")

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clock, UTC)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path.resolve() / "handbook")


def source(repository: Repository | str, tmp_path: Path, **options: Any) -> GitSource:
    url = repository if isinstance(repository, str) else str(repository.path)
    return GitSource(GitOptions(url=url, **options), tmp_path / "cache")


def base(repository: Repository, branch: str = "main") -> str:
    return f"git+{repository.path.as_uri()}/blob/{branch}/"


def said(repository: Repository, crawled: Crawled, branch: str = "main") -> dict[str, str]:
    return crawled.outcomes(base(repository, branch))


class GitWorld:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._repository = Repository(root / "repository")
        self._broken: set[str] = set()
        self._bodies = 0
        self._source = source(self._repository, root, max_bytes=MAX_BYTES)
        read = BlobReader.read

        def counted(reader: BlobReader, object_id: str) -> bytes:
            if object_id in self._broken:
                raise PermanentError("it is not there")
            self._bodies += 1
            return read(reader, object_id)

        monkeypatch.setattr(BlobReader, "read", counted)

    def source(self) -> Source:
        return self._source

    def uri(self, name: str) -> str:
        return base(self._repository) + name

    def put(self, name: str, text: str) -> None:
        self._repository.put(name, text)
        self._repository.save()

    def delete(self, name: str) -> None:
        self._repository.put(name, None)
        self._repository.save()

    def break_(self, name: str) -> None:
        self.put(name, "words that are lost")
        self._broken.add(self._repository.git("rev-parse", f"HEAD:{name}"))

    def vanish(self) -> None:
        shutil.rmtree(self._repository.path)
        shutil.rmtree(self._repository.path.parent / "cache")

    def bodies(self) -> int:
        count, self._bodies = self._bodies, 0
        return count


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return _filled(GitWorld(tmp_path.resolve(), monkeypatch))


def test_each_file_has_the_time_and_the_commit_of_its_own_last_change(
    repository: Repository, tmp_path: Path
) -> None:
    first = repository.commit(a="one", b="one")
    at_first = repository.now
    second = repository.commit(a="two")
    known = MemoryKnown()
    link = "https://git.example.org/show/{commit}/{path}"
    crawled = crawl_all(source(repository, tmp_path, link=link), known)
    a, b = (crawled.items[base(repository) + name].raw for name in ("a.md", "b.md"))
    assert a is not None
    assert b is not None
    assert (a.modified_at, b.modified_at) == (repository.now, at_first)
    assert a.link == f"https://git.example.org/show/{second}/a.md"
    assert b.link == f"https://git.example.org/show/{first}/b.md"
    assert a.validators.revision == repository.git("rev-parse", "HEAD:a.md")
    assert crawled.end.state == second


def test_later_crawls_read_only_the_history_that_is_new(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidemark.adapters.sources.git.program import GitProgram

    repository.commit(a="one", b="one")
    known = MemoryKnown()
    made = source(repository, tmp_path)
    first = crawl_all(made, known).end.state
    repository.commit(b="two")
    walks = []
    stream = GitProgram.stream

    def noted(program: GitProgram, *arguments: str, **options: Any) -> Any:
        walks.extend([arguments] if arguments[0] == "log" else [])
        return stream(program, *arguments, **options)

    monkeypatch.setattr(GitProgram, "stream", noted)
    crawled = crawl_all(made, known)
    assert said(repository, crawled) == {"a.md": "not_modified", "b.md": "fetched"}
    assert f"^{first}" in walks[0]
    crawl_all(made, known)
    assert len(walks) == 1
    raw = crawled.items[base(repository) + "b.md"].raw
    assert raw is not None
    assert raw.modified_at == repository.now


def test_a_force_push_is_followed_and_unchanged_files_are_not_read(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(a="one", b="one")
    known = MemoryKnown()
    made = source(repository, tmp_path)
    crawl_all(made, known)
    repository.git("checkout", "-q", "--orphan", "rewritten")
    repository.commit(b="two")
    repository.git("branch", "-M", "rewritten", "main")
    crawled = crawl_all(made, known)
    assert said(repository, crawled) == {"a.md": "not_modified", "b.md": "fetched"}
    assert crawled.end.complete
    assert crawled.end.state == repository.git("rev-parse", "HEAD")


def test_a_lost_copy_is_made_again_and_nothing_is_indexed_again(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(a="one")
    known = MemoryKnown()
    crawl_all(source(repository, tmp_path), known)
    shutil.rmtree(tmp_path / "cache")
    assert said(repository, crawl_all(source(repository, tmp_path), known)) == {
        "a.md": "not_modified"
    }


def test_a_copy_that_was_broken_by_a_kill_heals(repository: Repository, tmp_path: Path) -> None:
    repository.commit(a="one")
    crawl_all(source(repository, tmp_path))
    (copy,) = (tmp_path / "cache").glob("*/repository.git")
    (copy / "refs" / "tidemark" / "head").write_text("damaged\n")
    (copy.parent / "history.sqlite").write_bytes(b"no database at all" * 100)
    repository.commit(b="two")
    crawled = crawl_all(source(repository, tmp_path))
    assert said(repository, crawled) == {"a.md": "fetched", "b.md": "fetched"}
    assert crawled.end.complete


def test_a_branch_that_was_killed_in_the_middle_of_its_update_leaves_no_lock(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(a="one")
    crawl_all(source(repository, tmp_path))
    (copy,) = (tmp_path / "cache").glob("*/repository.git")
    (copy / "refs" / "tidemark" / "head.lock").touch()
    repository.commit(a="two")
    crawled = crawl_all(source(repository, tmp_path))
    assert crawled.end.complete
    assert said(repository, crawled) == {"a.md": "fetched"}


def test_a_remote_that_is_away_leaves_the_copy_listed_and_the_listing_incomplete(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(a="one")
    known = MemoryKnown()
    made = source(repository, tmp_path, branch="main")
    crawl_all(made, known)
    repository.path.rename(repository.path.with_name("away"))
    crawled = crawl_all(made, known)
    assert said(repository, crawled) == {"a.md": "not_modified"}
    assert not crawled.end.complete
    assert crawled.end.state == ""
    assert "could not read" in crawled.end.problem


def test_the_default_branch_is_found_and_remembered(repository: Repository, tmp_path: Path) -> None:
    repository.git("checkout", "-q", "-b", "trunk")
    repository.commit(a="one")
    made = source(repository, tmp_path)
    assert said(repository, crawl_all(made), "trunk") == {"a.md": "fetched"}
    repository.path.rename(repository.path.with_name("away"))
    assert list(crawl_all(made).items) == [base(repository, "trunk") + "a.md"]


@pytest.mark.parametrize("kind", ["branch", "tag", "annotated tag", "commit"])
def test_a_branch_a_tag_and_a_commit_can_be_indexed(
    repository: Repository, tmp_path: Path, kind: str
) -> None:
    commit = repository.commit(a="one")
    name = {"branch": "release/1.0", "commit": commit}.get(kind, "v1.0")
    if kind == "branch":
        repository.git("branch", name)
    elif kind == "tag":
        repository.git("tag", name)
    elif kind == "annotated tag":
        repository.git("tag", "-a", "-m", "released", name)
    repository.commit(b="two")
    crawled = crawl_all(source(repository, tmp_path, branch=name))
    assert said(repository, crawled, name) == {"a.md": "fetched"}
    assert crawled.end.state == commit


@pytest.mark.parametrize("name", ["no-such-branch", "0" * 40])
def test_a_branch_that_is_not_there_is_told(
    repository: Repository, tmp_path: Path, name: str
) -> None:
    repository.commit(a="one")
    end = crawl_all(source(repository, tmp_path, branch=name)).end
    assert not end.complete
    assert name in end.problem


def test_only_a_folder_and_what_the_patterns_admit_is_listed(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(docs__a="x", docs__old__b="x", README="x", docs__c="x")
    repository.put("docs/picture.png", "x")
    repository.put("docs/.hidden.md", "x")
    repository.save()
    made = source(repository, tmp_path, folder="/docs/", exclude=("old/",))
    crawled = crawl_all(made)
    assert said(repository, crawled) == {"docs/a.md": "fetched", "docs/c.md": "fetched"}
    missing = crawl_all(source(repository, tmp_path, folder="handbook"))
    assert "handbook" in missing.end.problem
    assert not missing.end.complete


def test_links_and_large_files_are_not_read(repository: Repository, tmp_path: Path) -> None:
    repository.commit(a="x", large="y" * 101)
    (repository.path / "link.md").symlink_to("/etc/hostname")
    repository.save()
    crawled = crawl_all(source(repository, tmp_path, max_bytes=100))
    assert said(repository, crawled) == {
        "a.md": "fetched",
        "large.md": "too_large",
        "link.md": "excluded",
    }


def test_a_submodule_is_passed_over(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit(a="x")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},vendored.md")
    repository.git("commit", "-q", "-m", "submodule")
    assert said(repository, crawl_all(source(repository, tmp_path))) == {"a.md": "fetched"}


def test_names_of_any_kind_are_addressed(repository: Repository, tmp_path: Path) -> None:
    for name in ("ü #1 100%.md", "a\tb.md"):
        repository.put(name, "x")
    repository.save()
    crawled = crawl_all(source(repository, tmp_path))
    assert set(said(repository, crawled)) == {"%C3%BC%20%231%20100%25.md", "a%09b.md"}
    assert all(item.raw and item.raw.modified_at for item in crawled.items.values())


def test_what_a_merge_brings_has_the_time_of_the_commit_that_made_it(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(a="one", b="one")
    repository.git("checkout", "-q", "-b", "side")
    side = repository.commit(b="two")
    repository.git("checkout", "-q", "main")
    repository.commit(a="two")
    repository.save()
    repository.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    crawled = crawl_all(source(repository, tmp_path, link="{commit}"))
    raw = crawled.items[base(repository) + "b.md"].raw
    assert raw is not None
    assert raw.link == side


def test_an_empty_repository_is_told_and_deletes_nothing(
    repository: Repository, tmp_path: Path
) -> None:
    end = crawl_all(source(repository, tmp_path)).end
    assert not end.complete
    assert "no commit" in end.problem


def test_hooks_of_a_repository_never_run(repository: Repository, tmp_path: Path) -> None:
    repository.commit(a="x")
    for hook in ("post-checkout", "reference-transaction", "post-update", "pre-auto-gc"):
        file = repository.path / ".git" / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        file.chmod(0o755)
    assert crawl_all(source(repository, tmp_path)).end.complete
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def served(repository: Repository) -> Iterator[Any]:
    """The repository as plain files of a web server."""
    repository.commit(a="one")
    repository.git("update-server-info")
    with index_server(repository.path / ".git") as server:
        yield server


def test_a_repository_is_read_over_http_with_a_token_that_no_file_keeps(
    served: Any, tmp_path: Path
) -> None:
    served.authorization = "Basic eC1hY2Nlc3MtdG9rZW46dDBrZW4td29yZA=="
    token = Credentials("forge", password="t0ken-word")
    options = {"branch": "main", "allow_private": True}
    end = crawl_all(source(served.url, tmp_path, credentials=token, **options)).end
    assert end.complete
    kept = b"".join(f.read_bytes() for f in (tmp_path / "cache").rglob("*") if f.is_file())
    assert b"t0ken-word" not in kept
    wrong = Credentials("forge", password="wr0ng-word")
    end = crawl_all(source(served.url, tmp_path, credentials=wrong, **options)).end
    assert not end.complete
    assert "connection" in end.problem
    assert "wr0ng-word" not in end.problem


def test_a_private_address_is_refused_unless_it_is_allowed(served: Any, tmp_path: Path) -> None:
    end = crawl_all(source(served.url, tmp_path, branch="main")).end
    assert "allow_private" in end.problem
    assert served.requests == []


def test_over_ssh_too_a_private_address_is_refused_before_anything_connects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []
    monkeypatch.setattr(GitProgram, "_run", lambda *told: tried.append(told) or b"")
    end = crawl_all(source("ssh://git@127.0.0.1:9/handbook.git", tmp_path, branch="main")).end
    assert "allow_private" in end.problem
    assert not [t for t in tried if "ls-remote" in str(t)]


def test_over_ssh_the_address_that_was_judged_is_used_and_the_host_is_known_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getaddrinfo(host: str, port: int, **_: object) -> list[object]:
        assert (host, port) == ("git.example.org", 2222)
        return [(2, 1, 6, "", (a, port)) for a in ("10.0.0.1", "93.184.216.34")]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    told: list[str] = []

    def run(program: GitProgram, arguments: Any, environment: Any, *_: object) -> bytes:
        told.append(environment.get("GIT_SSH_COMMAND", ""))
        return b""

    monkeypatch.setattr(GitProgram, "_run", run)
    options = GitOptions(url="ssh://git@git.example.org:2222/handbook.git")
    GitProgram(options, tmp_path).remote("ls-remote")
    (command,) = told
    said = subprocess.run(
        [*shlex.split(command), "-G", "-p", "2222", "git@git.example.org"],
        check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    assert "hostname 93.184.216.34" in said
    assert "hostkeyalias [git.example.org]:2222" in said


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n".format(
    "4d" * 32
)


def test_a_file_that_is_kept_in_lfs_is_excluded_and_told(
    repository: Repository, tmp_path: Path
) -> None:
    about = f"How a pointer looks:\n\n{POINTER}"
    repository.put("guide.pdf", POINTER)
    repository.commit(a=POINTER, b=about, c=POINTER + "\nis how a pointer begins. " * 60)
    crawled = crawl_all(source(repository, tmp_path))
    assert said(repository, crawled) == {
        "a.md": "excluded", "b.md": "fetched", "c.md": "fetched", "guide.pdf": "excluded",
    }  # fmt: skip
    assert "LFS" in crawled.items[base(repository) + "guide.pdf"].detail
    assert crawled.end.complete


def test_a_redirect_is_not_followed(served: Any, tmp_path: Path) -> None:
    served.failing["/info/refs"] = 302
    end = crawl_all(source(served.url, tmp_path, branch="main", allow_private=True)).end
    assert not end.complete
    assert "redirects" in end.problem


def test_without_git_the_cure_is_told(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.adapters.sources.git.program.shutil.which", lambda _: None)
    end = crawl_all(source(repository, tmp_path)).end
    assert "Install git" in end.problem


def test_a_remote_that_never_answers_is_given_up(repository: Repository, tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/repository"
        made = source(url, tmp_path, branch="main", allow_private=True, timeout=0.5)
        end = crawl_all(made).end
    assert "did not finish" in end.problem


def test_two_branches_of_a_repository_have_copies_of_their_own(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(a="one")
    repository.git("branch", "other")
    for branch in ("main", "other"):
        assert crawl_all(source(repository, tmp_path, branch=branch)).end.complete
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_outcomes_are_no_moves(repository: Repository, tmp_path: Path) -> None:
    """A renamed file is one that is new and one that is gone; that both are one is found by its bytes."""
    repository.commit(a="one text")
    known = MemoryKnown()
    crawl_all(source(repository, tmp_path), known)
    repository.git("mv", "a.md", "b.md")
    repository.save()
    crawled = crawl_all(source(repository, tmp_path), known)
    assert said(repository, crawled) == {"b.md": Outcome.FETCHED.value}
