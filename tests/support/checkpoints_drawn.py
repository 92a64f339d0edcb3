"""Checkpoints that are as they promise, one for every dialect, for tests."""

from __future__ import annotations

import json
import math
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from hypothesis import strategies as st
from support.schemes_drawn import DRAWN

from qmanifest.check import Report, check
from qmanifest.checkpoint import open_checkpoint
from qmanifest.dialects import dialect_named
from qmanifest.dtypes import DTYPES, FLOAT16, nbytes
from qmanifest.manifest import Component, Kept, Manifest, Weight
from qmanifest.packings import pack
from qmanifest.schemes import Codebook, Integer, Scaled
from qmanifest.testing import write_raw
from qmanifest.testing.content import SMALL_SCALES, content

if TYPE_CHECKING:
    from support.scheme import Drawn

    from qmanifest.tensors import Shape, TensorSpec
    from qmanifest.testing import RawTensor

POSITIVE: Final = ("scales", "global_scale", "scale_max")
HEAD: Final = "lm_head.weight"


@dataclass(frozen=True)
class Promised:
    """A checkpoint, before it is written."""

    dialect: str
    document: dict[str, Any]
    weights: tuple[tuple[Weight, Shape], ...]
    tensors: dict[str, RawTensor] = field(repr=False)
    kind: str = ""
    """The class that the header calls the weights by, where it does."""

    def checked(self, tensors: dict[str, RawTensor] | None = None) -> Report:
        """Write it, or the same with other tensors, and check it to the bytes."""
        chosen, stored = dialect_named(self.dialect), tensors or self.tensors
        config = chosen.wrap(self.document)
        with TemporaryDirectory() as name:
            folder = Path(name)
            text = json.dumps(config)
            (folder / chosen.file_name).write_text(text, encoding="utf-8")
            metadata = {"format": "pt", **self._described()}
            write_raw(folder / "model.safetensors", stored, metadata=metadata)
            return check(open_checkpoint(folder), deep=True)

    def _described(self) -> dict[str, str]:
        """Describe the tensors in the header, as torchao does."""
        if not self.kind:
            return {}
        dense = [name for name in self.tensors if "._" not in name]
        said: dict[str, Any] = {name: {"_type": "Tensor"} for name in dense}
        for weight, shape in self.weights:
            stem, _, parameter = weight.name.rpartition(".")
            names = [part.name for part in weight.parts(shape)]
            mark = f"{stem}._{parameter}_"
            fields = [name.removeprefix(mark) for name in names]
            said[weight.name] = {"_type": self.kind, "_tensor_data_names": fields}
        texts = {name: json.dumps(each) for name, each in said.items()}
        return {"tensor_names": json.dumps([*texts]), **texts}


@st.composite
def checkpoints(draw: st.DrawFn, dialect: str) -> Promised:
    """Draw a checkpoint of two quantized layers beside a head, a norm and a table."""
    own = draw(DRAWN[dialect])
    kinds = draw(st.lists(st.sampled_from(own.shapes), min_size=1, max_size=2))
    weights = tuple((_weight(own, number), shape) for number, shape in enumerate(kinds))
    optional = dialect == "hqq" or draw(st.booleans())  # HQQ stores every setting
    tensors: dict[str, RawTensor] = {}
    for weight, shape in weights:
        for part in weight.parts(shape):
            if not part.optional or (optional and part.shape is not None):
                tensors[part.name] = part_of(weight, shape, part)
    for name, size in (("norm.weight", (64,)), (HEAD, (16, 64))):
        tensors[name] = ("BF16", size, content(name, "BF16", size))
    document = own.document or _written(dialect, weights)
    return Promised(dialect, document, weights, tensors, own.kind)


def _weight(own: Drawn, number: int) -> Weight:
    name = f"model.layers.{number}.mlp.{own.parameter}"
    if own.parameter == "weight":
        name = f"model.layers.{number}.mlp.proj.weight"
    return Weight(name, own.scheme, "", names=own.names)


def _written(dialect: str, weights: tuple[tuple[Weight, Shape], ...]) -> dict[str, Any]:
    kept = (Kept(HEAD, "", FLOAT16),)
    component = Component("", tuple(weight for weight, _ in weights), kept)
    written: dict[str, Any] = (
        dialect_named(dialect).emit(Manifest(dialect, None, (component,))).to_json()
    )
    return written


def part_of(weight: Weight, shape: Shape, part: TensorSpec) -> RawTensor:
    """Make a part as converters do."""
    dtype, size = part.dtypes[0], part.shape
    made = _stated(weight, shape, part.role)
    if made is not None:
        return made
    assert size is not None, part
    scheme = weight.scheme
    if part.role == "zeros" and isinstance(scheme, Integer) and scheme.zero.pack:
        return dtype, size, _zeros(scheme, shape)
    if part.role == "g_idx":
        return dtype, size, _order(scheme.group_size, shape[-1], part.optional)
    letters = None
    if part.role == "scales" and isinstance(scheme, Scaled):
        letters = SMALL_SCALES.get(scheme.scale_format)
    if part.role == "codes" and isinstance(scheme, Integer) and scheme.pack == "i8":
        top = 1 << (scheme.bits - 1)
        letters = [code % 256 for code in range(-top, top)]
    data = content(
        part.name, dtype, size, positive=part.role in POSITIVE, alphabet=letters
    )
    return dtype, size, _padded(scheme, shape, part, data)


def _stated(weight: Weight, shape: Shape, role: str) -> RawTensor | None:
    """Make a part that says something of its weight."""
    scheme = weight.scheme
    if role == "quant_state" and isinstance(scheme, Codebook):
        said: dict[str, Any] = {
            "quant_type": scheme.table,
            "blocksize": scheme.block_size,
            "dtype": "bfloat16",
            "shape": list(shape),
        }
        if scheme.nested:
            said |= {"nested_blocksize": scheme.nested, "nested_offset": 0.1}
        text = json.dumps(said).encode()
        return "U8", (len(text),), text
    if role in {"shape", "hqq_shape"}:
        return "I64", (len(shape),), struct.pack(f"<{len(shape)}q", *shape)
    for extra in getattr(scheme, "extras", ()):
        if extra.role == role and extra.value is not None:
            dtype = extra.dtypes[0]
            size = DTYPES[dtype].bits // 8
            return dtype, (), extra.value.to_bytes(size, "little")
    return None


def _random(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def _zeros(scheme: Integer, shape: Shape) -> bytes:
    """Pack zero points; none is the largest, which readers of `plus` disagree about."""
    numbers, zero = scheme.spread.shape(shape), scheme.zero
    codes = _random(str(shape)).integers(
        0, (1 << scheme.bits) - 1, numbers, dtype=np.uint8
    )
    if zero.symmetric:
        codes[:] = (1 << (scheme.bits - 1)) - zero.plus
    if scheme.spread.form == "awq-rows":
        codes[:, -(-shape[-1] // scheme.group_size) :] = 0
    return pack(zero.pack, codes, scheme.bits).tobytes()


def _order(group: int, inputs: int, sequential: bool) -> bytes:  # noqa: FBT001 - one of two
    order = np.arange(inputs, dtype="<i4") // (group or inputs)
    return (order if sequential else order[::-1]).tobytes()


def _padded(scheme: object, shape: Shape, part: TensorSpec, data: bytes) -> bytes:
    """Fill what AWQ's kernels read beyond the last group with zeros."""
    if not isinstance(scheme, Integer) or part.role == "codes":
        return data
    groups = -(-shape[-1] // (scheme.group_size or shape[-1]))
    assert part.shape is not None
    count = math.prod(part.shape)
    form = scheme.spread.form
    if form not in {"awq-rows", "awq-columns"} or not count:
        return data
    size = nbytes(part.dtypes[0], part.shape) // count
    table = np.frombuffer(bytearray(data), np.uint8).reshape(*part.shape, size)
    if form == "awq-rows":
        table[:, groups:] = 0
    else:
        table[groups:] = 0
    return table.tobytes()
