"""The command line's contract, on the real model, Unstructured, Postgres and Qdrant's engine."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import PROJECT, CommandLine

pytestmark = [pytest.mark.services, pytest.mark.model]

GUIDE = """\
# Tide gauge guide

Welcome to the guide.

## Power

The battery lasts nine days without sun. Change it every third winter.

## Mounting

### Height

The radar hangs three metres above the highest tide.
"""
MANY = 40


@pytest.fixture(scope="module")
def tidemark(module_folder: Path) -> Iterator[CommandLine]:
    folder = module_folder
    docs = folder / "docs"
    docs.mkdir()
    (docs / "guide.md").write_text(GUIDE)
    (docs / "notes.txt").write_text("NOTES\n\nThe ferry leaves at half past seven.\n")
    sources = folder / "sources.yaml"
    sources.write_text(f"sources:\n  docs: {{kind: files, path: {docs}}}\n")
    command = CommandLine(folder / "home", sources)
    command.docs = docs  # type: ignore[attr-defined]
    yield command
    command.stop_embedded_postgres()


def test_a_dry_run_changes_nothing_and_the_plan_says_why(tidemark: CommandLine) -> None:
    assert tidemark.json("index", "docs", "--dry-run")["documents"] == {"add": 2}
    plan = tidemark.json("plan", "docs")
    assert (plan["source"], plan["complete"]) == ("docs", True)
    assert plan["documents"] == {"add": 2}
    assert plan["reasons"] == {"new": 2}
    assert {item["action"] for item in plan["items"]} == {"add"}
    assert set(plan["estimate"]) == {"chunks", "embeddings", "seconds"}
    assert tidemark.json("status")["index"]["points"] == 0


def test_the_index_is_built_searched_explained_and_audited(tidemark: CommandLine) -> None:
    summary = tidemark.json("index", "docs")
    assert summary["status"] == "success"
    assert summary["documents"] == {"add": 2}
    assert summary["chunks"]["embedded"] >= 4
    assert {"crawl", "plan", "partition", "chunk", "embed", "upsert"} <= set(summary["seconds"])

    found = tidemark.json("search", "How long does the battery last?", "--k", "2")["results"]
    assert len(found) == 2
    assert "nine days" in found[0]["text"]
    assert found[0]["heading_path"] == ["Tide gauge guide", "Power"]
    assert "Change it every third winter" in found[0]["section"]["text"]
    assert found[0]["score"] >= found[1]["score"]
    for key in ("chunk_id", "section_id", "document_id", "title", "source_uri", "page_number"):
        assert key in found[0]
    alone = tidemark.json("search", "battery", "--expand", "none", "--filter", "source=docs")
    assert "section" not in alone["results"][0]
    assert tidemark.json("search", "battery", "--filter", "source=other")["results"] == []

    [explained] = tidemark.json("explain", str(tidemark.docs / "guide.md"))["explanations"]  # type: ignore[attr-defined]
    assert explained["document"]["reason"] == "new"
    assert explained["events"][0]["action"] == "add"

    audit = tidemark.json("audit")
    assert audit["checked"] == summary["chunks"]["embedded"]
    assert not any(audit[k] for k in audit if k not in ("checked", "source"))


def test_a_run_with_nothing_to_do_says_so_and_loads_no_model(tidemark: CommandLine) -> None:
    tidemark("index", "docs")
    assert "nothing changed" in tidemark("index", "docs")
    script = (
        "import sys; sys.argv = ['tidemark', 'index', 'docs', '--json']\n"
        "from tidemark.cli.app import app\n"
        "try:\n    app()\nexcept SystemExit as e:\n    assert not e.code, e.code\n"
        "heavy = {'torch', 'sentence_transformers', 'transformers', 'unstructured', 'spacy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=tidemark.env(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_audit_finds_a_lost_point_and_repairs_it(tidemark: CommandLine) -> None:
    from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex

    tidemark("index", "docs")
    index = QdrantEdgeIndex(tidemark.home / "qdrant", "tidemark", 30)
    [victim, *_] = [p.point_id for p in index.scan_points(1)]
    index.delete_points(1, [victim])
    assert tidemark.json("audit", code=1)["missing_points"] == 1
    assert tidemark.json("audit", "docs", "--repair")["repaired"] == 1
    assert tidemark.json("audit")["missing_points"] == 0


def test_a_source_may_be_given_ad_hoc(tidemark: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Alone\n\nA page of its own.\n")
    assert tidemark.json("index", "--path", str(tmp_path))["documents"] == {"add": 1}
    (tmp_path / "a.md").unlink()
    (tmp_path / "b.md").write_text("# Other\n\nAnother page.\n")
    run = tidemark.json("index", "--path", str(tmp_path))
    assert run["documents"] == {"add": 1, "remove": 1}
    assert "Nobody declares path-" in tidemark("status")
    assert tidemark.json("forget", run["source"])["documents"] == {"remove": 1}
    assert "Nobody declares" not in tidemark("status")


def test_chunks_are_printed_one_document_a_line(tidemark: CommandLine, tmp_path: Path) -> None:
    docs = tidemark.docs  # type: ignore[attr-defined]
    lines = tidemark.json_lines("chunk", str(docs), "--base-url", "https://example.org/docs/")
    assert [line["document"]["uri"] for line in lines] == [
        "https://example.org/docs/guide.md", "https://example.org/docs/notes.txt"
    ]  # fmt: skip
    guide = lines[0]
    assert guide["document"]["title"] == "Tide gauge guide"
    sections = {s["section_id"]: s for s in guide["sections"]}
    height = next(s for s in sections.values() if s["heading_path"][-1] == "Height")
    assert sections[height["parent_section_id"]]["heading_path"][-1] == "Mounting"
    for index, chunk in enumerate(guide["chunks"]):
        assert chunk["chunk_index"] == index
        assert chunk["section_id"] in sections
        assert chunk["token_count"] <= 256
        assert chunk["text"] in chunk["embed_text"]
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 cut short")
    [broken] = tidemark.json_lines("chunk", str(tmp_path / "broken.pdf"), code=1)
    assert "broken.pdf" in broken["document"]["error"]
    assert broken["chunks"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index", "dosc"], "Did you mean 'docs'?"),
        (["index"], "name a source"),
        (["search", " "], "the query is empty"),
        (["search", "x", "--mode", "magic"], "dense, lexical, hybrid"),
        (["chunk", "/does/not/exist"], "does not exist"),
        (["audit", "nope"], "No source is called 'nope'"),
    ],
)
def test_bad_usage_exits_with_2_and_says_how_to_do_it_right(
    tidemark: CommandLine, arguments: list[str], message: str
) -> None:
    out = tidemark(*arguments, code=2)
    assert out == ""
    assert message in " ".join(tidemark.last_error.replace("│", " ").split())


def test_a_killed_run_is_made_good_by_the_next(own_folder: Path) -> None:
    docs = own_folder / "docs"
    docs.mkdir()
    for n in range(MANY):
        body = "\n\n".join(f"## Part {i}\n\nStation {n} has {i} masts." for i in range(5))
        (docs / f"{n:03}.md").write_text(f"# Station {n}\n\n{body}\n")
    sources = own_folder / "sources.yaml"
    sources.write_text(f"sources:\n  docs: {{kind: files, path: {docs}}}\n")
    tidemark = CommandLine(own_folder / "home", sources)
    try:
        process = tidemark.start("index", "docs", "--json")
        wait_for_points(tidemark, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert tidemark.json("index", "docs")["status"] == "success"
        audit = tidemark.json("audit")
        assert audit["checked"] == MANY * 5
        assert not any(audit[k] for k in audit if k not in ("checked", "source"))
        assert tidemark.json("index", "docs")["documents"] == {"keep": MANY}
    finally:
        tidemark.stop_embedded_postgres()


def wait_for_points(tidemark: CommandLine, process: "subprocess.Popen[str]") -> None:
    """Wait until the process has begun to write points: its write-ahead log appears."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, "it finished before it could be killed"
        if any((tidemark.home / "qdrant").rglob("wal*")):
            time.sleep(0.2)
            return
        time.sleep(0.02)
    raise AssertionError("nothing was written in time")


def test_the_samples_in_the_repository_can_all_be_chunked(tidemark: CommandLine) -> None:
    lines = tidemark.json_lines("chunk", str(PROJECT / "include" / "samples" / "files"))
    assert len(lines) >= 8
    assert all(line["document"]["error"] is None and line["chunks"] for line in lines)
    pdf = next(line for line in lines if line["document"]["uri"].endswith(".pdf"))
    pages = [chunk["page_number"] for chunk in pdf["chunks"]]
    assert pages == sorted(pages)
    assert pages[0] == 1
    assert len(set(pages)) >= 4
