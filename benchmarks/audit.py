"""How fast the audit of a clean index is, and how much memory it takes as the index grows.

    python benchmarks/audit.py [--points 10000 --points 50000] [--damage 100]

Each index is made up (384 dimensions, texts of 90 words, five chunks and six sections a document) in a home
of its own: Qdrant's engine embedded, and the embedded Postgres. Each audit runs in a process of its own, so
that its peak memory is its own. With ``--damage`` so many points are then deleted, and it is audited again.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time
from uuid import NAMESPACE_URL, UUID, uuid5

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / name) for name in ("include", "tests")]

# Below, since its path is set first.
from fakes.embedder import HashEmbedder  # noqa: E402
from tidemark.adapters.embedding.lexical import Bm25Encoder  # noqa: E402
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex  # noqa: E402
from tidemark.adapters.ledger.migrations import upgrade  # noqa: E402
from tidemark.adapters.ledger.postgres import PostgresLedger  # noqa: E402
from tidemark.adapters.services.postgres import EmbeddedPostgres  # noqa: E402
from tidemark.domain.chunks import Fingerprints, Payload, PointWrite, SectionPayload  # noqa: E402
from tidemark.domain.documents import Validators  # noqa: E402
from tidemark.domain.hashing import digest_of, digest_text, vectors_hash  # noqa: E402
from tidemark.domain.identity import document_id  # noqa: E402
from tidemark.domain.records import (  # noqa: E402
    ChunkRecord,
    DocumentRecord,
    DocumentStatus,
    GenerationRecord,
    GenerationStatus,
    RunDocument,
    SectionRecord,
)
from tidemark.stages.audit.audit import audit_index  # noqa: E402
from tidemark.stages.audit.compare import AuditDependencies  # noqa: E402
from tidemark.stages.job import Dependencies, Job, embed_fingerprint  # noqa: E402
from tidemark.stages.process.payloads import checksum_of  # noqa: E402

DIMENSION = 384
LEXICAL = Bm25Encoder()
CHUNKS = 5
WORDS = [f"word{number}" for number in range(5000)]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def stores(home: Path) -> tuple[PostgresLedger, QdrantEdgeIndex]:
    server = EmbeddedPostgres(home / "postgres")
    server.ensure_running()
    url = server.url("tidemark")
    upgrade(url)
    return PostgresLedger(url), QdrantEdgeIndex(home / "qdrant", "tidemark", 30)


def fill(home: Path, points: int) -> None:
    """Make an index of so many points, and the ledger that knows it."""
    ledger, index = stores(home)
    embed = embed_fingerprint(HashEmbedder(DIMENSION), Bm25Encoder())
    index.ensure(1, DIMENSION, embed)
    index.switch(1)
    ledger.generations.save(
        GenerationRecord("tidemark", 1, embed, DIMENSION, GenerationStatus.LIVE, NOW)
    )
    chance = random.Random(1)
    with index.session():
        for number in range(points // CHUNKS):
            write_document(ledger, index, number, embed, chance)
    ledger.close()


def write_document(
    ledger: PostgresLedger, index: QdrantEdgeIndex, number: int, embed: str, chance: random.Random
) -> None:
    uri = f"https://example.org/pages/{number}"
    key = document_id("docs", uri)
    sections = [section(key, uri, place, chance) for place in range(CHUNKS + 1)]
    chunks = [chunk(key, uri, place, sections[place].point_id, chance) for place in range(CHUNKS)]
    index.upsert_sections(1, sections)
    index.upsert_points(1, chunks)
    rows = [
        SectionRecord(s.point_id, None, place, ("A page",), digest_of(s.payload))
        for place, s in enumerate(sections)
    ]
    points = [
        ChunkRecord(
            c.point_id, sections[place].point_id, place, digest_text(str(place)),
            digest_of(c.payload), 120, vectors_hash(c.dense or (), c.lexical),
        )
        for place, c in enumerate(chunks)
    ]  # fmt: skip
    record = DocumentRecord(
        document_id=key, source="docs", uri=uri, title="A page", media_type="text/html", charset=None,
        status=DocumentStatus.INDEXED, validators=Validators(), fetch_fingerprint="f",
        fetched_raw_hash="r", raw_hash="r", content_hash="c",
        fingerprints=Fingerprints("f", "p", "c", embed), generation=1, sections=len(rows),
        chunks=len(points), reason="new", first_seen=NOW, last_seen=NOW, fetched_at=NOW, indexed_at=NOW,
        checksum=checksum_of(points, rows),
    )  # fmt: skip
    ledger.writes.commit(record, rows, points, RunDocument("run", key, uri, "add", "new"))


def text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=90))


def section(key: UUID, uri: str, place: int, chance: random.Random) -> PointWrite:
    payload = SectionPayload(
        key,
        None,
        "docs",
        uri,
        "A page",
        ("A page", f"Part {place}"),
        place,
        text(chance),
        None,
        None,
        1,
    )
    return PointWrite(uuid5(NAMESPACE_URL, f"{uri}#s{place}"), payload.as_dict())


def chunk(key: UUID, uri: str, place: int, parent: UUID, chance: random.Random) -> PointWrite:
    words = text(chance)
    payload = Payload(
        key, parent, "docs", uri, "A page", ("A page", f"Part {place}"), place, None, words, ("text",),
        "en", digest_text(words), NOW, 1, 0, len(words),
    )  # fmt: skip
    dense = tuple(chance.gauss(0, 1) for _ in range(DIMENSION))
    return PointWrite(
        uuid5(NAMESPACE_URL, f"{uri}#{place}"), payload.as_dict(), dense, LEXICAL.encode([words])[0]
    )


def job_factory(source: str) -> tuple[Job, Dependencies]:
    raise AssertionError("a benchmark repairs nothing")


def measure(home: Path, damage: int) -> dict[str, float]:
    """Audit it, in this process."""
    ledger, index = stores(home)
    if damage:
        scan = index.scan_points(1)
        victims = [next(scan).point_id for _ in range(damage)]
        scan.close()  # type: ignore[attr-defined]
        index.delete_points(1, victims)
    deps = AuditDependencies(
        ledger,
        index,
        "tidemark",
        HashEmbedder(DIMENSION),
        Bm25Encoder(),
        job_factory,
        lambda _: True,
    )
    started, cpu = perf_counter(), process_time()
    report = audit_index(deps)
    wall, cpu = perf_counter() - started, process_time() - cpu
    assert report.counts == ({"missing_points": damage} if damage else {}), report.counts
    return {"checked": report.checked, "wall": wall, "cpu": cpu, "peak": peak_kilobytes()}


def scan(home: Path) -> int:
    """Only read it all; peak memory in kB."""
    _, index = stores(home)
    for _ in index.scan_points(1, vectors=True):
        pass
    for _ in index.scan_sections(1):
        pass
    return peak_kilobytes()


def peak_kilobytes() -> int:
    """The peak resident set of this process (Linux); ``getrusage`` would count its parent's before it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])


def child(home: Path, *arguments: str) -> str:
    command = [sys.executable, __file__, "--home", str(home), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def row(home: Path, points: int, damage: int) -> str:
    scanned = int(child(home, "--scan"))
    found = json.loads(child(home, "--damage", str(damage)))
    what = f"{damage:,} points missing" if damage else "clean"
    return (
        f"| {points:,} | {what} | {found['wall']:.1f} | {found['cpu']:.1f} | "
        f"{found['checked'] / found['wall'] * 60:,.0f} | {found['checked'] / found['cpu'] * 60:,.0f} | "
        f"{scanned / 1000:.0f} | {found['peak'] / 1000:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, action="append")
    parser.add_argument("--damage", type=int, default=0)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--scan", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.home:
        print(scan(given.home) if given.scan else json.dumps(measure(given.home, given.damage)))
        return
    print(
        "| points | index | wall s | CPU s | points a minute | points a CPU minute | "
        "MB to read it only | MB to audit it |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for points in given.points or [50_000]:
        with tempfile.TemporaryDirectory(prefix="tidemark-audit-") as folder:
            home = Path(folder)
            try:
                fill(home, points)
                print(row(home, points, 0), flush=True)
                if given.damage:
                    print(row(home, points, given.damage), flush=True)
            finally:
                EmbeddedPostgres(home / "postgres").stop()


if __name__ == "__main__":
    main()
