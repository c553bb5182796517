"""The pictures of docs/chunking.md are what the code draws today, and the page shows each of them."""

import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tidemark.config.settings import PROJECT

DOCS = PROJECT / "docs"
PICTURES = DOCS / "pictures"
PAGE = DOCS / "chunking.md"
NAMES = sorted(path.stem for path in PICTURES.glob("*.svg"))
HINT = "run: python docs/make_pictures.py"
MOST_BYTES = 150_000
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    import make_pictures

    return make_pictures


def test_there_is_a_file_for_each_picture_and_no_other(maker: ModuleType) -> None:
    assert sorted(maker.PICTURES) == NAMES, HINT


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_what_the_code_draws(name: str, maker: ModuleType) -> None:
    committed = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    # Compared outside the assertion: a diff of two pictures tells nobody anything.
    same = maker.PICTURES[name]().render() == committed
    assert same, f"{name}.svg is not what the chunker does now; {HINT} and look at it"


@pytest.mark.model
def test_the_stored_elements_are_what_partitioning_finds(maker: ModuleType) -> None:
    stored = maker.pages.ELEMENTS.read_text(encoding="utf-8")
    same = maker.pages.partition_all() == stored
    assert same, f"elements.jsonl is not what partitioning finds now; {HINT}"


def test_the_page_shows_every_picture_and_no_other() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(pictures/([\w-]+)\.svg\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(shown) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_small_and_described(name: str) -> None:
    path = PICTURES / f"{name}.svg"
    root = ElementTree.fromstring(path.read_bytes())
    assert path.stat().st_size < MOST_BYTES
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title")
    assert len(root.findtext(f"{SVG}desc") or "") > 40


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_drawn_outside_a_picture(name: str) -> None:
    root = ElementTree.fromstring((PICTURES / f"{name}.svg").read_bytes())
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for text in root.iter(f"{SVG}text"):
        left, length = float(text.get("x", "0")), float(text.get("textLength", "0"))
        left -= {"middle": length / 2, "end": length}.get(text.get("text-anchor", ""), 0.0)
        assert left >= 0
        assert left + length <= width
        assert 0 < float(text.get("y", "0")) < height


def test_text_is_wrapped_and_shortened_to_its_box(maker: ModuleType) -> None:
    from drawing.svg import measure, shorten, wrap

    text = "Harbour-master's certificate of seaworthiness " * 4
    for width in (40, 90, 300):
        assert all(measure(line, 11) <= width for line in wrap(text, width, 11))
        assert measure(shorten(text, width, 11), 11) <= width
    assert "".join(" ".join(wrap(text, 90, 11)).split()) == "".join(text.split())


def test_the_picture_of_an_edit_shows_what_the_page_says_of_it(maker: ModuleType) -> None:
    assert maker.stability.embedded_anew("by_title") == 1
    assert maker.stability.embedded_anew("recursive") > 4


def test_the_sources_of_the_pictures_exist(maker: ModuleType) -> None:
    assert [s for s in maker.pages.SOURCES.values() if not Path(PROJECT / s).is_file()] == []
