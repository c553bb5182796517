"""What runs have fetched from some addresses, as far as their listings are there: indexed or not."""

import json
from collections.abc import Iterator
from datetime import datetime

from tidemark.domain.model import CrawlEnd, Observation
from tidemark.ports import ArtifactEntry
from tidemark.stages.codec import decode_listing_line
from tidemark.stages.stores import Stores


class Listings:
    """The listings of a source's runs, each read once for the same addresses: they are long."""

    def __init__(self, stores: Stores, source: str) -> None:
        self._stores = stores
        self._source = source
        self._uris: set[str] = set()
        self._read: dict[str, tuple[int, datetime]] = {}
        self._fetched: dict[str, Observation] = {}

    def fetched(self, uris: set[str]) -> dict[str, Observation]:
        """By the hash of its bytes, what was fetched from addresses; one that was believed, if any was."""
        if not uris <= self._uris:
            self._uris |= uris
            self._read.clear()
        for entry in self._unread():
            try:
                for observed in self._about(entry.key):
                    before = self._fetched.get(observed.raw_hash or "")
                    if observed.raw_hash and (before is None or before.suspicion):
                        self._fetched[observed.raw_hash] = observed
            except KeyError:
                continue  # Housekeeping was quicker.
        return dict(self._fetched)

    def _unread(self) -> Iterator[ArtifactEntry]:
        for entry in self._stores.artifacts.entries("runs/"):
            stamp = entry.size, entry.written_at
            if not entry.key.endswith("/listing.jsonl") or self._read.get(entry.key) == stamp:
                continue
            self._read[entry.key] = stamp
            run = self._stores.ledger.run(entry.key.split("/")[1])
            if run is None or run.source == self._source:
                yield entry

    def _about(self, key: str) -> Iterator[Observation]:
        quoted = [json.dumps(uri, ensure_ascii=False) for uri in self._uris]
        for line in self._stores.artifacts.lines(key):
            # Decoded only where it may be one of them.
            if any(uri in line for uri in quoted):
                observed = decode_listing_line(line)
                if not isinstance(observed, CrawlEnd) and observed.uri in self._uris:
                    yield observed
