"""Texts to vectors through sentence-transformers; torch is imported at the first text, not before."""

import os
from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from tidemark.adapters.embedding.models import DEFAULT_MODEL, read_card, resolve_model
from tidemark.adapters.embedding.tokenizer import HuggingFaceTokenizer
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.hashing import fingerprint

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["DEFAULT_MODEL", "SentenceTransformersEmbedder", "resolve_model"]

EMBEDDER_VERSION = 1


class SentenceTransformersEmbedder:
    """An embedding model from a local folder or the hub.

    model: a folder, a hub name, or the packaged default.
    batch_size: texts a forward pass; texts of like length share one, so little is padded.
    device: a torch device; None takes what torch finds.
    threads: for torch on the CPU; None leaves its own choice, which is right for one process alone.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        batch_size: int = 8,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        if batch_size < 1:
            raise PermanentError(f"The embedder's batch size is {batch_size}.", "Use 1 or more.")
        self._name = model
        self._folder = resolve_model(model)
        self._card = read_card(self._folder)
        self._batch_size = batch_size
        self._device = device
        self._threads = threads
        self._lock = Lock()
        self.dimension = self._card.dimension
        self.fingerprint = fingerprint(
            "embed",
            {"version": EMBEDDER_VERSION, "model": self._card.digest, "normalised": True},
        )

    @cached_property
    def tokenizer(self) -> HuggingFaceTokenizer:
        """The model's own."""
        return HuggingFaceTokenizer(self._folder)

    def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """One vector of length 1 a text, in order. Raises ``PermanentError`` for one that is too long."""
        if not texts:
            return []
        counts = self.tokenizer.count(texts)
        self._refuse_too_long(texts, counts)
        order = sorted(range(len(texts)), key=lambda index: -counts[index])
        vectors: list[tuple[float, ...]] = [()] * len(texts)
        model = self._model
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            for index, vector in zip(
                batch, self._encode(model, [texts[i] for i in batch]), strict=True
            ):
                vectors[index] = vector
        return vectors

    def _refuse_too_long(self, texts: Sequence[str], counts: Sequence[int]) -> None:
        for text, tokens in zip(texts, counts, strict=True):
            if tokens > self._card.max_tokens:
                raise PermanentError(
                    f"A text of {tokens} tokens is over the {self._card.max_tokens} that {self._name} reads: "
                    f"{text[:60]!r}.",
                    "Lower the profile's max_tokens.",
                )

    def _encode(self, model: "SentenceTransformer", texts: list[str]) -> list[tuple[float, ...]]:
        try:
            array = model.encode(
                texts,
                batch_size=len(texts),
                normalize_embeddings=True,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        except MemoryError as error:
            raise TransientError("No memory left to embed.", "Lower the batch size.") from error
        except RuntimeError as error:  # torch's own, out of memory among them
            raise TransientError(
                f"The model {self._name} failed: {error}.",
                "Lower the batch size or choose another device.",
            ) from error
        return [tuple(row) for row in array.tolist()]

    @property
    def _model(self) -> "SentenceTransformer":
        with self._lock:
            return self._loaded

    @cached_property
    def _loaded(self) -> "SentenceTransformer":
        # Read once, when OpenMP is loaded: waiting threads that spin cost four times the CPU where
        # cores are shared, as they are by Airflow's processes.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        try:
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils.logging import disable_progress_bar
        except ImportError as error:
            raise PermanentError(
                f"sentence-transformers cannot be loaded: {error}.",
                "Run the project's set-up again (make setup).",
            ) from error
        disable_progress_bar()
        if self._threads is not None:
            torch.set_num_threads(self._threads)
        try:
            model = SentenceTransformer(
                str(self._folder), device=self._device, local_files_only=True
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise PermanentError(
                f"The model at {self._folder} cannot be loaded: {error}.", "Fetch the model again."
            ) from error
        model.max_seq_length = self._card.max_tokens
        model.eval()
        return model
