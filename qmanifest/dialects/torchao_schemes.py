"""What torchao's configs make of a weight, told by the fields that are stored.

Source: https://github.com/pytorch/ao, `quantization/quant_api.py` and the tensor
subclasses that it names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dtypes import FLOAT
from qmanifest.schemes import Integer, Opaque, OpaquePart, Scaled, Zero
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.schemes import Scheme
    from qmanifest.spreads import Form
    from qmanifest.tensors import Shape, TensorInfo

INT8: Final = ("Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig")
INTX: Final = (
    "IntxWeightOnlyConfig",
    "Int8DynamicActivationIntxWeightConfig",
    "Int8DynamicActivationInt4WeightConfig",
)
FP8: Final = (
    "Float8WeightOnlyConfig",
    "Float8DynamicActivationFloat8WeightConfig",
    "Float8StaticActivationFloat8WeightConfig",
)
MX: Final = ("MXDynamicActivationMXWeightConfig", "MXFPInferenceConfig")
NVFP4: Final = ("NVFP4WeightOnlyConfig", "NVFP4DynamicActivationNVFP4WeightConfig")
INT4: Final = ("Int4WeightOnlyConfig", "Float8DynamicActivationInt4WeightConfig")
KINDS: Final = (*INT8, *INTX, *FP8, *MX, *NVFP4, *INT4)
"""torchao's configs; old files write them in lower case, `int8_weight_only`."""
_DTYPES: Final = {f"int{bits}": bits for bits in range(1, 9)}


def scheme_as_stored(
    bits: int, codes: TensorInfo, others: Mapping[str, TensorInfo | None]
) -> Scheme | None:
    """Name the scheme of a weight by its fields; None where they are no weight's.

    Args:
        bits: width of integer codes, as the config says; a code fills a byte anyway.
        codes: the field `qdata`.
        others: the fields `scale`, `zero_point` and `per_tensor_scale`, by role.

    """
    scales = others.get("scales")
    if scales is None or len(codes.shape) != 2:  # noqa: PLR2004 - a matrix
        return _opaque(codes)
    if codes.dtype == "I8":
        return _integers(bits, codes.shape, scales, others.get("zeros"))
    if codes.dtype == "F8_E4M3":
        return _floats("e4m3", "f8-e4m3", codes.shape, scales, others)
    if codes.dtype == "U8" and scales.dtype in {"F8_E4M3", "F8_E8M0"}:
        n, half = codes.shape
        return _floats("e2m1", "u8-nibbles", (n, 2 * half), scales, others)
    return _opaque(codes)


def _integers(
    bits: int, shape: Shape, scales: TensorInfo, zeros: TensorInfo | None
) -> Integer:
    """Make integers with a code to a byte, and a scale for a row or a group of it."""
    columns = scales.shape[-1] if len(scales.shape) > 1 else 1
    group = 0 if columns == 1 else -(-shape[-1] // columns)
    return Integer(
        bits,
        "i8",
        "signed",
        Spread(1, group),
        FLOAT,
        Zero("none") if zeros is None else Zero("code", ("I8",)),
        "sequential",
        "scale",
    )


def _floats(
    element: str,
    pack: str,
    shape: Shape,
    scales: TensorInfo,
    others: Mapping[str, TensorInfo | None],
) -> Scaled:
    """Make small floats with a scale for a row, a tile, or a group of inputs."""
    if scales.dtype in FLOAT:
        spread, scale_format = _tiles(shape, scales.shape), "float"
    else:
        group = 16 if scales.dtype == "F8_E4M3" else 32
        plain = Spread(1, group)
        form: Form = "table" if scales.shape == plain.shape(shape) else "swizzled"
        spread = Spread(1, group, form)
        scale_format = "e4m3" if scales.dtype == "F8_E4M3" else "e8m0"
    whole = others.get("global_scale")
    dtypes = FLOAT if scale_format == "float" else (scales.dtype,)
    return Scaled(
        element,
        pack,
        spread,
        dtypes,
        scale_format,
        "none" if whole is None else "multiply",
        "BF16",
    )


def _tiles(shape: Shape, scales: Shape) -> Spread:
    """Tell the tile of a scale: whole rows, or what divides the weight evenly."""
    if len(scales) != 2:  # noqa: PLR2004 - a table
        return Spread(0, 0, "one" if scales else "scalar")
    rows, columns = (
        0 if count == 1 else -(-size // count)
        for size, count in zip(shape, scales, strict=True)
    )
    return Spread(rows, columns)


def _opaque(codes: TensorInfo) -> Opaque:
    """Make a weight whose values are not decoded: packed int4, and tiles of it."""
    parts = (
        OpaquePart("codes", (codes.dtype,), None),
        OpaquePart("scales", FLOAT, None, optional=True),
        OpaquePart("zeros", FLOAT, None, optional=True),
    )
    return Opaque("torchao-int4", 4, 0, parts)


def width_of(config: Mapping[str, Any]) -> int:
    """Read the width of integer codes off a torchao config; 8 where it has none."""
    data = config.get("_data")
    kind = str(config.get("_type"))
    said = data.get("weight_dtype") if isinstance(data, dict) else None
    if isinstance(said, dict):
        said = said.get("_data")
    default = 4 if "Int4" in kind else 8
    return _DTYPES.get(str(said), default)


def known(kind: object) -> bool:
    """Whether torchao has a config of this name, in today's or in the old spelling."""
    plain = {name.removesuffix("Config").lower() for name in KINDS}
    return str(kind).removesuffix("Config").replace("_", "").lower() in plain
