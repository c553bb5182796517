"""What opens a source that is not public. Never logged, never stored, never part of a fingerprint."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Credentials:
    """One connection as Airflow keeps it; its fields mean what the connection's form calls them.

    name: the connection's id, which may be shown.
    kind: the connection's type, e.g. "http", "aws", "sftp", "postgres"; "" when it has none.
    login, password, host, schema, port: "" or None where the connection leaves them open.
    extra: further options by name, e.g. {"cookie": "…"}; values may be secrets.
    """

    name: str
    kind: str = ""
    login: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    host: str = ""
    schema: str = ""
    port: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict, repr=False)


class CredentialStore(Protocol):
    """Where connections are looked up when a source names one."""

    def get(self, name: str) -> Credentials:
        """Raises ``ConfigurationError`` that names the connection and where to make it."""
