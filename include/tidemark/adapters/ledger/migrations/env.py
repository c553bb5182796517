"""What Alembic runs to migrate: the connection comes from ``migrations.config``."""

from alembic import context

from tidemark.adapters.ledger.migrations import VERSION_TABLE
from tidemark.adapters.ledger.postgres import metadata


def migrate() -> None:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


# Alembic gives the module its configuration; merely imported, it has none and there is nothing to do.
if hasattr(context, "config"):
    migrate()
