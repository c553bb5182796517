"""A DAG in place of a source that has none of its own, so that it is seen and hides no other."""

import re

from airflow.sdk import DAG, task

from tidemark.declarations import NAME
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.hashing import digest_text


def broken_source_dag(name: str, error: ConfigurationError) -> DAG:
    """A DAG without a schedule whose only task fails with the error and its cure."""
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
            raise ConfigurationError(_storable(error.message), _storable(error.cure))

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
