"""Program code in parts: what stays together, what a boundary costs, and what is said above a piece."""

from tidemark.adapters.partition.code.tree_sitter import TreeSitterCodeParser
from tidemark.stages.chunking.code import CodePart, code_parts, definition_groups

PARSER = TreeSitterCodeParser()


def parts(code: str, syntax: str = "python") -> list[CodePart]:
    return code_parts(code, PARSER.definitions(code, syntax))


def at(code: str, words: str, syntax: str = "python") -> CodePart:
    """The part that begins with the line of ``words``."""
    place = code.index(words)
    return next(p for p in parts(code, syntax) if p.start <= place < p.end)


CODE = '''"""Gauges."""

import os
import sys

LIMIT = 3


# Watches the water.
@register
class Gauge(Base):
    """A gauge."""

    def read(self, path: str) -> int:
        """Reads."""
        found = open_all(
            path,
            mode="r",
        )
        if found:
            return 1
        else:
            return 2

    def close(self) -> None:
        self.done = True


def main() -> None:
    Gauge().read("x")
'''


def test_parts_are_the_text_as_it_stands_in_whole_lines() -> None:
    for part in parts(CODE):
        assert part.start == 0 or CODE[part.start - 1] == "\n"
        assert CODE[part.end : part.end + 1] in {"\n", ""}


def test_top_level_definitions_are_parted_for_nothing() -> None:
    assert at(CODE, "# Watches").cost == 0.0
    assert at(CODE, "def main").cost == 0.0


def test_a_boundary_costs_more_the_more_it_parts() -> None:
    order = [
        at(CODE, "def main").cost,
        at(CODE, "def close").cost,
        at(CODE, "import sys").cost,
        at(CODE, "return 1").cost,
        at(CODE, "else:").cost,
    ]
    assert order == sorted(order)
    assert len(set(order)) == len(order)


def test_a_signature_is_dear_to_part_from_its_body() -> None:
    assert at(CODE, '"""Reads."""').cost >= 1.0


def test_comments_and_decorators_go_with_the_definition_below() -> None:
    one = at(CODE, "# Watches")
    assert CODE[one.start : one.end] == "# Watches the water.\n@register\nclass Gauge(Base):"


def test_the_lines_of_one_statement_stay_together() -> None:
    one = at(CODE, "found = open_all(")
    assert CODE[one.start : one.end].split() == [
        "found",
        "=",
        "open_all(",
        "path,",
        'mode="r",',
        ")",
    ]
    assert CODE[one.start : one.end].startswith("        found")


def test_a_piece_within_a_method_is_told_its_class_and_its_method() -> None:
    assert at(CODE, "return 1").context == (
        "class Gauge(Base):",
        "    def read(self, path: str) -> int:",
    )
    assert at(CODE, "def close").context == ("class Gauge(Base):",)
    assert at(CODE, "def main").context == ()
    assert at(CODE, "import os").context == ()


def test_a_long_signature_is_one_line_without_remarks_and_bounded() -> None:
    arguments = "".join(f"    argument_{n}: int = {n},  # number {n}\n" for n in range(30))
    code = f"def long(\n    first: str,  # why\n{arguments}) -> None:\n    x = 1\n    y = 2\n"
    (context,) = at(code, "y = 2").context
    assert context.startswith("def long( first: str, argument_0: int = 0,")
    assert "#" not in context
    assert len(context) <= 160
    assert context.endswith("…")


def test_what_only_closes_never_begins_a_part() -> None:
    code = "int f(int a)\n{\n    if (a) {\n        g();\n    }\n}\n\nint h(void)\n{\n    return 1;\n}\n"
    firsts = [code[p.start : p.end].strip()[0] for p in parts(code, "c")]
    assert not {"}", "{"} & set(firsts)
    one = at(code, "int f", "c")
    assert code[one.start : one.end] == "int f(int a)\n{"
    assert at(code, "g();", "c").context == ("int f(int a)",)


def test_a_short_string_over_several_lines_is_not_parted() -> None:
    code = 'x = """one\n\ndef not_code():\n    two\n"""\n\ndef f():\n    pass\n'
    one = at(code, "x = ")
    assert code[one.start : one.end] == 'x = """one\n\ndef not_code():\n    two\n"""'


def test_a_long_string_is_parted_at_its_lines_for_a_high_cost() -> None:
    lines = "\n".join(f"    line {n} of the text that is said here" for n in range(40))
    code = f'def f():\n    """First.\n\n{lines}\n    """\n    return 1\n'
    inner = [p for p in parts(code) if "line" in code[p.start : p.end]]
    assert len(inner) == 40
    assert min(p.cost for p in inner[1:]) > at(code, "return 1").cost
    assert all(p.context == ("def f():",) for p in inner)


def test_without_a_parser_lines_and_indentation_tell() -> None:
    code = "require 'x'\n\nclass A\n  def b\n    1\n  end\n\n  def c\n    2\n  end\nend\n"
    found = code_parts(code, [])
    costs = {code[p.start : p.end].strip().split("\n")[0]: p.cost for p in found}
    assert costs["class A"] == 0.0
    assert costs["def c"] < costs["2"]
    assert not any(code[p.start : p.end].strip().startswith("end") for p in found)
    assert all(p.context == () for p in found)


def test_groups_are_the_top_level_definitions_and_what_is_between() -> None:
    groups = definition_groups(CODE, PARSER.definitions(CODE, "python"))
    firsts = [CODE[start:end].split("\n")[0] for start, end in groups]
    assert firsts == ['"""Gauges."""', "# Watches the water.", "def main() -> None:"]
    assert CODE[slice(*groups[1])].endswith("self.done = True")
    assert definition_groups("a = 1\n\nb = 2\n", []) == [(0, 12)]
    assert definition_groups("", []) == []


def test_two_definitions_on_one_line_are_one_group() -> None:
    code = "function a() { return 1 } function b() { return 2 }\nfunction c() {\n}\n"
    groups = definition_groups(code, PARSER.definitions(code, "javascript"))
    assert [code[start:end] for start, end in groups] == [
        "function a() { return 1 } function b() { return 2 }",
        "function c() {\n}",
    ]


def test_line_ends_of_windows_and_tabs_change_no_part() -> None:
    windows = CODE.replace("\n", "\r\n")
    mine = [CODE[p.start : p.end].split() for p in parts(CODE)]
    assert [windows[p.start : p.end].split() for p in parts(windows)] == mine
    tabs = CODE.replace("    ", "\t")
    assert [tabs[p.start : p.end].split() for p in parts(tabs)] == mine
    assert [p.cost for p in parts(tabs)] == [p.cost for p in parts(CODE)]
