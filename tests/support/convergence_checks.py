"""One clean run, and all that must be right after it."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any
from uuid import UUID

from convergence_world import Tried
from site_model import (
    SICK,
    URIS,
    Expected,
    Page,
    aliases,
    difference,
    expected,
    held,
    rows,
    with_page,
)
from worlds import SOURCE

from fakes.faulty_ports import Line
from tidemark.domain.hashing import (
    add,
    checksum,
    digest_of,
    digest_text,
    point_part,
    section_part,
    vector_hash,
    vectors_hash,
)
from tidemark.domain.records import DocumentStatus, GenerationStatus, RunSummary
from tidemark.stages.job import embed_fingerprint, raw_key
from tidemark.stages.takedown.requests import unfinished


class Checked(Tried):
    """With the check that everything is right again."""

    def clean_run(self) -> None:
        """One whole run that nothing disturbs, and all that must be right after it."""
        with self.world.index.session():
            self._clean_run()

    def _clean_run(self) -> None:
        self._heal_what_cannot_be_restored()
        if self.hand == "changed":
            self._repair()
        self._prepare("", URIS[0])
        unchecked = self._unchecked()
        want = self._expected(unchecked)
        bound = self._texts_missing(want)
        live_before = self._live_sick()
        summary, line = self._clean()
        assert summary.status == "success", summary
        assert len(self.world.embedder.texts) <= bound, "what is there is not embedded again"
        self._assert_right(want, unchecked, live_before)
        self._prepare("", URIS[0])
        again, line = self._clean()
        assert (again.status, line.writes) == ("success", []), again
        assert not self.world.embedder.texts, again
        assert not self.world.partitioner.calls, again
        self.hand = ""

    def _heal_what_cannot_be_restored(self) -> None:
        """A sick document whose last good bytes are deleted, and in the ledger again from a backup."""
        for record in self.world.ledger.documents.stream(SOURCE):
            lost = record.raw_hash and not self.world.artifacts.exists(raw_key(record.raw_hash))
            if lost and self.site[record.uri].kind in SICK:
                assert self.forgetful
                self.lay(record.uri, Page())

    def _clean(self, **changes: object) -> tuple[RunSummary, Line]:
        line = Line()
        self._watch(line)
        summary = self._run(line, **changes)
        self._told(line)
        assert summary is not None
        return summary, line

    def _expected(self, unchecked: AbstractSet[str]) -> Expected:
        site = dict(self.site)
        for uri in self._taken() | {u for u in unchecked if site[u].kind not in SICK}:
            site = with_page(site, uri, Page("gone"))
        return expected(site, self.setup)

    def _taken(self) -> set[str]:
        begun = unfinished(self.world.artifacts)
        tombstones = self.world.ledger.tombstones.blocking(SOURCE)
        return {tombstone.uri for tombstone in tombstones} | {
            u for order in begun for u in order.uris.values()
        }

    def _unchecked(self) -> set[str]:
        """Addresses of which the site alone does not tell what is live there.

        Those of sick documents, and those that have, or lead to, what was taken down from another address:
        that is kept out, and stays where it has been before.
        """
        taken = self._taken()
        tombstones = self.world.ledger.tombstones.blocking(SOURCE)
        raws = {
            raw for tombstone in tombstones for raw in (tombstone.raw_hash, *tombstone.blocked_raws)
        }
        # A takedown that was cut short outlives the ledger, which knew who had the same bytes before.
        raws |= {raw for r in unfinished(self.world.artifacts) for raw in r.blocked_raws}
        found = {
            uri
            for uri, page in self.site.items()
            if page.kind in SICK
            or page.target in taken
            or (page.kind == "page" and digest_text(str(page.body())) in raws)
        }
        found |= {uri for uri, page in self.site.items() if page.target in found}
        return found - taken

    def _assert_right(
        self, want: Expected, unchecked: AbstractSet[str], live_before: dict[str, str]
    ) -> None:
        world, generation = self.world, self.world.generation
        sick = {uri for uri in unchecked if self.site[uri].kind in SICK}
        assert world.index.live() == generation
        assert world.index.generations() == [generation], "what was given up is gone"
        told = {r.number: r.status for r in world.ledger.generations.all("tidemark")}
        live = {number for number, status in told.items() if status is not GenerationStatus.RETIRED}
        assert live == {generation}, told
        for scan, wanted in (("scan_points", want.points), ("scan_sections", want.sections)):
            found = held(world, scan)
            differing = difference({u: h for u, h in found.items() if u not in unchecked}, wanted)
            assert not differing, (scan, differing)
        known = rows(world)
        assert {u: r for u, r in known.items() if u not in unchecked} == want.rows
        assert sick <= known.keys()
        assert world.ledger.writes.pending(SOURCE) == {}
        mark = world.ledger.sources.epoch(SOURCE)
        assert world.index.epochs(generation, SOURCE) == (mark, mark)
        findings = world.audit()
        assert findings.clean, findings
        assert want.aliases.items() <= aliases(world).items()
        for record in world.ledger.documents.stream(SOURCE):
            assert record.generation in (None, generation)
            assert record.checksum == self._checksum(record.document_id) or record.raw_hash is None
            if record.uri in sick:
                assert record.status is DocumentStatus.QUARANTINED
                lost = record.raw_hash is None and record.uri in live_before
                assert not lost or self.forgetful, "it was live"

    # What a clean run may cost, and what may not get lost

    def _texts_missing(self, want: Expected) -> int:
        """How many texts have no vector in the generation that the run will write."""
        world = self.world
        deps = world.deps()
        embed = embed_fingerprint(deps.embedder, deps.lexical)
        from tidemark.stages.generations import current_generation

        generation = current_generation(world.ledger, world.index, "tidemark", embed)
        there: dict[str, str] = {}
        if generation is not None:
            points = world.index.scan_points(generation, vectors=True)
            there = {str(p.point_id): vector_hash(p.dense) for p in points if p.dense}
        missing = sum(
            there.get(key) != vector.partition(".")[0]
            for document in want.points.values()
            for key, (_, vector) in document.items.items()
        )
        sick = self._unchecked()
        # Of a sick one: what it has now, which is tried, and what was live, which may have to be restored.
        return missing + 40 * len(sick)

    def _live_sick(self) -> dict[str, str]:
        return {
            record.uri: record.raw_hash
            for record in self.world.ledger.documents.stream(SOURCE)
            if record.raw_hash is not None and self.site[record.uri].kind in SICK
        }

    def _checksum(self, document: UUID) -> str:
        where: dict[str, Any] = {"document_id": str(document)}
        index, generation = self.world.index, self.world.generation
        points: Iterable[int] = (
            point_part(p.point_id, digest_of(p.payload), vectors_hash(p.dense or (), p.lexical))
            for p in index.scan_points(generation, where, vectors=True)
        )
        sections = (
            section_part(s.point_id, digest_of(s.payload))
            for s in index.scan_sections(generation, where)
        )
        return checksum([add(*points), add(*sections)])
