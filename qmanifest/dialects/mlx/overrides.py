"""What MLX's `quantization` block says of one module: nothing, a switch, or arguments.

Source: https://github.com/ml-explore/mlx-lm, `mlx_lm/utils.py`.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from pydantic import Discriminator, Tag

from qmanifest.dialects.base import Document
from qmanifest.dialects.lowering.mlx_layout import Mode, Positive

Numbers: TypeAlias = tuple[Mode, int, int]
"""Mode, bits and group size."""

DEFAULTS: Final[dict[Mode, tuple[int, int]]] = {
    "affine": (4, 64),
    "mxfp4": (4, 32),
    "mxfp8": (8, 32),
    "nvfp4": (4, 16),
}
"""Bits and group size of `to_quantized` where its arguments leave them out."""


class Override(Document):
    """How one module differs from the defaults: arguments of `to_quantized`."""

    group_size: Positive | None = None
    bits: Positive | None = None
    mode: Mode | None = None
    global_scale: bool | None = None
    """Whether a stack of experts has one global scale each (nvfp4)."""


def _kind(value: object) -> str | None:
    """Tell a switch from an object of arguments; anything else is no override."""
    if isinstance(value, bool):
        return "switch"
    return "arguments" if isinstance(value, (dict, Override)) else None


AnyOverride: TypeAlias = Annotated[
    Annotated[bool, Tag("switch")] | Annotated[Override, Tag("arguments")],
    Discriminator(
        _kind,
        custom_error_type="not_an_override",
        custom_error_message="neither a default nor a module's override",
    ),
]
"""An override: true for the defaults, false for 16-bit, or what differs."""


Said: TypeAlias = "bool | Override | None"
"""What a module has under its path; None where it has nothing."""


def resolve(block: Numbers, override: Said) -> Numbers:
    """Resolve a module's mode, bits and group size.

    What arguments leave out is MLX's own default, not the block's: the loader hands
    them to `to_quantized` as they are.
    """
    if not isinstance(override, Override):
        return block
    mode = override.mode or "affine"
    bits, group_size = DEFAULTS[mode]
    return mode, override.bits or bits, override.group_size or group_size
