"""How the weights of a checkpoint are stored, as strategies draw it, for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from qmanifest.tensors import TensorInfo

if TYPE_CHECKING:
    from qmanifest.families import (
        PartNames,
    )
    from qmanifest.schemes import (
        Scheme,
    )
    from qmanifest.tensors import Shape

SHAPES: Final[tuple[Shape, ...]] = ((32, 128), (64, 128), (32, 256), (128, 64))
"""Outputs and inputs whose codes, zeros and groups fill words in every width."""
GROUPS: Final = (0, 32, 64)


@dataclass(frozen=True)
class Drawn:
    """How all quantized weights of a checkpoint are stored."""

    scheme: Scheme
    names: PartNames
    shapes: tuple[Shape, ...] = SHAPES
    document: dict[str, Any] = field(default_factory=dict)
    """The document, where the dialect does not write its own."""
    parameter: str = "weight"
    """Last word of the weights' names."""
    kind: str = ""
    """The class that a header has to call the weights by."""


def codes_of(dtype: str, shape: Shape) -> TensorInfo:
    return TensorInfo("codes", dtype, shape, 0, 0, "")
