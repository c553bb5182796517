"""The audit of one source or of all, and its repair source by source."""

from dataclasses import replace

from tidemark.domain.errors import PermanentError
from tidemark.domain.records import RunStatus
from tidemark.stages import audit as stage
from tidemark.stages.generation import current_generation
from tidemark.stages.job import embed_fingerprint, target
from tidemark.stages.plan import PlanSummary
from tidemark.stages.report import begin, finish, from_ledger
from tidemark.stages.run import new_run_id
from tidemark.wiring import Workshop


def run_audit(shop: Workshop, source: str | None, *, repair: bool) -> dict[str, int]:
    """Audit, and repair when asked to: counts by kind, with ``checked`` and ``repaired``.

    Raises ``ConfigurationError`` for a source that no one knows, ``PermanentError`` when there is no
    index to audit though the ledger has documents.
    """
    if source is not None:
        shop.declared(source)
    generation = current_generation(
        shop.ledger,
        shop.index,
        shop.settings.index_name,
        embed_fingerprint(shop.embedder, shop.lexical),
    )
    if generation is None:
        return _without_index(shop, source)
    found = stage.audit(shop.ledger, shop.index, generation, source)
    if repair and not found.clean:
        found = _repair(shop, generation, found)
    shop.ledger.save_audit(source, found.counts(), found.repaired)
    return {"checked": found.checked, **found.counts(), "repaired": found.repaired}


def _without_index(shop: Workshop, source: str | None) -> dict[str, int]:
    documents, _ = shop.ledger.totals(source)
    if documents:
        raise PermanentError(
            f"The ledger has {documents} documents, and there is no index under the configured "
            "model: its collections are gone or were built with another model.",
            "Run `tidemark index --all`, which builds it again from the stored snapshots.",
        )
    return {"checked": 0, **stage.AuditFindings().counts(), "repaired": 0}


def _repair(shop: Workshop, generation: int, found: stage.AuditFindings) -> stage.AuditFindings:
    records = shop.ledger.documents_by_id(list(found.documents))
    by_source: dict[str, set[str]] = {}
    for record in records.values():
        by_source.setdefault(record.source, set()).add(str(record.document_id))
    repaired = len(found.orphans)
    stage.remove_orphans(shop.index, generation, found.orphans)
    for name in sorted(by_source):
        declared = shop.declared(name)
        tools = shop.tools(declared)
        job = shop.job(declared, new_run_id(name, tools))
        own = [r for r in records.values() if r.source == name]
        with shop.ledger.lock(name):
            begin(job, tools, "repair")
            stage.repair(job, tools, target(job, tools, generation), own)
            summary = replace(
                from_ledger(job, shop.ledger, PlanSummary()), status=RunStatus.SUCCESS.value
            )
            finish(job, tools, summary)
        repaired += len(own)
    return replace(found, repaired=repaired)
