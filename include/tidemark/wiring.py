"""Wiring: the only place that picks adapters.

Building a `Container` opens no connection. Adapters are imported where they are picked, so that a command
that needs the ledger alone does not pay for a crawler or a tokenizer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.config.settings import EnvironmentConnections, Settings
from tidemark.config.sources import SourceContext, SourceDeclaration
from tidemark.config.sources_file import Declarations, load_declarations
from tidemark.domain.connections import Credentials, CredentialStore
from tidemark.domain.documents import CrawlEnd, CrawlItem
from tidemark.ports.artifacts import ArtifactStore
from tidemark.ports.embedding import Embedder, LexicalEncoder, Tokenizer
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger
from tidemark.ports.partition import CodeParser, PageInspector, Partitioner
from tidemark.ports.progress import Progress, quiet
from tidemark.ports.source import Known, Source

if TYPE_CHECKING:
    from tidemark.adapters.embedding.cache import EmbeddingCache
    from tidemark.stages.audit.compare import AuditDependencies
    from tidemark.stages.generations import PendingGeneration
    from tidemark.stages.housekeeping import Housekeeping
    from tidemark.stages.job import Dependencies, Job, Stores
    from tidemark.stages.search import Searcher


SOURCE_KINDS = {
    "website": "tidemark.adapters.sources.website.options:WebsiteOptions",
    "files": "tidemark.adapters.sources.files.options:FilesOptions",
    "git": "tidemark.adapters.sources.git.options:GitOptions",
    "table": "tidemark.adapters.sources.table.options:TableOptions",
}
"""A new kind of source is one class of options, which opens its adapter, and one line here."""


class Emptied:
    """What a source is to be that a person wants forgotten: listed whole, and nothing in it."""

    fingerprint = ""

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        yield CrawlEnd(complete=True, authoritative=True)


LEDGER_DATABASE = "tidemark"


@dataclass(frozen=True)
class Container:
    """The tools that the settings ask for, each made once."""

    settings: Settings
    connections: CredentialStore = field(default_factory=EnvironmentConnections)

    @cached_property
    def declarations(self) -> Declarations:
        return load_declarations(self.settings.sources_file, SOURCE_KINDS)

    @cached_property
    def ledger_url(self) -> str:
        """Where the ledger is; starts the embedded Postgres when that is where."""
        if self.settings.ledger_url is not None:
            return self.settings.ledger_url.get_secret_value()
        from tidemark.adapters.services.postgres import EmbeddedPostgres

        server = EmbeddedPostgres(self.settings.home / "postgres")
        server.ensure_running()
        return server.url(LEDGER_DATABASE)

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger, its schema checked; the embedded one is brought up to date by itself."""
        from tidemark.adapters.ledger.migrations import check, upgrade
        from tidemark.adapters.ledger.postgres import PostgresLedger

        if self.settings.ledger_url is None:
            upgrade(self.ledger_url)
        else:
            check(self.ledger_url)
        return PostgresLedger(self.ledger_url, retry_timeout=self.settings.patience)

    @cached_property
    def artifacts(self) -> ArtifactStore:
        from tidemark.adapters.artifacts import FsspecArtifacts

        url = self.settings.artifacts_url or (self.settings.home / "artifacts").as_uri()
        return FsspecArtifacts(url, retry_timeout=self.settings.patience)

    @cached_property
    def index(self) -> VectorIndex:
        if self.settings.qdrant_url is not None:
            from tidemark.adapters.index.qdrant import QdrantServerIndex

            key = self.settings.qdrant_api_key
            return QdrantServerIndex(
                url=self.settings.qdrant_url,
                api_key=key.get_secret_value() if key else None,
                name=self.settings.index_name,
                retry_timeout=self.settings.patience,
            )
        from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex

        return QdrantEdgeIndex(
            self.settings.home / "qdrant", self.settings.index_name, self.settings.lock_timeout
        )

    @cached_property
    def tokenizer(self) -> Tokenizer:
        from tidemark.adapters.embedding.models import resolve_model
        from tidemark.adapters.embedding.tokenizer import HuggingFaceTokenizer

        return HuggingFaceTokenizer(resolve_model(self.settings.embedding_model))

    @cached_property
    def code_parser(self) -> CodeParser:
        from tidemark.adapters.partition.code.tree_sitter import TreeSitterCodeParser

        return TreeSitterCodeParser()

    @cached_property
    def embedder(self) -> Embedder:
        from tidemark.adapters.embedding.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(
            self.settings.embedding_model,
            batch_size=self.settings.embedding_batch_size,
            threads=self.settings.embedding_threads or None,
        )

    @cached_property
    def sentence_embedder(self) -> Embedder:
        """For profiles that cut by meaning; what it embedded once is remembered under the home."""
        from tidemark.adapters.embedding.cache import CachedEmbedder

        return CachedEmbedder(self.embedder, self._embedding_cache_file)

    @cached_property
    def embedding_cache(self) -> "EmbeddingCache":
        """What ``sentence_embedder`` remembers, without an embedder."""
        from tidemark.adapters.embedding.cache import EmbeddingCache

        return EmbeddingCache(self._embedding_cache_file)

    @property
    def _embedding_cache_file(self) -> Path:
        return self.settings.home / "cache" / "sentences.sqlite"

    @property
    def stores(self) -> "Stores":
        """What upkeep works on."""
        from tidemark.stages.job import Stores

        return Stores(self.ledger, self.artifacts, self.index, vector_cache=self.embedding_cache)

    def collect_garbage(self, *, dry_run: bool, progress: Progress | None = None) -> "Housekeeping":
        """Remove what nobody needs any more, or tell what that would be."""
        from tidemark.stages.housekeeping import Retention, collect_garbage
        from tidemark.stages.job import embed_fingerprint

        return collect_garbage(
            self.stores,
            Retention(
                history=self.settings.history_days,
                runs=self.settings.run_days,
                tombstones=self.settings.tombstone_days,
            ),
            self.settings.index_name,
            embed_fingerprint(self.embedder, self.lexical),
            {*self.declarations.sources, *self.declarations.broken},
            dry_run=dry_run,
            progress=progress,
        )

    @cached_property
    def lexical(self) -> LexicalEncoder:
        from tidemark.adapters.embedding.lexical import Bm25Encoder

        return Bm25Encoder()

    @cached_property
    def partitioner(self) -> Partitioner:
        from tidemark.adapters.partition.options import PartitionOptions
        from tidemark.adapters.partition.sandbox.parent import SandboxedPartitioner, SandboxLimits

        return SandboxedPartitioner(
            PartitionOptions(
                # What may be fetched may be read; lower than by default, it is not fetched.
                max_bytes=max(PartitionOptions().max_bytes, self.settings.max_document_bytes),
                pdf_strategy=self.settings.pdf_strategy,
            ),
            SandboxLimits(
                memory_bytes=int(self.settings.parser_megabytes * 1024 * 1024),
                seconds=self.settings.parser_seconds,
            ),
        )

    @cached_property
    def inspector(self) -> PageInspector:
        from tidemark.adapters.inspection.inspector import DocumentInspector

        return DocumentInspector()

    def credentials(self, name: str) -> Credentials | None:
        """Of the connection that a source names, None when it names none."""
        return self.connections.get(name) if name else None

    @cached_property
    def searcher(self) -> "Searcher":
        from tidemark.stages.search import Searcher

        return Searcher(
            self.ledger, self.index, self.settings.index_name, self.embedder, self.lexical
        )

    def deps(self, declared: SourceDeclaration, progress: Progress | None = None) -> "Dependencies":
        """Everything that a run over this source works with."""
        from tidemark.stages.job import Dependencies

        return Dependencies(
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
            inspector=self.inspector,
            vector_cache=self.embedding_cache,
            progress=progress or quiet(),
        )

    def declared(self, name: str) -> SourceDeclaration:
        """A declared source, or what is known of one that the ledger alone still knows.

        Raises ``ConfigurationError`` when neither knows the name.
        """
        known = name in self.declarations.sources or name in self.declarations.broken
        if not known and name in self.ledger.sources.names():
            return SourceDeclaration(name=name)
        return self.declarations.source(name)

    def audit_dependencies(
        self, progress: Progress | None = None, wait_seconds: float = 60.0
    ) -> "AuditDependencies":
        """What an audit works with. A repair waits ``wait_seconds`` for a source that a run holds."""
        from tidemark.pipeline import new_run_id, with_blocks
        from tidemark.stages.audit.compare import AuditDependencies

        def job_factory(source: str) -> "tuple[Job, Dependencies]":
            declared = self.declared(source)
            deps = self.deps(declared, progress)
            return with_blocks(self.job(declared, new_run_id(source, deps)), deps), deps

        def will_run(source: str) -> bool:
            declared = self.declarations.sources.get(source)
            return declared is not None and declared.enabled

        return AuditDependencies(
            ledger=self.ledger,
            index=self.index,
            index_name=self.settings.index_name,
            embedder=self.embedder,
            lexical=self.lexical,
            job_factory=job_factory,
            will_run=will_run,
            progress=progress or quiet(),
            wait_seconds=wait_seconds,
        )

    def source(self, declared: SourceDeclaration) -> Source:
        """The source that a declaration asks for."""
        credentials = self.credentials(getattr(declared, "connection", ""))
        return declared.open(SourceContext(self.settings, credentials))

    def job(
        self,
        declared: SourceDeclaration,
        run_id: str = "",
        *,
        force: bool = False,
        limit: int | None = None,
        approved: bool = False,
        accept: Iterable[str] = (),
        dry_run: bool = False,
    ) -> "Job":
        """What a run over this source is given."""
        from tidemark.stages.job import Job

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
            guards=declared.guards.guards,
            approved=approved,
            accept=frozenset(accept),
            grace_days=declared.grace_days,
            judge=getattr(declared, "judge", False),
            dry_run=dry_run,
            declared=self.active,
            disabled=self.idle,
        )

    @property
    def active(self) -> tuple[str, ...]:
        """Names of the declared sources that have runs."""
        return tuple(name for name, s in self.declarations.sources.items() if s.enabled)

    @property
    def idle(self) -> tuple[str, ...]:
        """Names of those that have none: disabled, or declared wrongly."""
        disabled = (name for name, s in self.declarations.sources.items() if not s.enabled)
        return (*disabled, *self.declarations.broken)

    def pending_generation(self) -> "PendingGeneration | None":
        """What a new generation waits for until it goes live."""
        from tidemark.stages.generations import pending_generation
        from tidemark.stages.job import embed_fingerprint

        embed = embed_fingerprint(self.embedder, self.lexical)
        return pending_generation(
            self.ledger, self.index, self.settings.index_name, embed, self.active, self.idle,
            doubtful=True,
        )  # fmt: skip
