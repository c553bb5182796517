"""The embedded server: it starts on demand, for any number of processes, and outlives them."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import start_python
from sqlalchemy import NullPool, create_engine, make_url, text

from tidemark.adapters.services.postgres import EmbeddedPostgres, read_postmaster
from tidemark.domain.errors import ConfigurationError, PermanentError

pytestmark = pytest.mark.services

FAST = {"fsync": "off", "shared_buffers": "16MB"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder, used by one server after the other."""
    path = Path(tempfile.mkdtemp(prefix="tidemark-pg-"))
    yield path
    for home in (path, path / LONG):
        EmbeddedPostgres(home).stop()
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def server(folder: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(folder, settings=FAST)


LONG = "long " * 20 + "/ünïcode, 'quoted' $HOME 100%"


def ask(url: str, query: str = "SELECT 1") -> object:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return connection.scalar(text(query))


def test_it_starts_where_there_was_nothing_and_stops(server: EmbeddedPostgres) -> None:
    assert not server.is_running()
    server.stop()
    server.ensure_running()
    assert server.is_running()
    server.ensure_running()
    server.stop()
    assert not server.is_running()
    server.stop()


def test_it_keeps_what_was_written_over_a_restart(server: EmbeddedPostgres) -> None:
    url = server.url("kept")
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(text("CREATE TABLE t AS SELECT 42 AS answer"))
    server.stop()
    assert ask(server.url("kept"), "SELECT answer FROM t") == 42


def test_it_makes_a_database_of_any_name(server: EmbeddedPostgres) -> None:
    for name in ("airflow", "with space", 'quo"te', "Ünïcode-東京", "per%cent"):
        for _ in range(2):
            assert ask(server.url(name), "SELECT current_database()") == name


def test_a_url_names_the_driver_that_is_asked_for(server: EmbeddedPostgres) -> None:
    assert make_url(server.url("a")).drivername == "postgresql+psycopg"
    assert make_url(server.url("a", driver="psycopg2")).drivername == "postgresql+psycopg2"
    assert make_url(server.url("a", driver=None)).drivername == "postgresql"


def test_it_listens_on_no_network_and_lets_nobody_else_in(server: EmbeddedPostgres) -> None:
    url = server.url("a")
    assert ask(url, "SHOW listen_addresses") == ""
    socket_folder = Path(str(make_url(url).query["host"]))
    assert socket_folder.stat().st_mode & 0o077 == 0
    assert (socket_folder / ".s.PGSQL.5432").stat().st_mode & 0o077 == 0
    assert server.data.stat().st_mode & 0o077 == 0


def test_it_sorts_alike_on_every_machine(server: EmbeddedPostgres) -> None:
    assert ask(server.url("a"), "SHOW server_encoding") == "UTF8"
    found = ask(server.url("a"), "SELECT datcollate FROM pg_database WHERE datname = 'a'")
    assert found == "C"


def test_the_environment_of_the_caller_decides_nothing(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.stop()
    for name, value in {"PGPORT": "1", "PGDATA": "/nowhere", "PGHOST": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    assert ask(server.url("a")) == 1


def test_it_starts_again_after_it_was_killed(server: EmbeddedPostgres) -> None:
    url = server.url("a")
    found = read_postmaster(server.data)
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while server.is_running() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ask(server.url("a")) == 1
    assert server.url("a") == url


def test_a_pid_that_is_another_programs_now_does_not_stop_it(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    pid_file = server.data / "postmaster.pid"
    old = pid_file.read_text().splitlines()
    server.stop()
    pid_file.write_text("\n".join([str(os.getpid()), *old[1:]]) + "\n")
    assert not server.is_running()
    assert ask(server.url("a")) == 1


def test_a_half_made_cluster_is_made_again(folder: Path) -> None:
    home = folder / "half"
    (home / "data.new" / "base").mkdir(parents=True)
    server = EmbeddedPostgres(home, settings=FAST)
    try:
        assert ask(server.url("a")) == 1
        assert not (home / "data.new").exists()
    finally:
        server.stop()


def test_a_path_too_long_and_odd_for_a_socket_is_fine(folder: Path) -> None:
    server = EmbeddedPostgres(folder / LONG, settings=FAST)
    url = server.url("a")
    assert ask(url) == 1
    socket_folder = Path(str(make_url(url).query["host"]))
    assert len(str(socket_folder)) < 60
    assert socket_folder.stat().st_mode & 0o077 == 0
    assert EmbeddedPostgres(folder / LONG).url("a") == url
    server.stop()
    socket_folder.rmdir()


CALLER = """
import sys
from pathlib import Path
from tidemark.adapters.services.postgres import EmbeddedPostgres
print(EmbeddedPostgres(Path(sys.argv[1]), settings={"fsync": "off"}).url("shared"))
"""


def test_many_processes_may_start_it_at_once_and_it_outlives_them(folder: Path) -> None:
    home = folder / "many"
    processes = [start_python(CALLER, str(home)) for _ in range(4)]
    answers = [process.communicate(timeout=120) for process in processes]
    server = EmbeddedPostgres(home)
    try:
        assert {out.strip() for out, _ in answers} == {server.url("shared")}, answers
        assert server.is_running()
        assert server.log.read_text().count("ready to accept connections") == 1
    finally:
        server.stop()


def test_a_setting_the_server_refuses_is_told_with_its_words(folder: Path) -> None:
    server = EmbeddedPostgres(folder / "refused", settings={"max_connections": "many"})
    with pytest.raises(PermanentError, match='invalid value for parameter "max_connections"'):
        server.ensure_running()
    assert not server.is_running()


def test_a_folder_that_cannot_be_made_is_told_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigurationError, match="TIDEMARK_HOME"):
        EmbeddedPostgres(tmp_path / "file" / "postgres").ensure_running()


def test_a_missing_package_is_told_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.adapters.services.postgres.PACKAGE", "no_such_package")
    with pytest.raises(ConfigurationError, match="make setup"):
        EmbeddedPostgres(tmp_path / "postgres").ensure_running()
