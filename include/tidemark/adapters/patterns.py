"""Include and exclude patterns over paths, the same for websites and folders.

    *       anything within one segment
    **      anything, across segments
    ?       one character within a segment
    a/      everything below ``a``
    *.md    (no slash) the last segment, at any depth

Paths and patterns are compared without a leading slash, in their decoded form, case mattering.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?")
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Compile one pattern to a test of a path."""
    anchored = pattern.lstrip("/")
    if anchored.endswith("/"):
        anchored += "**"
    if "/" not in pattern:
        anchored = f"**/{anchored}"
    expression, position = "", 0
    for token in _TOKEN.finditer(anchored):
        expression += re.escape(anchored[position : token.start()]) + _MEANING[token[0]]
        position = token.end()
    matcher = re.compile(expression + re.escape(anchored[position:]), re.DOTALL)
    return lambda path: matcher.fullmatch(path.lstrip("/")) is not None


@dataclass(frozen=True, slots=True)
class PathPatterns:
    """Admits a path that matches an include pattern (any path, without one) and no exclude pattern."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    _included: tuple[Callable[[str], bool], ...] = field(init=False, repr=False, compare=False)
    _excluded: tuple[Callable[[str], bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_included", tuple(map(compile_pattern, self.include)))
        object.__setattr__(self, "_excluded", tuple(map(compile_pattern, self.exclude)))

    def admits(self, path: str) -> bool:
        if any(matches(path) for matches in self._excluded):
            return False
        return not self._included or any(matches(path) for matches in self._included)
