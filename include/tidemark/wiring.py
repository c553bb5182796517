"""Wiring: the only place that picks adapters.

Building a `Workshop` opens no connection. Adapters are imported where they are picked, so that a command
that needs the ledger alone does not pay for a crawler or a tokenizer.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from tidemark.declarations import (
    Declarations,
    FilesDeclaration,
    SourceDeclaration,
    WebsiteDeclaration,
    load_declarations,
)
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.hashing import digest_text
from tidemark.domain.model import CrawlEnd, CrawlItem, RawDocument
from tidemark.ports import (
    ArtifactStore,
    CodeParser,
    Embedder,
    Known,
    Ledger,
    LexicalEncoder,
    Partitioner,
    Progress,
    Source,
    Tokenizer,
    VectorIndex,
    quiet,
)
from tidemark.settings import PROJECT, Settings
from tidemark.stages.job import Job, Tools
from tidemark.stages.search import Searcher

LEDGER_DATABASE = "tidemark"


@dataclass(frozen=True)
class Workshop:
    """The tools that the settings ask for, each made once."""

    settings: Settings

    @cached_property
    def declarations(self) -> Declarations:
        return load_declarations(self.settings.sources_file)

    @cached_property
    def ledger_url(self) -> str:
        """Where the ledger is; starts the embedded Postgres when that is where."""
        if self.settings.ledger_url is not None:
            return self.settings.ledger_url.get_secret_value()
        from tidemark.adapters.embedded_postgres import EmbeddedPostgres

        server = EmbeddedPostgres(self.settings.home / "postgres")
        server.ensure_running()
        return server.url(LEDGER_DATABASE)

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, its schema checked; the embedded one is brought up to date by itself."""
        from tidemark.adapters.ledger_migrations import check, upgrade
        from tidemark.adapters.postgres_ledger import PostgresLedger

        if self.settings.ledger_url is None:
            upgrade(self.ledger_url)
        else:
            check(self.ledger_url)
        return PostgresLedger(self.ledger_url)

    @cached_property
    def artifacts(self) -> ArtifactStore:
        from tidemark.adapters.fsspec_artifacts import FsspecArtifacts

        url = self.settings.artifacts_url or (self.settings.home / "artifacts").as_uri()
        return FsspecArtifacts(url)

    @cached_property
    def index(self) -> VectorIndex:
        if self.settings.qdrant_url is not None:
            from tidemark.adapters.qdrant_server import QdrantServerIndex

            key = self.settings.qdrant_api_key
            return QdrantServerIndex(
                url=self.settings.qdrant_url,
                api_key=key.get_secret_value() if key else None,
                name=self.settings.index_name,
            )
        from tidemark.adapters.qdrant_edge import QdrantEdgeIndex

        return QdrantEdgeIndex(
            self.settings.home / "qdrant", self.settings.index_name, self.settings.lock_timeout
        )

    @cached_property
    def tokenizer(self) -> Tokenizer:
        from tidemark.adapters.hf_tokenizer import HuggingFaceTokenizer
        from tidemark.adapters.model_files import resolve_model

        return HuggingFaceTokenizer(resolve_model(self.settings.embedding_model))

    @cached_property
    def code_parser(self) -> CodeParser:
        from tidemark.adapters.tree_sitter_code import TreeSitterCodeParser

        return TreeSitterCodeParser()

    @cached_property
    def embedder(self) -> Embedder:
        from tidemark.adapters.sentence_transformers_embedder import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(
            self.settings.embedding_model,
            batch_size=self.settings.embedding_batch_size,
            threads=self.settings.embedding_threads or None,
        )

    @cached_property
    def sentence_embedder(self) -> Embedder:
        """For profiles that cut by meaning; what it embedded once is remembered under the home."""
        from tidemark.adapters.cached_embedder import CachedEmbedder

        return CachedEmbedder(self.embedder, self.settings.home / "cache" / "sentences.sqlite")

    @cached_property
    def lexical(self) -> LexicalEncoder:
        from tidemark.adapters.lexical import Bm25Encoder

        return Bm25Encoder()

    @cached_property
    def partitioner(self) -> Partitioner:
        from tidemark.adapters.unstructured_partitioner import UnstructuredPartitioner

        return UnstructuredPartitioner()

    @cached_property
    def searcher(self) -> Searcher:
        return Searcher(
            self.ledger, self.index, self.settings.index_name, self.embedder, self.lexical
        )

    def tools(self, declared: SourceDeclaration, progress: Progress | None = None) -> Tools:
        """Everything that a run over this source works with."""
        return Tools(
            ledger=self.ledger,
            artifacts=self.artifacts,
            index=self.index,
            source=self.source(declared),
            partitioner=self.partitioner,
            tokenizer=self.tokenizer,
            embedder=self.embedder,
            lexical=self.lexical,
            code_parser=self.code_parser,
            sentence_embedder=self.sentence_embedder,
            progress=progress or quiet(),
        )

    def declared(self, name: str) -> SourceDeclaration:
        """A declared source, or what is known of one that the ledger alone still knows.

        Raises ``ConfigurationError`` when neither knows the name.
        """
        known = name in self.declarations.sources or name in self.declarations.broken
        if not known and name in self.ledger.sources():
            return SourceDeclaration(name=name)
        return self.declarations.source(name)

    def source(self, declared: SourceDeclaration) -> Source:
        """A new kind of source is one adapter file and one branch here."""
        if isinstance(declared, WebsiteDeclaration):
            from tidemark.adapters.website import WebsiteSource
            from tidemark.adapters.website_options import WebsiteOptions

            return WebsiteSource(
                WebsiteOptions(
                    url=declared.url,
                    include=declared.include,
                    exclude=declared.exclude,
                    max_pages=declared.max_pages,
                    max_depth=declared.max_depth,
                    max_bytes=self.settings.max_document_bytes,
                    concurrency=declared.concurrency,
                    delay=declared.delay,
                    timeout=declared.timeout,
                    user_agent=self.settings.user_agent,
                    allow_private=declared.allow_private,
                    headers=tuple(declared.headers.items()),
                    use_sitemap=declared.use_sitemap,
                )
            )
        if isinstance(declared, FilesDeclaration):
            from tidemark.adapters.files import FilesOptions, FilesSource

            return FilesSource(
                FilesOptions(
                    path=str(PROJECT / declared.path),
                    include=declared.include,
                    exclude=declared.exclude,
                    max_bytes=self.settings.max_document_bytes,
                )
            )
        return _Undeclared()

    def job(
        self,
        declared: SourceDeclaration,
        run_id: str = "",
        *,
        force: bool = False,
        limit: int | None = None,
    ) -> Job:
        """What a run over this source is given."""
        return Job(
            source=declared.name,
            run_id=run_id,
            profile=self.declarations.choice(declared),
            labels=declared.labels,
            gone_after=declared.gone_after,
            index_name=self.settings.index_name,
            batch_documents=self.settings.batch_documents,
            batch_bytes=self.settings.batch_bytes,
            force=force,
            limit=limit,
            declared=tuple(
                name for name, source in self.declarations.sources.items() if source.enabled
            ),
        )


class _Undeclared:
    """A source that the ledger knows and no one declares: it can be audited, not crawled."""

    fingerprint = ""

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        yield CrawlEnd(
            complete=False, authoritative=False, problem="The source is not declared any more."
        )


def adhoc_website(url: str) -> WebsiteDeclaration:
    """A source for `--url`; allowed to be on a private address, since a person typed it.

    Raises ``ConfigurationError`` when it is no web address.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme in ("http", "https") and parts.port != 0 else None
        if not host:
            raise ValueError("no host")
        return WebsiteDeclaration(
            name=_adhoc_name("url", host, url), kind="website", url=url, allow_private=True
        )
    except ValueError as error:  # pydantic's too
        raise ConfigurationError(
            f"{url!r} is not the address of a website.",
            "Write it whole, as in https://docs.example.org/.",
        ) from error


def adhoc_files(path: Path) -> FilesDeclaration:
    """A source for `--path`: a folder, or one file of a known format.

    Raises ``ConfigurationError`` when it is neither, or its name is not valid UTF-8.
    """
    from tidemark.adapters.media import media_type_of_suffix, suffix_of

    # Unlike pathlib's, these raise nothing for a loop of links or an unknown user.
    # os.path, which leaves an unknown ~name and a loop of links as they are, where pathlib raises.
    folder = Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111
    location = str(folder)
    try:
        location.encode()
        mode = folder.stat().st_mode
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"The path {location!r} is not valid UTF-8.", "Rename the folder."
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error.strerror}).", "Name a folder that exists."
        ) from error
    readable = stat.S_ISREG(mode) and media_type_of_suffix(suffix_of(folder.as_uri()))
    if not stat.S_ISDIR(mode) and not readable:
        raise ConfigurationError(
            f"{path} is neither a folder nor a file of a known format.", "Name a folder."
        )
    return FilesDeclaration(
        name=_adhoc_name("path", folder.name, location), kind="files", path=location
    )


def _adhoc_name(kind: str, label: str, location: str) -> str:
    """A name that a person recognises and that two locations never share."""
    kept = "".join(c if c.isalnum() and c.isascii() else "-" for c in label.lower())
    words = "-".join(part for part in kept.split("-") if part)[:24]
    return f"{kind}-{words}-{digest_text(location)[:8]}"


def read_file(path: Path) -> RawDocument:
    """One local file as a document.

    Raises ``ConfigurationError`` when it cannot be read.
    """
    from tidemark.adapters.media import media_type_of_suffix, sniff, suffix_of

    file = Path(os.path.realpath(path))
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            # Reading from a pipe or a device may never end.
            raise ConfigurationError(f"{path} is not a regular file.", "Copy it into one.")
        content = file.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error.strerror}).", "Check the file and its permissions."
        ) from error
    media_type = media_type_of_suffix(suffix_of(file.as_uri())) or sniff(content)
    return RawDocument(file.as_uri(), content, media_type, None, datetime.now(UTC))
