"""What a table source is told."""

from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import Field

from tidemark.config.sources import CONNECTION, INTERNAL, SourceContext, SourceDeclaration
from tidemark.domain.connections import Credentials
from tidemark.domain.hashing import Canonical, fingerprint
from tidemark.ports.source import Source

DEFAULT_UPDATED = "updated_at"
_ADAPTER_VERSION = 1
"""Raised when the same row would become other bytes than before."""


class TableOptions(SourceDeclaration):
    """The rows of a SQL query.

    name: of the source; URIs are ``table://<name>/<id>``.
    query: a SELECT; its columns are told apart by their names, in which case matters only when two differ
        in nothing else.
    id_column, body_column: must be in the answer.
    title_column, link_column: likewise, unless "".
    updated_column: likewise, unless "" or the default; without it a row's text is its version.
    media_type: of the bodies.
    base_uri: what URIs start with instead.
    max_bytes: of one document; larger ones are not handed over.
    database_url: of SQLAlchemy's kind; without it, it is made from the credentials.
    query_timeout: seconds that the database may take for the query, where it can be told.
    """

    kind: Literal["table"] = "table"
    query: Annotated[str, Field(pattern=r"[^\s;]", description="A SELECT.")]
    connection: Annotated[str, Field(pattern=CONNECTION)]
    id_column: Annotated[str, Field(min_length=1)] = "id"
    title_column: str = "title"
    body_column: Annotated[str, Field(min_length=1)] = "body"
    updated_column: str = DEFAULT_UPDATED
    link_column: str = ""
    media_type: Literal["text/plain", "text/markdown", "text/html"] = "text/plain"
    base_uri: str = ""
    database_url: Annotated[str, INTERNAL] = ""
    max_bytes: Annotated[int, INTERNAL] = 50_000_000
    query_timeout: Annotated[float, INTERNAL] = 600.0
    credentials: Annotated[Credentials | None, INTERNAL] = None

    def open(self, context: SourceContext) -> Source:
        """The source itself."""
        from tidemark.adapters.sources.table.source import TableSource

        return TableSource(self.in_context(context))

    @property
    def fingerprint(self) -> str:
        """Of what decides a document's bytes: the query, the columns and the form."""
        options: dict[str, Canonical] = {
            "kind": "table",
            "version": _ADAPTER_VERSION,
            "query": self.query.strip(),
            "columns": [self.id_column, self.title_column, self.body_column, self.updated_column],
            "link": self.link_column,
            "media_type": self.media_type,
        }
        return fingerprint("fetch", options)

    @property
    def base(self) -> str:
        return self.base_uri.rstrip("/") or f"table://{quote(self.name, safe='')}"
