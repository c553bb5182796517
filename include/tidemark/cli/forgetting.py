"""Forgetting a source that nobody declares any more: all that the index has of it goes."""

from dataclasses import replace

from tidemark.cli.progress import Bar
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.summary import RunSummary
from tidemark.source_wiring import Emptied
from tidemark.stages.run import new_run_id, plan_source, run_source
from tidemark.wiring import Workshop


def forget_source(shop: Workshop, name: str, bar: Bar, *, dry_run: bool) -> RunSummary:
    """A run of the source as if nothing were in it; what it removes is kept aside as any removed document is.

    Raises ``ConfigurationError`` for a source that is declared, or that no one knows, and
    ``SourceBusyError`` while a run holds it.
    """
    if name in shop.declarations.sources or name in shop.declarations.broken:
        file = shop.settings.sources_file
        raise ConfigurationError(
            f"The source {name} is declared, so that its next run would bring everything back.",
            f"Remove it from {file} first; or, to keep what it has and run it no more, set enabled: false.",
        )
    declared = shop.declared(name)
    tools = replace(shop.tools(declared, bar), source=Emptied())
    job = replace(shop.job(declared, new_run_id(name, tools), approved=True), judge=False)
    if dry_run:
        return plan_source(job, tools)[0]
    return run_source(job, tools, "cli", "forgotten by hand")
