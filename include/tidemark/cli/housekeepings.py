"""Housekeeping, with its progress shown."""

from tidemark.cli.output import Output
from tidemark.cli.progress import Bar
from tidemark.stages.housekeeping import Housekeeping
from tidemark.wiring import Workshop


def run_housekeeping(shop: Workshop, output: Output, *, dry_run: bool, quiet: bool) -> Housekeeping:
    """Remove what nobody needs any more; with ``dry_run``, tell what that would be.

    Raises ``ConfigurationError`` when the sources cannot be read: then none of them is known to be wanted.
    """
    with Bar(output.console, "housekeeping", quiet=quiet) as bar:
        return shop.keep_house(dry_run=dry_run, progress=bar)
