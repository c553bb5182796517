"""Each kind of boilerplate goes from a page, as the common generators write it."""

import pytest

from tidemark.adapters.partition.html.cleaner import clean_html
from tidemark.adapters.partition.html.tree import text_of

PROSE = "The gauge measures the height of the water every second and sends a mean each minute. "
LINKS = "".join(f"<li><a href='/{n}'>FURNITURE {n}</a></li>" for n in range(5))
PARTS = "".join(f"<li><a href='#{n}'>FURNITURE {n}</a></li>" for n in range(5))

BOILERPLATE: dict[str, list[str]] = {
    "the navigation": [
        f"<nav><ul>{LINKS}</ul></nav>",
        f"<div role='navigation'><ul>{LINKS}</ul></div>",
        f"<div class='navbar'><ul>{LINKS}</ul></div>",
        f"<ul class='nav-menu'>{LINKS}</ul>",
    ],
    "a sidebar": [
        f"<aside class='sidebar'><ul>{LINKS}</ul></aside>",
        f"<div class='sphinxsidebar'><h3>FURNITURE</h3><ul>{LINKS}</ul></div>",
        f"<div id='sidebar'><p>FURNITURE</p><ul>{LINKS}</ul></div>",
        "<div class='md-sidebar'><label>FURNITURE</label></div>",
    ],
    "a table of contents": [
        f"<div class='toc'><p>Contents</p><ul>{PARTS}</ul></div>",
        f"<div class='contents topic'><p>FURNITURE</p><ul>{PARTS}</ul></div>",
        f"<p>On this page</p><ul>{PARTS}</ul>",
        f"<div role='doc-toc'><ol>{PARTS}</ol></div>",
    ],
    "breadcrumbs": [
        "<ol class='breadcrumb'><li><a href='/'>FURNITURE</a></li><li>FURNITURE</li></ol>",
        "<nav aria-label='breadcrumb'><a href='/'>FURNITURE</a></nav>",
        "<div class='breadcrumbs'>FURNITURE » FURNITURE</div>",
    ],
    "a box about cookies": [
        "<div class='cookie-banner'><h3>FURNITURE</h3><p>We use cookies.</p><button>OK</button></div>",
        "<div id='onetrust-consent-sdk'><p>FURNITURE</p></div>",
        "<div role='alertdialog'><p>FURNITURE</p></div>",
        "<div class='gdpr-notice'><p>FURNITURE</p></div>",
    ],
    "a header of the site": [
        "<header><a href='/'>FURNITURE</a></header>",
        "<div role='banner'><p>FURNITURE</p></div>",
        "<div class='masthead'><p>FURNITURE</p></div>",
    ],
    "a footer of the site": [
        "<footer><p>FURNITURE</p></footer>",
        "<div role='contentinfo'><p>FURNITURE</p></div>",
        "<div class='site-footer'><p>FURNITURE</p></div>",
        "<div id='colophon'><p>FURNITURE</p></div>",
    ],
    "a link to edit the page": [
        "<div><a class='edit-page' href='/e'>FURNITURE</a></div>",
        "<p><a href='/e'>Edit this page</a></p>",
        "<div><a href='/e'>Edit this page on GitHub</a></div>",
        "<li><a href='/e'>Show source</a></li>",
    ],
    "related links": [
        f"<div class='related'><ul>{LINKS}</ul></div>",
        f"<div class='related-topics'><h3>FURNITURE</h3><ul>{LINKS}</ul></div>",
        f"<aside><h3>FURNITURE</h3><ul>{LINKS}</ul></aside>",
        "<div class='prev-next'><a href='/n'>FURNITURE</a></div>",
    ],
    "buttons to share": [
        "<div class='share-buttons'><a href='x'>FURNITURE</a></div>",
        "<div class='sharedaddy sd-sharing'><h3>FURNITURE</h3></div>",
        "<ul class='social-links'><li><a href='x'>FURNITURE</a></li></ul>",
    ],
    "a form for comments": [
        "<div id='respond' class='comment-respond'><h3>FURNITURE</h3><form></form></div>",
        "<form><label>FURNITURE</label><textarea></textarea><button>Send</button></form>",
        "<div class='md-feedback'><p>FURNITURE</p></div>",
    ],
    "a link to skip to the content": [
        "<a class='skip-link' href='#c'>FURNITURE</a>",
        "<div><a href='#c'>Skip to main content</a></div>",
        "<a class='visually-hidden skip-to-content' href='#c'>FURNITURE</a>",
    ],
}
SAID = ("FURNITURE", "Edit this", "Show source", "Skip to", "On this page")


@pytest.mark.parametrize("what", BOILERPLATE)
@pytest.mark.parametrize("place", ["before the main part", "after the main part", "within it"])
def test_it_drops(what: str, place: str) -> None:
    for markup in BOILERPLATE[what]:
        before, after, within = (
            markup if place == where else ""
            for where in ("before the main part", "after the main part", "within it")
        )
        own = f"<h1>Gauges</h1><p>{PROSE * 3}</p>{within}<h2>Use</h2><p>Kept to the end.</p>"
        html = f"<html><body>{before}<main>{own}</main>{after}</body></html>"
        found = text_of(clean_html(html, "page").root)
        assert not any(word in found for word in SAID), markup
        assert found.startswith("Gauges")
        assert found.endswith("Kept to the end.")
