"""The DAG that audits the index, from arguments to tasks. Runs at parse time, so it imports little."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
from airflow.sdk import Connection, CronTriggerTimetable, Param, get_current_context, task
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)

from tidemark.config.settings import Settings
from tidemark.domain.errors import PermanentError
from tidemark.orchestration.dags import MAX_RETRY_DELAY, RETRY_DELAY

if TYPE_CHECKING:
    from tidemark.stages.audit.audit import AuditReport


log = logging.getLogger(__name__)

REPAIR_WAIT = 900.0
"""Seconds that a repair waits for a source that a run holds."""


def audit_arguments() -> dict[str, Any]:
    """What the DAG is declared with; its schedule comes from the settings."""
    settings = Settings()
    never = settings.audit_schedule.strip().lower() in ("", "never", "none")
    return {
        "dag_id": "audit_index",
        "dag_display_name": "Audit the index",
        "description": "Compare the ledger with the index, both ways, and search for a sample of documents.",
        "doc_md": _DOCUMENTATION,
        "schedule": None
        if never
        else CronTriggerTimetable(settings.audit_schedule, timezone="UTC"),
        "start_date": datetime(2026, 1, 1, tzinfo=UTC),
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["tidemark", "upkeep"],
        "params": _params(settings.audit_sample),
        "default_args": {
            "owner": "tidemark",
            "retries": 2,
            "retry_delay": RETRY_DELAY,
            "retry_exponential_backoff": True,
            "max_retry_delay": MAX_RETRY_DELAY,
        },
    }


def _params(sample: int) -> dict[str, Param]:
    return {
        "source": Param(
            None,
            type=["null", "string"],
            title="Source",
            description="Only this one; all, and the generations, when left empty.",
        ),
        "repair": Param(
            default=False,
            type="boolean",
            title="Repair",
            description="Heal what is found: what is missing is written, what is too much is deleted.",
        ),
        "sample": Param(
            sample,
            type="integer",
            minimum=0,
            maximum=1000,
            title="Sample",
            description="Search for so many documents by a sentence of each; 0 loads no model.",
        ),
    }


@contextmanager
def _final_errors() -> Iterator[None]:
    """An error that will not pass by itself fails the task at once; others are retried by Airflow."""
    try:
        yield
    except PermanentError as error:
        raise AirflowFailException(str(error)) from error


@task
def audit() -> dict[str, Any]:
    """Compare everything, and search for the sample. Green whatever it finds: the report tells."""
    return asdict(_audit(repair=False))


@task
def repair() -> dict[str, Any]:
    """Heal what the audit found, when asked to; it looks again for itself."""
    context = get_current_context()
    if not context["params"].get("repair"):
        raise AirflowSkipException("It was not asked for.")
    found = _report_of("audit")
    if found is None or found.clean:
        raise AirflowSkipException("There is nothing to repair.")
    return asdict(_audit(repair=True))


@task(trigger_rule="none_failed", retries=0)
def report() -> None:
    """Tell of what was found: metrics, the run's note, an alert on any drift; red when any is left."""
    from tidemark.orchestration.context import note_run

    found = _report_of("repair") or _report_of("audit")
    if found is None:
        raise AirflowFailException("The audit has left no report; see its log.")
    send_metrics(found)
    context = get_current_context()
    dag_run: Any = context["dag_run"]
    note_run(dag_run.dag_id, dag_run.run_id, found.sentence())
    if found.clean:
        log.info("%s", found.sentence())
        return
    alert(drift_message(found))
    if found.differs:
        raise AirflowFailException(drift_message(found))
    log.warning("%s", drift_message(found))


def drift_message(found: "AuditReport") -> str:
    """What differs, in which sources, and the hint."""
    parts = [found.sentence()]
    named = sorted(name for name in found.sources if name)
    if named:
        parts.append(f"Sources: {', '.join(named)}.")
    parts += [f"{source} was not repaired: {why}" for source, why in found.skipped.items()]
    if found.differs:
        one = f" {found.source}" if found.source else ""
        parts.append(
            "What could not be repaired is healed by a run of its source: `tidemark index SOURCE`."
            if found.repair
            else f"Run `tidemark audit{one} --repair`, or trigger this DAG with repair."
        )
    return " ".join(parts)


def send_metrics(found: "AuditReport") -> None:
    """Gauges: how many differences of each kind there are, and in all."""
    from airflow.sdk.observability import stats

    from tidemark.stages.audit.drift import KINDS

    now: Mapping[str, int] = found.left if found.repair else found.counts
    for kind in KINDS:
        stats.gauge(f"tidemark.audit.{kind.value}", now.get(kind.value, 0))
    stats.gauge("tidemark.audit.drift", found.drift)


def _audit(*, repair: bool) -> "AuditReport":
    from tidemark.orchestration.context import LogProgress, open_container
    from tidemark.stages.audit.audit import audit_index

    params = get_current_context()["params"]
    source = params.get("source") or None
    with _final_errors():
        container = open_container()
        if source is not None:
            container.declared(source)
        deps = container.audit_dependencies(LogProgress(source or "audit"), REPAIR_WAIT)
        found = audit_index(deps, source, repair=repair, sample=int(params.get("sample") or 0))
    (log.info if found.clean else log.warning)("%s", found.sentence())
    for kind, examples in found.examples.items():
        log.warning("%s, for example: %s", kind.replace("_", " "), ", ".join(examples))
    for uri, why in found.failed.items():
        log.warning("%s could not be repaired: %s", uri, why)
    return found


def _report_of(task_id: str) -> "AuditReport | None":
    """What a task has returned, None when it was skipped."""
    from tidemark.stages.audit.audit import AuditReport

    pulled = get_current_context()["ti"].xcom_pull(task_ids=task_id)
    return AuditReport(**pulled) if pulled else None


_DOCUMENTATION = """\
### Audit

Proves that the index is what the ledger says, and finds what is not: points and sections that are missing
or too many (also of removed documents), payloads and vectors that are not those that were written, documents
of another model, generations that nobody needs, a live name over the wrong one. Then it searches for a sample
of documents by a sentence of each.

| task | does | when it is red |
|---|---|---|
| audit | compares ledger and index, both ways; searches for the sample | a store is away, or the index \
cannot be opened: its message names the hint; then clear the task |
| repair | heals what was found, only with the param *repair* | the same; what it healed stays healed |
| report | sets the metrics `tidemark.audit.*` and the note, sends an alert | something differs: run \
`tidemark audit --repair`, or trigger this with *repair*; after a repair it names what is left, and why |

It runs beside the index DAGs: what they are writing at the moment is no finding. **Trigger** with *source*
for one source, *repair* to heal, *sample* for more or fewer searches. The alert goes to the address of the
Connection `tidemark_alerts`, where there is one. Every result is kept in the ledger.
"""


# Alerts to people, at the address of the Airflow Connection ``tidemark_alerts``.
#
# It takes what a chat's incoming webhook takes: a POST of ``{"text": …}``. The address is a secret: the
# Connection's host, with its scheme or ``schema`` (https when neither says), its port, and its password as
# the rest of the path. Without that Connection nothing is sent; a task that is red is an alert by itself.

TIMEOUT = 10.0
LONGEST = 3_000
"""Characters: more is cut off, for chats refuse it."""


def alert(text: str) -> bool:
    """Send it; True when it was taken. Never raises for an address that does not answer."""
    try:
        connection = Connection.get("tidemark_alerts")
    except AirflowNotFoundException:
        return False
    try:
        with _unlogged("httpx", "httpcore"):
            answer = httpx.post(
                _address(connection), json={"text": text[:LONGEST]}, timeout=TIMEOUT
            )
        answer.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        # Not the error's own words: they name the address.
        log.warning("The alert could not be sent (%s).", type(error).__name__)
        return False
    return True


@contextmanager
def _unlogged(*names: str) -> Iterator[None]:
    """Without what the client itself would log: each request with its address."""
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _address(connection: Connection) -> str:
    host = (connection.host or "").rstrip("/")
    if "://" not in host:
        port = f":{connection.port}" if connection.port else ""
        host = f"{connection.schema or 'https'}://{host}{port}"
    path = (connection.password or "").lstrip("/")
    return f"{host}/{path}" if path else host
