"""The tables of docs/chunking.md that are made from the code."""

import re
from dataclasses import fields

from tidemark.domain.profile import BUILT_IN, BY_CONTENT, Profile

MEANINGS = {
    "strategy": "how boundaries are found; one of the twelve below",
    "target_tokens": "of `embed_text`: chunks are filled up to about this",
    "max_tokens": "of `embed_text`: never more; the embedding model's own limit holds too",
    "min_tokens": "of a chunk's own text: a smaller rest joins its neighbour where that fits",
    "parent_tokens": "of the section handed to a reader: longer ones are parted, shorter ones climb",
    "overlap": "0 to 0.5: the share of the target that a chunk repeats of the one before it, in prose",
    "merge_sections": "sections that are read as one are cut as one, their headings in the text",
    "percentile": "`semantic` alone, 1 to 99: higher means fewer cuts",
    "window": "`semantic` alone, 1 to 10: sentences compared on either side of a boundary",
}


def options_table() -> str:
    """Every option with the default of the profile ``docs``."""
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for field in fields(Profile):
        if field.name != "name":
            value = field.default
            shown = f"{value}".lower() if isinstance(value, bool) else f"{value}"
            rows.append(f"| `{field.name}` | {shown} | {MEANINGS[field.name]} |")
    return "\n".join(rows) + "\n"


def profiles_table() -> str:
    """Every built-in profile."""
    rows = [
        "| profile | strategy | target | max | min | parent | overlap | chosen by content |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, one in BUILT_IN.items():
        overlap = f"{one.overlap:.0%}" if one.overlap else "none"
        chosen = "yes" if name in BY_CONTENT else "no"
        rows.append(
            f"| `{name}` | `{one.strategy}` | {one.target_tokens} | {one.max_tokens} | {one.min_tokens} "
            f"| {one.parent_tokens} | {overlap} | {chosen} |"
        )
    return "\n".join(rows) + "\n"


def with_tables(text: str) -> str:
    """The page with its tables made anew. Raises ``ValueError`` when a place for one is missing."""
    for name, table in (("options", options_table()), ("profiles", profiles_table())):
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        found = place.search(text)
        if found is None:
            raise ValueError(f"the page has no place for the table of {name}")
        text = f"{text[: found.end(1)]}{table}{text[found.start(2) :]}"
    return text
