"""Each strategy cuts where its row in ``stages/chunking/strategies.py`` says."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from fakes.embedder import HashEmbedder, WordTokenizer
from tidemark.domain.chunks import Chunk, ChunkedDocument
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.profile import BUILT_IN, STRATEGIES, Profile
from tidemark.stages.chunking.chunk import chunk_document

DOCUMENT = UUID(int=5)
TITLE, TEXT, ITEM = ElementKind.TITLE, ElementKind.TEXT, ElementKind.LIST_ITEM
TERM, TABLE, CODE = ElementKind.TERM, ElementKind.TABLE, ElementKind.CODE


def title(words: str, level: int = 1) -> Element:
    return Element(TITLE, words, level)


def text(words: str) -> Element:
    return Element(TEXT, words)


def item(words: str, level: int = 1) -> Element:
    return Element(ITEM, words, level)


def words(count: int, stem: str = "word") -> str:
    return " ".join(f"{stem}{n}" for n in range(count))


def sentences(count: int, stem: str = "w", length: int = 10) -> str:
    return " ".join(f"{stem.upper()}{n} {words(length - 2, f'{stem}{n}x')}." for n in range(count))


def profile(strategy: str, target: int = 40, most: int = 60, **options: object) -> Profile:
    base = Profile("p", strategy, target_tokens=target, max_tokens=most, min_tokens=4)
    return replace(base, **options)  # type: ignore[arg-type]  # options are fields of Profile


def chunked(profile: Profile, *elements: Element, name: str = "") -> ChunkedDocument:
    document = PartitionedDocument(name, elements)
    return chunk_document(DOCUMENT, document, profile, WordTokenizer(256), embedder=TopicEmbedder())


def texts_of(profile: Profile, *elements: Element) -> list[str]:
    return [chunk.text for chunk in chunked(profile, *elements).chunks]


class TopicEmbedder(HashEmbedder):
    """A text about fish points one way, one about ships another, and both point between."""

    def __init__(self) -> None:
        super().__init__(2)
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        self.asked += texts
        return [self._of(text.casefold()) for text in texts]

    def _of(self, text: str) -> tuple[float, float]:
        fish, ships = text.count("fish"), text.count("ship")
        length = (fish**2 + ships**2) ** 0.5
        return (fish / length, ships / length) if length else (0.7071, 0.7071)


FISH = "The fish is cold. Fish swim in the bay. We fry fish at night. A fish has bones."
SHIPS = "The ship is old. Ships lie at the pier. We paint ships in May. A ship has masts."


# All of them.


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_strategy_lets_a_chunk_cross_a_heading(strategy: str) -> None:
    result = chunked(
        profile(strategy),
        title("A"),
        text(sentences(12, "a")),
        title("B"),
        text(sentences(12, "b")),
    )
    for chunk in result.chunks:
        assert ("a" in chunk.text) != ("b" in chunk.text)
        assert chunk.heading_path == (("A",) if "a" in chunk.text else ("B",))


@pytest.mark.parametrize("name", sorted({*BUILT_IN} - {"whole"}))
def test_a_built_in_profile_keeps_a_short_section_as_one_chunk(name: str) -> None:
    assert texts_of(BUILT_IN[name], title("A"), text("One thing.")) == ["One thing."]


def test_a_strategy_that_needs_an_embedder_says_so() -> None:
    document = PartitionedDocument("", (text("x"),))
    with pytest.raises(ConfigurationError, match="embedding model"):
        chunk_document(DOCUMENT, document, profile("semantic"), WordTokenizer())


# by_title


def test_by_title_puts_small_blocks_together_and_opens_long_ones_into_sentences() -> None:
    found = texts_of(
        profile("by_title"), text("One."), text("Two."), text(sentences(12)), text("Three.")
    )
    assert found[0].startswith("One.\n\nTwo.")
    assert all(part.endswith(".") for part in found)


# paragraph


def test_paragraph_gives_each_paragraph_a_chunk_of_its_own() -> None:
    parts = [f"{words(12, stem)}." for stem in ("a", "b", "c")]
    assert texts_of(profile("paragraph"), *map(text, parts)) == parts


def test_paragraph_keeps_a_paragraph_whole_that_is_over_the_target_and_under_the_limit() -> None:
    long = sentences(5)
    assert texts_of(profile("paragraph"), text("A short one here."), text(long))[-1] == long


def test_paragraph_keeps_what_belongs_together() -> None:
    rule, but = f"{words(12)}.", "This does not apply on Sundays to anybody."
    intro = ["Bring these:", "rope", "lamp"]
    found = texts_of(
        profile("paragraph"), text(rule), text(but), text(intro[0]), *map(item, intro[1:])
    )
    assert found == [f"{rule}\n\n{but}", "Bring these:\n\nrope\nlamp"]


# recursive, sentence, fixed


def test_recursive_fills_greedily_with_paragraphs_then_sentences() -> None:
    parts = [f"{words(14, stem)}." for stem in "abcd"]
    found = texts_of(profile("recursive"), *map(text, parts))
    assert found == ["\n\n".join(parts[:2]), "\n\n".join(parts[2:])]
    opened = texts_of(profile("recursive"), text(sentences(8)))
    assert all(part.endswith(".") for part in opened)
    assert len(opened[0]) >= len(opened[-1])


def test_recursive_goes_down_to_words_only_within_a_sentence_that_does_not_fit() -> None:
    found = texts_of(profile("recursive"), text(words(150)))
    assert " ".join(found) == words(150)


def test_sentence_never_cuts_inside_a_sentence_that_fits() -> None:
    found = texts_of(profile("sentence"), text(sentences(5, "a", 12)), text(sentences(5, "b", 12)))
    assert len(found) > 2
    assert all(part[0].isupper() and part.endswith(".") for part in found)


def test_fixed_makes_windows_of_like_size_whatever_stands_there() -> None:
    elements = [title("T"), *(text(sentences(2, f"p{n}q")) for n in range(10))]
    sizes = [len(part.split()) for part in texts_of(profile("fixed"), *elements)]
    assert max(sizes) - min(sizes) <= max(sizes) // 3


# overlap


def overlaps(result: ChunkedDocument) -> list[int]:
    """Characters by which neighbouring chunks of one section overlap."""
    return [
        max(before.end - after.start, 0)
        for before, after in zip(result.chunks, result.chunks[1:], strict=False)
        if before.section_id == after.section_id
    ]


def stands_where_it_says(result: ChunkedDocument) -> bool:
    own = {section.section_id: section.text for section in result.sections}
    return all(own[c.section_id][c.start : c.end] == c.text for c in result.chunks)


@pytest.mark.parametrize("strategy", ["by_title", "recursive", "fixed", "sentence", "contract"])
def test_prose_that_is_cut_by_size_repeats_the_declared_share(strategy: str) -> None:
    wanted = profile(strategy, 60, 90, overlap=0.2, parent_tokens=2000)
    result = chunked(wanted, title("T"), text(sentences(40, length=5)))
    assert len(result.chunks) >= 3
    assert stands_where_it_says(result)
    repeated = [
        len(before.text[after.start - before.end :].split()) if after.start < before.end else 0
        for before, after in zip(result.chunks, result.chunks[1:], strict=False)
    ]
    assert all(repeated), "each chunk begins with the end of the one before it"
    assert max(repeated) <= 12, "at most a fifth of the target"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_is_repeated_where_no_overlap_is_declared(strategy: str) -> None:
    result = chunked(profile(strategy, overlap=0.0), title("T"), text(sentences(30)))
    assert not any(overlaps(result))


@pytest.mark.parametrize("strategy", sorted({*STRATEGIES} - {"fixed", "sentence", "recursive"}))
def test_no_overlap_goes_over_structure(strategy: str) -> None:
    short = [text(f"{words(5, f's{n}x')}.") for n in range(12)]
    rows = "\n".join(f"row{n}\t{words(6, f'r{n}x')}" for n in range(20))
    code = "\n".join(f"a{n} = {n}" for n in range(60))
    elements = [title("A"), *short, Element(TABLE, rows, header_rows=1), Element(CODE, code)]
    elements += [*(item(words(8, f"i{n}x")) for n in range(12)), title("B"), text("End.")]
    assert not any(overlaps(chunked(profile(strategy, overlap=0.2), *elements)))


def test_overlap_within_a_paragraph_does_not_reach_into_the_one_before_it() -> None:
    result = chunked(
        profile("by_title", 40, 60, overlap=0.5), text("Tiny one."), text(sentences(14, length=6))
    )
    assert sum("Tiny one." in chunk.text for chunk in result.chunks) == 1


def test_overlap_of_sentences_does_not_reach_over_a_table() -> None:
    table = Element(TABLE, "a\tb\nc\td")
    result = chunked(
        profile("sentence", 24, 40, overlap=0.5),
        *(element for n in range(8) for element in (text(f"S{n} {words(9, f's{n}x')}."), table)),
    )
    for before, after in zip(result.chunks, result.chunks[1:], strict=False):
        assert "\t" not in before.text[len(before.text) - max(before.end - after.start, 0) :]


# semantic


def cut_by_meaning(*elements: Element, percentile: int = 80, window: int = 1) -> list[str]:
    wanted = profile("semantic", 60, 90, percentile=percentile, window=window)
    return texts_of(wanted, *elements)


def test_semantic_cuts_where_the_topic_changes() -> None:
    assert cut_by_meaning(text(f"{FISH} {SHIPS}")) == [FISH, SHIPS]
    assert cut_by_meaning(text(FISH), text(SHIPS)) == [FISH, SHIPS]


def test_semantic_cuts_more_often_at_a_lower_percentile() -> None:
    mixed = text(
        "The fish is cold. Fish on a ship. The ship is old. A ship has masts. A fish swims."
    )
    assert len(cut_by_meaning(mixed, percentile=10)) > len(cut_by_meaning(mixed, percentile=99))


def test_semantic_with_a_wider_window_does_not_mind_one_strange_sentence() -> None:
    strange = FISH.replace("We fry fish at night.", "The ship is near. The fish is dear.")
    whole = text(f"{strange} {SHIPS}")
    narrow, wide = (cut_by_meaning(whole, window=size, percentile=90) for size in (1, 3))
    assert wide[0] == strange
    assert narrow[0] != strange


def test_semantic_does_not_part_a_rule_from_its_exception_however_far_they_are() -> None:
    rule = "Ships may land at the pier. This does not apply to fish, fish and fish."
    found = cut_by_meaning(text(f"{rule} {words(30)}. {words(20)}."))
    assert any(rule in part for part in found)


def test_semantic_does_not_cut_inside_a_sentence_that_fits_or_a_table() -> None:
    table = Element(TABLE, "Fish\tShip\n" * 3 + "fish\tship", header_rows=1)
    found = cut_by_meaning(text(FISH), table, text(SHIPS))
    assert any(table.text in part for part in found)


def test_semantic_gives_the_embedder_each_text_once_and_none_for_two_sentences() -> None:
    embedder = TopicEmbedder()
    document = PartitionedDocument("", (text(f"{FISH} {SHIPS}"),))
    chunk_document(DOCUMENT, document, profile("semantic"), WordTokenizer(), embedder=embedder)
    assert len(embedder.asked) == len(set(embedder.asked)) > 0
    embedder.asked.clear()
    document = PartitionedDocument("", (text("One. Two."),))
    chunk_document(DOCUMENT, document, profile("semantic"), WordTokenizer(), embedder=embedder)
    assert embedder.asked == []


# markdown


MERGED = profile("markdown", 80, 120, merge_sections=True, parent_tokens=300)


def test_markdown_merges_small_sections_with_their_headings_in_the_text() -> None:
    (chunk,) = chunked(
        MERGED,
        title("Top"),
        text("One."),
        title("A", 2),
        text("Two."),
        title("B", 2),
        text("Three."),
    ).chunks
    assert chunk.text == "One.\n\nA\n\nTwo.\n\nB\n\nThree."
    assert chunk.heading_path == ("Top",)
    assert chunk.kinds == ("text", "title")


def test_markdown_gives_the_common_path_of_what_is_in_a_chunk() -> None:
    parts = [
        element
        for n in range(4)
        for element in (title(f"Part {n}", 2), title(f"Deep {n}", 3), text(sentences(5, f"p{n}q")))
    ]
    found = chunked(MERGED, title("Top"), *parts).chunks
    assert len(found) > 1
    for chunk in found:
        inside = [n for n in range(4) if f"p{n}q" in chunk.text]
        if len(inside) > 1:
            assert chunk.heading_path == ("Top",)
        else:
            assert chunk.heading_path[:1] == ("Top",)


def ends_with_heading(chunk: Chunk, names: Sequence[str]) -> bool:
    return chunk.text.split("\n")[-1] in names


@pytest.mark.parametrize(
    "body",
    [text(sentences(11)), text(words(113)), text(words(220)),
     Element(TABLE, "\n".join(f"row{n}\t{words(6, f'r{n}x')}" for n in range(14)), header_rows=1),
     Element(CODE, "\n".join(f"value_{n} = {n}" for n in range(38)))],
    ids=["sentences", "words that just fit", "words", "table", "code"],
)  # fmt: skip
def test_markdown_never_leaves_a_heading_alone_or_at_the_end(body: Element) -> None:
    parts = [title("Empty", 2), title("A longer heading for this", 2), body, title("Last", 2)]
    names = [part.text for part in parts if part.kind is TITLE]
    wide = replace(MERGED, parent_tokens=2000)
    found = chunked(wide, title("Top"), text("One."), *parts, text("Two.")).chunks
    assert not any(ends_with_heading(chunk, names) for chunk in found)
    assert not any(chunk.kinds == ("title",) for chunk in found)


def test_markdown_does_not_merge_sections_that_are_not_read_together() -> None:
    found = chunked(
        replace(MERGED, parent_tokens=32),
        title("A"), text(sentences(3, "a")), title("B"), text(sentences(3, "b")),
    ).chunks  # fmt: skip
    assert [chunk.heading_path for chunk in found] == [("A",), ("B",)]


# faq


def faq(*elements: Element) -> list[str]:
    return texts_of(profile("faq", 80, 120), *elements)


ANSWERS = [f"{words(8, stem)}." for stem in ("a", "b", "c")]
ASKED = ["May I fish?", "What does it cost?", "Who answers?"]
PAIRS = [f"{q}\n\n{a}" for q, a in zip(ASKED, ANSWERS, strict=True)]


@pytest.mark.parametrize("kind", [TEXT, TERM], ids=["bold lines", "terms or summaries"])
def test_faq_gives_each_question_with_its_answer_a_chunk(kind: ElementKind) -> None:
    assert (
        faq(
            *(
                element
                for q, a in zip(ASKED, ANSWERS, strict=True)
                for element in (Element(kind, q), text(a))
            )
        )
        == PAIRS
    )


def test_faq_keeps_definitions_with_the_terms_that_ask() -> None:
    found = faq(
        *(
            Element(kind, words)
            for q, a in zip(ASKED, ANSWERS, strict=True)
            for kind, words in ((TERM, q), (ElementKind.DEFINITION, a), (ElementKind.DEFINITION, a))
        )
    )
    assert [part.split("\n")[0] for part in found] == ASKED
    assert all(part.count(a) == 2 for part, a in zip(found, ANSWERS, strict=True))


def test_faq_takes_headings_that_ask_as_questions() -> None:
    result = chunked(
        profile("faq", 80, 120),
        *(e for q, a in zip(ASKED, ANSWERS, strict=True) for e in (title(q, 2), text(a))),
    )
    assert [chunk.text for chunk in result.chunks] == ANSWERS
    assert [chunk.heading_path[-1] for chunk in result.chunks] == ASKED
    assert all(c.embed_text.startswith(q) for c, q in zip(result.chunks, ASKED, strict=True))


def test_faq_keeps_lists_and_tables_in_their_answer() -> None:
    table = Element(TABLE, "Fish\tPrice\nCod\t3", header_rows=1)
    found = faq(
        text("What do I need?"), item("a rope"), item("a lamp"), text("Ask at the pier."),
        text("What does it cost?"), table,
    )  # fmt: skip
    assert [part.split("\n")[0] for part in found] == ["What do I need?", "What does it cost?"]
    assert "Ask at the pier." in found[0]
    assert "Cod\t3" in found[1]


def test_faq_does_not_take_items_that_ask_within_an_answer_for_questions() -> None:
    found = faq(
        text("Why does it fail?"), text("Look at these:"), item("Is it plugged in?"),
        item("Is it on?"), text("Else call us."), text("May I fish?"), text("Yes, at night."),
    )  # fmt: skip
    assert [part.split("\n")[0] for part in found] == ["Why does it fail?", "May I fish?"]
    assert "Is it on?" in found[0]


def test_faq_keeps_the_list_of_its_questions_apart_from_the_first_answer() -> None:
    found = faq(*map(item, ASKED), *(e for q in ASKED for e in (text(q), text(f"{words(9)}."))))
    assert found[0] == "\n".join(ASKED)
    assert [part.split("\n")[0] for part in found[1:]] == ASKED


def test_faq_opens_an_answer_that_is_too_long_and_keeps_the_question_with_its_begin() -> None:
    found = faq(text("Why so long?"), text(sentences(20)), text("May I go?"), text("Yes, now."))
    assert found[0].startswith("Why so long?\n\nW0")
    assert found[-1] == "May I go?\n\nYes, now."


# contract


def contract(*elements: Element) -> list[str]:
    return texts_of(profile("contract", 60, 90), *elements)


def test_contract_begins_a_chunk_at_each_numbered_clause() -> None:
    clauses = [
        f"{number} The buyer {words(8)}." for number in ("1.1", "1.2", "§ 3", "Article 4", "5.")
    ]
    assert contract(*map(text, clauses)) == clauses


def test_contract_keeps_lettered_items_and_later_paragraphs_with_their_clause() -> None:
    found = contract(
        text("2.1 The buyer may not"), item("(a) sell the boat;"), item("(b) lend it, or"),
        item("(i) burn it,", 2), item("(ii) sink it.", 2), text("He pays for each breach."),
        text("2.2 The seller waits."), text("Notwithstanding this he may call."),
    )  # fmt: skip
    assert [part.split(" ")[0] for part in found] == ["2.1", "2.2"]
    assert "(ii) sink it." in found[0]
    assert "He pays" in found[0]
    assert "Notwithstanding" in found[1]


def test_contract_keeps_a_number_that_stands_alone_with_its_clause() -> None:
    found = contract(text("3.1"), text(f"The buyer {words(9)}."), text("3.2"), text("He waits."))
    assert [part.split("\n")[0] for part in found] == ["3.1", "3.2"]


# table


def test_table_parts_a_csv_of_two_hundred_rows_between_rows_under_its_header() -> None:
    rows = [f"{n}\tStreet {n}\tlamp\t{n % 7} m" for n in range(200)]
    table = Element(TABLE, "\n".join(["Id\tStreet\tKind\tHeight", *rows]), header_rows=1)
    result = chunked(BUILT_IN["table"], table, name="assets")
    assert len(result.chunks) > 5
    assert all(c.text.split("\n")[0] == "Id\tStreet\tKind\tHeight" for c in result.chunks)
    assert [line for c in result.chunks for line in c.text.split("\n")[1:]] == rows
    assert all(c.token_count <= 128 * 2 for c in result.chunks)


HEAD = "Place\tDepth\tNote"
ROWS = [f"Pier {n}\t{n} m\t{words(4, f'r{n}x')}" for n in range(30)]
LONG_TABLE = Element(TABLE, "\n".join([HEAD, *ROWS]), header_rows=1)


@pytest.mark.parametrize("strategy", ["by_title", "table", "markdown", "paragraph"])
@pytest.mark.parametrize(
    "caption",
    [Element(ElementKind.CAPTION, "Depths by place"), text("Table 3: Depths by place")],
    ids=["caption", "text"],
)
def test_a_caption_above_a_table_is_on_each_of_its_pieces(strategy: str, caption: Element) -> None:
    found = texts_of(profile(strategy), caption, LONG_TABLE)
    assert len(found) > 3
    assert all(part.split("\n")[0] == caption.text for part in found)
    assert all(part.count(caption.text) == part.count(HEAD) == 1 for part in found)


@pytest.mark.parametrize("strategy", ["by_title", "table", "markdown"])
@pytest.mark.parametrize(
    "caption",
    [
        Element(ElementKind.CAPTION, "Figure 2. Depths by place"),
        text("Table 3: Depths by place"),
        text("Table: Depths by place"),
        text("Tabelle 3 – Depths by place"),
    ],
)
def test_a_caption_below_a_table_is_on_each_of_its_pieces_once(
    strategy: str, caption: Element
) -> None:
    result = chunked(profile(strategy), LONG_TABLE, caption, text(f"{words(50)}."))
    found = [chunk.text for chunk in result.chunks if "Pier" in chunk.text]
    assert len(found) > 3
    assert all(part.count(caption.text) == part.count(HEAD) == 1 for part in found)
    assert [line for part in found for line in part.split("\n") if "Pier" in line] == ROWS


def test_a_table_that_fits_only_without_its_caption_is_cut_and_keeps_it() -> None:
    table = Element(TABLE, "\n".join(["a\tb", *(f"r{n}\tx" for n in range(27))]), header_rows=1)
    caption = Element(ElementKind.CAPTION, "Table 1. All of the rows there are")
    found = texts_of(profile("by_title"), caption, table)
    assert all(part.startswith(f"{caption.text}\na\tb") for part in found)


# whole


def test_whole_keeps_a_short_document_as_it_is_with_its_headings() -> None:
    (chunk,) = chunked(
        profile("whole"), title("A"), text("One."), title("B"), text("Two."), name="Note"
    ).chunks
    assert chunk.text == "A\n\nOne.\n\nB\n\nTwo."
    assert chunk.embed_text == f"Note\n{chunk.text}"


def test_whole_cuts_a_document_over_the_limit_by_its_sections() -> None:
    found = chunked(
        profile("whole"), title("A"), text(sentences(4, "a")), title("B"), text(sentences(4, "b"))
    ).chunks
    assert [chunk.heading_path for chunk in found] == [("A",), ("B",)]


@pytest.mark.parametrize(
    "number", ["2.{}", "Section 2.{}.", "Article {}", "§ {}", "{}.", "Section {}:", "2.{}.1"]
)
def test_each_way_of_numbering_begins_a_clause(number: str) -> None:
    clauses = [
        Element(ElementKind.TEXT, f"{number.format(n)} Duty {n}. The holder keeps the berth clean.")
        for n in range(1, 5)
    ]
    document = PartitionedDocument("Terms", tuple(clauses))
    profile = Profile("c", "contract", target_tokens=128, min_tokens=4)
    chunks = chunk_document(UUID(int=1), document, profile, WordTokenizer()).chunks
    assert [chunk.text for chunk in chunks] == [clause.text for clause in clauses]


@pytest.mark.parametrize("at", range(4, 44))
@pytest.mark.parametrize("profile", ["docs", "table"])
def test_a_row_that_repeats_the_header_takes_it_from_no_piece(at: int, profile: str) -> None:
    rows = ["Name\tValue", *(f"k{n}\t" + "value " * 4 for n in range(80))]
    rows[at] = rows[0]
    table = Element(ElementKind.TABLE, "\n".join(rows), header_rows=1)
    document = PartitionedDocument("T", (table,))
    chunks = chunk_document(UUID(int=1), document, BUILT_IN[profile], WordTokenizer()).chunks
    assert len(chunks) > 1
    assert {chunk.text.split("\n")[0] for chunk in chunks} == {rows[0]}


def test_each_strategy_is_the_name_of_a_built_in_profile() -> None:
    assert {name: BUILT_IN[name].strategy for name in STRATEGIES} == {n: n for n in STRATEGIES}
