"""The audit of one source or of all, and its repair."""

from tidemark.ports import Progress
from tidemark.stages.auditing.report import AuditReport
from tidemark.stages.auditing.whole import audit_index
from tidemark.wiring import Workshop


def run_audit(
    shop: Workshop,
    source: str | None,
    *,
    repair: bool,
    sample: int = 0,
    progress: Progress | None = None,
) -> AuditReport:
    """Audit, and repair when asked to. ``sample``: documents to search for, which loads the model.

    Raises ``ConfigurationError`` for a source that no one knows.
    """
    if source is not None:
        shop.declared(source)
    return audit_index(shop.audit_tools(progress), source, repair=repair, sample=sample)
