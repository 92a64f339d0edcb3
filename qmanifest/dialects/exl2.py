"""`exl2`: ExLlamaV2's mixed bits; shapes are checked, values are not decoded.

A layer's groups have widths of their own, 2 to 8 bits, which `.q_groups` lists.

Source: https://github.com/turboderp-org/exllamav2, `conversion/adaptivegptq.py`;
described in docs/dialects/exl2.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dialects.lowering.undecoded import UndecodedConfig, undecoded
from qmanifest.families import EXL2
from qmanifest.schemes import Dim, Opaque, OpaquePart

if TYPE_CHECKING:
    from qmanifest.dialects.lowering.undecoded import Parts
    from qmanifest.tensors import Shape

SCALES: Final = 8
"""Scales to a word of `.q_scale`, of 4 bits each."""


class Exl2Config(UndecodedConfig):
    """The document exactly as stored."""

    version: str | None = None
    bits: float | None = None
    """Bits of a weight, on average."""
    head_bits: int | None = None
    """Bits of the head's weights."""
    calibration: dict[str, Any] | None = None
    """How much text was run: `rows`, `length` and `dataset`."""


def _scheme(_said: Exl2Config, _name: str, parts: Parts) -> Opaque:
    """Name the scheme of a weight: its codes are rows of words, groups after groups.

    Every input has a place in `.q_invperm`, so that it tells the number of inputs.
    """
    rows, *_ = (*parts["codes"].shape, 0)
    shape, codes = _shape(parts), (Dim("one", times=rows), Dim("N"))
    groups = Dim("one", times=_groups(parts))
    stored = (
        OpaquePart("codes", ("I32",), None if shape is None else codes),
        OpaquePart("scales", ("I32",), (groups, Dim("N", SCALES))),
        OpaquePart("scale_max", ("F16",), (groups,)),
        OpaquePart("groups", ("I16",), (Dim("one", times=2 * groups.times),)),
        OpaquePart("order", ("I32",), (Dim("K"),)),
    )
    return Opaque("exl2", 0, 0, stored, shape)


def _groups(parts: Parts) -> int:
    """Count the groups; each has a largest scale."""
    for role in ("scale_max", "scales"):
        if role in parts and parts[role].shape:
            return parts[role].shape[0]
    pairs = parts.get("groups")
    return pairs.shape[0] // 2 if pairs and pairs.shape else 0


def _shape(parts: Parts) -> Shape | None:
    """Tell the logical shape: outputs by the words of a row, inputs by their order."""
    codes, order = parts["codes"].shape, parts.get("order")
    if order is None or len(codes) != 2 or len(order.shape) != 1:  # noqa: PLR2004 - rows of words
        return None
    return (codes[1], order.shape[0])


DIALECT: Final = undecoded(
    "exl2", "EXL2, ExLlamaV2's mixed bits", Exl2Config, EXL2, _scheme
)
