# One image for every Airflow service. Built by the same set-up as a local checkout, so that both run the
# same pinned packages.
FROM python:3.11.14-slim-bookworm AS build
WORKDIR /opt/tidemark
COPY requirements*.txt pyproject.toml README.md ./
COPY include/tidemark/__init__.py include/tidemark/__init__.py
COPY include/tidemark_local include/tidemark_local
RUN PYTHONPATH=include PIP_NO_CACHE_DIR=1 python -m tidemark_local.bootstrap --container

FROM python:3.11.14-slim-bookworm
# For sources of the kind git.
RUN apt-get update && apt-get install -y --no-install-recommends git openssh-client \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --user-group --create-home --shell /bin/bash tidemark \
    && install -d -o tidemark -g tidemark /opt/airflow /opt/airflow/logs /var/lib/tidemark
WORKDIR /opt/tidemark
COPY --from=build /opt/tidemark/.venv .venv
COPY pyproject.toml README.md ./
COPY include include
COPY dags dags
COPY plugins plugins
ENV PATH=/opt/tidemark/.venv/bin:$PATH \
    PYTHONPATH=/opt/tidemark/include \
    PYTHONUNBUFFERED=1 \
    AIRFLOW_HOME=/opt/airflow \
    TIDEMARK_HOME=/var/lib/tidemark
USER tidemark
CMD ["tidemark", "--help"]
