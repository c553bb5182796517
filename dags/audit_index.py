"""Compare the ledger with the whole index every day, both ways (`TIDEMARK_AUDIT_SCHEDULE`)."""

from airflow.sdk import dag

from tidemark.orchestration import audit as auditing


@dag(**auditing.audit_arguments())
def audit_index() -> None:
    auditing.audit() >> auditing.repair() >> auditing.report()


audit_index()
