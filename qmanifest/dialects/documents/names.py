"""The type that the founding dialects share: a list of names or patterns, each once."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Final, TypeAlias

from annotated_types import Len
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

LISTED: Final = 20
"""Faults of one list that are reported one by one."""

Name: TypeAlias = Annotated[str, Len(1, 1024)]
"""A tensor's name or a pattern, of at most as many characters as a header allows."""


def _few_faults(names: Any) -> Any:  # noqa: ANN401 - JSON
    """Refuse a list of another sort as a whole: millions of faults fill the memory."""
    if not isinstance(names, list):
        return names
    others = sum(not isinstance(name, str) for name in names)
    if others > LISTED:
        said = "{others} items are not strings"
        raise PydanticCustomError("not_names", said, {"others": f"{others:,}"})
    return names


def _no_repeats(names: list[str]) -> list[str]:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        listed = ", ".join(map(repr, repeated[:LISTED]))
        more = len(repeated) - LISTED
        listed += f" and {more:,} more" if more > 0 else ""
        raise PydanticCustomError("listed_twice", "listed twice: {x}", {"x": listed})
    return names


Names: TypeAlias = Annotated[
    list[Name],
    BeforeValidator(_few_faults),
    AfterValidator(_no_repeats),
    Field(json_schema_extra={"uniqueItems": True}),
]
"""A list of names or patterns, each once."""
