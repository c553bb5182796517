"""What stands in Markdown files and is no Markdown."""

import pytest

from tidemark.adapters.partition.html.tree import HEADINGS, text_of
from tidemark.adapters.partition.text.markdown import read_markdown


def markdown_headings(text: str) -> list[tuple[int, str]]:
    root = read_markdown(text, "a.md", 100).root
    return [(int(e.tag[1]), text_of(e)) for e in root.iter(*HEADINGS)]


def test_markdown_code_keeps_what_looks_like_a_wiki_heading() -> None:
    text = (
        "# Title\n\n```\n== code ==\n```\n\n    == indented ==\n\n<pre>\n== raw ==\n</pre>\n\n"
        '== Real ==\n\nx\n\n=== "Tab"\n\n    In the tab.\n\n~~~\n==== Body\n~~~\n'
    )
    assert markdown_headings(text) == [(1, "Title"), (2, "Real")]
    assert "== raw ==" in text_of(read_markdown(text, "a.md", 100).root)


def test_words_in_angle_brackets_stay_when_they_are_no_tags() -> None:
    text = (
        "Use git switch <branch> or `git <branch>` or <b>bold</b>, <Card>in</Card><br> a Vec<T>.\n"
    )
    shown = text_of(read_markdown(text, "a.md", 100).root)
    assert shown == "Use git switch <branch> or git <branch> or bold, in a Vec<T>."


@pytest.mark.parametrize("suffix", ["", "\n"])
def test_a_closing_hash_of_a_wiki_heading_is_kept(suffix: str) -> None:
    assert markdown_headings(f"== C # ==\n\nText.\n\n== F # =={suffix}") == [(2, "C #"), (2, "F #")]
