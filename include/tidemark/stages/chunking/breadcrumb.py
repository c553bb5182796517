"""The line above a chunk's text when it is embedded: where in which document it stands."""

from collections.abc import Iterator, Sequence

from tidemark.ports import Tokenizer

SEPARATOR = " > "
ELLIPSIS = "…"


def names_of(title: str, heading_path: Sequence[str]) -> tuple[str, ...]:
    """The document's title, where the first heading does not say it already, then the headings."""
    title = " ".join(title.split())
    if not title or (heading_path and _same(title, heading_path[0])):
        return tuple(heading_path)
    return (title, *heading_path)


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    return "".join(filter(str.isalnum, one.casefold())) == "".join(
        filter(str.isalnum, other.casefold())
    )


def breadcrumb(names: Sequence[str], budget: int, tokenizer: Tokenizer) -> tuple[str, int]:
    """Join names, shortened from the middle to at most ``budget`` tokens; the line and its tokens.

    The innermost name and the outermost go last, since they tell most; when even they are too long
    their own middles go.
    """
    if not names or budget < 1:
        return "", 0
    for line in _shorter_and_shorter(names):
        tokens = count_one(line, tokenizer)
        if tokens <= budget:
            return line, tokens
    return "", 0


def _shorter_and_shorter(names: Sequence[str]) -> Iterator[str]:
    yield SEPARATOR.join(names)
    for kept in range(len(names) - 1, 1, -1):
        head = (
            kept // 2
        )  # of an odd number the inner names, which are nearer to the text, keep one more
        yield SEPARATOR.join([*names[:head], ELLIPSIS, *names[len(names) - kept + head :]])
    ends = [names[0], names[-1]] if len(names) > 1 else [names[0]]
    gap = [ELLIPSIS] if len(names) > 2 else []
    for chars in (120, 60, 30):
        short = [_without_middle(name, chars) for name in ends]
        yield SEPARATOR.join([*short[:1], *gap, *short[1:]])
    for chars in (60, 30, 15):
        yield _without_middle(names[-1], chars)


def _without_middle(name: str, chars: int) -> str:
    if len(name) <= chars:
        return name
    half = chars // 2
    return f"{name[:half].rstrip()}{ELLIPSIS}{name[-half:].lstrip()}"


def count_one(text: str, tokenizer: Tokenizer) -> int:
    """Tokens of one text without the special ones."""
    return tokenizer.count([text])[0] - tokenizer.special_tokens
