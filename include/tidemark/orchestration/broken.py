"""A DAG in place of a source whose declaration is not valid, so that it is seen and hides no other."""

from airflow.sdk import DAG, task

from tidemark.domain.errors import ConfigurationError


def broken_source_dag(name: str, error: ConfigurationError) -> DAG:
    """A DAG without a schedule whose only task fails with the error and its cure."""
    message = str(error)
    with DAG(
        dag_id=f"index__{name}",
        description=message[:200],
        doc_md=f"The declaration of this source is not valid:\n\n    {message}\n",
        schedule=None,
        tags=["tidemark", "not valid"],
    ) as dag:

        @task(task_id="declaration", retries=0)
        def declaration() -> None:
            """Say what is wrong with the declaration."""
            raise ConfigurationError(error.message, error.cure)

        declaration()
    return dag
