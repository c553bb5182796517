"""How values are written to the artifact store: one JSON document a line."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from tidemark.domain.decide import Action, Decision, Reason
from tidemark.domain.documents import (
    Anomaly,
    CrawlEnd,
    Element,
    ElementKind,
    Observation,
    Outcome,
    PartitionedDocument,
    Validators,
)
from tidemark.domain.errors import PermanentError
from tidemark.ports.artifacts import ArtifactStore


@dataclass(frozen=True, slots=True)
class Planned:
    """A decision with what the later stages need of the observation behind it."""

    decision: Decision
    observed: Observation | None


def encode_observation(observed: Observation) -> str:
    return _dump(_observation(observed))


def encode_end(end: CrawlEnd) -> str:
    return _dump({"end": _fields(end)})


def decode_listing_line(line: str) -> Observation | CrawlEnd:
    data = json.loads(line)
    if "end" in data:
        return CrawlEnd(**data["end"])
    return _to_observation(data)


def encode_planned(planned: Planned) -> str:
    decision = _fields(planned.decision)
    decision["document_id"] = str(planned.decision.document_id)
    decision["origin"] = str(planned.decision.origin) if planned.decision.origin else None
    observed = _observation(planned.observed) if planned.observed else None
    return _dump({"decision": decision, "observed": observed})


def decode_planned(line: str) -> Planned:
    data = json.loads(line)
    decision = data["decision"]
    return Planned(
        Decision(
            document_id=UUID(decision["document_id"]),
            uri=decision["uri"],
            action=Action(decision["action"]),
            reason=Reason(decision["reason"]),
            raw_hash=decision["raw_hash"],
            detail=decision["detail"],
            snapshot=decision["snapshot"],
            origin=UUID(decision["origin"]) if decision["origin"] else None,
            target=decision["target"],
        ),
        _to_observation(data["observed"]) if data["observed"] else None,
    )


def read_plan(artifacts: ArtifactStore, key: str) -> Iterator[Planned]:
    """Stream a plan or one of its batches. Raises ``PermanentError`` when it is no longer kept."""
    yield from map(decode_planned, _lines(artifacts, key))


def _lines(artifacts: ArtifactStore, key: str) -> Iterator[str]:
    try:
        yield from artifacts.lines(key)
    except KeyError:
        raise PermanentError(
            f"The plan {key} is no longer in the artifact store.", "Start a new run of the source."
        ) from None


def encode_elements(document: PartitionedDocument) -> bytes:
    """Compressed, with equal bytes for equal documents."""
    data = {
        "title": document.title,
        "language": document.language,
        "elements": [
            [
                e.kind.value,
                e.text,
                e.level,
                e.page_number,
                e.anchor,
                e.header_rows,
                *([e.syntax] if e.syntax else []),
            ]
            for e in document.elements
        ],
    }
    return gzip.compress(_dump(data).encode(), compresslevel=5, mtime=0)


def decode_elements(data: bytes) -> PartitionedDocument:
    tree = json.loads(gzip.decompress(data))
    return PartitionedDocument(
        title=tree["title"],
        language=tree["language"],
        elements=tuple(
            Element(ElementKind(kind), text, level, page, anchor, header_rows, *syntax)
            for kind, text, level, page, anchor, header_rows, *syntax in tree["elements"]
        ),
    )


def _observation(observed: Observation) -> dict[str, Any]:
    data = _fields(observed)
    told = _fields(observed.validators) if observed.validators else {}
    data["validators"] = {k: v for k, v in told.items() if v is not None}
    for name in ("fetched_at", "modified_at"):
        if data[name]:
            data[name] = data[name].isoformat()
    return {key: value for key, value in data.items() if value not in (None, "", {})}


def _to_observation(data: dict[str, Any]) -> Observation:
    anomaly = data.get("anomaly") or data.get("suspicion")  # as it was called in older files
    return Observation(
        uri=data["uri"],
        outcome=Outcome(data["outcome"]),
        validators=Validators(**data.get("validators", {})),
        raw_hash=data.get("raw_hash"),
        media_type=data.get("media_type"),
        charset=data.get("charset"),
        fetched_at=_time(data.get("fetched_at")),
        size=data.get("size"),
        detail=data.get("detail", ""),
        target=data.get("target", ""),
        modified_at=_time(data.get("modified_at")),
        link=data.get("link", ""),
        text_hash=data.get("text_hash"),
        text_length=data.get("text_length"),
        anomaly=Anomaly(anomaly) if anomaly else None,
    )


def _fields(value: Any) -> dict[str, Any]:
    # dataclasses.asdict copies every leaf, which costs more than all the rest of the encoding.
    return {name: getattr(value, name) for name in value.__slots__}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
