"""From a declared source to the arguments of its DAG. Runs at parse time, so it imports nothing heavy."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, Param, task

from tidemark.config.settings import Settings
from tidemark.config.sources import NAME, SourceDeclaration
from tidemark.config.sources_file import load_declarations
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.hashing import digest_text
from tidemark.wiring import SOURCE_KINDS

# A DAG in place of a source that has none of its own, so that it is seen and hides no other.


def broken_source_dag(name: str, error: ConfigurationError) -> DAG:
    """A DAG without a schedule whose only task fails with the error and its hint."""
    message = _storable(str(error))
    with DAG(
        dag_id=f"index__{_key(name)}",
        description=message[:200],
        doc_md="This source cannot be indexed as it is declared:\n\n    "
        + message.replace("\n", "\n    ")
        + "\n",
        schedule=None,
        tags=["tidemark", "not valid"],
        auto_register=False,
    ) as dag:

        @task(task_id="declaration", retries=0)
        def declaration() -> None:
            """Say what is wrong with the declaration."""
            raise ConfigurationError(_storable(error.message), _storable(error.hint))

        declaration()
    return dag


def _key(name: str) -> str:
    """The name where Airflow takes it; else what it takes of it, and a hash that tells two apart."""
    if re.fullmatch(NAME, name):
        return name
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:32]
    return f"{plain or 'source'}-{digest_text(_storable(name))[:8]}"


def _storable(text: str) -> str:
    """The text without what Airflow's database cannot hold."""
    return text.replace("\x00", "\\0").encode("utf-8", "backslashreplace").decode("utf-8")


RETRY_DELAY = timedelta(seconds=30)
MAX_RETRY_DELAY = timedelta(minutes=10)


def declared_sources() -> Iterator[SourceDeclaration | tuple[str, ConfigurationError]]:
    """Every source of the sources file; one that is not valid comes as its name and the error.

    Reading that small file is the only I/O that parsing does: which DAGs there are depends on it.
    """
    declarations = load_declarations(Settings().sources_file, SOURCE_KINDS)
    yield from (source for source in declarations.sources.values() if source.enabled)
    yield from declarations.broken.items()


def dags_by_id(build: Callable[[SourceDeclaration], DAG]) -> dict[str, DAG]:
    """Build the DAG of every declared source; one that cannot be built shows its error instead."""
    dags = (
        _built(source, build)
        if isinstance(source, SourceDeclaration)
        else broken_source_dag(*source)
        for source in declared_sources()
    )
    return {dag.dag_id: dag for dag in dags}


def _built(source: SourceDeclaration, build: Callable[[SourceDeclaration], DAG]) -> DAG:
    try:
        dag = build(source)
        dag.validate()  # type: ignore[no-untyped-call]  # Airflow left it without annotations
    except Exception as error:  # noqa: BLE001 - whatever it is, the DAGs of the others must be there
        problem = f"The DAG of {source.name} cannot be built ({type(error).__name__}: {error})."
        return broken_source_dag(
            source.name, ConfigurationError(problem, "Correct its declaration.")
        )
    return dag


def source_asset(name: str) -> Asset:
    """The asset that a run over a source updates, with the run's summary as ``extra``."""
    return Asset(name=f"index__{name}", uri=f"tidemark://index/{name}")


def dag_arguments(source: SourceDeclaration) -> dict[str, Any]:
    """What every index DAG has in common, and what the declaration says of this one."""
    return {
        "dag_id": f"index__{source.name}",
        "dag_display_name": f"Index {source.name}",
        "description": source.description or f"Keep the index true to {source.name}.",
        "doc_md": _documentation(source),
        "schedule": CronDataIntervalTimetable(source.schedule, timezone=source.timezone),
        "start_date": datetime.combine(source.start_date, time(), ZoneInfo(source.timezone)),
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["tidemark", source.kind_name, *source.tags],
        "params": _params(),
        # A DAG that fails while it is built would register itself too; the DAG file names the whole ones.
        "auto_register": False,
        "default_args": {
            "owner": source.owner,
            "retries": source.retries,
            "retry_delay": RETRY_DELAY,
            "retry_exponential_backoff": True,
            "max_retry_delay": MAX_RETRY_DELAY,
        },
    }


def _params() -> dict[str, Param]:
    return {
        "force": Param(
            default=False,
            type="boolean",
            title="Do everything again",
            description="Fetch, partition, chunk and embed unchanged documents too.",
        ),
        "limit": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Limit",
            description="Look at so many documents at most; such a run deletes nothing.",
        ),
        "dry_run": Param(
            default=False,
            type="boolean",
            title="Dry run",
            description="Crawl and plan, report what would be done, change nothing.",
        ),
        "approved": Param(
            default=False,
            type="boolean",
            title="Approved",
            description="Apply the plan however much it changes, without asking.",
        ),
        "accept": Param(
            [],
            type=["null", "array"],
            items={"type": "string"},
            title="Accept",
            description="Addresses whose doubtful new version is to be believed; * for all.",
        ),
        "note": Param(
            "",
            type=["null", "string"],
            title="Note",
            description="Why this run was started; kept with the run.",
        ),
    }


def _documentation(source: SourceDeclaration) -> str:
    return f"""\
### {source.name}

{source.description}

Each run crawls the source, plans the least work that makes the index right again, does it in batches,
removes what is gone, audits what it touched, and reports.

| task | does | when it is red |
|---|---|---|
| crawl | lists and fetches only what changed | the source is away; nothing was deleted |
| plan | decides for each document what to do, and why | the ledger or the index is away, or cannot be \
opened: its message names the cure; then clear the task |
| approve | asks a person, when more than a guard allows would change | it was rejected, or \
nobody answered: nothing was applied |
| process | partitions, chunks, embeds and upserts one batch | its log names the cause; clear the task, it \
goes on where it ended; the other batches are done |
| sweep | removes documents that are gone, notes those seen | the index or the ledger is away: clear it |
| audit | compares the ledger with the index | run `tidemark audit {source.name} --repair` |
| report | writes the summary, sets the notes, updates the asset | a task before it failed, or too many \
documents are in quarantine: `tidemark quarantine {source.name}` lists them with the cure |

**Trigger** with *force* to do everything again, *limit* to try a few documents, *dry run* to see the plan
alone, *approved* to apply it without being asked, *accept* to believe new versions that are held back.
A **backfill** processes again, from stored snapshots, the documents whose present version was first
fetched in its interval; it fetches and deletes nothing. `tidemark explain URI` says why a document was, or
was not, done again.
"""
