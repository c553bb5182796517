"""Formulas become text that can be read, and nothing of them is lost or said twice."""

import pytest
from lxml import etree

from tidemark.adapters.partition.html.cleaner import clean_html
from tidemark.adapters.partition.html.math import formula_text
from tidemark.adapters.partition.html.reader import elements_of


def math(markup: str) -> etree._Element:
    found = etree.fromstring(f"<math>{markup}</math>", etree.HTMLParser()).find(".//math")
    assert found is not None
    return found


def blocks(body: str) -> list[tuple[str, str]]:
    page = f"<html><body><main><h1>Title of it</h1>{body}</main></body></html>"
    return [(e.kind.value, e.text) for e in elements_of(clean_html(page, "a.html").root)][1:]


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<mi>p</mi><mo>=</mo><mn>12</mn><mo>+</mo><mn>3</mn><mi>h</mi>", "p = 12 + 3h"),
        ("<mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac>", "(a + b)/2"),
        ("<mfrac><mn>1</mn><mrow><mn>2</mn><mi>a</mi></mrow></mfrac>", "1/(2a)"),
        ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>", "x_i^2"),
        ("<mo>−</mo><mi>b</mi><mo>≤</mo><msqrt><mi>c</mi></msqrt>", "−b ≤ √(c)"),
        ("<mi>sin</mi><mo>\u2061</mo><mi>x</mi>", "sin x"),
        ("<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>0</mn></mtd></mtr></mtable>", "1, 0"),
        ("<mfrac><mi>a</mi></mfrac>", "a"),
        ("<semantics><annotation encoding='application/x-tex'>a^2</annotation></semantics>", "a^2"),
    ],
)
def test_mathml_is_read_in_one_line(markup: str, text: str) -> None:
    assert formula_text(math(markup)) == text


KATEX = (
    "<span class=katex><span class=katex-mathml><math><semantics><mrow><mi>E</mi><mo>=</mo><mi>m</mi></mrow>"
    "<annotation encoding='application/x-tex'>E=m</annotation></semantics></math></span>"
    "<span class=katex-html aria-hidden=true>E=m</span></span>"
)
BLOCK = "<math display=block><mi>E</mi><mo>=</mo><mi>m</mi></math>"
HIDDEN = "<span style='display: none'><math alttext='E = m'></math></span>"
DISPLAYED = [
    BLOCK,
    f"<span class=katex-display>{KATEX}</span>",
    "<span class=MathJax_Display>drawn</span><script type='math/tex; mode=display'>E = m</script>",
    f"<mjx-container display=true><svg></svg><mjx-assistive-mml>{BLOCK}</mjx-assistive-mml></mjx-container>",
    "<div class='math notranslate'>\\[E = m\\]</div>",
]
INLINE = [
    "<math><mi>E</mi><mo>=</mo><mi>m</mi></math>",
    KATEX,
    "<span class=MathJax_Preview>drawn</span><script type='math/tex'>E = m</script>",
    "<span class='math inline'>\\(E = m\\)</span>",
    f"<span class=mwe-math-element>{HIDDEN}<img alt='E = m'></span>",
]


@pytest.mark.parametrize("formula", DISPLAYED)
def test_a_formula_set_apart_is_a_block_of_its_own(formula: str) -> None:
    assert blocks(f"<p>Energy:</p>{formula}<p>and so on.</p>") == [
        ("text", "Energy:"),
        ("formula", "E = m"),
        ("text", "and so on."),
    ]


def test_a_formula_that_parts_a_paragraph_leaves_both_halves() -> None:
    assert blocks(f"<p>Before {DISPLAYED[0]} after.</p>") == [
        ("text", "Before"),
        ("formula", "E = m"),
        ("text", "after."),
    ]


@pytest.mark.parametrize("formula", INLINE)
def test_a_formula_in_a_sentence_stays_in_it_and_is_said_once(formula: str) -> None:
    assert blocks(f"<p>Here {formula} holds.</p>") == [("text", "Here E = m holds.")]
