"""Which line ends of a page or a text are kept."""

import pytest
from lxml import etree

from tidemark.adapters.partition.html.lines import LINE_END, with_line_ends


def texts(markup: str) -> list[str]:
    """The texts of the innermost blocks, "/" for a line end that is kept."""
    root = etree.fromstring(f"<div>{markup}</div>", etree.HTMLParser()).find(".//div")
    assert root is not None
    with_line_ends(root)
    leaves = [e for e in root.iter("p", "li", "h2", "address", "td") if e.find(".//p") is None]
    return [" ".join("".join(e.itertext()).replace(LINE_END, "/").split()) for e in leaves]


@pytest.mark.parametrize(
    ("markup", "kept"),
    [
        ("<p>Payment line<br>Telephone: 0800 555 0112<br>Monday to Friday, 8am to 5pm</p>",
         "Payment line/Telephone: 0800 555 0112/Monday to Friday, 8am to 5pm"),
        ("<address>12 High Street<br>by the mill<br>Gloucester</address>",
         "12 High Street/by the mill/Gloucester"),
        ("<p>Open daily.<br><b>Phone:</b> 5550 112</p>", "Open daily./Phone: 5550 112"),
        ("<li>Ends here.<br/>Another sentence begins.</li>", "Ends here./Another sentence begins."),
    ],
)  # fmt: skip
def test_lines_that_say_something_each_stay_apart(markup: str, kept: str) -> None:
    assert texts(markup) == [kept]


@pytest.mark.parametrize(
    ("markup", "joined"),
    [
        ("<p>Long prose that goes<br>on in the next line, broken<br>without a reason.</p>",
         "Long prose that goes on in the next line, broken without a reason."),
        ("<h2>The<br>Heading</h2>", "The Heading"),
        ("<p>One line<br></p>", "One line"),
    ],
)  # fmt: skip
def test_a_stray_break_breaks_no_sentence(markup: str, joined: str) -> None:
    assert texts(markup) == [joined]


def test_two_breaks_part_paragraphs() -> None:
    assert texts("<p>The first.<br> <br>The second<br><br><br>The third.</p>") == [
        "The first.",
        "The second",
        "The third.",
    ]


def test_many_breaks_cost_no_more_than_their_number() -> None:
    markup = "<p>" + "<br>".join(f"Line {n}" for n in range(20_000)) + "</p>"
    assert texts(markup)[0].count("/") == 19_999
