"""Definitions found in program code, language by language."""

import time
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

from tidemark.adapters.partition.code.tree_sitter import MAX_BYTES, TreeSitterCodeParser
from tidemark.domain.documents import Definition

PARSER = TreeSitterCodeParser()


def found(code: str, syntax: str) -> list[tuple[int, str, str]]:
    """Level, kind and name of each definition."""
    return [(d.level, d.kind, d.name) for d in definitions(code, syntax)]


def definitions(code: str, syntax: str) -> list[Definition]:
    return [d for d in PARSER.definitions(code, syntax) if d.kind != "unit"]


def whole(code: str, syntax: str, name: str) -> str:
    return next(code[d.start : d.end] for d in definitions(code, syntax) if d.name == name)


def signature(code: str, syntax: str, name: str) -> str:
    one = next(d for d in definitions(code, syntax) if d.name == name)
    return " ".join(code[one.head : one.body].split())


PYTHON = '''import os

# Watches the water.
# For ever.
@register
@dataclass(frozen=True)
class Gauge:
    """A gauge."""

    @property
    def level(self) -> int:
        # inside
        def inner():
            return 1
        return inner()


async def read(
    path: str,  # where
) -> str:
    return path
'''


def test_python_classes_methods_and_functions() -> None:
    assert found(PYTHON, "python") == [
        (0, "class", "Gauge"),
        (1, "function", "level"),
        (2, "function", "inner"),
        (0, "function", "read"),
    ]
    assert whole(PYTHON, "python", "Gauge").startswith("# Watches the water.\n# For ever.\n@reg")
    assert whole(PYTHON, "python", "level").startswith("@property\n    def level")
    assert signature(PYTHON, "python", "Gauge") == "class Gauge:"
    assert signature(PYTHON, "python", "read") == "async def read( path: str, # where ) -> str:"


def test_a_comment_that_is_not_directly_above_is_not_the_definitions() -> None:
    code = "x = 1  # of x\ndef a():\n    pass\n\n# A heading.\n\ndef b():\n    pass\n"
    assert whole(code, "python", "a").startswith("def a")
    assert whole(code, "python", "b").startswith("def b")


JAVASCRIPT = """import x from "x";

/** Watches. */
export default class Gauge extends Base {
  constructor() { super(); }
  static async read(path) {
    return path;
  }
  handler = (event) => {
    this.go(event);
  };
}

export const add = async (a, b) => {
  return a + b;
};
exports.old = function () {
  return 1;
};
function* walk() {
  yield 1;
}
describe("gauges", () => {
  it("reads", function () {
    expect(1).toBe(1);
  });
});
const one = (x) => x + 1;
"""


def test_javascript_classes_arrows_and_calls_with_functions() -> None:
    assert found(JAVASCRIPT, "javascript") == [
        (0, "class", "Gauge"),
        (1, "function", "constructor"),
        (1, "function", "read"),
        (1, "function", "handler"),
        (0, "function", "add"),
        (0, "function", "exports.old"),
        (0, "function", "walk"),
        (0, "block", "describe"),
        (1, "block", "it"),
    ]
    assert whole(JAVASCRIPT, "javascript", "Gauge").startswith("/** Watches. */\nexport default")
    assert signature(JAVASCRIPT, "javascript", "add") == "export const add = async (a, b) =>"
    assert signature(JAVASCRIPT, "javascript", "it") == 'it("reads", function ()'


TYPESCRIPT = """@Component({ selector: "gauge" })
export abstract class Gauge<T> {
  // Reads.
  @Log()
  protected read(path: string): T {
    return this.of(path);
  }
}
export interface Reading {
  level: number;
}
enum Kind { A, B }
type Both = {
  a: string;
};
namespace tools {
  export function go(): void {
    run();
  }
}
"""


@pytest.mark.parametrize("syntax", ["typescript", "tsx"])
def test_typescript_types_and_decorators(syntax: str) -> None:
    assert found(TYPESCRIPT, syntax) == [
        (0, "class", "Gauge"),
        (1, "function", "read"),
        (0, "class", "Reading"),
        (0, "class", "Kind"),
        (0, "type", "Both"),
        (0, "class", "tools"),
        (1, "function", "go"),
    ]
    assert whole(TYPESCRIPT, syntax, "Gauge").startswith("@Component")
    assert whole(TYPESCRIPT, syntax, "read").startswith("// Reads.\n  @Log()")


def test_tsx_components() -> None:
    code = "export const App = () => {\n  return (\n    <div>\n      hi\n    </div>\n  );\n};\n"
    assert found(code, "tsx") == [(0, "function", "App")]


GO = """package main

// Gauge measures.
type Gauge struct {
	level int
}

type Reader interface {
	Read() int
}

// Read reads.
func (g *Gauge) Read() int {
	return g.level
}

func TestRead(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		check()
	})
}
"""


def test_go_types_methods_and_subtests() -> None:
    assert found(GO, "go") == [
        (0, "class", "Gauge"),
        (0, "class", "Reader"),
        (0, "function", "Read"),
        (0, "function", "TestRead"),
        (1, "block", "t.Run"),
    ]
    assert whole(GO, "go", "Read").startswith("// Read reads.\nfunc (g *Gauge)")
    assert signature(GO, "go", "Read") == "func (g *Gauge) Read() int"


JAVA = """package a;

/** Measures. */
@Entity
public class Gauge extends Base implements Reader {
    private int level;

    public Gauge() {
        level = 0;
    }

    @Override
    public int read(String path) throws Failure {
        return level;
    }

    enum Kind { A, B }
    record Point(int x) {}
    interface Inner { void go(); }
}
"""


def test_java_classes_annotations_and_constructors() -> None:
    assert found(JAVA, "java") == [
        (0, "class", "Gauge"),
        (1, "function", "Gauge"),
        (1, "function", "read"),
        (1, "class", "Kind"),
        (1, "class", "Point"),
        (1, "class", "Inner"),
    ]
    assert whole(JAVA, "java", "Gauge").startswith("/** Measures. */\n@Entity")
    assert whole(JAVA, "java", "read").startswith("@Override")


C = """#include <stdio.h>

/* A node. */
typedef struct node {
    int value;
} node_t;

struct other;

static node_t *
find(node_t *list, int value)
{
    return list;
}
"""


def test_c_functions_structs_and_typedefs() -> None:
    assert found(C, "c") == [(0, "class", "node_t"), (0, "function", "find")]
    assert whole(C, "c", "node_t").startswith("/* A node. */\ntypedef")
    assert signature(C, "c", "find") == "static node_t * find(node_t *list, int value)"


CPP = """namespace water {

// Measures.
template <typename T>
class Gauge : public Base<T> {
public:
    Gauge();
    int read() const { return level_; }
};

template <typename T>
Gauge<T>::Gauge() {
    level_ = 0;
}

}  // namespace water
"""


def test_cpp_namespaces_and_templates() -> None:
    assert found(CPP, "cpp") == [
        (0, "class", "water"),
        (1, "class", "Gauge"),
        (2, "function", "read"),
        (1, "function", "Gauge<T>::Gauge"),
    ]
    assert whole(CPP, "cpp", "Gauge").startswith("// Measures.\ntemplate")


RUST = """/// A point.
#[derive(Debug)]
pub struct Point {
    x: i32,
}

impl fmt::Display for Point {
    /// Shows.
    #[inline]
    fn fmt(&self) -> Result {
        write!(f, "{}", self.x)
    }
}

macro_rules! twice {
    ($x:expr) => { $x * 2 };
}

#[cfg(test)]
mod tests {
    #[test]
    fn works() {}
}
"""


def test_rust_items_with_their_attributes() -> None:
    assert found(RUST, "rust") == [
        (0, "class", "Point"),
        (0, "class", "Point"),
        (1, "function", "fmt"),
        (0, "function", "twice"),
        (0, "class", "tests"),
        (1, "function", "works"),
    ]
    assert whole(RUST, "rust", "Point").startswith("/// A point.\n#[derive(Debug)]\npub struct")
    assert whole(RUST, "rust", "fmt").startswith("/// Shows.\n    #[inline]")


SQL = """-- The gauges.
CREATE TABLE gauges (
  id INT PRIMARY KEY
);

CREATE VIEW levels AS
SELECT id
FROM gauges;

CREATE FUNCTION one() RETURNS int AS $$
BEGIN
  RETURN 1;
END;
$$ LANGUAGE plpgsql;

INSERT INTO gauges (id)
VALUES (1);
"""


def test_sql_tables_views_and_functions() -> None:
    assert found(SQL, "sql") == [
        (0, "class", "gauges"),
        (0, "class", "levels"),
        (0, "function", "one"),
    ]
    assert whole(SQL, "sql", "gauges").startswith("-- The gauges.\nCREATE TABLE")
    assert signature(SQL, "sql", "levels") == "CREATE VIEW levels AS"


def test_bash_functions() -> None:
    code = "#!/bin/bash\nset -e\n\n# Greets.\ngreet() {\n  echo hi\n}\nfunction bye {\n  echo\n}\n"
    assert found(code, "bash") == [(0, "function", "greet"), (0, "function", "bye")]
    assert whole(code, "bash", "greet").startswith("# Greets.\ngreet()")


def test_offsets_are_of_characters_whatever_the_code_is_written_in() -> None:
    code = "# größe\nclass Größe:\n    '''日本 🎉'''\n    def läuft(self):\n        return '🎉'\n"
    assert found(code, "python") == [(0, "class", "Größe"), (1, "function", "läuft")]
    assert whole(code, "python", "läuft") == "def läuft(self):\n        return '🎉'"
    assert whole(code, "python", "Größe") == code.rstrip()


@pytest.mark.parametrize(("old", "new"), [("\n", "\r\n"), ("    ", "\t")])
def test_line_ends_and_tabs_of_any_kind_change_nothing(old: str, new: str) -> None:
    assert found(PYTHON.replace(old, new), "python") == found(PYTHON, "python")
    assert whole(PYTHON.replace(old, new), "python", "Gauge").startswith("# Watches")


def test_code_with_errors_gives_what_was_found() -> None:
    code = "def a():\n    return 1\n\ndef b(:\n    retrn ((\n\nclass C:\n    def d(self):\n        pass\n"
    assert (0, "function", "a") in found(code, "python")
    broken = "func a() int {\n\treturn 1\n}\n\nfunc b( {{\n"
    assert (0, "function", "a") in found(broken, "go")


def test_lines_that_belong_together_come_as_units() -> None:
    code = 'x = call(\n    1,\n    2,\n)\ny = 3\nz = """a\nb"""\n'
    units = [d for d in PARSER.definitions(code, "python") if d.kind == "unit"]
    texts = {code[d.start : d.end] for d in units}
    assert {"x = call(\n    1,\n    2,\n)", "(\n    1,\n    2,\n)", '"""a\nb"""'} <= texts
    assert not any("y = 3" in text for text in texts)


def test_a_language_that_is_not_known_gives_nothing() -> None:
    assert PARSER.definitions("def a; end", "ruby") == []
    assert PARSER.definitions("def a(): pass", "") == []


def test_broken_characters_are_no_error() -> None:
    assert found("def a():\n    return '\ud800'\n\ndef b():\n    pass\n", "python")[0][2] == "a"


@pytest.mark.parametrize(
    ("syntax", "code"),
    [
        ("java", "a<" * 40_000),
        ("bash", "select (" * 10_000),
        ("rust", "if (a) " * 10_000),
        ("python", "[\n" * 40_000),
        ("javascript", "'" * 80_000),
        ("java", "//a\nx=>" * 10_000),
        ("python", "/*unsafe " * 10_000),
    ],
)
def test_code_made_to_be_hard_is_given_up_in_bounded_time(syntax: str, code: str) -> None:
    before = time.thread_time()
    PARSER.definitions(code, syntax)
    assert time.thread_time() - before < 4


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for the memory")
def test_memory_does_not_grow_with_the_code_that_was_parsed() -> None:
    def pages() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])

    def parse(times: int) -> None:
        for number in range(times):
            PARSER.definitions(f"# {number}\n" + PYTHON * 40, "python")

    parse(10)
    before = pages()
    parse(60)
    assert (pages() - before) * 4096 < 60 * len(PYTHON) * 40 / 3


def test_code_longer_than_one_read_is_parsed_as_one() -> None:
    code = "".join(f"def größe_{n}():\n    return '日本 {n}'\n\n" for n in range(6000))
    found_names = [d.name for d in definitions(code, "python")]
    assert found_names == [f"größe_{n}" for n in range(6000)]


def test_code_over_the_bound_is_not_parsed() -> None:
    assert PARSER.definitions("def a():\n    pass\n" + "#" * MAX_BYTES, "python") == []


def test_the_fingerprint_is_known_without_importing_tree_sitter() -> None:
    program = (
        "import sys\n"
        "from tidemark.adapters.partition.code.tree_sitter import TreeSitterCodeParser\n"
        "assert len(TreeSitterCodeParser().fingerprint) == 16\n"
        "assert not [m for m in sys.modules if m.startswith('tree_sitter')]\n"
    )
    assert run([executable, "-c", program], check=False).returncode == 0
