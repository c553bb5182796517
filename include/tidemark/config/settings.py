"""Settings: the only reader of the environment."""

import json
import os
import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError

PROJECT = Path(__file__).resolve().parents[3]


class Settings(BaseSettings):
    """Everything that can be set from outside, as ``TIDEMARK_<NAME>``."""

    model_config = SettingsConfigDict(
        env_prefix="TIDEMARK_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    home: Annotated[
        Path, Field(description="Folder of everything embedded: Postgres, Qdrant, artifacts, logs.")
    ] = PROJECT / ".tidemark"
    sources_file: Annotated[Path, Field(description="Where the sources are declared.")] = (
        PROJECT / "include" / "sources.yaml"
    )
    ledger_url: Annotated[
        SecretStr | None,
        Field(description="Postgres URL of the ledger; unset means the embedded server."),
    ] = None
    artifacts_url: Annotated[
        str | None,
        Field(description="fsspec URL of the artifact store; unset means a folder of the home."),
    ] = None
    qdrant_url: Annotated[
        str | None, Field(description="URL of a Qdrant server; unset means the embedded engine.")
    ] = None
    qdrant_api_key: Annotated[
        SecretStr | None, Field(description="API key of the Qdrant server.")
    ] = None
    index_name: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9][a-z0-9_-]{0,60}$",
            description="Name of the index: the alias that clients of Qdrant search.",
        ),
    ] = "tidemark"
    embedding_model: Annotated[
        str,
        Field(
            min_length=1,
            description="Folder or hub name of a sentence-transformers model; the default comes "
            "from a package.",
        ),
    ] = "all-MiniLM-L6-v2"
    embedding_batch_size: Annotated[
        int, Field(ge=1, le=512, description="Texts the model reads at once.")
    ] = 8
    embedding_threads: Annotated[
        int,
        Field(ge=0, description="Threads of one embedding process; 0 leaves it to the runtime."),
    ] = 0
    batch_documents: Annotated[
        int, Field(ge=1, description="Documents in one mapped task, at most.")
    ] = 200
    batch_megabytes: Annotated[
        float, Field(gt=0, description="Raw megabytes in one mapped task, at most.")
    ] = 16.0
    max_document_megabytes: Annotated[
        float, Field(gt=0, description="A larger document is not fetched, and reported.")
    ] = 50.0
    pdf_strategy: Annotated[
        Literal["fast", "ocr", "hi_res"],
        Field(description="How PDFs are read: their text, or by recognition (see Formats)."),
    ] = "fast"
    parser_seconds: Annotated[
        float,
        Field(gt=0, description="Seconds to read one document; large ones get more."),
    ] = 120.0
    parser_megabytes: Annotated[
        float, Field(ge=256, description="Memory that reading one document may take.")
    ] = 2048.0
    lock_timeout: Annotated[
        float,
        Field(
            gt=0,
            description="Seconds to wait for the embedded index's folder, and for another run of the source.",
        ),
    ] = 300.0
    patience: Annotated[
        float,
        Field(
            ge=0, description="Seconds for which a store that is away is asked again; 0 for never."
        ),
    ] = 60.0
    audit_schedule: Annotated[
        str, Field(description="When the whole index is audited (cron, UTC), or `never`.")
    ] = "30 5 * * *"
    audit_sample: Annotated[
        int, Field(ge=0, description="Documents that the daily audit searches a sentence of.")
    ] = 20
    housekeeping_schedule: Annotated[
        str, Field(description="When what nobody needs is removed (cron, UTC), or `never`.")
    ] = "15 4 * * 0"
    history_days: Annotated[
        int,
        Field(ge=1, description="Days for which a replaced version and its snapshot are kept."),
    ] = 90
    run_days: Annotated[
        int,
        Field(ge=1, description="Days for which runs and audits are kept; the latest always are."),
    ] = 180
    tombstone_days: Annotated[
        int, Field(ge=1, description="Days for which it is remembered that a document was removed.")
    ] = 365
    user_agent: Annotated[
        str, Field(min_length=1, description="How the crawler names itself; add a contact.")
    ] = "Tidemark/0.1 (+https://example.org/set-TIDEMARK_USER_AGENT)"

    @property
    def max_document_bytes(self) -> int:
        return int(self.max_document_megabytes * 1024 * 1024)

    @property
    def batch_bytes(self) -> int:
        return int(self.batch_megabytes * 1024 * 1024)


_REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


def expand_environment(text: str, where: str) -> str:
    """Replace ``${NAME}`` and ``${NAME:-default}`` in a declared value by the environment's.

    Raises ``ConfigurationError`` naming the key when a variable is unset and has no default.
    """

    def value(match: re.Match[str]) -> str:
        replacement = os.environ.get(match["name"]) or match["default"]
        if replacement is None:
            raise ConfigurationError(
                f"{where}: the environment variable {match['name']} is not set.",
                f"Set it, or write ${{{match['name']}:-default}}.",
            )
        return replacement

    return _REFERENCE.sub(value, text)


class EnvironmentConnections:
    """Connections as Airflow keeps them in the environment: ``AIRFLOW_CONN_<ID>``, as JSON or as a URL."""

    def get(self, name: str) -> Credentials:
        """Raises ``ConfigurationError`` when there is none, or it cannot be read."""
        variable = f"AIRFLOW_CONN_{name.upper()}"
        text = os.environ.get(variable)
        if not text:
            raise ConfigurationError(
                f"There is no connection {name!r}.",
                f"Make it in Airflow (Admin > Connections), or set {variable}.",
            )
        try:
            return (
                _from_json(name, text) if text.lstrip().startswith("{") else _from_url(name, text)
            )
        except (ValueError, TypeError, AttributeError):
            # From no cause: what is in the variable may be a secret.
            raise ConfigurationError(
                f"{variable} is no connection.",
                "Write it as Airflow does, as JSON or as kind://login:password@host:port/schema.",
            ) from None


def _from_json(name: str, text: str) -> Credentials:
    fields = json.loads(text)
    extra = fields.get("extra") or {}
    return Credentials(
        name,
        str(fields.get("conn_type") or ""),
        str(fields.get("login") or ""),
        str(fields.get("password") or ""),
        str(fields.get("host") or ""),
        str(fields.get("schema") or ""),
        int(fields["port"]) if fields.get("port") else None,
        json.loads(extra) if isinstance(extra, str) else dict(extra),
    )


def _from_url(name: str, text: str) -> Credentials:
    parts = urlsplit(text)
    options = dict(parse_qsl(parts.query))
    whole = options.pop("__extra__", "")
    return Credentials(
        name,
        parts.scheme.replace("-", "_"),
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        unquote(parts.hostname or ""),
        unquote(parts.path[1:]),
        parts.port,
        {**options, **(json.loads(whole) if whole else {})},
    )
