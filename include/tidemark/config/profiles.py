"""The `profiles:` of the sources file: named chunking configurations, validated key by key."""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from tidemark.domain.profile import AUTO, BUILT_IN, BY_CONTENT, STRATEGIES, Profile, ProfileChoice

Strategy = Literal[
    "by_title", "recursive", "fixed", "sentence", "paragraph", "semantic", "markdown", "code", "faq",
    "contract", "table", "whole",
]  # fmt: skip
if get_args(Strategy) != STRATEGIES:
    raise AssertionError("the strategies that can be declared are those that there are")


class ProfileDeclaration(BaseModel):
    """A named chunking configuration; what is left out is as in the built-in profile of the strategy."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, allow_inf_nan=False
    )

    strategy: Strategy = "by_title"
    target_tokens: Annotated[int, Field(ge=16, le=8192)] = 0
    max_tokens: Annotated[int, Field(ge=32, le=8192)] = 0
    min_tokens: Annotated[int, Field(ge=0, le=4096)] = 0
    parent_tokens: Annotated[int, Field(ge=32, le=100_000)] = 0
    overlap: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    merge_sections: bool = False
    percentile: Annotated[int, Field(ge=1, le=99)] = 90
    window: Annotated[int, Field(ge=1, le=10)] = 1

    def profile(self, name: str) -> Profile:
        """The profile; sizes that are not given follow those that are."""
        given = self.model_dump(include=self.model_fields_set)
        base = BUILT_IN.get(name) or _of_strategy(self.strategy)
        if given.get("strategy", base.strategy) != base.strategy:
            base = _of_strategy(self.strategy)
        options = {key: getattr(base, key) for key in type(self).model_fields} | given
        if "max_tokens" in given and "target_tokens" not in given:
            options["target_tokens"] = min(options["target_tokens"], given["max_tokens"])
        if "target_tokens" in given and "max_tokens" not in given:
            options["max_tokens"] = max(options["max_tokens"], given["target_tokens"])
        if "min_tokens" not in given:
            options["min_tokens"] = min(options["min_tokens"], options["target_tokens"])
        return Profile(name, **options)


def _of_strategy(strategy: str) -> Profile:
    return next(profile for profile in BUILT_IN.values() if profile.strategy == strategy)


def choice_of(
    profile: str, by_path: Mapping[str, str], profiles: Mapping[str, Profile]
) -> ProfileChoice:
    """What a source says of profiles, as values. Raises ``KeyError`` for a name that is none."""
    return ProfileChoice(
        default=None if profile == AUTO else profiles[profile],
        by_path=tuple((pattern, profiles[name]) for pattern, name in by_path.items()),
        by_content={name: profiles[name] for name in BY_CONTENT},
    )
