"""Remove what nobody needs any more from the stores (`TIDEMARK_HOUSEKEEPING_SCHEDULE`)."""

from airflow.sdk import dag

from tidemark.orchestration.housekeeping import collect_garbage, housekeeping_arguments


@dag(**housekeeping_arguments())
def housekeeping() -> None:
    collect_garbage()


housekeeping()
