"""The splitters that others use, as functions from a text to the texts they would embed."""

from collections.abc import Callable
from dataclasses import dataclass

from tidemark.ports.embedding import Tokenizer

Split = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Peer:
    """A splitter under the name it has in the tables; ``overlaps`` when pieces repeat text."""

    name: str
    split: Split
    overlaps: bool = True


def peers(tokenizer: Tokenizer) -> tuple[list[Peer], list[str]]:
    """Those that are installed, and a line for each package that is not."""
    found: list[Peer] = []
    missing: list[str] = []
    for package, make in (("langchain-text-splitters", _langchain), ("llama-index-core", _llama)):
        try:
            found += make(tokenizer)
        except ImportError as error:
            missing.append(f"{package} is not installed ({error}): its splitters are left out.")
    return found, missing


def _langchain(tokenizer: Tokenizer) -> list[Peer]:
    from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter

    def tokens(text: str) -> int:
        return tokenizer.count([text])[0] - tokenizer.special_tokens

    chars = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    counted = RecursiveCharacterTextSplitter(
        chunk_size=200, chunk_overlap=0, length_function=tokens
    )
    headers = MarkdownHeaderTextSplitter([("#" * level, f"h{level}") for level in range(1, 7)])

    def by_headers(text: str) -> list[str]:
        parts = headers.split_text(text)
        return [piece for part in parts for piece in chars.split_text(part.page_content)]

    return [
        Peer("LangChain recursive 1000/200 chars", chars.split_text),
        Peer("LangChain recursive 200/0 tokens", counted.split_text, overlaps=False),
        Peer("LangChain Markdown headers + 1000/200", by_headers),
    ]


def _llama(_tokenizer: Tokenizer) -> list[Peer]:
    from llama_index.core.node_parser import SentenceSplitter

    large = SentenceSplitter(chunk_size=1024, chunk_overlap=200)
    small = SentenceSplitter(chunk_size=200, chunk_overlap=20)
    return [
        Peer("LlamaIndex sentences 1024/200", large.split_text),
        Peer("LlamaIndex sentences 200/20", small.split_text),
    ]
