"""One DAG per declared source (`include/sources.yaml`): `index__<source>`."""

from airflow.sdk import DAG, dag

from tidemark.config.sources import SourceDeclaration
from tidemark.orchestration import tasks
from tidemark.orchestration.dags import dag_arguments, dags_by_id, source_asset
from tidemark.orchestration.tasks import GuardOperator


def index_source(source: SourceDeclaration) -> DAG:
    @dag(**dag_arguments(source))
    def index() -> None:
        crawled = tasks.crawl(source.name)
        planned = tasks.plan(source.name)
        approved = GuardOperator(task_id="approve", source=source.name)
        processed = tasks.process.partial(source=source.name).expand(batch=planned)
        swept = tasks.sweep(source.name)
        audited = tasks.audit(source.name)
        reported = tasks.report.override(outlets=[source_asset(source.name)])(source.name)

        crawled >> planned >> approved >> processed >> swept >> audited >> reported

    return index()


globals().update(dags_by_id(index_source))
