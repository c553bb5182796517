"""The ledger's schema: from nothing to what the code expects, and refusals that name the hint."""

import threading

import pytest
from sqlalchemy import create_engine, inspect, text

from tidemark.adapters.ledger.migrations import (
    VERSION_TABLE,
    check,
    config,
    current,
    revisions,
    upgrade,
)
from tidemark.adapters.ledger.postgres import metadata
from tidemark.domain.errors import ConfigurationError, TidemarkError, TransientError

pytestmark = pytest.mark.services


def set_version(url: str, version: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = :v"), {"v": version})
    engine.dispose()


def test_an_empty_database_becomes_what_the_code_expects(empty_postgres_url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    assert current(empty_postgres_url) is None
    newest = upgrade(empty_postgres_url)
    assert current(empty_postgres_url) == newest == revisions()[-1]
    check(empty_postgres_url)
    with create_engine(empty_postgres_url).connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_what_alembic_does_not_compare_is_the_same_too(
    empty_postgres_url: str, postgres_url: str
) -> None:
    # The one database is made from the migrations, the other from the code's tables.
    metadata.create_all(create_engine(empty_postgres_url))
    columns = text(
        "SELECT table_name, column_name, data_type, is_nullable, collation_name, column_default, "
        "is_identity FROM information_schema.columns WHERE table_schema = 'public' "
        "AND table_name <> :versions ORDER BY 1, 2"
    )
    indexes = text(
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' "
        "AND tablename <> :versions ORDER BY 1"
    )
    constraints = text(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 "
        "AND conrelid::regclass::text <> :versions ORDER BY 1"
    )
    for query in (columns, indexes, constraints):
        found = []
        for url in (empty_postgres_url, postgres_url):
            with create_engine(url).connect() as connection:
                found.append(connection.execute(query, {"versions": VERSION_TABLE}).all())
        assert found[0] == found[1]
        assert found[0]


def test_upgrading_again_changes_nothing(postgres_url: str) -> None:
    assert upgrade(postgres_url) == revisions()[-1]
    check(postgres_url)


def test_processes_may_upgrade_at_the_same_time(empty_postgres_url: str) -> None:
    results: list[object] = []

    def work() -> None:
        try:
            results.append(upgrade(empty_postgres_url))
        except TidemarkError as error:
            results.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results == [revisions()[-1]] * 3


def test_a_missing_schema_asks_for_the_migration(empty_postgres_url: str) -> None:
    with pytest.raises(ConfigurationError, match="has no ledger schema") as caught:
        check(empty_postgres_url)
    assert "tidemark migrate" in caught.value.hint


def test_an_older_schema_asks_for_the_migration(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = revisions()
    monkeypatch.setattr("tidemark.adapters.ledger.migrations.revisions", lambda: [*known, "9999"])
    with pytest.raises(ConfigurationError, match="9999") as caught:
        check(postgres_url)
    assert "tidemark migrate" in caught.value.hint


def test_a_newer_schema_is_refused_and_left_alone(empty_postgres_url: str) -> None:
    upgrade(empty_postgres_url)
    set_version(empty_postgres_url, "9999")
    for call in (check, upgrade):
        with pytest.raises(ConfigurationError, match="newer Tidemark") as caught:
            call(empty_postgres_url)
        assert "tidemark migrate" in caught.value.hint
    assert current(empty_postgres_url) == "9999"


def test_a_database_shared_with_airflow_keeps_its_own_version(empty_postgres_url: str) -> None:
    engine = create_engine(empty_postgres_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE alembic_version (version_num text)"))
        connection.execute(text("INSERT INTO alembic_version VALUES ('somebody-elses')"))
    upgrade(empty_postgres_url)
    check(empty_postgres_url)
    with engine.connect() as connection:
        found = connection.scalar(text("SELECT version_num FROM alembic_version"))
        assert found == "somebody-elses"
        assert "document" in inspect(connection).get_table_names()
    engine.dispose()


def test_the_file_names_tell_the_versions_that_alembic_sees(postgres_url: str) -> None:
    from alembic.script import ScriptDirectory

    with create_engine(postgres_url).connect() as connection:
        script = ScriptDirectory.from_config(config(connection))
    assert [s.revision for s in script.walk_revisions()][::-1] == revisions()
    assert script.get_heads() == [revisions()[-1]]


def test_a_server_that_is_away_is_transient() -> None:
    for call in (check, upgrade, current):
        with pytest.raises(TransientError):
            call("postgresql://u:p@127.0.0.1:1/d")
