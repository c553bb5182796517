"""The DAG that keeps house, from its arguments to its only task. Runs at parse time, so it imports little."""

import logging
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import CronTriggerTimetable, Param, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException

from tidemark.config.settings import Settings
from tidemark.domain.errors import PermanentError
from tidemark.orchestration.dags import MAX_RETRY_DELAY, RETRY_DELAY

log = logging.getLogger(__name__)


def housekeeping_arguments() -> dict[str, Any]:
    """What the DAG is declared with; its schedule comes from the settings."""
    schedule = Settings().housekeeping_schedule
    never = schedule.strip().lower() in ("", "never", "none")
    return {
        "dag_id": "housekeeping",
        "dag_display_name": "Housekeeping",
        "description": "Remove what nobody needs any more from the stores.",
        "doc_md": _DOCUMENTATION,
        "schedule": None if never else CronTriggerTimetable(schedule, timezone="UTC"),
        "start_date": datetime(2026, 1, 1, tzinfo=UTC),
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["tidemark", "upkeep"],
        "params": {
            "dry_run": Param(
                default=False,
                type="boolean",
                title="Dry run",
                description="Say what would be removed, and remove nothing.",
            )
        },
        "default_args": {
            "owner": "tidemark",
            "retries": 2,
            "retry_delay": RETRY_DELAY,
            "retry_exponential_backoff": True,
            "max_retry_delay": MAX_RETRY_DELAY,
        },
    }


@task(task_id="keep_house")
def collect_garbage() -> dict[str, Any]:
    """Remove what nobody refers to, and what is past its time; never anything that a run may need."""
    from tidemark.orchestration.context import LogProgress, note_run, open_container

    context = get_current_context()
    dry_run = bool(context["params"].get("dry_run"))
    try:
        done = open_container().collect_garbage(
            dry_run=dry_run, progress=LogProgress("housekeeping")
        )
    except PermanentError as error:
        # It will not pass by itself, so a retry is of no use.
        raise AirflowFailException(str(error)) from error
    log.info("%s", done.sentence())
    for note in done.notes:
        log.warning("%s", note)
    dag_run: Any = context["dag_run"]
    note_run(dag_run.dag_id, dag_run.run_id, done.sentence())
    return dict(done.as_dict())


_DOCUMENTATION = """\
### Housekeeping

Removes from the stores what nobody needs any more:

| what | when |
|---|---|
| snapshots, elements, vectors and run files | no row of the ledger refers to them |
| elements that another parser made than the one whose version is kept | 30 days after they were made |
| versions that another replaced, with their snapshots | after `TIDEMARK_HISTORY_DAYS` |
| runs with their files, and audits | after `TIDEMARK_RUN_DAYS`; the latest of each source stay |
| that a document was removed | after `TIDEMARK_TOMBSTONE_DAYS`; what was taken down stays out for ever |
| what restores a removed document of a source that nobody declares any more | after 30 days |
| generations that are neither live nor being built, or were given up | at once |
| runs that say they are running, and nobody carries out | after 2 days they are said to have failed |

Nothing goes that was written in the last day, or since the oldest run that is still going on, waits for a
person, or may be taken up again. **Trigger** with *dry run* to see first what would go; `tidemark
housekeeping` does the same from the command line. It may be stopped and repeated at any time.

**When it is red**: a store was away (it is retried, and goes on where it ended), or the sources file cannot
be read, for then nobody can tell which source is still wanted; its log names the line to correct. Nothing
else depends on it: clear the task, or leave it to the next week.
"""
