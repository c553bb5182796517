"""Remove what nobody needs any more from the stores (`TIDEMARK_HOUSEKEEPING_SCHEDULE`)."""

from airflow.sdk import dag

from tidemark.orchestration.housekeeping import housekeeping_arguments, keep_house


@dag(**housekeeping_arguments())
def housekeeping() -> None:
    keep_house()


housekeeping()
