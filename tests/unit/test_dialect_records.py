"""Many records made at once are those that their constructor makes."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from itertools import repeat

import pytest

from qmanifest.dialects.lowering.records import make_many
from qmanifest.manifest import Kept


def test_as_by_the_constructor() -> None:
    names, pointers = ["a", "b"], ["/a", "/b"]
    made = make_many(Kept, 2, names, pointers, repeat(("F16",)))
    assert made == (Kept("a", "/a", ("F16",)), Kept("b", "/b", ("F16",)))
    assert hash(made[0]) == hash(Kept("a", "/a", ("F16",)))
    with pytest.raises(FrozenInstanceError):
        made[0].name = "c"  # type: ignore[misc] # that is what is tested


def test_none() -> None:
    assert make_many(Kept, 0, [], [], repeat(())) == ()


def test_columns_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"Kept\.pointer has too few values"):
        make_many(Kept, 2, ["a", "b"], ["/a"], repeat(()))
    with pytest.raises(ValueError, match="shorter"):
        make_many(Kept, 1, ["a"], ["/a"])
