"""Sections are packed into chunks that keep together what belongs together."""

from uuid import UUID

import pytest

from fakes.embedder import WordTokenizer
from tidemark.domain.chunks import Chunk
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.profile import Profile
from tidemark.stages.chunking.chunk import chunk_document, chunk_fingerprint

DOCUMENT = UUID(int=7)
SMALL = Profile("small", target_tokens=40, max_tokens=60, min_tokens=6)


def title(words: str, level: int = 1) -> Element:
    return Element(ElementKind.TITLE, words, level)


def text(words: str) -> Element:
    return Element(ElementKind.TEXT, words)


def item(words: str, level: int = 1) -> Element:
    return Element(ElementKind.LIST_ITEM, words, level)


def words(count: int, stem: str = "word") -> str:
    return " ".join(f"{stem}{n}" for n in range(count))


def sentences(count: int, length: int = 8) -> str:
    return " ".join(f"Sentence {n} {words(length - 3)}." for n in range(count))


def chunks_of(
    *elements: Element, name: str = "", profile: Profile = SMALL, tokens: int = 256
) -> tuple[Chunk, ...]:
    document = PartitionedDocument(name, elements)
    return chunk_document(DOCUMENT, document, profile, WordTokenizer(tokens)).chunks


def texts_of(*elements: Element, profile: Profile = SMALL) -> list[str]:
    return [chunk.text for chunk in chunks_of(*elements, profile=profile)]


def test_small_blocks_of_a_section_share_a_chunk() -> None:
    assert texts_of(title("T"), text("One thing."), text("Another.")) == ["One thing.\n\nAnother."]


def test_blocks_of_two_sections_never_share_one() -> None:
    found = chunks_of(title("A"), text("One."), title("B"), text("Two."))
    assert [(c.heading_path, c.text) for c in found] == [(("A",), "One."), (("B",), "Two.")]
    assert found[0].section_id != found[1].section_id


def test_a_heading_is_never_a_chunk() -> None:
    found = chunks_of(title("Out"), title("In", 2), text("Body."), title("Empty"))
    assert [c.text for c in found] == ["Body."]
    assert found[0].embed_text == "Out > In\nBody."


def test_the_title_of_the_document_leads_where_the_headings_do_not_say_it() -> None:
    assert (
        chunks_of(title("Setup"), text("Go."), name="Handbook")[0].embed_text
        == "Handbook > Setup\nGo."
    )
    assert chunks_of(title("Setup"), text("Go."), name="setup!")[0].embed_text == "Setup\nGo."
    assert chunks_of(text("Go."), name="Handbook")[0].embed_text == "Handbook\nGo."
    assert chunks_of(text("Go."))[0].embed_text == "Go."


def test_a_long_heading_path_loses_its_middle_and_not_the_text() -> None:
    path = [title(f"Level {n} {words(6, f'h{n}x')}", n) for n in range(1, 6)]
    found = chunks_of(*path, text(words(30)))
    assert all(c.token_count <= 60 for c in found)
    assert found[0].heading_path == tuple(e.text for e in path)
    above = found[0].embed_text.split("\n")[0]
    assert "…" in above
    assert "Level 5" in above
    assert len(found) <= 2


def test_no_chunk_is_over_the_profile_or_the_model() -> None:
    body = [title("T"), text(sentences(40))]
    assert max(c.token_count for c in chunks_of(*body)) <= 60
    assert max(c.token_count for c in chunks_of(*body, tokens=30)) <= 30


def test_a_list_stays_with_the_sentence_that_introduces_it() -> None:
    found = texts_of(
        text(words(52)), text("Take these with you:"), item("rope"), item("lamp"), item("knife")
    )
    assert found[-1] == "Take these with you:\n\nrope\nlamp\nknife"


def test_a_list_that_is_too_long_keeps_its_introduction_with_the_first_item() -> None:
    found = texts_of(text("Take:"), *[item(words(9, f"i{n}x")) for n in range(12)])
    assert len(found) > 2
    assert found[0].startswith("Take:\n\ni0x0")
    assert all(part.startswith("i") for part in found[1:])


def test_a_long_introduction_gives_its_last_sentence_to_the_list() -> None:
    long = f"{sentences(6)} You need the following things:"
    found = texts_of(text(long), *[item(words(5, f"i{n}x")) for n in range(4)])
    with_first_item = next(part for part in found if "i0x0" in part)
    assert "You need the following things:" in with_first_item


def test_a_term_stays_with_its_definition() -> None:
    entries = [
        element
        for n in range(8)
        for element in (
            Element(ElementKind.TERM, f"Term{n}"),
            Element(ElementKind.DEFINITION, words(12, f"d{n}x")),
        )
    ]
    for part in texts_of(*entries):
        for n in range(8):
            assert (f"Term{n}\n" in part) == (f"d{n}x0" in part)


def test_a_caption_stays_with_its_table() -> None:
    found = texts_of(
        text(words(52)),
        Element(ElementKind.CAPTION, "Table 1. Depths"),
        Element(ElementKind.TABLE, "Place\tDepth\nPier\t3 m", header_rows=1),
    )
    assert found[-1] == "Table 1. Depths\nPlace\tDepth\nPier\t3 m"


def test_a_table_that_fits_is_kept_whole() -> None:
    table = "Place\tDepth\n" + "\n".join(f"Pier {n}\t{n} m" for n in range(6))
    found = texts_of(text(words(52)), Element(ElementKind.TABLE, table, header_rows=1))
    assert found[-1] == table


def test_a_long_table_is_cut_between_rows_under_its_repeated_header() -> None:
    rows = [f"Pier {n}\t{n} m\t{words(4, f'r{n}x')}" for n in range(30)]
    found = texts_of(
        Element(ElementKind.TABLE, "\n".join(["Place\tDepth\tNote", *rows]), header_rows=1)
    )
    assert len(found) > 3
    assert all(part.split("\n")[0] == "Place\tDepth\tNote" for part in found)
    assert [line for part in found for line in part.split("\n")[1:]] == rows


def test_a_row_that_is_too_long_is_cut_and_not_lost() -> None:
    row = "\t".join(words(30, f"c{n}x") for n in range(4))
    found = texts_of(Element(ElementKind.TABLE, f"A\tB\tC\tD\n{row}", header_rows=1))
    body = " ".join(line for part in found for line in part.split("\n")[1:])
    assert "".join(body.split()) == "".join(row.split())


def test_code_that_fits_is_kept_whole_with_its_indentation() -> None:
    code = "def f(x):\n    if x:\n        return 1\n\n    return 2"
    assert code in texts_of(text(words(52)), Element(ElementKind.CODE, code))[-1]


def test_long_code_is_cut_between_its_functions() -> None:
    functions = [
        f"def f{n}(x):\n    a = x + {n}\n    b = a * 2\n    return b - {n}" for n in range(8)
    ]
    found = texts_of(Element(ElementKind.CODE, "\n\n".join(functions)))
    assert len(found) > 2
    assert all(part.startswith("def f") for part in found)


def test_long_prose_is_cut_between_sentences_into_like_pieces() -> None:
    found = texts_of(text(sentences(14)))
    assert all(part.startswith("Sentence ") and part.endswith(".") for part in found)
    sizes = [len(part.split()) for part in found]
    assert min(sizes) * 3 >= max(sizes), "no piece is a mere rest"


def test_a_tiny_rest_joins_its_neighbour() -> None:
    found = texts_of(text(words(44)), text("Not on Sundays."))
    assert found == [f"{words(44)}\n\nNot on Sundays."]


def test_a_word_longer_than_any_chunk_is_cut_between_characters() -> None:
    profile = Profile("tiny", target_tokens=10, max_tokens=12, min_tokens=1)
    long = "é" * 2000
    found = chunks_of(text(long), profile=profile)
    assert len(found) > 1
    assert "".join(c.text for c in found) == long


def test_an_edit_in_one_section_leaves_the_ids_of_the_others() -> None:
    before = chunks_of(title("A"), text("One."), title("B"), text("Two."))
    after = chunks_of(title("A"), text("One, and more."), title("B"), text("Two."))
    assert before[0].chunk_id != after[0].chunk_id
    assert before[1].chunk_id == after[1].chunk_id


def test_a_new_row_changes_the_chunks_around_it_and_no_others() -> None:
    rows = [f"Pier {n}\t{n} m\t{words(3, f'r{n}x')}" for n in range(200)]

    def ids(lines: list[str]) -> list[UUID]:
        table = Element(ElementKind.TABLE, "\n".join(["Place\tDepth\tNote", *lines]), header_rows=1)
        return [chunk.chunk_id for chunk in chunks_of(table)]

    before, after = ids(rows), ids([*rows[:20], "New\t0 m\there", *rows[20:]])
    assert len(set(after) - set(before)) <= len(after) // 5


def test_equal_texts_in_a_document_have_ids_of_their_own() -> None:
    found = chunks_of(title("A"), text("Same."), title("A"), text("Same."))
    assert found[0].embed_text == found[1].embed_text
    assert found[0].chunk_id != found[1].chunk_id


def test_a_chunk_tells_its_page_its_kinds_and_its_anchor() -> None:
    elements = (
        Element(ElementKind.TITLE, "T", 1, 4, "t"),
        Element(ElementKind.TEXT, "Look:", None, 5),
        Element(ElementKind.CODE, "x = 1", None, 6),
    )
    chunk = chunks_of(*elements)[0]
    assert (chunk.page_number, chunk.kinds, chunk.anchor) == (5, ("code", "text"), "t")
    assert chunk.token_count == WordTokenizer().count([chunk.embed_text])[0]


def test_chunks_are_numbered_over_the_whole_document() -> None:
    found = chunks_of(title("A"), text(sentences(10)), title("B"), text("Two."))
    assert [c.chunk_index for c in found] == list(range(len(found)))


def test_a_strategy_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="by_title"):
        chunks_of(text("x"), profile=Profile(strategy="astrology"))


def test_a_profile_without_room_for_text_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no room"):
        chunks_of(text("x"), profile=Profile(max_tokens=2))


def test_the_fingerprint_changes_with_what_decides_the_chunks() -> None:
    base = chunk_fingerprint(Profile(), "t1", "p1")
    assert base == chunk_fingerprint(Profile(name="another name"), "t1", "p1")
    assert len({base, chunk_fingerprint(Profile(target_tokens=9), "t1", "p1")}) == 2
    assert (
        len(
            {
                base,
                chunk_fingerprint(Profile(), "t2", "p1"),
                chunk_fingerprint(Profile(), "t1", "p2"),
            }
        )
        == 3
    )
