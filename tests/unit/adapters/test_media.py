import pytest

from tidemark.adapters.media import (
    DOCUMENT_TYPES,
    detect,
    is_never_document,
    media_type_of_suffix,
    parse_content_type,
)
from tidemark.adapters.sources.selection import PathPatterns, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.md", "a.md", True),
        ("*.md", "deep/down/a.md", True),
        ("*.md", "a.mdx", False),
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "docs/deep/a.md", False),
        ("docs/**/*.md", "docs/a.md", True),
        ("docs/**/*.md", "docs/deep/down/a.md", True),
        ("docs/**", "docs/a", True),
        ("docs/**", "docs", False),
        ("docs/", "docs/deep/a.md", True),
        ("/docs/", "/docs/a", True),
        ("docs/", "old/docs/a", False),
        ("/docs/**", "/docs/a b.html", True),
        ("v?/a", "v1/a", True),
        ("v?/a", "v/1/a", False),
        ("a.b", "axb", False),
        ("a[1].md", "a[1].md", True),
    ],
)
def test_a_pattern_means_what_its_signs_say(pattern: str, path: str, matches: bool) -> None:
    assert compile_pattern(pattern)(path) is matches


def test_what_is_excluded_stays_out_though_it_is_included() -> None:
    patterns = PathPatterns(include=("docs/",), exclude=("*.tmp.md", "docs/old/"))
    assert patterns.admits("docs/a.md")
    assert not patterns.admits("docs/a.tmp.md")
    assert not patterns.admits("docs/old/a.md")
    assert not patterns.admits("blog/a.md")
    assert PathPatterns().admits("anything")


@pytest.mark.parametrize(
    ("header", "uri", "expected"),
    [
        ("Text/HTML; Charset=\"UTF-8\"", "http://h/a", ("text/html", "utf-8")),
        ("text/html", "http://h/a.pdf", ("text/html", None)),
        ("text/plain", "http://h/a.md?raw", ("text/markdown", None)),
        ("text/plain", "http://h/a.html", ("text/plain", None)),
        ("application/octet-stream", "http://h/a.pdf", ("application/pdf", None)),
        ("application/octet-stream", "http://h/a", ("application/octet-stream", None)),
        ("", "http://h/a", ("", None)),
        ("text/x-markdown; charset=", "http://h/a", ("text/markdown", None)),
    ],
)  # fmt: skip
def test_a_media_type_is_taken_from_where_it_is_told_best(
    header: str, uri: str, expected: tuple[str, str | None]
) -> None:
    assert parse_content_type(header, uri) == expected


def test_bytes_tell_what_they_are_when_nothing_else_does() -> None:
    assert detect(b"\xef\xbb\xbf\n<!DOCTYPE html><title>x") == "text/html"
    assert detect(b"%PDF-1.7 ...") == "application/pdf"
    assert detect(b"\x89PNG") == ""


def test_pictures_and_archives_are_passed_over_by_their_name() -> None:
    assert is_never_document("http://h/a/logo.PNG?v=2")
    assert is_never_document("http://h/release-1.0.tar.gz")
    assert not is_never_document("http://h/a.png/")
    assert not is_never_document("http://h/v1.0")


def test_source_code_is_read_from_folders_and_scripts_of_pages_are_not() -> None:
    assert media_type_of_suffix(".js") == "text/javascript"
    assert media_type_of_suffix(".py") == "text/x-python"
    assert is_never_document("http://h/static/app.js")
    for said in ("text/javascript", "application/javascript", "application/x-javascript"):
        assert parse_content_type(said, "http://h/bundle")[0] not in DOCUMENT_TYPES
    assert parse_content_type("text/plain", "http://h/a.py") == ("text/x-python", None)
    assert "text/x-python" in DOCUMENT_TYPES


def test_data_is_read_from_folders_and_not_from_websites() -> None:
    for suffix in (".json", ".jsonl", ".xml", ".ipynb"):
        media_type = media_type_of_suffix(suffix)
        assert media_type is not None
        assert media_type not in DOCUMENT_TYPES
        assert is_never_document(f"http://h/a{suffix}")
    for said in ("text/xml", "application/rss+xml", "application/ld+json", "text/json"):
        assert parse_content_type(said, "http://h/feed")[0] not in DOCUMENT_TYPES


def test_books_and_office_files_are_read_from_both() -> None:
    for suffix in (".pdf", ".epub", ".odt", ".rtf", ".docx", ".pptx", ".xlsx", ".msg", ".adoc"):
        assert media_type_of_suffix(suffix) in DOCUMENT_TYPES
        assert not is_never_document(f"http://h/a{suffix}")
    assert detect(b"{\\rtf1 x}") == "application/rtf"
    assert (
        detect(b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/epub+zip")
        == "application/epub+zip"
    )
    template = b"mimetypeapplication/vnd.oasis.opendocument.text-template"
    assert detect(b"PK\x03\x04" + bytes(26) + template) == ""
