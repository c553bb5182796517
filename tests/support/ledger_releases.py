"""Ledgers as the released versions of the schema left them, written in plain SQL."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, NullPool, create_engine, text

from tidemark.adapters.ledger.migrations import config
from tidemark.domain.identity import document_id

SOURCE = "handbook"
INDEXED, FAILED, NEVER, GONE, MOVED = (
    f"https://example.org/{name}" for name in ("indexed", "failed", "never", "gone", "moved")
)
IDS = {uri: document_id(SOURCE, uri) for uri in (INDEXED, FAILED, NEVER, GONE, MOVED)}

RELEASED = ("0001", "0002")
"""All revisions that users may have."""

_FAILURE = """{"stage": "partition", "message": "The file is encrypted.", "hint": "Remove the password.",
 "raw_hash": "raw-broken", "fingerprint": "all-1", "first_at": "2026-03-01T12:00:00+00:00",
 "last_at": "2026-03-02T12:00:00+00:00", "attempts": 2, "media_type": "application/pdf", "charset": null}"""

SECTION = "00000000-0000-0000-0000-00000000000a"

_AT_0001 = f"""
INSERT INTO source (name, first_seen) VALUES ('handbook', '2026-03-01T11:00Z');
INSERT INTO run (run_id, source, trigger, status, started_at, finished_at, note, summary) VALUES
  ('run-1', 'handbook', 'manual', 'success', '2026-03-01T12:00Z', '2026-03-01T12:05Z', '', '{{}}'),
  ('run-2', 'handbook', 'scheduled', 'running', '2026-03-02T12:00Z', NULL, 'a note', NULL);
INSERT INTO document (document_id, source, uri, title, media_type, charset, status, validators,
  fetch_fingerprint, fetched_raw_hash, raw_hash, content_hash, indexed_fetch_fingerprint,
  indexed_partition_fingerprint, indexed_chunk_fingerprint, indexed_embed_fingerprint, generation, sections,
  chunks, reason, first_seen, last_seen, fetched_at, indexed_at, missing_runs, last_run_id, failure) VALUES
  (:indexed, 'handbook', '{INDEXED}', 'Indexed', 'text/html', 'utf-8', 'indexed', '{{"etag": "1"}}',
   'fetch-1', 'raw-1', 'raw-1', 'content-1', 'fetch-1', 'part-1', 'chunk-1', 'embed-1', 1, 1, 2, 'content',
   '2026-03-01T12:00Z', '2026-03-02T12:00Z', '2026-03-01T12:01Z', '2026-03-01T12:02Z', 0, 'run-2', NULL),
  (:failed, 'handbook', '{FAILED}', 'Failed', 'application/pdf', NULL, 'quarantined', '{{}}',
   'fetch-1', 'raw-broken', 'raw-good', 'content-2', 'fetch-1', 'part-1', 'chunk-1', 'embed-1', 1, 0, 0,
   'failed', '2026-03-01T12:00Z', '2026-03-02T12:00Z', '2026-03-01T12:01Z', '2026-03-01T12:03Z', 1, 'run-2',
   '{_FAILURE}'),
  (:never, 'handbook', '{NEVER}', '', 'application/pdf', NULL, 'quarantined', '{{}}',
   'fetch-1', 'raw-broken', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0,
   'failed', '2026-03-02T12:00Z', '2026-03-02T12:00Z', '2026-03-02T12:01Z', NULL, 0, 'run-2', '{_FAILURE}');
INSERT INTO run_document (run_id, document_id, uri, action, reason, detail, seconds, chunks_added,
  chunks_kept, chunks_removed, recorded_at) VALUES
  ('run-0', :indexed, '{INDEXED}', 'add', 'new', '', 0.1, 3, 0, 0, '2026-02-01T12:02Z'),
  ('run-1', :indexed, '{INDEXED}', 'update', 'content', 'cut as docs', 0.5, 1, 1, 2, '2026-03-01T12:02Z'),
  ('run-2', :indexed, '{INDEXED}', 'keep', 'unchanged', '', 0, 0, 2, 0, '2026-03-02T12:02Z'),
  ('run-2', :failed, '{FAILED}', 'quarantine', 'failed', 'partition: …', 0, 0, 0, 0, '2026-03-02T12:02Z');
INSERT INTO section (section_id, document_id, parent_section_id, ordinal, heading_path, payload_hash) VALUES
  ('{SECTION}', :indexed, NULL, 0, '["Heading"]', 'section-payload');
INSERT INTO chunk (point_id, document_id, section_id, chunk_index, embed_hash, payload_hash,
  token_count) VALUES
  ('00000000-0000-0000-0000-000000000001', :indexed, '{SECTION}', 0, 'e1', 'p1', 10),
  ('00000000-0000-0000-0000-000000000002', :indexed, '{SECTION}', 1, 'e2', 'p2', 20);
INSERT INTO tombstone (document_id, source, uri, title, raw_hash, removed_at, reason, run_id) VALUES
  (:gone, 'handbook', '{GONE}', 'Gone', 'raw-gone', '2026-03-02T12:00Z', 'gone', 'run-2');
INSERT INTO in_flight (document_id, source, uri, run_id) VALUES (:never, 'handbook', '{NEVER}', 'run-2');
INSERT INTO generation (index_name, number, embed_fingerprint, dimension, status, created_at) VALUES
  ('tidemark', 1, 'embed-1', 384, 'live', '2026-03-01T12:00Z');
INSERT INTO audit (audited_at, source, findings, repaired) VALUES
  ('2026-03-02T13:00Z', NULL, '{{"missing_points": 1}}', 1);
"""

_AT_0002 = f"""
UPDATE source SET state = 'commit-1', furniture = '[4611686018427387904, 7]', furniture_pages = 40;
UPDATE document SET text_hash = 'text-1', text_length = 900, modified_at = '2026-02-28T00:00Z',
  link = 'https://example.org/blob/indexed', suspect = '{{"reason": "shrunk", "detail": "from 900 to 10",
  "text_hash": "text-2", "since": "2026-03-02T12:00:00+00:00", "runs": 2, "run_id": "run-2"}}'
  WHERE document_id = :indexed;
INSERT INTO alias (alias_id, source, uri, document_id, kind, seen_at, validators, raw_hash, media_type,
  charset, text_hash, text_length, fetched_at) VALUES
  (:moved, 'handbook', '{MOVED}', :indexed, 'duplicate', '2026-03-02T12:00Z', '{{"size": 9}}', 'raw-twin',
   'text/html', NULL, 'text-1', 900, '2026-03-02T12:00Z');
INSERT INTO tombstone (document_id, source, uri, title, raw_hash, removed_at, reason, run_id, expired) VALUES
  (:older, 'handbook', '{GONE}/older', 'Older', 'raw-older', '2026-01-01T12:00Z', 'gone', 'run-0', true);
"""


@contextmanager
def ledger_at(url: str, revision: str) -> Iterator[Connection]:
    """Make an empty database a ledger of a revision; gives a connection whose work is committed."""
    from alembic import command

    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        command.upgrade(config(connection), revision)
        connection.commit()
        yield connection
        connection.commit()


def fill(url: str, revision: str) -> None:
    """Make an empty database a ledger of a revision that has been used for a while."""
    names = {"indexed": INDEXED, "failed": FAILED, "never": NEVER, "gone": GONE, "moved": MOVED}
    values = {name: IDS[uri] for name, uri in names.items()}
    values["older"] = document_id(SOURCE, f"{GONE}/older")
    script = _AT_0001 if revision == "0001" else _AT_0001 + _AT_0002
    with ledger_at(url, revision) as connection:
        for statement in filter(str.strip, script.split(";\n")):
            wanted = {name: value for name, value in values.items() if f":{name}" in statement}
            connection.execute(text(statement), wanted)


def copy_to_release(newest: str, url: str, revision: str) -> None:
    """Copy what a ledger of the newest schema knows into an empty database, as a revision would hold it."""
    source = create_engine(newest, poolclass=NullPool)
    with source.connect() as old, ledger_at(url, revision) as connection:
        from sqlalchemy import MetaData

        released = MetaData()
        released.reflect(connection)
        for table in released.sorted_tables:
            if table.name == "tidemark_schema":
                continue
            names = ", ".join(column.name for column in table.columns)
            # The names are the schema's own.
            rows = old.execute(text(f"SELECT {names} FROM {table.name}")).mappings().all()
            if rows:
                connection.execute(table.insert(), [dict(row) for row in rows])
