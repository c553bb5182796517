"""What a plan says is ahead."""

from worlds import World, page

from tidemark.pipeline import plan_source
from tidemark.stages.plan.plan import Estimate


def ahead(world: World) -> Estimate:
    return plan_source(world.job(), world.deps())[1].estimate


def test_a_large_text_counts_by_its_size_whatever_the_others_were_like() -> None:
    world = World()
    world.documents["https://example.org/small"] = page("Small", "It is short.")
    world.run()
    world.documents["https://example.org/large"] = page(
        "Large", *["It goes on and on. " * 50] * 100
    )
    assert ahead(world).chunks > 100


def test_nothing_is_ahead_when_nothing_changed() -> None:
    world = World()
    world.documents["https://example.org/small"] = page("Small", "It is short.")
    world.run()
    assert ahead(world) == Estimate()
