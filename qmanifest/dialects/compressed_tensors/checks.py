"""What no version of compressed-tensors reads: combinations of numbers and formats.

Source: https://github.com/vllm-project/compressed-tensors,
`compressed_tensors/quantization/quant_args.py`, `validate_model_after`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from qmanifest.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.compressed_tensors.args import QuantizationArgs
    from qmanifest.dialects.compressed_tensors.groups import Group

DENSE_STREAM: Final = (0, 18)
"""The version from which 3, 5, 6 and 7 bits are packed without gaps."""
NO_ACTORDER: Final = (0, 19)
"""The version from which an order of groups is refused."""
_LIVE: Final = ("token", "tensor", "tensor_group", "group")
"""Strategies of scales that are made when the model runs."""
_FLOATS: Final = ("float-quantized", "naive-quantized")
_WIDTHS: Final[dict[str, tuple[str, int, int | None]]] = {
    "nvfp4-pack-quantized": ("float", 4, 16),
    "mxfp4-pack-quantized": ("float", 4, 32),
    "mxfp6-pack-quantized": ("float", 6, 32),
    "mxfp8-quantized": ("float", 8, 32),
}
"""Type, bits and group size that a format has, where it has but one."""


class Fault(NamedTuple):
    """A key of some arguments, what is wrong with it, and how bad that is."""

    key: str
    reason: str
    severity: Severity | None = None


def version_of(text: str | None) -> tuple[int, int] | None:
    """Read major and minor of a version; None where there is none to read."""
    found = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(found[1]), int(found[2])) if found else None


def faults(args: QuantizationArgs, version: tuple[int, int] | None) -> Iterator[Fault]:
    """Find what the library refuses in the arguments of any kind of numbers."""
    strategy, group = args.spread, args.group_size
    grouped = strategy in {"group", "tensor_group"}
    untold = args.strategy is None and group == 0
    if untold or (grouped and (group is None or group <= 0)):
        yield Fault("group_size", f"strategy {strategy} with group_size {group}")
    elif group is not None and group > 0 and not grouped:
        yield Fault("strategy", f"group_size {group} with strategy {strategy}")
    if (strategy == "block") != (args.block_structure is not None):
        key = "block_structure"
        yield Fault(key, f"strategy {strategy} with {key} {args.block_structure}")
    if strategy == "token" and not args.dynamic:
        yield Fault(
            "dynamic",
            "static scales with strategy token, which are made when the model runs",
        )
    if args.dynamic and strategy not in _LIVE:
        yield Fault("dynamic", f"dynamic scales with strategy {strategy}")
    if args.dynamic == "local" and strategy != "tensor_group":
        yield Fault("dynamic", f"dynamic local with strategy {strategy}")
    if args.lists_groups:
        yield _listed(args, version)


def _listed(args: QuantizationArgs, version: tuple[int, int] | None) -> Fault:
    """Judge an order of groups, which newer versions refuse."""
    new = version is not None and version >= NO_ACTORDER
    return Fault(
        "actorder",
        f"actorder {args.actorder!r}, which versions from 0.19 on refuse",
        None if new else Severity.NOTE,
    )


def weight_faults(group: Group) -> Iterator[Fault]:
    """Find what the format of a group cannot store of its weights."""
    args = group.weights
    if args is None:
        return
    found = (args.type, args.num_bits, args.group_size)
    wanted = _WIDTHS.get(group.format)
    if args.spread in {"token", "attn_head"}:
        yield Fault("strategy", f"strategy {args.spread}, which is for activations")
    if args.dynamic:
        yield Fault("dynamic", "dynamic scales, which weights do not have")
    if wanted is not None and found != wanted:
        said = "{} of {} bits in groups of {}"
        yield Fault(
            "num_bits" if found[:2] != wanted[:2] else "group_size",
            f"{said.format(*found)}; {group.format} is {said.format(*wanted)}",
        )
    elif wanted is None:
        yield from _plain_faults(group.format, args)
    if args.type == "float" and not args.symmetric:
        reason = "zero points beside small floats, which are not decoded"
        yield Fault("symmetric", reason, Severity.WARNING)


def _plain_faults(stored: str, args: QuantizationArgs) -> Iterator[Fault]:
    """Judge the formats that several widths have."""
    whole, bits = args.type == "int", args.num_bits
    if stored == "pack-quantized" and not (whole and 1 <= bits <= 8):  # noqa: PLR2004 - a byte
        yield Fault(
            "num_bits",
            f"{args.type} of {bits} bits; pack-quantized is int of 1 to 8 bits",
        )
    elif stored == "int-quantized" and not whole:
        yield Fault("type", "type float; int-quantized is int")
    elif stored == "float-quantized" and whole:
        yield Fault("type", "type int; float-quantized is float")
    elif not whole and bits != 8 and stored in _FLOATS:  # noqa: PLR2004 - a byte
        yield Fault("num_bits", f"floats of {bits} bits; {stored} has 8")
    elif whole and not 1 <= bits <= 16:  # noqa: PLR2004 - two bytes
        yield Fault("num_bits", f"integers of {bits} bits; {stored} has 1 to 16")
