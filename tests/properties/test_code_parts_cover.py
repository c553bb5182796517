"""Whatever the code and whatever is found in it, its parts hold each character once and in order."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.adapters.partition.code.tree_sitter import GRAMMARS, TreeSitterCodeParser
from tidemark.domain.documents import Definition
from tidemark.stages.chunking.code import code_parts, definition_groups

PARSER = TreeSitterCodeParser()
LINES = [
    "def f(a,", "      b):", "    return 1", "class A:", '    """doc', '    """', "@wrap", "# why", "", "  ",
    "function f() {", "}", "});", "export const g = () => {", "if (x) {", "} else {", "/* a", " * b */",
    "func (g *G) Read() int {", "\treturn g", "CREATE TABLE t (", ");", "impl A for B {", "fn f() {",
    "# é 日本 🎉", "template <class T>", "struct S {", "};", "x = [", "  1,", "]",
    "describe('x', () => {", "$(", "'''",
]  # fmt: skip
codes = st.one_of(
    st.lists(st.sampled_from(LINES), max_size=40).map("\n".join),
    st.lists(st.sampled_from(LINES), max_size=25).map("\r\n".join),
    st.text(max_size=120),
    st.text(alphabet="{}()[]'\"\\ \n\tabé#/*`<>=:;", max_size=200),
)


def visible(text: str) -> str:
    return "".join(text.split())


def holds_all(text: str, spans: list[tuple[int, int]]) -> None:
    assert all(start < end for start, end in spans)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert visible("".join(text[start:end] for start, end in spans)) == visible(text)


@pytest.mark.parametrize("syntax", sorted(GRAMMARS))
@given(code=codes)
def test_parts_and_groups_hold_every_character_once_and_in_order(syntax: str, code: str) -> None:
    found = PARSER.definitions(code, syntax)
    holds_all(code, [(part.start, part.end) for part in code_parts(code, found)])
    holds_all(code, definition_groups(code, found))


@pytest.mark.parametrize("syntax", sorted(GRAMMARS))
@given(code=codes)
def test_definitions_are_in_order_and_within_the_code(syntax: str, code: str) -> None:
    found = PARSER.definitions(code, syntax)
    assert [(d.start, -d.end) for d in found] == sorted((d.start, -d.end) for d in found)
    for one in found:
        assert 0 <= one.start <= one.head <= one.end <= len(code)
        assert one.start < one.end
        assert one.start <= one.body <= one.end
    assert found == PARSER.definitions(code, syntax)


@given(code=codes, data=st.data())
def test_parts_hold_everything_for_definitions_that_no_parser_would_find(
    code: str, data: st.DataObject
) -> None:
    offsets = st.integers(0, len(code))
    made = data.draw(
        st.lists(
            st.tuples(st.lists(offsets, min_size=4, max_size=4).map(sorted), st.booleans()),
            max_size=8,
        )
    )
    found = sorted(
        (
            Definition(a, d, 0, "", "unit" if unit else "function", c, b)
            for (a, b, c, d), unit in made
            if a < d
        ),
        key=lambda one: (one.start, -one.end),
    )
    holds_all(code, [(part.start, part.end) for part in code_parts(code, found)])
    holds_all(code, definition_groups(code, found))
