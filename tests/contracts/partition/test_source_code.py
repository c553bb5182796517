"""Files of source code as documents, and the language of code in documents of other formats."""

from datetime import UTC, datetime

import pytest

from tidemark.adapters.media import canonical_syntax, syntax_of_info
from tidemark.adapters.partition.partitioner import DocumentPartitioner
from tidemark.domain.documents import ElementKind, PartitionedDocument, RawDocument
from tidemark.domain.errors import DocumentError

MODULE = '"""Packs."""\n\n# -*- not first\n\n\ndef pack(größe):\n\treturn [größe,\n\t\t1]  \n'


def read(
    content: bytes | str, media_type: str = "text/x-python", uri: str = "file:///src/packing.py"
) -> PartitionedDocument:
    data = content.encode() if isinstance(content, str) else content
    document = RawDocument(uri, data, media_type, None, datetime(2026, 1, 1, tzinfo=UTC))
    return DocumentPartitioner().partition(document)


def syntaxes(content: str, media_type: str) -> list[tuple[str, str]]:
    found = read(content, media_type, "file:///docs/page")
    return [(e.text, e.syntax) for e in found.elements if e.kind is ElementKind.CODE]


def test_a_source_file_is_one_verbatim_element_named_by_its_file() -> None:
    document = read("\n\n" + MODULE)
    (element,) = document.elements
    assert (document.title, element.kind, element.syntax) == (
        "packing.py",
        ElementKind.CODE,
        "python",
    )
    assert element.text == MODULE.rstrip()


@pytest.mark.parametrize(
    ("uri", "media_type", "syntax"),
    [
        ("file:///a/b.js", "text/javascript", "javascript"),
        ("file:///a/b.tsx", "text/x-tsx", "tsx"),
        ("file:///a/b.c", "text/plain", "c"),
        ("file:///a/b.rs", "application/octet-stream", "rust"),
        ("file:///a/b", "text/x-go", "go"),
        ("file:///a/my%20script.sh", "text/x-sh", "bash"),
    ],
)
def test_the_language_is_told_by_the_type_or_the_suffix(
    uri: str, media_type: str, syntax: str
) -> None:
    document = read("x = 1\n", media_type, uri)
    assert document.elements[0].syntax == syntax
    assert "%20" not in document.title


def test_code_that_names_other_formats_is_still_code() -> None:
    code = 'PDF = b"%PDF-"\nPAGE = "<meta charset=utf-16>"\nFrom = 1\n'
    assert read(code).elements[0].text == code.rstrip()
    page = "<!DOCTYPE html>\n<?php echo 1; ?>\n"
    assert read(page, "text/x-php", "file:///a/b.php").elements[0].syntax == "php"


def test_an_encoding_is_read_as_the_code_declares_it() -> None:
    code = "# -*- coding: iso-8859-15 -*-\nprice = '5 €'\n"
    assert read(code.encode("iso-8859-15")).elements[0].text == code.rstrip()
    assert read("x = 'ü'\n".encode("utf-16")).elements[0].text == "x = 'ü'"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"x = 1\n" * 2000 + b"\0\1\2", "binary"),
        (bytes(range(1, 256)) * 40, "binary"),
        ((b"# " + bytes(range(0x80, 0x100)) + b"\n") * 30, "encoding"),
        (b"a=1;" * 6000, "minified"),
        (b"\n\n", "empty"),
    ],
)
def test_a_file_at_fault_is_named_with_a_cure(content: bytes, problem: str) -> None:
    with pytest.raises(DocumentError, match=problem) as caught:
        read(content)
    assert "packing.py" in caught.value.message
    assert caught.value.hint


def test_a_long_line_in_a_small_file_is_no_reason_to_refuse_it() -> None:
    assert read("x = '" + "a" * 6000 + "'\n").elements


@pytest.mark.model
@pytest.mark.parametrize(
    ("html", "syntax"),
    [
        ('<pre><code class="language-py">x</code></pre>', "python"),
        ('<pre class="lang-js">x</pre>', "javascript"),
        ('<div class="highlight-python3 notranslate"><div><pre>x</pre></div></div>', "python"),
        ('<div class="highlight highlight-source-shell"><pre>x</pre></div>', "bash"),
        ('<div class="language-rust highlighter-rouge"><pre><code>x</code></pre></div>', "rust"),
        ('<pre data-lang="golang">x</pre>', "go"),
        ('<figure data-language="ts"><pre>x</pre></figure>', "typescript"),
        ('<pre class="sourceCode sql"><code>x</code></pre>', "sql"),
        ('<pre class="code java literal-block">x</pre>', "java"),
        ('<pre class="brush: c++;">x</pre>', "cpp"),
        ('<pre lang="go">x</pre>', "go"),
        ('<pre lang="cs">x</pre>', ""),
        ('<div class="highlight-default notranslate"><pre>x</pre></div>', ""),
        ('<div class="language-python"><p>It says.</p><pre>x</pre></div>', ""),
        ("<pre>x</pre>", ""),
    ],
)  # fmt: skip
def test_the_classes_of_a_page_tell_the_language(html: str, syntax: str) -> None:
    page = f"<html><body><h1>Page</h1><p>Some text before it.</p>{html}</body></html>"
    assert syntaxes(page, "text/html") == [("x", syntax)]


@pytest.mark.model
def test_a_markdown_fence_tells_the_language() -> None:
    page = "# A\n\n```py title=x\na\n```\n\n~~~ {.rust .numbered}\nb\n~~~\n\n    c\n\n```text\nd\n```\n"
    assert syntaxes(page, "text/markdown") == [
        ("a", "python"),
        ("b", "rust"),
        ("c", ""),
        ("d", ""),
    ]


@pytest.mark.model
def test_a_directive_of_restructuredtext_tells_the_language() -> None:
    page = "A\n=\n\n.. code-block:: go\n\n   a\n\n::\n\n   b\n\n.. testcode::\n\n   c\n"
    assert syntaxes(page, "text/x-rst") == [("a", "go"), ("b", ""), ("c", "python")]


@pytest.mark.parametrize(
    ("info", "syntax"),
    [
        ("python", "python"),
        ("Python {1,3}", "python"),
        ("{python}", "python"),
        ("{code-block} c++", "cpp"),
        ("rust,no_run", "rust"),
        ("js:app.js", "javascript"),
        ("c#", "csharp"),
        ("{r, echo=FALSE}", "r"),
        ("=html", "html"),
        ("mermaid", ""),
        ("", ""),
    ],
)
def test_info_strings_of_all_kinds_are_read(info: str, syntax: str) -> None:
    assert syntax_of_info(info) == syntax


def test_names_of_languages_are_one() -> None:
    assert {canonical_syntax(n) for n in ("sh", "Shell", "ZSH", "console", "bash")} == {"bash"}
    assert canonical_syntax("klingon") == ""
