"""Build the sample website from its content: ``python -m tidemark_local.make_sample_site``.

Content is in ``samples/site_content``: one fragment of HTML a page, ``_page.html`` for what every page
shares, and files copied as they are. The result in ``samples/site`` is committed, so nothing has to be
built to serve it. A fragment begins with a comment of two keys: ``nav`` (the name of the page in menus)
and ``updated`` (an ISO date). Links in it are written from the root ("/guide/power.html").
"""

import argparse
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from html import escape
from pathlib import Path
from string import Template

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
CONTENT = SAMPLES / "site_content"
SITE = SAMPLES / "site"
BUILT_ON = date(2026, 11, 2)

TREE: dict[str, tuple[str, ...]] = {
    "Start": ("index", "guide/getting-started", "guide/siting"),
    "Guide": (
        "guide/installation",
        "guide/levelling",
        "guide/power",
        "guide/telemetry",
        "guide/maintenance",
    ),
    "Reference": (
        "reference/configuration",
        "reference/sensors",
        "reference/alarms",
        "reference/data-format",
        "reference/api",
        "reference/command-line",
    ),
    "Harbour": ("harbour/passage-planning", "harbour/signals", "harbour/storm-surge"),
    "Help": ("help/faq", "help/troubleshooting"),
    "Policies": ("policies/calibration", "policies/returns", "policies/data"),
    "About": ("about/changelog", "about/glossary", "about/contributing"),
}
UNLISTED = ("internal/depot-stock",)

HEADER = re.compile(r"\A<!--\nnav: (?P<nav>.+)\nupdated: (?P<updated>[\d-]+)\n-->\n")
FIRST_HEADING = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)
HEADING = re.compile(r'<h(?P<level>[23]) id="(?P<id>[^"]+)">(?P<text>.*?)</h(?P=level)>', re.DOTALL)
LOCAL_LINK = re.compile(r'(?P<name>href|src)="(?P<target>/[^"]*)"')
TAG = re.compile(r"<[^>]+>")


@dataclass(frozen=True, slots=True)
class Page:
    """One page before its furniture.

    name: path from the root without ".html".
    group: the heading it stands under in the menus, "" when it is in none.
    nav: its name in menus, as text.
    title: its h1, as text.
    updated: shown at its foot.
    body: HTML.
    """

    name: str
    group: str
    nav: str
    title: str
    updated: date
    body: str

    @property
    def path(self) -> str:
        """Its URL path; the home page is known by its folder alone."""
        return "/" if self.name == "index" else f"/{self.name}.html"


def read_page(content: Path, name: str, group: str) -> Page:
    """Read one fragment. Raises ``ValueError`` naming the file when its head or its h1 is missing."""
    text = (content / f"{name}.html").read_text("utf-8")
    header = HEADER.match(text)
    heading = FIRST_HEADING.search(text)
    if header is None or heading is None:
        raise ValueError(f"{name}.html must begin with its nav and updated keys and have an h1")
    return Page(
        name=name,
        group=group,
        nav=header["nav"],
        title=TAG.sub("", heading[1]).strip(),
        updated=date.fromisoformat(header["updated"]),
        body=text[header.end() :].strip(),
    )


def render(page: Page, listed: list[Page], template: Template) -> str:
    """Put the shared furniture around a page, with links made relative to where it lies."""
    position = listed.index(page) if page in listed else None
    html = template.substitute(
        title=page.title,
        path=page.path,
        name=page.name,
        site_nav=_site_nav(page, listed),
        sidebar=_sidebar(page, listed),
        breadcrumb=_breadcrumb(page),
        contents=_contents(page),
        body=HEADING.sub(_with_permalink, page.body),
        pager=_pager(position, listed),
        updated=f'<time datetime="{page.updated}">{_spelt(page.updated)}</time>',
        built=f'<time datetime="{BUILT_ON}">{_spelt(BUILT_ON)}</time>',
    )
    folder = posixpath.dirname(f"/{page.name}")
    return LOCAL_LINK.sub(
        lambda link: f'{link["name"]}="{_relative(link["target"], folder)}"', html
    )


def _spelt(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _relative(target: str, folder: str) -> str:
    path, mark, fragment = target.partition("#")
    relative = posixpath.relpath(path, folder) + ("/" if path.endswith("/") else "")
    return relative + mark + fragment


def _link(page: Page, text: str, attributes: str = "") -> str:
    return f'<a href="{page.path}"{attributes}>{escape(text)}</a>'


def _with_permalink(heading: re.Match[str]) -> str:
    level, anchor, text = heading["level"], heading["id"], heading["text"]
    permalink = f'<a class="headerlink" href="#{anchor}" title="Link to this heading">¶</a>'
    return f'<h{level} id="{anchor}">{text}{permalink}</h{level}>'


def _site_nav(page: Page, listed: list[Page]) -> str:
    first = {p.group: p for p in reversed(listed)}
    return "\n".join(
        f"<li>{_link(first[group], group, _current(group == page.group))}</li>" for group in TREE
    )


def _sidebar(page: Page, listed: list[Page]) -> str:
    lines: list[str] = []
    for group in TREE:
        lines.append(f'<p class="sidebar-group">{group}</p>\n<ul>')
        lines += [
            f"<li>{_link(p, p.nav, _current(p == page))}</li>" for p in listed if p.group == group
        ]
        lines.append("</ul>")
    return "\n".join(lines)


def _current(is_current: bool) -> str:
    return ' aria-current="page"' if is_current else ""


def _breadcrumb(page: Page) -> str:
    steps = ['<li><a href="/">Wrackline</a></li>']
    if page.group:
        steps.append(f"<li>{page.group}</li>")
    steps.append(f'<li aria-current="page">{escape(page.nav)}</li>')
    return "\n".join(steps)


def _contents(page: Page) -> str:
    entries = [h for h in HEADING.finditer(page.body) if h["level"] == "2"]
    return "\n".join(f'<li><a href="#{h["id"]}">{h["text"]}</a></li>' for h in entries)


def _pager(position: int | None, listed: list[Page]) -> str:
    if position is None:
        return ""
    links: list[str] = []
    if position > 0:
        before = listed[position - 1]
        links.append(_link(before, f"← Previous: {before.nav}", ' rel="prev"'))
    if position + 1 < len(listed):
        after = listed[position + 1]
        links.append(_link(after, f"Next: {after.nav} →", ' rel="next"'))
    return "\n".join(links)


def build(content: Path = CONTENT) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the site, as its path under the root and its bytes."""
    template = Template((content / "_page.html").read_text("utf-8"))
    listed = [read_page(content, name, group) for group, names in TREE.items() for name in names]
    unlisted = [read_page(content, name, "") for name in UNLISTED]
    for page in listed + unlisted:
        yield f"{page.name}.html", render(page, listed, template).encode()
    static = content / "_static"
    for file in sorted(static.rglob("*")):
        if file.is_file():
            yield file.relative_to(static).as_posix(), file.read_bytes()


def main(argv: list[str] | None = None) -> int:
    """Replace the built site; returns the exit status."""
    parser = argparse.ArgumentParser(description="Build the sample website from its content.")
    parser.add_argument("--out", type=Path, default=SITE, help="folder to replace")
    out: Path = parser.parse_args(argv).out
    files = dict(build())
    shutil.rmtree(out, ignore_errors=True)
    for path, data in files.items():
        target = out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    sys.stdout.write(f"{len(files)} files in {out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
