"""How well pages are cleaned: boilerplate left, content lost, structure kept, beside the usual extractors.

    python benchmarks/cleaning.py ../shared/corpora/sites [--peers] [--nameless] [--site NAME]... [--pages]

The ground truth (``cleaning_truth/sites.json``) says for pages looked at by eye which elements hold the
content, and which within them are boilerplate after all. A word is what ``\\w+`` finds. Of the words that
occur in a page's content so often and in an output more seldom, the difference is lost; of the words beyond
those of the content, as many as the page's boilerplate has of them are left. Order does not matter, so that a
word lost and the same word left in boilerplate even out. A heading, table or code block is kept when one of
its kind in the output has its text (tables and code: contains it, white space aside).

``--peers`` needs trafilatura, resiliparse and readability-lxml, which Tidemark does not.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

from cleaning_peers import PEERS, Output
from lxml import etree
from lxml import html as lxml_html

from tidemark.adapters.partition.html.boilerplate import blocks_of
from tidemark.adapters.partition.html.cleaner import clean_html
from tidemark.adapters.partition.html.tree import heading_text
from tidemark.domain.boilerplate import detect_boilerplate

TRUTH = Path(__file__).parent / "cleaning_truth" / "sites.json"
_WORD = re.compile(r"\w+")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
Cleaner = Callable[[str], Output]


@dataclass(frozen=True, slots=True)
class Page:
    """A page and the truth on it: its words by what they are, and the texts of what it holds."""

    name: str
    html: str
    content: Counter[str]
    boilerplate: Counter[str]
    neutral: Counter[str]
    headings: list[str]
    tables: list[str]
    codes: list[str]


@dataclass(slots=True)
class Score:
    """Sums over pages."""

    boilerplate: list[int] = field(default_factory=lambda: [0, 0])
    lost: list[int] = field(default_factory=lambda: [0, 0])
    headings: list[int] = field(default_factory=lambda: [0, 0])
    tables: list[int] = field(default_factory=lambda: [0, 0])
    codes: list[int] = field(default_factory=lambda: [0, 0])
    seconds: float = 0.0
    pages: int = 0

    def add(self, page: Page, output: Output, seconds: float) -> None:
        found = Counter(_WORD.findall(output.text))
        lost = page.content - found
        left = (found - page.content - page.neutral) & page.boilerplate
        self._count(self.boilerplate, left.total(), page.boilerplate.total())
        self._count(self.lost, lost.total(), page.content.total())
        headings = Counter(page.headings) & Counter(output.headings)
        self._count(self.headings, headings.total(), len(page.headings))
        self._count(self.tables, _held(page.tables, output.tables), len(page.tables))
        self._count(self.codes, _held(page.codes, output.codes), len(page.codes))
        self.seconds += seconds
        self.pages += 1

    @staticmethod
    def _count(pair: list[int], part: int, whole: int) -> None:
        pair[0] += part
        pair[1] += whole

    def line(self, name: str) -> str:
        def percent(pair: Sequence[int]) -> str:
            return f"{100 * pair[0] / pair[1]:.2f}" if pair[1] else "–"

        def of(pair: Sequence[int]) -> str:
            return f"{pair[0]}/{pair[1]}"

        rate = self.pages / self.seconds if self.seconds else 0.0
        return (
            f"| {name} | {percent(self.boilerplate)} | {percent(self.lost)} | {of(self.headings)} | "
            f"{of(self.tables)} | {of(self.codes)} | {rate:.0f} |"
        )


def _held(wanted: Iterable[str], found: Sequence[str]) -> int:
    """How many texts are contained in one of the output's, each of which may serve as often as it likes."""
    everything = "\n".join(found)
    return sum(text in everything for text in wanted)


def squashed(text: str) -> str:
    return "".join(text.split())


def truth_pages(corpus: Path, site: dict[str, object]) -> Iterator[Page]:
    folder = corpus / str(site["pages"])
    skip = site.get("skip")
    names = sorted(
        path
        for path in folder.rglob(str(site.get("glob", "*.html")))
        if not (isinstance(skip, list) and path.relative_to(folder).as_posix() in skip)
    )
    first, step, most = (int(str(site[key])) for key in ("first", "step", "most"))
    for path in names[first::step][:most]:
        yield judged(path.relative_to(folder).as_posix(), path.read_text("utf-8"), site)


def judged(name: str, html: str, site: dict[str, object]) -> Page:
    """Sort a page's words by the selectors of its site."""
    document = lxml_html.document_fromstring(html.encode())
    for tag in ("script", "style", "head", "template", "noscript"):
        for element in list(document.iter(tag)):
            element.drop_tree()
    kinds = {
        element: kind
        for kind in ("content", "boilerplate", "neutral")
        for selector in _texts(site[kind])
        for element in document.cssselect(selector)
    }
    page = Page(name, html, Counter(), Counter(), Counter(), [], [], [])
    _walk(document.body, "boilerplate", kinds, page)
    return page


def _walk(element: etree._Element, kind: str, kinds: dict[etree._Element, str], page: Page) -> None:
    kind = kinds.get(element, kind)
    counted = {"content": page.content, "boilerplate": page.boilerplate}.get(kind, page.neutral)
    if kind == "content":
        _note(element, page)
    counted.update(_WORD.findall(element.text or ""))
    for child in element:
        if isinstance(child.tag, str):
            _walk(child, kind, kinds, page)
        counted.update(_WORD.findall(child.tail or ""))


def _note(element: etree._Element, page: Page) -> None:
    text = "".join(map(str, element.itertext()))
    if element.tag in HEADINGS and heading_text(element):
        page.headings.append(heading_text(element))
    elif element.tag == "pre":
        page.codes.append(squashed(text))
    elif element.tag == "table" and element.find(".//pre") is None:
        page.tables.append(squashed(text))


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def nameless(html: str) -> str:
    """A page that says nothing of itself: landmarks are divs, and no element has a class, an id or a role."""
    document = lxml_html.document_fromstring(html.encode())
    for element in document.iter("nav", "header", "footer", "aside", "main", "article", "section"):
        element.tag = "div"
    for element in document.iter("*"):
        for name in ("class", "id", "role", "aria-label", "rel"):
            element.attrib.pop(name, None)
    return str(lxml_html.tostring(document, encoding="unicode"))


def ours(boilerplate: frozenset[int] = frozenset(), before: Callable[[str], str] = str) -> Cleaner:
    def clean(html: str) -> Output:
        root = clean_html(before(html), "page", boilerplate=boilerplate).root
        return output_of(root)

    return clean


def output_of(root: etree._Element) -> Output:
    return Output(
        " ".join(root.itertext()),
        [heading_text(h) for h in root.iter(*HEADINGS)],
        [squashed("".join(t.itertext())) for t in root.iter("table")],
        [squashed("".join(p.itertext())) for p in root.iter("pre", "code")],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--site", action="append", default=[])
    parser.add_argument("--pages", action="store_true", help="a line for each page, ours only")
    parser.add_argument(
        "--nameless", action="store_true", help="the same pages without names and landmarks"
    )
    options = parser.parse_args()
    sites = json.loads(TRUTH.read_text("utf-8"))
    for name, site in sites.items():
        if options.site and name not in options.site:
            continue
        pages = list(truth_pages(options.corpus, site))
        words = sum(page.content.total() for page in pages)
        print(f"\n### {name}: {len(pages)} pages, {words:,} words of content\n")
        print("| | boilerplate left % | content lost % | headings | tables | code | pages/s |")
        print("|---|---|---|---|---|---|---|")
        known = site_boilerplate(options.corpus, site)
        cleaners = {"Tidemark": ours(), f"… with {len(known)} blocks of the site": ours(known)}
        if options.peers:
            cleaners |= PEERS
        if options.nameless:
            known = site_boilerplate(options.corpus, site, nameless)
            cleaners["nameless pages"] = ours(before=nameless)
            cleaners[f"nameless, with {len(known)} blocks of the site"] = ours(known, nameless)
        for cleaner_name, cleaner in cleaners.items():
            report(cleaner_name, cleaner, pages, each=options.pages and cleaner_name == "Tidemark")


def report(name: str, cleaner: Cleaner, pages: Sequence[Page], *, each: bool) -> None:
    total = Score()
    for page in pages:
        before = process_time()
        output = cleaner(page.html)
        seconds = process_time() - before
        total.add(page, output, seconds)
        if each:
            alone = Score()
            alone.add(page, output, seconds)
            print(alone.line(page.name))
    print(total.line(name))


def site_boilerplate(
    corpus: Path, site: dict[str, object], before: Callable[[str], str] = str
) -> frozenset[int]:
    """What is learned from all pages of a site, those looked at and the others."""
    folder = corpus / str(site["pages"])
    pages = sorted(folder.rglob(str(site.get("glob", "*.html"))))
    return detect_boilerplate(
        blocks_of(clean_html(before(p.read_text("utf-8")), p.name).root) for p in pages[:300]
    )


if __name__ == "__main__":
    main()
