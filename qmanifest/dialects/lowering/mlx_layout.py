"""MLX's on-disk layout, which all dialects here share: its modes, what a file shows.

Source: https://github.com/ml-explore/mlx, `mx.quantize`; FORMATS 1.3 to 1.7 are
retold in docs/dialects/mlx.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeAlias

from annotated_types import Gt

from qmanifest.dtypes import FLOAT, FLOAT16
from qmanifest.evidence import stem
from qmanifest.layouts import U8_NIBBLES
from qmanifest.schemes import Affine, Microscaling, Scheme, ZeroPoint

if TYPE_CHECKING:
    from qmanifest.tensors import TensorIndex

Mode: TypeAlias = Literal["affine", "mxfp4", "mxfp8", "nvfp4"]
Positive: TypeAlias = Annotated[int, Gt(0)]

AFFINE_BITS: Final = (2, 3, 4, 5, 6, 8)
AFFINE_GROUPS: Final = (32, 64, 128)
MICROSCALING: Final[dict[Mode, Microscaling]] = {
    "mxfp4": Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
    "mxfp8": Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
    "nvfp4": Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none"),
}
"""The modes whose bits and group are fixed."""


class Misfit(NamedTuple):
    """A key that makes a combination impossible, and why."""

    key: Literal["bits", "group_size"]
    reason: str


@cache
def impossible(mode: Mode, bits: int, group_size: int) -> Misfit | None:
    """Say why no reader has this combination, or None where one does."""
    fixed = MICROSCALING.get(mode)
    if fixed is not None:
        if (bits, group_size) == (fixed.bits, fixed.group_size):
            return None
        return Misfit(
            "group_size" if bits == fixed.bits else "bits",
            f"mode {mode} has bits {fixed.bits} and group_size {fixed.group_size} "
            f"only; found bits {bits} and group_size {group_size}",
        )
    if bits not in AFFINE_BITS:
        return Misfit(
            "bits", f"mode affine has bits 2, 3, 4, 5, 6 or 8; found bits {bits}"
        )
    if group_size not in AFFINE_GROUPS:
        return Misfit(
            "group_size",
            f"mode affine has group_size 32, 64 or 128; found group_size {group_size}",
        )
    return None


@cache
def scheme_of(
    mode: Mode, bits: int, group_size: int, scale: tuple[str, ...] = FLOAT16
) -> Scheme:
    """Name the scheme of a mode; `scale` has the dtypes that affine scales may have."""
    return MICROSCALING.get(mode) or Affine(bits, group_size, scale, "u32-lsb")


def as_stored(scheme: Scheme, name: str, index: TensorIndex | None) -> Scheme:
    """Refine a promised scheme by what a config of these dialects leaves open.

    That is the packing (`u8-nibbles` where the codes are stored as U8), whether it has
    zero points instead of biases, and whether there is a global scale.
    """
    codes = None if index is None else index.get(name)
    if index is None or codes is None:
        return scheme
    if isinstance(scheme, Affine):
        if codes.dtype != U8_NIBBLES.word_dtype:
            return scheme
        zeros = index.get(f"{stem(name)}.zeros")
        if zeros is None:
            return replace(scheme, pack=U8_NIBBLES.id)
        kinds = ("U8",) if zeros.dtype == "U8" else FLOAT
        return ZeroPoint(
            scheme.bits, scheme.group_size, scheme.scale, kinds, U8_NIBBLES.id
        )
    if isinstance(scheme, Microscaling) and f"{stem(name)}.global_scale" in index:
        return replace(scheme, global_scale="amax")
    return scheme


def mode_of(scheme: Scheme) -> Mode | None:
    """Name the mode that a scheme is, or None where no config here has words for it.

    Zero points in nibbles are affine: `as_stored` tells them from biases.
    """
    if isinstance(scheme, Affine):
        return "affine"
    if isinstance(scheme, ZeroPoint):
        return "affine" if scheme.pack == U8_NIBBLES.id else None
    if not isinstance(scheme, Microscaling):
        return None
    for mode, fixed in MICROSCALING.items():
        if replace(scheme, global_scale="none") == fixed:
            return mode
    return None
