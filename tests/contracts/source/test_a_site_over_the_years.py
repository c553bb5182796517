"""A real site under real runs: crawled over loopback, looked at, cleaned, partitioned, indexed in memory."""

from collections.abc import Iterator

import pytest
from sites import Page, Site, website
from worlds import SOURCE, World

from tidemark.adapters.inspection.inspector import DocumentInspector
from tidemark.adapters.partition.partitioner import DocumentPartitioner
from tidemark.domain.records import RunSummary
from tidemark.stages.explain import explain

pytestmark = pytest.mark.model

TOPICS = (
    "masts",
    "gauges",
    "cables",
    "lamps",
    "winches",
    "batteries",
    "antennas",
    "buoys",
    "pumps",
)
BANNER = "<div><p>Our summer school begins in June, and there are places left for those who ask.</p></div>"


def article(topic: str, *more: str) -> str:
    """A page of a made-up handbook, in the frame that all of its pages share."""
    paragraphs = "".join(
        f"<p>Paragraph {n} about {topic} says how they are looked after in the year {2000 + n}.</p>"
        for n in range(8)
    )
    added = "".join(f"<p>{text}</p>" for text in more)
    menu = "".join(f'<li><a href="/{t}">{t}</a></li>' for t in TOPICS)
    return (
        f"<html><head><title>All about {topic}</title></head><body><nav><ul>{menu}</ul></nav>"
        f"<main>{BANNER}<h1>All about {topic}</h1>{paragraphs}{added}</main>"
        "<footer>Imprint</footer></body></html>"
    )


@pytest.fixture
def site() -> Iterator[Site]:
    pages: dict[str, str | Page] = {"/": article("the site")}
    pages |= {f"/{topic}": article(topic) for topic in TOPICS}
    with Site(pages) as site:
        yield site


@pytest.fixture
def world(site: Site) -> World:
    world = World()
    world.source = website(site.url)  # type: ignore[assignment]
    world.inspector = DocumentInspector()
    world.partitioner.inner = DocumentPartitioner()
    return world


def run(world: World, **changes: object) -> RunSummary:
    """A run of a source that keeps no counters of its own."""
    from tidemark.pipeline import run_source

    world.embedder.texts.clear()
    world.partitioner.calls.clear()
    return run_source(world.job(**changes), world.deps(), "test")


def live(world: World, site: Site) -> set[str]:
    points = world.index.scan_points(world.generation)
    return {
        str(p.payload["source_uri"]).partition("#")[0].removeprefix(site.url.rstrip("/"))
        for p in points
    }


def test_what_every_page_repeats_is_no_content_and_what_only_one_says_is(
    world: World, site: Site
) -> None:
    site.pages["/lamps"] = article(
        "lamps", "A paragraph that stands on this page alone, about oil."
    )
    run(world)
    texts = " ".join(world.texts())
    assert "summer school" not in texts
    assert "Imprint" not in texts
    assert "about oil" in texts
    assert texts.count("Paragraph 3 about") == len(TOPICS) + 1


def test_a_second_run_finds_nothing_to_do(world: World, site: Site) -> None:
    first = run(world)
    assert first.documents == {"add": len(TOPICS) + 1}
    site.bodies.clear()
    second = run(world)
    assert second.documents == {"keep": len(TOPICS) + 1}
    assert not site.bodies
    assert not world.partitioner.calls


def test_a_page_that_moved_for_good_is_embedded_again_nowhere(world: World, site: Site) -> None:
    run(world)
    site.pages["/gauges-and-meters"] = article("gauges")
    site.pages["/gauges"] = Page(status=301, location="/gauges-and-meters")
    summary = run(world)
    assert world.embedder.texts == []
    assert "/gauges" not in live(world, site)
    assert "/gauges-and-meters" in live(world, site)
    assert summary.reasons["moved"] == 2
    found = explain(world.ledger, f"{site.url}gauges")
    assert found[0].sentence().startswith("The document has moved from this address to")


def test_a_page_under_two_addresses_is_kept_once(world: World, site: Site) -> None:
    site.pages["/"] = article("the site") + '<a href="/lamps?print=1">print</a>'
    site.pages["/lamps?print=1"] = article("lamps")
    run(world)
    assert "/lamps?print=1" not in live(world, site)
    assert [a.uri for a in world.ledger.sources.aliases(SOURCE)] == [f"{site.url}lamps?print=1"]


def test_a_login_form_in_place_of_a_page_leaves_the_page_as_it_was(
    world: World, site: Site
) -> None:
    run(world)
    form = (
        "<html><head><title>Sign in</title></head><body><form action='/login' method='post'>"
        "<h1>Sign in to continue</h1><label>User <input name='user'></label>"
        "<label>Password <input type='password' name='password'></label><button>Sign in</button>"
        "</form></body></html>"
    )
    site.pages["/cables"] = form
    summary = run(world)
    assert summary.reasons["login_wall"] == 1
    assert "/cables" in live(world, site)
    assert any("login_wall" in line for line in summary.attention)
    assert "Paragraph 3 about cables" in " ".join(world.texts())


def test_an_error_page_at_every_address_changes_nothing(world: World, site: Site) -> None:
    run(world)
    before = live(world, site)
    words = "<p>We are working on it, and will be back as soon as the storm has passed.</p>" * 8
    for path in list(site.pages):
        if path != "/":
            site.pages[path] = f"<html><body><h1>Maintenance</h1>{words}</body></html>"
    summary = run(world, approved=True)
    assert summary.reasons["repeated_text"] == len(TOPICS)
    assert live(world, site) == before


def test_a_page_that_lost_most_of_its_text_waits_to_be_met_again(world: World, site: Site) -> None:
    run(world)
    site.pages["/pumps"] = "<html><body><h1>All about pumps</h1><p>See the shop.</p></body></html>"
    reasons = [run(world).reasons.get("shrunk", 0) for _ in range(3)]
    assert reasons == [1, 1, 0]
    assert "See the shop." in " ".join(world.texts())


def test_a_page_that_is_gone_goes_at_once_and_comes_back_for_nothing(
    world: World, site: Site
) -> None:
    run(world)
    page = site.pages.pop("/buoys")
    run(world)
    assert "/buoys" not in live(world, site)
    site.pages["/buoys"] = page
    summary = run(world)
    assert summary.documents["restore"] == 1
    assert world.embedder.texts == []
    assert "/buoys" in live(world, site)


def test_a_site_that_answers_503_loses_nothing_and_heals(world: World, site: Site) -> None:
    run(world)
    before = live(world, site)
    site.pages["/winches"] = Page(status=503)
    site.pages["/lamps"] = Page(status=403)
    run(world)
    assert live(world, site) == before
    site.pages["/winches"] = article("winches", "A sentence that was added during the outage.")
    run(world)
    assert "added during the outage" in " ".join(world.texts())


def test_a_redesign_of_the_frame_embeds_nothing(world: World, site: Site) -> None:
    run(world)
    for path in list(site.pages):
        body = site.pages[path]
        assert isinstance(body, str)
        site.pages[path] = (
            body.replace("<nav>", "<div role='navigation'><p>New!</p>")
            .replace("</nav>", "</div>")
            .replace(BANNER, "")
        )
    summary = run(world)
    assert not summary.held
    assert world.embedder.texts == []
