"""The small files beside an embedded collection, replaced so that a kill leaves them whole."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tidemark.domain.errors import TransientError


@dataclass(frozen=True, slots=True)
class CollectionFile:
    """FOLDER/COLLECTION/collection.json: what the engine's own files do not say.

    dimension: of its dense vectors, None for sections and when it is not known.
    embed_fingerprint: what its vectors are made by, "" when that is not known.
    settings: those that the engine was last opened with; empty when that is not known.
    """

    dimension: int | None = None
    embed_fingerprint: str = ""
    settings: Mapping[str, str | int] = field(default_factory=dict)

    @classmethod
    def read(cls, collection: Path) -> "CollectionFile":
        """What is known of it: a file of an older Tidemark, or a damaged one, says less."""
        with local_files(collection):
            try:
                found = json.loads(_path(collection).read_bytes())
            except (FileNotFoundError, ValueError):
                return cls()
        if not isinstance(found, dict):
            return cls()
        dimension, built_under, settings = (
            found.get(key) for key in ("dimension", "embed_fingerprint", "settings")
        )
        return cls(
            dimension if isinstance(dimension, int) else None,
            built_under if isinstance(built_under, str) else "",
            settings if isinstance(settings, dict) else {},
        )

    def write(self, collection: Path) -> None:
        replace_file(
            _path(collection),
            json.dumps(
                {
                    "dimension": self.dimension,
                    "embed_fingerprint": self.embed_fingerprint,
                    "settings": dict(self.settings),
                }
            ),
        )


def _path(collection: Path) -> Path:
    return collection / "collection.json"


@contextmanager
def local_files(path: Path) -> Iterator[None]:
    """Translate what goes wrong with files, into ``TransientError``."""
    try:
        yield
    except OSError as error:
        raise TransientError(
            f"The index files in {path} cannot be used: {error}.",
            "Check the disk, its free space and the owner of the folder.",
        ) from error


def replace_file(path: Path, text: str) -> None:
    """Replace a small file as a whole; the new text is on the disk when this returns."""
    with local_files(path):
        fresh = path.with_name(f".{path.name}.new")
        with fresh.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
