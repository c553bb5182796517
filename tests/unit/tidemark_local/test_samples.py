"""The bundled samples hold what the README and the end-to-end tests build on."""

import email
import email.policy
from collections import deque
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import openpyxl
import pypdf
import pytest
from lxml import html
from make_samples import FILES, SITE, Block, Kind, build_files, build_site, read_blocks, read_page
from protego import Protego

ORIGIN = "http://site.test"
BROKEN = "/guide/winter-kit.html"
MOVED = "/guide/quickstart.html"
BLOCKED = "/internal/depot-stock.html"

PAGES = {
    "/" if path == Path("index.html") else f"/{path.as_posix()}": html.parse(SITE / path).getroot()
    for path in sorted(file.relative_to(SITE) for file in SITE.rglob("[!_]*.html"))
}


def links(path: str) -> list[tuple[str, str]]:
    """Internal targets of a page as (path, fragment)."""
    found = []
    for href in PAGES[path].xpath("//a/@href"):
        url, fragment = urldefrag(urljoin(ORIGIN + path, href))
        if url.startswith(ORIGIN):
            found.append((urlsplit(url).path, fragment))
    return found


def count(xpath: str) -> int:
    """Matches inside the articles of all pages."""
    return sum(len(page.xpath(f"//article{xpath}")) for page in PAGES.values())


def tree(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_every_internal_link_resolves_but_the_broken_and_the_moved_one():
    targets = {target for path in PAGES for target, _ in links(path)}
    assert targets - PAGES.keys() == {BROKEN, MOVED}


def test_every_fragment_names_an_id_on_its_page():
    unknown = {
        (path, target, fragment)
        for path in PAGES
        for target, fragment in links(path)
        if fragment and not PAGES[target].xpath("//*[@id=$id]", id=fragment)
    }
    assert unknown == set()


def test_no_page_uses_an_id_twice():
    for path, page in PAGES.items():
        ids = page.xpath("//@id")
        assert len(ids) == len(set(ids)), path


def test_links_reach_every_page_from_the_first():
    seen, ahead = {"/"}, deque(["/"])
    while ahead:
        for target, _ in links(ahead.popleft()):
            if target in PAGES and target not in seen:
                seen.add(target)
                ahead.append(target)
    assert seen == PAGES.keys()


def test_the_redirect_leads_to_a_page():
    rules = [
        line.split()
        for line in (SITE / "_redirects").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert [rule[0] for rule in rules] == [MOVED]
    assert rules[0][1] in PAGES


def test_robots_txt_blocks_one_page_that_is_linked():
    robots = Protego.parse((SITE / "robots.txt").read_text())
    blocked = {path for path in PAGES if not robots.can_fetch(ORIGIN + path, "tidemark")}
    assert blocked == {BLOCKED}
    assert any(target == BLOCKED for path in PAGES for target, _ in links(path))


def test_the_sitemap_lists_some_of_the_pages():
    text = (SITE / "sitemap.xml").read_text().replace("__ORIGIN__", ORIGIN)
    listed = {urlsplit(url).path for url in html.fromstring(text.encode()).xpath("//loc/text()")}
    assert listed < PAGES.keys()
    assert 5 <= len(listed) <= len(PAGES) - 10


@pytest.mark.parametrize(
    "boilerplate",
    [
        "//a[@class='skip-link']",
        "//header//nav[@class='site-nav']//a",
        "//nav[@class='sidebar']//a",
        "//nav[@class='breadcrumb']//li",
        "//nav[@class='toc']//a",
        "//a[text()='Edit this page']",
        "//nav[@class='pager']",
        "//footer//time",
        "//div[@class='cookie-banner']//label",
    ],
)
def test_every_page_carries_the_boilerplate(boilerplate: str):
    assert [path for path, page in PAGES.items() if not page.xpath(boilerplate)] == []


def test_pages_but_the_first_and_last_lead_both_ways():
    one_way = {p for p, page in PAGES.items() if len(page.xpath("//nav[@class='pager']/a")) < 2}
    assert one_way == {"/", "/about/contributing.html", BLOCKED}


@pytest.mark.parametrize(
    ("what", "at_least"),
    [
        ("/h1", 18),
        ("//h4", 8),
        ("//table/thead/tr/th", 40),
        ("//table/caption", 3),
        ("//dl/dd", 40),
        ("//ol/li/ol", 1),
        ("//ul/li/ul", 1),
        ("//pre", 15),
        ("//code[@class='language-python']", 2),
        ("//code[@class='language-json']", 3),
        ("//code[@class='language-shell']", 8),
        ("//*[contains(@class, 'admonition')]", 5),
        ("//figure/figcaption", 1),
        ("//details/summary", 3),
        ("//section[@class='footnotes']//li", 1),
        ("//h3[contains(., '?')]", 10),
    ],
)
def test_the_site_holds_enough_of_each_kind_of_block(what: str, at_least: int):
    assert count(what) >= at_least


def test_every_page_has_one_title_and_needs_nothing_from_elsewhere():
    for path, page in PAGES.items():
        assert len(page.xpath("//h1")) == 1, path
        for url in page.xpath("//link/@href | //img/@src | //script/@src"):
            target = urlsplit(urljoin(ORIGIN + path, url))
            assert f"{target.scheme}://{target.netloc}" == ORIGIN, path
            assert (SITE / target.path.lstrip("/")).is_file(), path


def test_the_committed_site_is_what_its_content_makes():
    assert dict(build_site()) == tree(SITE)


def test_a_page_without_its_keys_is_refused_by_name(tmp_path: Path):
    (tmp_path / "index.html").write_text("<h1>Title</h1>")
    with pytest.raises(ValueError, match=r"index\.html must begin with"):
        read_page(tmp_path, "index", "Start")


def test_the_committed_documents_are_what_their_content_makes():
    made = dict(build_files())
    assert set(made) == {
        "keeper-training.pptx",
        "keepers-handbook.pdf",
        "site-survey-skarn-point.docx",
        "spares-and-measures.xlsx",
    }
    different = [name for name, data in made.items() if (FILES / name).read_bytes() != data]
    assert different == []


def test_the_folder_holds_every_format_that_is_promised():
    suffixes = [Path(name).suffix for name in tree(FILES)]
    assert len(suffixes) >= 8
    assert set(suffixes) == {".md", ".docx", ".pdf", ".pptx", ".xlsx", ".eml", ".txt"}
    assert suffixes.count(".md") >= 2


def test_the_handbook_has_numbered_pages_with_a_running_header():
    texts = [page.extract_text() for page in pypdf.PdfReader(FILES / "keepers-handbook.pdf").pages]
    assert len(texts) >= 4
    for number, text in enumerate(texts, start=1):
        assert text.startswith("The keeper's handbook of the Merrow district\n")
        assert text.endswith(f"Page {number} of {len(texts)}")


def test_the_workbook_keeps_numbers_as_numbers():
    book = openpyxl.load_workbook(FILES / "spares-and-measures.xlsx")
    assert book.sheetnames == ["Spares", "Bench marks"]
    assert book["Bench marks"]["C2"].value == 6.114


def test_the_mail_has_its_headers_and_two_bodies_that_say_the_same():
    data = (FILES / "levelling-visit-2026-07.eml").read_bytes()
    mail = email.message_from_bytes(data, policy=email.policy.default)
    assert mail["Subject"].startswith("Levelling of MER-0417")
    plain, marked_up = (part.get_content() for part in mail.iter_parts())
    assert "7.1 mm" in plain
    assert "7.1 mm" in marked_up
    assert not mail.defects


def test_content_files_are_read_block_by_block():
    text = (
        "## Head\n\nText with - dash\n- point\n1. step\n> said\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    assert list(read_blocks(text)) == [
        Block(Kind.HEADING, "Head", level=2),
        Block(Kind.PARAGRAPH, "Text with - dash"),
        Block(Kind.BULLET, "point"),
        Block(Kind.NUMBERED, "step"),
        Block(Kind.NOTE, "said"),
        Block(Kind.TABLE, rows=(("a", "b"), ("1", "2"))),
    ]
