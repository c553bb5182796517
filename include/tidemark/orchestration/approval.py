"""Approval: a plan that passes a guard waits for a person, in Airflow's own list of required actions."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context

from tidemark.domain.guards import Breach, Sort

PATIENCE = timedelta(hours=20)
"""Shorter than a day: an unanswered question must not keep the next day's run from asking again."""


class GuardOperator(ApprovalOperator):
    """Lets a plan pass that is within the source's guards; asks about any other.

    Rejected, or not answered in time, the run fails and nothing of it is applied.
    """

    def __init__(self, *, source: str, **arguments: Any) -> None:
        super().__init__(
            subject=f"Apply the plan for {source}?",
            body="",
            fail_on_reject=True,
            response_timeout=PATIENCE,
            retries=0,
            **arguments,
        )
        self.source = source

    def execute(self, context: Context) -> Any:
        """Ask, where a guard was passed and whoever started the run has not approved it already."""
        from tidemark.orchestration.context import current_run

        run = current_run(self.source)
        planned = context["ti"].xcom_pull(task_ids="plan", key="summary") or {}
        breaches = [breach_of(found) for found in planned.get("guards", ())]
        if not breaches:
            return None
        for breach in breaches:
            self.log.warning("%s", breach.sentence())
        if run.approved or run.dry_run or run.interval is not None:
            self.log.info("It was approved when it was started.")
            return None
        self.subject = f"Apply the plan for {self.source}? {breaches[0].sentence()}"
        self.body = question(breaches, planned)
        return super().execute(context)


def breach_of(found: Mapping[str, Any]) -> Breach:
    """A breach from its JSON form."""
    values = {**found, "sort": Sort(found["sort"]), "uris": tuple(found["uris"])}
    return Breach(**values)


def question(breaches: Iterable[Breach], planned: Mapping[str, Any]) -> str:
    """What a person must know to decide, in Markdown."""
    actions = ", ".join(f"{n} {action}" for action, n in sorted(planned["documents"].items()))
    told = (
        f"The plan: {actions}. Nothing of it has been done. **Approve** applies all of it; **Reject** "
        "leaves the index as it is, and the next run asks again if it still finds this."
    )
    parts = [told]
    for breach in breaches:
        listed = "\n".join(f"- `{_quoted(uri)}`" for uri in breach.uris)
        more = breach.documents - len(breach.uris)
        rest = f"\n- and {more} more" if more > 0 else ""
        parts.append(f"**{breach.sentence()}**\n\n{listed}{rest}")
    return "\n\n".join(parts)


def _quoted(uri: str) -> str:
    """An address as code: nothing in it is read as Markdown."""
    return uri.replace("`", "%60")
