"""What chunking makes of documents of every kind, compared with what a person looked at and accepted.

After a change of chunking or partitioning that is meant: ``pytest tests/golden --regenerate-golden``, then
read the diff of ``tests/golden/expected`` before it is committed. Such a run ends red on purpose.
"""

from difflib import unified_diff
from pathlib import Path
from uuid import UUID

import pytest
from reading import GOLDEN_DOCUMENTS, read

from fakes.embedder import WordTokenizer
from golden.form import form
from tidemark.adapters.partition.code.tree_sitter import TreeSitterCodeParser
from tidemark.domain.chunks import ChunkedDocument
from tidemark.domain.documents import PartitionedDocument
from tidemark.domain.profile import Profile, ProfileChoice
from tidemark.stages.chunking.choose import choose_profile
from tidemark.stages.chunking.chunk import chunk_document

EXPECTED = Path(__file__).parent / "expected"
DOCUMENT = UUID(int=1)
TOKENIZER = WordTokenizer(256)
REGENERATE = "pytest tests/golden --regenerate-golden"
SHOWN_LINES = 60

SMALL = Profile("small", target_tokens=48, max_tokens=80, min_tokens=8)
"""So that short documents are cut as long ones would be."""
PROFILES = {
    "admonitions.html": SMALL,
    "definitions.html": SMALL,
    "exceptions.md": SMALL,
    "guide-hi.md": SMALL,
    "guide-zh.md": SMALL,
    "merkblatt-de.html": SMALL,
    "notice-ja.txt": SMALL,
    "notice-th.txt": SMALL,
    "permit-ar.html": SMALL,
    "refunds.md": SMALL,
    "sentences.md": SMALL,
}
"""By document; for the others their content chooses."""

NAMES = sorted(path.name for path in GOLDEN_DOCUMENTS.iterdir())


def profile_of(name: str, document: PartitionedDocument) -> Profile:
    return PROFILES.get(name) or choose_profile(ProfileChoice(), name, document)


def chunk(document: PartitionedDocument, profile: Profile) -> ChunkedDocument:
    """The one call of the code under test."""
    return chunk_document(DOCUMENT, document, profile, TOKENIZER, TreeSitterCodeParser())


def made(name: str) -> str:
    document = read(GOLDEN_DOCUMENTS / name)
    profile = profile_of(name, document)
    return form(name, document, profile, chunk(document, profile), TOKENIZER)


def expected_file(name: str) -> Path:
    return EXPECTED / f"{name}.md"


@pytest.mark.model
@pytest.mark.parametrize("name", NAMES)
def test_a_document_becomes_the_sections_and_chunks_that_were_accepted(
    name: str, regenerate_golden: bool
) -> None:
    text = made(name)
    file = expected_file(name)
    if regenerate_golden:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    expected = file.read_text("utf-8") if file.exists() else ""
    if text != expected:
        difference = list(
            unified_diff(
                expected.splitlines(), text.splitlines(), "accepted", "made now", n=2, lineterm=""
            )
        )
        more = len(difference) - SHOWN_LINES
        shown = "\n".join(difference[:SHOWN_LINES] + ([f"… {more} more lines"] if more > 0 else []))
        pytest.fail(
            f"{name} is chunked in another way than was accepted. If that is meant, run `{REGENERATE}` "
            f"and read the diff.\n{shown}",
            pytrace=False,
        )


def test_expected_files_are_compared_and_not_written(regenerate_golden: bool) -> None:
    assert not regenerate_golden, (
        "The expected files were written, not compared: read `git diff tests/golden/expected`, then run "
        "the tests again without --regenerate-golden."
    )


def test_each_document_has_its_expected_file_and_each_of_those_its_document() -> None:
    there = {path.name for path in EXPECTED.iterdir()}
    wanted = {expected_file(name).name for name in NAMES}
    assert wanted - there == set(), f"not made yet: {REGENERATE}"
    assert there - wanted == set(), "expected files without a document: remove them"


def test_each_profile_is_of_a_document() -> None:
    assert PROFILES.keys() - set(NAMES) == set()


def test_there_are_documents_of_every_kind() -> None:
    assert len(NAMES) >= 30
    suffixes = {Path(name).suffix for name in NAMES}
    documents = {
        ".html",
        ".md",
        ".rst",
        ".txt",
        ".docx",
        ".pptx",
        ".pdf",
        ".xlsx",
        ".csv",
        ".tsv",
        ".eml",
        ".msg",
        ".odt",
        ".rtf",
        ".epub",
        ".adoc",
        ".ipynb",
        ".json",
        ".jsonl",
        ".xml",
    }
    assert suffixes >= documents | {".py", ".ts", ".go", ".java", ".c", ".rs", ".sql", ".sh"}


def test_the_committed_binary_documents_are_what_their_text_makes() -> None:
    from golden.make_binary import build

    different = [name for name, data in build() if (GOLDEN_DOCUMENTS / name).read_bytes() != data]
    assert different == []
