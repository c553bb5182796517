"""The status tells an operator, and a monitor, whether there is anything to do."""

import io
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from worlds import SOURCE, World, page

from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.cli.status import is_well, read_status, render_status
from tidemark.config.sources_file import Declarations
from tidemark.domain.guards import Guards
from tidemark.domain.records import AuditRecord
from tidemark.stages.generations import PendingGeneration, pending_generation
from tidemark.stages.job import embed_fingerprint
from tidemark.wiring import Container

OTHER = "other"
DECLARED = (SOURCE, OTHER)


class _FakeContainer:
    """The part of a container that the status asks for."""

    settings = SimpleNamespace(index_name="tidemark")
    declarations = Declarations(
        {name: FilesOptions(name=name, kind="files", path="/srv/docs") for name in DECLARED}
    )

    def __init__(self, world: World) -> None:
        self.world, self.ledger, self.index = world, world.ledger, world.index

    def pending_generation(self) -> PendingGeneration | None:
        embed = embed_fingerprint(self.world.embedder, self.world.lexical)
        return pending_generation(
            self.ledger, self.index, "tidemark", embed, DECLARED, (), doubtful=True
        )


def status(world: World) -> dict[str, Any]:
    return read_status(cast(Container, _FakeContainer(world)), None)


def shown(world: World) -> str:
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    console.print(render_status(status(world)))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return " ".join(text.split())


@pytest.fixture
def world() -> World:
    made = World()
    made.documents["https://example.org/a"] = page("A", "Alpha stands.", "Beta stands.")
    made.run()
    made.run(source=OTHER)
    return made


def audited(world: World, findings: dict[str, int], **more: Any) -> None:
    world.ledger.generations.save_audit(
        AuditRecord(None, world._clock(), {"checked": 4, **findings}, **{"repaired": 0, **more})
    )


def test_all_is_well_after_good_runs(world: World) -> None:
    assert is_well(status(world))
    assert "No search finds" not in shown(world)


def test_a_source_whose_last_run_failed_says_when_it_was_good(world: World) -> None:
    good = world.ledger.runs.recent(SOURCE)[0].started_at
    world.source.away = "It does not answer."
    world.run()
    assert not is_well(status(world))
    assert f"{good:%Y-%m-%d %H:%M}" in shown(world)
    world.source.away = ""
    world.run()
    assert is_well(status(world))


def test_a_run_that_waits_for_a_person_is_something_to_do(world: World) -> None:
    world.documents["https://example.org/a"] = page("A", "All of it is new.")
    world.run(guards=Guards(changed_percent=1, at_least=1))
    assert not is_well(status(world))


def test_an_index_that_was_lost_and_is_partly_there_again_is_named(world: World) -> None:
    world.lose_index()
    world.run()
    assert not is_well(status(world))
    told = shown(world)
    assert "No search finds 1 document that the ledger knows" in told
    assert f"the index was lost or set back: {OTHER}" in told
    assert "0 of 2" in told
    world.run(source=OTHER)
    assert is_well(status(world))


def test_points_that_went_missing_are_seen_without_an_audit(world: World) -> None:
    audited(world, {})
    [victim, *_] = [point.point_id for point in world.index.scan_points(1)]
    world.index.delete_points(1, [victim])
    assert not is_well(status(world))
    told = shown(world)
    assert "1 of 2" in told
    assert "the index has other points than the ledger says: `tidemark audit --repair`" in told


def test_what_the_last_audit_left_is_to_be_healed(world: World) -> None:
    audited(world, {"missing_points": 2}, left={"missing_points": 2})
    assert "2 missing points. Heal it: `tidemark audit --repair`." in shown(world)


def test_what_a_repair_left_is_not_called_healed(world: World) -> None:
    audited(world, {"missing_points": 2, "live_name": 1}, repaired=1, left={"live_name": 1})
    told = shown(world)
    assert "1 live name. Heal it" in told
    assert "was healed" not in told


def test_what_was_healed_is_called_healed(world: World) -> None:
    audited(world, {"missing_points": 2}, repaired=1, left={})
    assert "2 missing points, which was healed." in shown(world)


def test_an_audit_before_the_last_runs_is_no_verdict_on_what_is_there_now(world: World) -> None:
    audited(world, {"missing_points": 2}, left={"missing_points": 2})
    world.run()
    world.ledger.generations.save_audit(AuditRecord(SOURCE, world._clock(), {"checked": 2}, 0, {}))
    told = shown(world)
    assert "Since then: 1 run, 1 audited source; `tidemark audit` tells what is so now." in told
    assert "Heal it" not in told
