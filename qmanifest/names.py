"""Names of tensors and modules: which are alike but for a number, which are fused."""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile(r"\.\d+(?=\.|$)")
"""A layer's or an expert's number in a name."""


def numberless(name: str) -> str:
    """Write every number between dots as `*`, so that namesakes are equal.

    >>> numberless("model.layers.11.mlp.up_proj.weight")
    'model.layers.*.mlp.up_proj.weight'
    """
    return _NUMBER.sub(".*", name)
