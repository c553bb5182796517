"""The README cannot drift: its settings, keys, commands and targets are those of the code.

After changing a setting, `python tests/unit/docs/test_readme.py` writes the table anew.
"""

import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from tidemark.config.settings import PROJECT, Settings
from tidemark.config.sources import GuardsDeclaration, SourceDeclaration, kind_of
from tidemark.wiring import SOURCE_KINDS

README = PROJECT / "README.md"
TABLE = re.compile(r"<!-- settings -->\n(.*?)<!-- /settings -->", re.DOTALL)


def settings_table() -> str:
    """The table of all settings, as the model has them."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        rows.append(
            f"| `TIDEMARK_{name.upper()}` | {default(field.default)} | {field.description} |"
        )
    return "\n".join(rows) + "\n"


def default(value: object) -> str:
    if value is None or isinstance(value, SecretStr):
        return "unset"
    if isinstance(value, Path):
        return f"`{value.relative_to(PROJECT)}`"
    return f"`{value}`"


def test_the_settings_table_is_that_of_the_settings_model() -> None:
    found = TABLE.search(README.read_text(encoding="utf-8"))
    assert found is not None
    assert found[1] == settings_table(), "run: python tests/unit/docs/test_readme.py"


@pytest.mark.parametrize("declared", [kind_of(SOURCE_KINDS, kind) for kind in SOURCE_KINDS])
def test_every_key_of_a_source_is_explained(declared: type[SourceDeclaration]) -> None:
    text = README.read_text(encoding="utf-8")
    keys = {key for key, info in declared.model_fields.items() if not info.exclude} - {"name"}
    assert {key for key in keys if f"`{key}`" not in text} == set()


def test_the_guards_it_tells_are_the_defaults() -> None:
    text = " ".join(README.read_text(encoding="utf-8").split())
    told = GuardsDeclaration()
    assert (
        f"More than {told.changed_percent:g} % of a source's documents changed, {told.shrunk_percent:g} % "
        f"shrunk or {told.gone_percent:g} % gone (five of them at least)"
    ) in text
    assert told.at_least == 5


def test_every_command_it_names_exists() -> None:
    from typer.main import get_command

    from tidemark.cli.app import app

    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"tidemark ([a-z]+)\b", re.sub(r"include/tidemark \S+", "", text)))
    commands = set(get_command(app).commands)  # type: ignore[attr-defined]
    prose = {"keeps"}
    assert named - prose <= commands
    listed = text.partition("### All of `tidemark`")[2].partition("\n## ")[0]
    told = set(re.findall(r"`([a-z]+)\b[^`]*` (?:·|\|)", listed.replace("\\|", "/")))
    assert told - {"command"} == commands


def test_every_make_target_it_names_exists() -> None:
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"`?make ([a-z]+)`?", text)) - {"good"}
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    assert named <= targets
    assert {"run", "test", "up", "down", "clean", "check", "setup"} <= named


def test_the_files_it_points_to_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert target.startswith("http") or (PROJECT / target).exists(), target


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    whole = f"<!-- settings -->\n{settings_table()}<!-- /settings -->"
    README.write_text(TABLE.sub(lambda _: whole, text), encoding="utf-8")
