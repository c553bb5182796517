# ruff: noqa: E501  (markup as it is served, in lines as long as they are there)
"""What the common generators of documentation put around a page goes; what they put into it stays."""

import pytest

from tidemark.adapters.partition.html.cleaner import clean_html
from tidemark.adapters.partition.html.tree import text_of

PROSE = "The gauge measures the height of the water every second and sends a mean each minute. "
BODY = f"<h1>Gauges</h1><p>{PROSE * 3}</p><h2>Setting up</h2><p>Kept to the end.</p>"
LINKS = "".join(f"<li><a href='/f{n}'>OUTER {n}</a></li>" for n in range(9))
PARTS = "".join(f"<li><a href='#f{n}'>OUTER {n}</a></li>" for n in range(4))

SITES: dict[str, str] = {
    "Sphinx with its classic theme": f"""
        <div class="related" role="navigation"><h3>OUTER</h3><ul>{LINKS}</ul></div>
        <div class="document"><div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main">
        <section id="gauges">{BODY}</section></div></div></div>
        <div class="sphinxsidebar" role="navigation"><div class="sphinxsidebarwrapper"><h3>OUTER</h3><ul>{PARTS}
        </ul><div role="note"><h3>OUTER</h3><ul class="this-page-menu"><li><a href="s">Show Source OUTER</a>
        </li></ul></div><div id="searchbox" role="search"><h3>OUTER</h3></div></div></div></div>
        <div class="footer" role="contentinfo">&copy; OUTER. Created using Sphinx.</div>""",
    "Sphinx with Alabaster": f"""
        <div class="document"><div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main">
        <section id="gauges">{BODY}</section></div></div></div><div class="sphinxsidebar"><p class="logo"><a href="/">
        OUTER</a></p><p class="blurb">OUTER: a library for tides</p><h3>OUTER</h3><ul>{LINKS}</ul></div></div>
        <div class="footer">OUTER | Powered by Sphinx and Alabaster | <a href="s">Page source</a></div>""",
    "Sphinx with the theme of Read the Docs": f"""
        <div class="wy-grid-for-nav"><nav data-toggle="wy-nav-shift" class="wy-nav-side"><div class="wy-side-scroll">
        <div class="wy-side-nav-search"><a href="/">OUTER</a></div><div class="wy-menu" role="navigation"><ul>{LINKS}
        </ul></div></div></nav><section class="wy-nav-content-wrap"><nav class="wy-nav-top"><a href="/">OUTER</a></nav>
        <div class="wy-nav-content"><div class="rst-content"><div role="navigation" aria-label="Page navigation">
        <ul class="wy-breadcrumbs"><li><a href="/">OUTER</a></li><li class="wy-breadcrumbs-aside"><a href="e">Edit on
        GitHub OUTER</a></li></ul><hr></div><div role="main" class="document"><div itemprop="articleBody">
        <section id="gauges">{BODY}</section></div></div><footer><div class="rst-footer-buttons"><a href="n">Next
        OUTER</a></div><hr><div role="contentinfo"><p>&copy; OUTER</p></div>Built with Sphinx OUTER</footer>
        </div></div></section></div><div class="rst-versions" role="note"><span class="rst-current-version">OUTER v3
        </span><dl><dt>OUTER</dt><dd><a href="/3">3</a></dd></dl></div>""",
    "Sphinx with Furo": f"""
        <input type="checkbox" class="sidebar-toggle"><a class="skip-to-content" href="#c">Skip to content OUTER</a>
        <header class="mobile-header"><div class="brand">OUTER</div></header><div class="page">
        <aside class="sidebar-drawer"><div class="sidebar-container"><a class="sidebar-brand" href="/">OUTER</a>
        <div class="sidebar-tree"><ul>{LINKS}</ul></div></div></aside><div class="main"><div class="content"><div
        class="article-container"><a href="#" class="back-to-top">Back to top OUTER</a><div
        class="content-icon-container"><div class="view-this-page"><a href="s">View this page</a></div></div>
        <article role="main"><section id="gauges">{BODY}</section></article></div><footer><div class="related-pages">
        <a href="n">Next OUTER</a></div><div class="bottom-of-page">Copyright OUTER</div></footer></div>
        <aside class="toc-drawer"><div class="toc-sticky"><span class="toc-title">On this page OUTER</span>
        <ul>{PARTS}</ul></div></aside></div></div>""",
    "Sphinx with the theme of PyData": f"""
        <div class="bd-header-announcement">OUTER: a new version</div><header class="bd-header"><ul>{LINKS}</ul></header>
        <div class="bd-container"><div class="bd-sidebar-primary bd-sidebar"><nav class="bd-docs-nav"><ul>{LINKS}</ul></nav>
        </div><main id="main-content" class="bd-main" role="main"><div class="bd-content"><div class="bd-article-container">
        <div class="bd-header-article"><ul class="bd-breadcrumbs"><li><a href="/">OUTER</a></li></ul></div>
        <article class="bd-article"><section id="gauges">{BODY}</section></article><footer class="prev-next-footer">
        <a class="right-next" href="n"><p class="prev-next-subtitle">next</p><p class="prev-next-title">OUTER</p></a>
        </footer></div><div class="bd-sidebar-secondary bd-toc"><div class="page-toc">On this page OUTER<ul>{PARTS}</ul>
        </div><div class="tocsection editthispage"><a href="e">Edit on GitHub</a></div></div></div></main></div>
        <footer class="bd-footer"><p>OUTER</p></footer>""",
    "MkDocs with its own theme": f"""
        <div class="navbar fixed-top navbar-expand-lg"><div class="container"><a class="navbar-brand" href="/">OUTER</a>
        <ul class="nav navbar-nav">{LINKS}</ul></div></div><div class="container"><div class="row"><div class="col-md-3">
        <div class="navbar-light bs-sidebar affix" role="complementary"><ul class="nav flex-column">{PARTS}</ul></div></div>
        <div class="col-md-9" role="main">{BODY}</div></div></div><footer class="col-md-12"><p>OUTER</p></footer>
        <div class="modal" id="mkdocs_search_modal" role="dialog"><h4>OUTER</h4><p>OUTER: enter your search terms
        below.</p></div><div class="modal" role="dialog"><table><tr><th>Keys</th></tr><tr><td>OUTER</td></tr></table>
        </div>""",
    "MkDocs with Material": f"""
        <div data-md-component="skip"><a href="#g" class="md-skip">Skip to content OUTER</a></div>
        <div data-md-component="announce"><aside class="md-banner"><div class="md-banner__inner">OUTER: version 9
        </div></aside></div><header class="md-header"><nav class="md-header__inner"><a href="/" class="md-logo">OUTER
        </a></nav></header><nav class="md-tabs"><ul>{LINKS}</ul></nav><main class="md-main"><div class="md-main__inner">
        <div class="md-sidebar md-sidebar--primary"><nav class="md-nav"><label class="md-nav__title">OUTER</label>
        <ul>{LINKS}</ul></nav></div><div class="md-sidebar md-sidebar--secondary"><nav class="md-nav"><ul>{PARTS}</ul></nav>
        </div><div class="md-content"><article class="md-content__inner md-typeset"><a href="e" class="md-content__button"
        title="Edit this page"></a>{BODY}<aside class="md-source-file"><span class="md-source-file__fact">OUTER,
        2026</span></aside><form class="md-feedback"><fieldset><legend>Was this page helpful? OUTER</legend></fieldset>
        </form><h2 id="__comments">Comments</h2></article></div></div></main><footer class="md-footer"><nav><a href="n">
        Next OUTER</a></nav><div class="md-copyright">OUTER</div></footer><div class="md-dialog"></div>
        <div class="md-consent" data-md-component="consent"><h4>Cookie consent OUTER</h4><p>OUTER</p></div>""",
    "Docusaurus": f"""
        <div role="region" aria-label="Skip to main content"><a href="#s">Skip to main content OUTER</a></div>
        <div class="announcementBar_mb4j" role="banner">OUTER</div><nav class="navbar navbar--fixed-top">{LINKS}</nav>
        <div id="__docusaurus_skipToContent_fallback"><aside class="theme-doc-sidebar-container"><nav class="menu"><ul
        class="menu__list">{LINKS}</ul></nav></aside><main class="docMainContainer"><div class="row"><div
        class="col docItemCol"><article><nav class="theme-doc-breadcrumbs"><ul class="breadcrumbs"><li>OUTER</li></ul>
        </nav><span class="theme-doc-version-badge badge">OUTER: 2.0</span><div class="theme-doc-markdown markdown">
        {BODY}</div><footer class="theme-doc-footer"><div class="row"><div class="col"><a href="e" class="theme-edit-this-page">
        Edit this page</a></div><div class="col lastUpdated_x"><span class="theme-last-updated">Last updated on OUTER
        </span></div></div></footer></article><nav class="pagination-nav"><a class="pagination-nav__link" href="n">Next
        OUTER</a></nav></div><div class="col col--3"><div class="tableOfContents_b theme-doc-toc-desktop"><ul
        class="table-of-contents">{PARTS}</ul></div></div></div></main></div><footer class="theme-layout-footer footer">
        OUTER</footer>""",
    "VitePress": f"""
        <div class="Layout"><a href="#VPContent" class="VPSkipLink">Skip to content OUTER</a><header class="VPNav">
        OUTER</header><div class="VPLocalNav"><button class="menu">Menu OUTER</button><div
        class="VPLocalNavOutlineDropdown"><button>Return to top OUTER</button></div></div><aside class="VPSidebar"><nav
        class="nav">{LINKS}</nav></aside><div class="VPContent has-sidebar" id="VPContent"><div class="VPDoc"><div
        class="container"><div class="aside"><div class="aside-container"><nav class="VPDocAsideOutline"><div
        class="outline-title">On this page OUTER</div><ul class="VPDocOutlineItem">{PARTS}</ul></nav></div></div><div
        class="content"><div class="content-container"><main class="main"><div class="vp-doc">{BODY}</div></main>
        <footer class="VPDocFooter"><div class="edit-info"><div class="edit-link"><a class="edit-link-button" href="e">Edit
        this page on GitHub</a></div><div class="last-updated"><p class="VPLastUpdated">Last updated: OUTER</p></div>
        </div><nav class="prev-next"><a class="pager-link next" href="n"><span>Next page</span><span>OUTER</span></a>
        </nav></footer></div></div></div></div></div><footer class="VPFooter">OUTER</footer></div>""",
    "GitBook": f"""
        <header class="topbar"><a href="/">OUTER</a></header><div class="lg:flex"><aside data-testid="table-of-contents">
        <ul>{LINKS}</ul></aside><aside data-testid="page.desktopTableOfContents"><ul>{PARTS}</ul></aside><main class="flex-1">
        <header class="page-header"><nav aria-label="Breadcrumb"><ol><li>OUTER</li></ol></nav><h1>Gauges</h1></header>
        <div class="page-body"><p>{PROSE * 3}</p><h2>Setting up</h2><p>Kept to the end.</p></div><div
        class="page-footer"><a href="n"><span>Next</span> <span>OUTER</span></a></div><div class="page-feedback"><p>Was this
        helpful? OUTER</p><button>Yes</button></div><p class="last-modified">Last updated OUTER ago</p></main></div>""",
    "WordPress": f"""
        <a class="skip-link screen-reader-text" href="#content">Skip to content OUTER</a><header id="masthead"
        class="site-header"><p class="site-title"><a href="/">OUTER</a></p><p class="site-description">OUTER</p><nav
        id="site-navigation"><ul>{LINKS}</ul></nav></header><div id="content" class="site-content"><div id="primary"><main
        id="main"><article class="post hentry"><header class="entry-header"><h1>Gauges</h1><div class="entry-meta"><span
        class="byline">by OUTER</span></div></header><div class="entry-content"><p>{PROSE * 3}</p><h2>Setting up</h2><p>
        Kept to the end.</p><div class="sharedaddy sd-sharing-enabled"><h3 class="sd-title">Share this OUTER</h3><ul>
        <li><a href="t">OUTER</a></li></ul></div><div id="jp-relatedposts" class="jp-relatedposts"><h3>Related
        OUTER</h3></div></div><footer class="entry-footer">Posted in <a href="c">OUTER</a></footer></article><nav
        class="navigation post-navigation"><a href="p">OUTER</a></nav><div id="comments" class="comments-area"><h2
        class="comments-title">One thought OUTER</h2><ol class="comment-list"><li><p>OUTER, nice.</p></li></ol><div
        id="respond" class="comment-respond"><h3>Leave a Reply OUTER</h3><form id="commentform"><textarea></textarea>
        </form></div></div></main></div><aside id="secondary" class="widget-area"><section class="widget"><h2>OUTER</h2>
        <ul>{LINKS}</ul></section></aside></div><footer id="colophon" class="site-footer">OUTER</footer>""",
    "Confluence": f"""
        <div id="page"><div id="full-height-container"><header id="header" role="banner"><nav class="aui-header">OUTER
        </nav></header><div class="ia-fixed-sidebar"><div class="acs-side-bar"><ul>{LINKS}</ul></div></div><div id="main"
        class="aui-page-panel"><div id="main-header"><div id="navigation" class="content-navigation"><ul class="ajs-menu-bar">
        <li><a href="e">Edit OUTER</a></li></ul></div><ol id="breadcrumbs"><li><a href="/">OUTER</a></li></ol><h1
        id="title-text">Gauges</h1></div><div id="content" class="page view"><div class="page-metadata"><ul><li>Created by
        OUTER, last modified on May 3</li></ul></div><div id="main-content" class="wiki-content"><p>{PROSE * 3}</p><h2>
        Setting up</h2><p>Kept to the end.</p></div><div id="likes-and-labels-container"><div id="likes-section">
        OUTER</div><div id="labels-section" class="pageSection"><ul class="label-list"><li><a href="l">OUTER</a>
        </li></ul></div></div><div id="comments-section" class="pageSection group"><form>OUTER</form></div></div></div>
        <footer id="footer" role="contentinfo"><p>Powered by OUTER</p></footer></div></div>""",
    "MediaWiki": f"""
        <a class="mw-jump-link" href="#c">Jump to content OUTER</a><div class="vector-header-container"><header
        class="vector-header mw-header">OUTER</header></div><div class="mw-page-container"><div
        class="vector-column-start"><nav id="mw-panel-toc"><ul>{PARTS}</ul></nav></div><main id="content" class="mw-body">
        <div id="siteNotice">OUTER: please give</div><header class="mw-body-header"><h1 id="firstHeading">Gauges</h1><div
        class="vector-dropdown">OUTER</div></header><div id="bodyContent" class="vector-body"><div id="siteSub"
        class="noprint">From OUTER</div><div id="mw-content-text"><div class="mw-parser-output"><p>{PROSE * 3}</p>
        <div id="toc" class="toc"><h2>Contents OUTER</h2><ul>{PARTS}</ul></div><h2>Setting up<span
        class="mw-editsection">[<a href="e">edit OUTER</a>]</span></h2><p>Kept to the end.</p><div class="navbox"
        role="navigation"><table><tr><td>OUTER</td></tr></table></div></div><div class="printfooter">Retrieved from
        OUTER</div></div><div id="catlinks" class="catlinks"><div class="mw-normal-catlinks"><a href="c">Categories</a>:
        <ul><li><a href="c">OUTER</a></li></ul></div></div></div></main></div><footer id="footer" class="mw-footer"><ul>
        <li>This page was last edited OUTER</li></ul></footer>""",
    "Hugo with Docsy": f"""
        <header><nav class="td-navbar js-navbar-scroll">{LINKS}</nav></header><div class="container-fluid td-outer"><div
        class="td-main"><div class="row"><aside class="td-sidebar d-print-none"><nav class="td-sidebar-nav">{LINKS}</nav></aside>
        <aside class="td-sidebar-toc d-print-none"><div class="td-page-meta"><a class="td-page-meta--edit" href="e">Edit this page</a>
        </div><div class="td-toc"><ul>{PARTS}</ul></div><div class="taxonomy taxonomy-terms-cloud"><h5>OUTER</h5></div>
        </aside><main role="main"><nav aria-label="breadcrumb" class="td-breadcrumbs"><ol><li>OUTER</li></ol></nav><div
        class="td-content">{BODY}<div class="d-print-none"><h2 class="feedback--title">Feedback OUTER</h2><p
        class="feedback--question">Was this page helpful? OUTER</p><button>Yes</button></div></div><div
        class="td-page-meta__lastmod">Last modified OUTER</div></main></div></div><footer class="td-footer">OUTER
        </footer></div>""",
    "Javadoc": f"""
        <div class="flex-box"><header role="banner" class="flex-header"><nav role="navigation"><div class="top-nav"
        id="navbar-top"><div class="skip-nav"><a href="#skip">Skip navigation links OUTER</a></div><ul
        class="nav-list">{LINKS}</ul></div><div class="sub-nav"><div>Summary: OUTER</div></div></nav></header><div
        class="flex-content"><main role="main"><div class="header"><div class="sub-title"><a href="p">harbour.tides</a></div>
        <h1 title="Gauges" class="title">Gauges</h1></div><section class="class-description"><p>{PROSE * 3}</p></section><h2>
        Setting up</h2><p>Kept to the end.</p></main><footer role="contentinfo"><p class="legal-copy">OUTER</p></footer>
        </div></div>""",
    "DokuWiki": f"""
        <div id="dokuwiki__site"><div id="dokuwiki__header" class="pad group"><div class="headings"><ul class="a11y skip"><li>
        <a href="#c">skip to content OUTER</a></li></ul><p class="logo"><a href="/">OUTER</a></p></div><div
        class="tools group"><ul>{LINKS}</ul></div><div class="breadcrumbs"><div class="trace"><a href="t">OUTER</a></div>
        </div></div><div class="wrapper group"><nav id="dokuwiki__aside"><ul>{LINKS}</ul></nav><main id="dokuwiki__content">
        <div class="pageId"><span>OUTER</span></div><div class="page group"><div id="dw__toc" class="dw__toc"><h3
        class="toggle">Table of Contents OUTER</h3><div><ul class="toc">{PARTS}</ul></div></div>{BODY}</div><div
        class="docInfo"><bdi>OUTER.txt</bdi> Last modified: 2026</div></main><nav id="dokuwiki__pagetools"><ul>{LINKS}
        </ul></nav></div><footer id="dokuwiki__footer">OUTER</footer></div>""",
}  # fmt: skip


def text(body: str) -> str:
    html = f"<!doctype html><html lang='en'><head><title>Gauges | Harbour</title></head><body>{body}</body></html>"
    return text_of(clean_html(html, "page").root)


@pytest.mark.parametrize("generator", SITES)
def test_what_a_generator_puts_around_a_page_goes(generator: str) -> None:
    found = text(SITES[generator])
    assert "OUTER" not in found
    assert PROSE.strip() in found


@pytest.mark.parametrize("generator", SITES)
def test_the_page_within_stays_whole(generator: str) -> None:
    found = text(SITES[generator])
    assert found.count("Gauges") == 1
    assert found.index("Gauges") < found.index(PROSE.strip()) < found.index("Setting up")
    assert "Kept to the end." in found


CONTENT: dict[str, str] = {
    "an admonition of Sphinx": "<div class='admonition note'><p class='admonition-title'>Note</p><p>CONTENT</p></div>",
    "an admonition of Material": "<div class='admonition tip'><p class='admonition-title'>CONTENT</p></div>",
    "an admonition of Docusaurus": "<div class='theme-admonition theme-admonition-info alert alert--info'><div>CONTENT</div></div>",
    "a container of VitePress": "<div class='tip custom-block'><p class='custom-block-title'>TIP</p><p>CONTENT</p></div>",
    "a macro of Confluence": "<div class='confluence-information-macro confluence-information-macro-note'><p>CONTENT</p></div>",
    "a panel of Docsy": "<div class='alert alert-warning' role='alert'><h4>Mind</h4>CONTENT</div>",
    "a closed details": "<details class='example'><summary>More</summary><p>CONTENT</p></details>",
    "the summary of a details": "<details><summary>CONTENT</summary><p>It rises.</p></details>",
    "a caption of a figure": "<figure><img src='a.png'><figcaption>CONTENT</figcaption></figure>",
    "a caption of a table": "<table><caption>CONTENT</caption><tr><td>1</td></tr></table>",
    "a caption of code of Sphinx": "<div class='literal-block-wrapper'><div class='code-block-caption'>CONTENT</div><pre>x</pre></div>",
    "a footnote of Sphinx": "<aside class='footnote-list brackets'><aside class='footnote brackets' role='doc-footnote'><p>CONTENT</p></aside></aside>",
    "footnotes of Markdown": "<div class='footnote'><hr><ol><li><p>CONTENT <a class='footnote-backref' href='#r'>↩</a></p></li></ol></div>",
    "references of MediaWiki": "<div class='reflist'><ol class='references'><li><span class='reference-text'>CONTENT</span></li></ol></div>",
    "a definition list": "<dl><dt>Neap</dt><dd>CONTENT</dd></dl>",
    "an entry of an API": "<dl class='py function'><dt class='sig'>open(path)</dt><dd><p>CONTENT</p></dd></dl>",
    "code": "<div class='highlight'><pre>CONTENT</pre></div>",
    "a tab of code": "<div class='tabbed-set'><div class='tabbed-content'><div class='tabbed-block'><pre>CONTENT</pre></div></div></div>",
    "a table": "<table><tr><th>Place</th><th>Depth</th></tr><tr><td>CONTENT</td><td>3 m</td></tr></table>",
    "a table of links": "<table><tr><th>Class</th></tr><tr><td><a href='/a'>CONTENT</a></td></tr><tr><td><a href='/b'>B</a></td></tr></table>",
    "a table of the methods in Javadoc": "<div class='summary-table three-column-summary'><div class='col-first'><code>open</code></div><div class='col-last'>CONTENT</div></div>",
    "a see also of Sphinx": "<div class='admonition seealso'><p class='admonition-title'>See also</p><p><a href='/a'>CONTENT</a></p></div>",
    "an infobox of a wiki": "<table class='infobox'><tr><th>Depth</th><td>CONTENT</td></tr></table>",
    "a chapter on cookies": "<section id='cookies'><h2>Cookies</h2><p>CONTENT</p></section>",
    "a chapter on breadcrumbs": "<h2 id='breadcrumbs'>Breadcrumbs</h2><p>CONTENT</p>",
    "a chapter on the sidebar": "<section id='sidebar'><h2>Sidebar</h2><ul><li>CONTENT</li></ul></section>",
    "steps with buttons named": "<ol><li>Press <b>Share</b>, then <a href='#x'>Edit this page</a>: CONTENT</li></ol>",
    "a quotation": "<blockquote><p>CONTENT</p></blockquote>",
    "a formula": "<p><math><mi>CONTENT</mi></math></p>",
}


@pytest.mark.parametrize("what", CONTENT)
def test_content_is_never_taken_for_boilerplate(what: str) -> None:
    assert "CONTENT" in text(f"<nav><ul>{LINKS}</ul></nav><main>{BODY}{CONTENT[what]}</main>")
    assert "CONTENT" in text(f"<nav><ul>{LINKS}</ul></nav><div>{BODY}{CONTENT[what]}</div>")
