"""Chunking profiles: how a kind of content is cut, and which profile a document gets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tidemark.domain.hashing import Canonical

STRATEGIES = (
    "by_title", "recursive", "fixed", "sentence", "paragraph", "semantic", "markdown", "code", "faq",
    "contract", "table", "whole",
)  # fmt: skip
"""How boundaries are found. In each, no chunk crosses a heading unless ``merge_sections`` says so."""

AUTO = "auto"
"""Not a profile: the document's own content chooses among ``BY_CONTENT``."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The named chunking configuration of a kind of content; sizes in tokens of the embedder's tokenizer.

    strategy: how boundaries are found (one of ``STRATEGIES``).
    target_tokens: of ``embed_text``; pieces are filled up to about this.
    max_tokens: of ``embed_text``, the hard maximum; bounded further by the embedder's own limit.
    min_tokens: of a piece's own text; a smaller remainder joins its neighbour where that fits.
    parent_tokens: of the section handed to a reader: longer ones are parted, shorter ones climb.
    overlap: 0 to 0.5, the share of the target repeated where one text is cut by size alone.
    merge_sections: small neighbouring sections of one parent may share a chunk, with their headings in it.
    percentile: of ``semantic``: the share of sentence distances (0 to 100) below which nothing is cut.
    window: of ``semantic``: how many sentences on either side are compared.
    """

    name: str = "docs"
    strategy: str = "by_title"
    target_tokens: int = 112
    max_tokens: int = 240
    min_tokens: int = 12
    parent_tokens: int = 400
    overlap: float = 0.0
    merge_sections: bool = False
    percentile: int = 90
    window: int = 1

    def canonical(self) -> Canonical:
        """What decides the chunks; the name does not."""
        options: dict[str, Canonical] = {
            "strategy": self.strategy,
            "target_tokens": self.target_tokens,
            "max_tokens": self.max_tokens,
            "min_tokens": self.min_tokens,
            "parent_tokens": self.parent_tokens,
            "overlap": self.overlap,
            "merge_sections": self.merge_sections,
        }
        if self.strategy == "semantic":
            options |= {"percentile": self.percentile, "window": self.window}
        return options


BUILT_IN: Mapping[str, Profile] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile(),
            Profile("by_title"),
            Profile("prose", "by_title", target_tokens=64, min_tokens=10, parent_tokens=128),
            Profile("faq", "faq", target_tokens=160),
            Profile("contract", "contract", target_tokens=128),
            Profile("code", "code", target_tokens=160),
            Profile("table", "table", target_tokens=128),
            Profile("whole", "whole", target_tokens=240),
            Profile("markdown", "markdown", target_tokens=160, merge_sections=True),
            Profile("recursive", "recursive", target_tokens=200, overlap=0.0),
            Profile("fixed", "fixed", target_tokens=200, overlap=0.15),
            Profile("sentence", "sentence", target_tokens=160, overlap=0.15),
            Profile("paragraph", "paragraph", target_tokens=160),
            Profile("semantic", "semantic", target_tokens=160),
        )
    }
)
"""Profiles that need no declaration; a declaration of the same name replaces one."""

BY_CONTENT = ("docs", "prose", "faq", "contract", "code", "table")
"""What content is told apart into: the name of the profile that it gets."""


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """Which profile each document of a source gets: by its path, else the default, else by content.

    default: None when the content chooses.
    by_path: pairs of a pattern and a profile; the first that fits a URI's path decides.
    by_content: the profile of each kind of content.
    """

    default: Profile | None = None
    by_path: tuple[tuple[str, Profile], ...] = ()
    by_content: Mapping[str, Profile] = field(
        default_factory=lambda: {name: BUILT_IN[name] for name in BY_CONTENT}
    )

    def canonical(self) -> Canonical:
        """What decides the profile of any document, and the profile itself."""
        return {
            "default": self.default.canonical() if self.default else None,
            "by_path": [[pattern, profile.canonical()] for pattern, profile in self.by_path],
            "by_content": None
            if self.default
            else {name: profile.canonical() for name, profile in sorted(self.by_content.items())},
        }
