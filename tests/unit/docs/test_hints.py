"""A hint is something that its reader can do: it names settings and declared options, never internals."""

import re
from pathlib import Path

import pytest
from worlds import START

import tidemark
from tidemark.adapters.partition.options import PartitionOptions
from tidemark.adapters.partition.sandbox.parent import (
    SandboxedPartitioner,
    WorkerDied,
    WorkerTimeout,
)
from tidemark.config.settings import Settings
from tidemark.domain.documents import RawDocument
from tidemark.domain.errors import DocumentError
from tidemark.wiring import Container

SOURCES = sorted(Path(tidemark.__path__[0]).rglob("*.py"))


def test_every_setting_that_a_text_names_is_one() -> None:
    known = {f"TIDEMARK_{name.upper()}" for name in Settings.model_fields}
    for path in SOURCES:
        named = set(re.findall(r"\bTIDEMARK_[A-Z0-9_]+\b(?!\*|…)", path.read_text("utf-8")))
        assert named <= known, path


def test_no_text_tells_to_change_what_is_no_setting() -> None:
    options = "|".join(set(PartitionOptions.__dataclass_fields__) - {"pdf_strategy"})
    internal = re.compile(
        rf'"[^"\n]*(?:(?:sandbox|partitioner)\'s |raise )(?:{options}|\w+_bytes)\b'
    )
    # A website's own ``max_pages`` is declared with it.
    read = [path for path in SOURCES if "website" not in path.parts]
    assert [str(path) for path in read if internal.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    ("fault", "setting"),
    [
        (WorkerTimeout(), "TIDEMARK_PARSER_SECONDS"),
        (WorkerDied(1, "MemoryError"), "TIDEMARK_PARSER_MEGABYTES"),
    ],
)
def test_a_parser_at_its_limit_names_the_setting_and_the_retry(
    fault: Exception, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = SandboxedPartitioner()

    def ask(*_: object) -> None:
        raise fault

    monkeypatch.setattr(sandbox._shared, "ask", ask)
    with pytest.raises(DocumentError) as caught:
        sandbox.partition(RawDocument("file:///a", b"text", "text/plain", None, START))
    assert f"raise {setting} and run `tidemark retry`" in caught.value.hint


@pytest.mark.parametrize(("megabytes", "bound"), [(1, 64 * 2**20), (500, 500 * 2**20)])
def test_what_may_be_fetched_may_be_read(megabytes: float, bound: int, tmp_path: Path) -> None:
    container = Container(Settings(home=tmp_path, max_document_megabytes=megabytes))
    partitioner = container.partitioner
    assert isinstance(partitioner, SandboxedPartitioner)
    assert partitioner._max_bytes == bound
