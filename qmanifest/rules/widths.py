"""The inputs of many weights at once, by their names and the model's dimensions."""

from __future__ import annotations

import re
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from qmanifest.dimensions import in_features

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from qmanifest.manifest import Weight

_NUMBER: Final = re.compile(r"\.\d+(?=\.)")
"""A layer's or an expert's number in a name."""


def widths_of(
    weights: Sequence[Weight], model: Mapping[str, Any]
) -> Iterable[int | None]:
    """Say how many inputs each weight has, as `in_features` does; None where unknown.

    Layers and experts that differ in their numbers alone are looked up once.

    Args:
        weights: those of one model.
        model: its `config.json`; where there is none, nothing ever ends the answer.

    """
    if not model:
        return repeat(None)
    names = [weight.name for weight in weights]
    alike = _NUMBER.sub(".0", "\n".join(names)).split("\n")
    if len(alike) != len(names):  # there is a line break in a name, or no name
        alike = [_NUMBER.sub(".0", name) for name in names]
    known = {name: in_features(name, model) for name in set(alike)}
    widths = {name: found and found[0] for name, found in known.items()}
    return [widths[name] for name in alike]
