"""Program code is cut between its definitions, by the real parser."""

from textwrap import dedent
from uuid import UUID

import pytest

from fakes.embedder import WordTokenizer
from tidemark.adapters.partition.code.tree_sitter import TreeSitterCodeParser
from tidemark.domain.chunks import ChunkedDocument
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.profile import Profile
from tidemark.stages.chunking.chunk import chunk_document

PARSER = TreeSitterCodeParser()
DOCUMENT = UUID(int=6)
SMALL = Profile("small", "code", target_tokens=48, max_tokens=90, min_tokens=4)


def chunked(code: str, syntax: str, profile: Profile = SMALL) -> ChunkedDocument:
    element = Element(ElementKind.CODE, code, syntax=syntax)
    document = PartitionedDocument("", (element,))
    return chunk_document(DOCUMENT, document, profile, WordTokenizer(256), PARSER)


FUNCTIONS = {
    "python": "@cached\ndef step_{n}(x):\n    # why\n    a = x + {n}\n\n    b = a * 2\n    return b - {n}",
    "javascript": "// Adds.\nexport function step_{n}(x) {{\n  const a = x + {n};\n\n  return a * 2;\n}}",
    "typescript": "export const step_{n} = (x: number) => {{\n  const a = x + {n};\n\n  return a;\n}};",
    "go": "// step adds.\nfunc step_{n}(x int) int {{\n\ta := x + {n}\n\n\tb := a * 2\n\treturn b\n}}",
    "java": "class Step_{n} {{\n  int run(int x) {{\n    int a = x + {n};\n\n    return a * 2;\n  }}\n}}",
    "c": "/* Adds. */\nint step_{n}(int x)\n{{\n    int a = x + {n};\n\n    return a * 2;\n}}",
    "rust": "/// Adds.\n#[inline]\nfn step_{n}(x: i32) -> i32 {{\n    let a = x + {n};\n\n    a * 2\n}}",
    "sql": "-- All of them.\nCREATE TABLE step_{n} (\n    id integer,\n\n    name text\n);",
    "bash": "# Adds.\nstep_{n}() {{\n    local a=$(( $1 + {n} ))\n\n    echo \"$a\"\n}}",
}  # fmt: skip


@pytest.mark.parametrize(
    "profile", [SMALL, Profile("d", "by_title", 48, 90, 4)], ids=["code", "docs"]
)
@pytest.mark.parametrize("syntax", FUNCTIONS)
def test_each_function_is_whole_in_one_chunk(syntax: str, profile: Profile) -> None:
    functions = [FUNCTIONS[syntax].format(n=n) for n in range(9)]
    found = [chunk.text for chunk in chunked("\n\n".join(functions), syntax, profile).chunks]
    assert len(found) > 2
    for function in functions:
        assert sum(function in part for part in found) == 1, function


CLASSES = {
    "python": ("class Gauge(X):", "    def at_{n}(self):\n        a = {n}\n\n        return a", ""),
    "javascript": ("class Gauge {", "  at_{n}() {{\n    let a = {n};\n\n    return a;\n  }}", "}"),
    "typescript": ("class Gauge {", "  at_{n}(): any {{\n    let a = {n};\n\n    return a;\n  }}", "}"),
    "java": ("class Gauge {", "  int at_{n}() {{\n    int a = {n};\n\n    return a;\n  }}", "}"),
    "rust": ("impl Gauge {", "    fn at_{n}() {{\n        let a = {n};\n\n        a\n    }}", "}"),
}  # fmt: skip


@pytest.mark.parametrize("syntax", CLASSES)
def test_methods_are_whole_and_each_chunk_of_them_repeats_the_line_of_the_class(
    syntax: str,
) -> None:
    head, method, end = CLASSES[syntax]
    methods = [method.format(n=n) for n in range(12)]
    code = "\n".join([head, "\n\n".join(methods), end]).rstrip()
    result = chunked(code, syntax)
    found = [chunk.text for chunk in result.chunks]
    assert len(found) > 2
    for one in methods:
        assert sum(one in part for part in found) == 1, one
    assert all(part.startswith(head.rstrip(" {:")) for part in found)
    assert [part.count("Gauge") for part in found] == [1] * len(found)


LONG = dedent("""\
    class Gauge:
        def read(self, place):
            {body}
    """)


def test_pieces_of_one_long_function_repeat_its_signature_and_its_class() -> None:
    body = "\n            ".join(f"a{n} = place + {n}" for n in range(60))
    code = dedent(LONG).format(body=body.replace("            ", "        "))
    result = chunked(code, "python")
    assert len(result.chunks) > 2
    for chunk in result.chunks[1:]:
        assert chunk.text.startswith("class Gauge:\n    def read(self, place):\n        a")


def test_what_is_repeated_is_not_counted_in_the_offsets() -> None:
    methods = "\n\n".join(CLASSES["python"][1].format(n=n) for n in range(12))
    result = chunked(f"class Gauge(X):\n{methods}", "python")
    own = {section.section_id: section.text for section in result.sections}
    position: dict[UUID, int] = {}
    for chunk in result.chunks:
        stretch = own[chunk.section_id][chunk.start : chunk.end]
        assert chunk.text.endswith(stretch)
        assert chunk.text.removesuffix(stretch) in {"", "class Gauge(X):\n"}
        assert chunk.start >= position.get(chunk.section_id, 0)
        position[chunk.section_id] = chunk.end


def test_a_nested_function_that_fits_is_whole_within_one_that_does_not() -> None:
    inner = "    def inner(y):\n        c = y + 1\n\n        return c"
    lines = "\n".join(f"    a{n} = x + {n}" for n in range(30))
    code = f"def outer(x):\n{lines}\n\n{inner}\n\n{lines.replace('a', 'b')}\n    return inner"
    found = [chunk.text for chunk in chunked(code, "python").chunks]
    assert sum(inner in part for part in found) == 1


def test_code_in_no_known_language_is_cut_between_its_blocks() -> None:
    blocks = [f"proc step{n}\n  set a {n}\n  set b {n}\n  give a b\nstop" for n in range(12)]
    found = [chunk.text for chunk in chunked("\n\n".join(blocks), "").chunks]
    assert len(found) > 2
    assert all(part.startswith("proc step") and part.endswith("stop") for part in found)
