"""Make very many frozen records at once.

A frozen dataclass sets each field of each record by a call from Python. Here a field
is set in all of the records by one call, which takes less than half of the time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import fields
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

R = TypeVar("R")


def make_many(kind: type[R], count: int, *columns: Iterable[Any]) -> tuple[R, ...]:
    """Make `count` records of a dataclass with slots and without `__post_init__`.

    Args:
        kind: the dataclass.
        count: how many.
        columns: for each field, in their order and defaults included, its values;
            one that is the same everywhere may go on for ever.

    Raises:
        ValueError: a field has no column, or a column too few values.

    """
    made = tuple(map(object.__new__, repeat(kind, count)))
    for field, column in zip(fields(kind), columns, strict=True):  # type: ignore[arg-type]
        deque(map(getattr(kind, field.name).__set__, made, column), maxlen=0)
        if made and not hasattr(made[-1], field.name):
            raise ValueError(f"{kind.__name__}.{field.name} has too few values")
    return made
