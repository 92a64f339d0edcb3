"""Small checkpoints from a text table, one tensor or quantized weight a line.

    # name       scheme           shape    dtypes, layout, values
    blk.0.proj   affine 4/64      32x128   F16
    blk.1.proj   affine 8/32      32x128   BF16 scales=nan
    old.proj     zero-point 4/64  32x128   F16 U8 u8-nibbles
    experts.up   mxfp4            4x8x32
    norm.weight  F16              64       =0
    temperature  F32              scalar

A quantized line has bits and inputs per group, the logical shape, and the dtypes of
scales and zeros; it makes every part of its scheme, under MLX's names. Content depends
on the tensor's name alone; it is finite and never all zero, unless a value says so:
`=VALUE` fills a dense tensor, `ROLE=VALUE` a part. Codes, byte scales, and floats of
8 bits or fewer take the stored integer. `=1,2` has the two in turns, and `=text:WORD`
the text's bytes and then spaces.
To add a mode, add a row to `_MODES`.
"""

from __future__ import annotations

import json
import struct
from itertools import takewhile
from typing import TYPE_CHECKING, Final, TypeAlias

from qmanifest.dtypes import DTYPES
from qmanifest.layouts import LAYOUTS
from qmanifest.manifest import Weight
from qmanifest.schemes import Affine, Microscaling, Scheme, ZeroPoint
from qmanifest.tensors import Shape
from qmanifest.testing.content import ALPHABETS, SMALL_SCALES, content, filled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

RawTensor: TypeAlias = tuple[str, Shape, bytes]
"""Dtype, shape and little-endian row-major bytes, whether they agree or not."""

_MODES: Final[dict[str, Scheme]] = {
    "mxfp4": Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
    "mxfp8": Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
    "nvfp4": Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none"),
}


def write_checkpoint(
    folder: Path,
    table: str,
    config: Mapping[str, object] | None = None,
    *,
    config_name: str = "quant_config.json",
    file: str = "model.safetensors",
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write the tensors of a table, and the config beside them, into a folder.

    Args:
        folder: made if it is not there.
        table: as in this module's docstring.
        config: the quantization config; None writes none.
        config_name: its file's name.
        file: the safetensors file's name; call again with another for more shards.
        metadata: the header's strings, `{"format": "mlx"}` if None.

    Returns:
        The folder.

    Raises:
        ValueError: a line of the table cannot be read.

    """
    folder.mkdir(parents=True, exist_ok=True)
    strings = {"format": "mlx"} if metadata is None else metadata
    write_raw(folder / file, tensors_of(table), metadata=strings)
    if config is not None:
        text = json.dumps(config, indent=1)
        (folder / config_name).write_text(text, encoding="utf-8")
    return folder


def write_raw(
    path: Path,
    tensors: Mapping[str, RawTensor],
    header_text: str | bytes | None = None,
    *,
    tail: bytes = b"",
    cut: int = 0,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a safetensors file without any check, so that it may be malformed.

    Args:
        path: the file, written in place.
        tensors: by name; their bytes lie one after another in this order.
        header_text: stands in for the header of `tensors`, without padding.
        tail: bytes after the data.
        cut: bytes to leave off at the end.
        metadata: strings of the made header; None leaves `__metadata__` out.

    """
    if header_text is None:
        header_text = _header_text(tensors, metadata)
    head = header_text if isinstance(header_text, bytes) else header_text.encode()
    body = b"".join(content for _, _, content in tensors.values()) + tail
    whole = struct.pack("<Q", len(head)) + head + body
    path.write_bytes(whole[: len(whole) - cut])


def tensors_of(table: str) -> dict[str, RawTensor]:
    """Make the tensors of a table, in its order.

    Raises:
        ValueError: a line cannot be read, or makes a name that is there already.

    """
    tensors: dict[str, RawTensor] = {}
    for number, line in enumerate(table.splitlines(), 1):
        words = line.split()
        words = list(takewhile(lambda word: not word.startswith("#"), words))
        if not words:
            continue
        try:
            made = _tensors_of_line(words)
        except (ValueError, ArithmeticError) as error:
            raise ValueError(
                f"table line {number} {line.strip()!r}: {error}"
            ) from error
        for name, tensor in made.items():
            if name in tensors:
                raise ValueError(f"table line {number} makes {name!r} again")
            tensors[name] = tensor
    return tensors


def _tensors_of_line(words: list[str]) -> dict[str, RawTensor]:
    """Make the tensors of one line, split at its spaces."""
    name, mode, *rest = (word for word in words if "=" not in word)
    values = dict(word.split("=", 1) for word in words if "=" in word)
    if mode in DTYPES:
        (shape,) = rest
        made = {name: _dense(name, mode, _shape(shape), values.pop("", None))}
    else:
        scheme, shape = _scheme(mode, rest)
        weight = Weight(f"{name.removesuffix('.weight')}.weight", scheme, "")
        made = _parts(weight, _shape(shape), values)
    if values:
        raise ValueError(f"no part takes {sorted(values)}")
    return made


def _scheme(mode: str, rest: list[str]) -> tuple[Scheme, str]:
    """Read `affine BITS/GROUP SHAPE [DTYPE] [LAYOUT]` and its kin."""
    if mode in _MODES:
        (shape,) = rest
        return _MODES[mode], shape
    widths, shape, *extra = rest
    bits, group = (int(number) for number in widths.split("/"))
    pack = next((extra.pop(extra.index(x)) for x in extra if x in LAYOUTS), "u32-lsb")
    if unknown := [word for word in extra if word not in DTYPES]:
        raise ValueError(f"no dtype or layout is called {unknown}")
    scale, *zero = extra or ["F16"]
    if mode == "affine" and not zero:
        return Affine(bits, group, (scale,), pack), shape
    if mode == "zero-point":
        return ZeroPoint(bits, group, (scale,), tuple(zero) or (scale,), pack), shape
    raise ValueError(f"no dtype or mode is called {mode!r}, or it has too many words")


def _parts(
    weight: Weight, shape: Shape, values: dict[str, str]
) -> dict[str, RawTensor]:
    """Make every stored tensor of a weight of logical `shape`."""
    made: dict[str, RawTensor] = {}
    for spec in weight.parts(shape):
        if spec.shape is None:
            raise ValueError(f"a row of {list(shape)} is not a whole number of words")
        dtype = spec.dtypes[0]
        value = values.pop(spec.role, None)
        data = (
            content(
                spec.name,
                dtype,
                spec.shape,
                positive=spec.role in {"scales", "global_scale"},
                alphabet=_alphabet(weight.scheme, spec.role),
            )
            if value is None
            else filled(dtype, spec.shape, value)
        )
        made[spec.name] = dtype, spec.shape, data
    return made


def _alphabet(scheme: Scheme, role: str) -> Sequence[int] | None:
    """Find the bytes that a part may have; None where its dtype alone says so."""
    if role == "zeros":
        return range(1, 1 << scheme.bits)
    if not isinstance(scheme, Microscaling):
        return None
    if role == "scales":
        return SMALL_SCALES[scheme.scale]
    return ALPHABETS["F8_E4M3"] if scheme.element == "e4m3" else None


def _dense(name: str, dtype: str, shape: Shape, value: str | None) -> RawTensor:
    """Make a tensor that is not quantized."""
    if value is None:
        return dtype, shape, content(name, dtype, shape)
    return dtype, shape, filled(dtype, shape, value)


def _shape(text: str) -> Shape:
    """Read `4x8x32`, or `scalar`."""
    return () if text == "scalar" else tuple(int(side) for side in text.split("x"))


def _header_text(
    tensors: Mapping[str, RawTensor], metadata: Mapping[str, str] | None
) -> str:
    """Describe `tensors` as they are, padded to 8 bytes."""
    header: dict[str, object] = {}
    if metadata is not None:
        header["__metadata__"] = dict(metadata)
    offset = 0
    for name, (dtype, shape, data) in tensors.items():
        end = offset + len(data)
        offsets = [offset, end]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        offset = end
    text = json.dumps(header)  # ASCII, so that characters are bytes
    return text + " " * (-len(text) % 8)
