"""Which scheme describes which file of golden vectors: one row for each.

A dialect that reads a format must lower to the scheme of its row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import FLOAT, FLOAT16
from qmanifest.schemes import (
    NO_ZERO,
    Codebook,
    Extra,
    Integer,
    Scaled,
    Scheme,
    Zero,
    packed_zero,
    plain_zero,
)
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

SEQUENTIAL: Final = "sequential"
F32: Final = ("F32",)
E8M0: Final = ("U8", "F8_E8M0")
E4M3: Final = ("F8_E4M3",)
ROW: Final = Spread(1, 0)
"""One number per output."""


@dataclass(frozen=True)
class Format:
    """One weight of a file, and what its owner makes of it."""

    file: str
    scheme: Scheme
    shape: Shape
    parts: dict[str, str]
    """The key of every role in the file."""
    expected: str
    """The key of the weight that the owner rebuilt."""
    turned: bool = False
    """Whether the owner gave it with the last two axes exchanged."""
    extra: dict[str, str] = field(default_factory=dict)
    """Roles of parts that have no bearing on the weight."""
    unsigned_zero: bool = False
    """Whether the owner's table has no negative zero."""


def gptq(file: str, *, version: int) -> Format:
    """A file of GPTQModel, with the zeros of either format."""
    bits, planar = int(file[6]), "planar" in file
    rows = "i32-planes" if planar else "i32-lsb"
    zero = packed_zero(rows, plus=1 if version == 1 else 0, signed=False)
    scheme = Integer(
        *(bits, f"{rows}-down", "unsigned", Spread(1, 32, "transposed"), FLOAT16),
        *(zero, "may-be-listed", "float32"),
    )
    parts = {"codes": "qweight", "scales": "scales", "g_idx": "g_idx"}
    parts |= {"zeros": f"qzeros_v{version}"}
    return Format(file, scheme, (64, 128), parts, "dequant_in_out_f32", turned=True)


def gptq_files() -> list[str]:
    """Name GPTQModel's files."""
    kinds = {2: "cont", 3: "cont planar", 4: "cont", 8: "cont"}
    files = [
        f"gptq_b{bits}_{sym}_{kind}"
        for bits in range(2, 9)
        for sym in ("asym", "sym")
        for kind in kinds.get(bits, "planar").split()
    ]
    return [*files, "gptq_b4_asym_cont_actorder", "gptq_b4_sym_cont_actorder"]


def auto_round(bits: int, symmetric: str, kind: str) -> Format:
    """A layer of AutoRound; zero points minus one (`zp`), or as they are (`raw`)."""
    scheme = Integer(
        *(bits, "i32-lsb-down", "unsigned", Spread(1, 32, "transposed"), FLOAT16),
        packed_zero("i32-lsb", plus=1 if kind == "zp" else 0, signed=False),
        *("may-be-listed", "float32"),
    )
    stem = f"b{bits}_{symmetric}"
    keys = {"codes": "qweight", "scales": "scales", "zeros": "qzeros"}
    parts = {role: f"{stem}.{key}" for role, key in keys.items()}
    expected = f"{stem}.dequant_in_out"
    return Format(f"autoround_{kind}", scheme, (32, 64), parts, expected, turned=True)


AWQ: Final = {
    "gemm": Integer(
        *(4, "i32-awq-across", "unsigned", Spread(1, 64, "transposed"), ("F16",)),
        *(packed_zero("i32-awq", plus=0, signed=False), SEQUENTIAL, "scale"),
    ),
    "gemv": Integer(
        *(4, "i32-lsb", "unsigned", Spread(1, 64, "awq-rows"), ("F16",)),
        *(packed_zero("i32-lsb", plus=0, signed=False), SEQUENTIAL, "float32"),
    ),
    "gemv_fast": Integer(
        *(4, "i16-awq-fast", "unsigned", Spread(1, 64, "awq-columns"), ("F16",)),
        *(plain_zero("bias", ("F16",)), SEQUENTIAL, "float32"),
    ),
}
AWQ_PARTS: Final = {"codes": "qweight", "scales": "scales", "zeros": "qzeros"}


def ct_integer(bits: int, zero: Zero = NO_ZERO) -> Integer:
    """Describe `pack-quantized`, from version 0.18 on."""
    return Integer(
        *(bits, "i32-lsb", "offset", Spread(1, 128), FLOAT, zero, SEQUENTIAL, "scale"),
        (Extra("weight_shape", ("I64",), (2,)),),
    )


def ct_float(element: str, pack: str) -> Scaled:
    """Describe compressed-tensors' microscaling formats."""
    return Scaled(element, pack, Spread(1, 32), E8M0, "e8m0", "none", "BF16")


def ct_fp8(spread: Spread) -> Scaled:
    """Describe compressed-tensors' `float-quantized`."""
    return Scaled("e4m3", "f8-e4m3", spread, FLOAT, "float", "none", "scale")


CT_NVFP4: Final = Scaled(
    *("e2m1", "u8-nibbles", Spread(1, 16), E4M3, "e4m3", "divide", "BF16"),
    global_shape=(1,),
)
CT_ZERO: Final = packed_zero("i32-lsb-stacked", plus=0, signed=True)
CT: Final[dict[str, Scheme]] = {
    "W3A16": ct_integer(3),
    "W4A16": ct_integer(4),
    "W4A16_ASYM": ct_integer(4, CT_ZERO),
    "W8A16": ct_integer(8),
    "W8A8": Scaled("i8", "i8", ROW, FLOAT, "float", "none", "scale"),
    "FP8": ct_fp8(Spread(0, 0, "one")),
    "FP8_DYNAMIC": ct_fp8(ROW),
    "FP8_BLOCK": ct_fp8(Spread(128, 128)),
    "NVFP4": CT_NVFP4,
    "NVFP4A16": CT_NVFP4,
    "MXFP4A16": ct_float("e2m1", "u8-nibbles"),
    "MXFP6A16": ct_float("e2m3", "u8-lsb"),
    "MXFP8A16": ct_float("e4m3", "f8-e4m3"),
}


def ct(preset: str, scheme: Scheme) -> Format:
    """A file of compressed-tensors."""
    packed = not preset.startswith(("FP8", "MXFP8", "W8A8"))
    parts = {"scales": "weight_scale"}
    parts["codes"] = "weight_packed" if packed else "weight"
    if "NVFP4" in preset:
        parts["global_scale"] = "weight_global_scale"
    if "ASYM" in preset:
        parts["zeros"] = "weight_zero_point"
    extra = {"weight_shape": "weight_shape"} if scheme.kind == "integer" else {}
    shape = (130, 192) if preset == "FP8_BLOCK" else (72, 256)
    return Format(f"ct_{preset}", scheme, shape, parts, "dequant", extra=extra)


def bnb(file: str, table: str, nested: int) -> Format:
    """A file of bitsandbytes, 4 bits."""
    assert table in {"nf4", "fp4"}
    scheme = Codebook("nf4" if table == "nf4" else "fp4", 64, nested, "u8-flat-high")
    parts = {"codes": "weight", "scales": "weight.absmax"}
    parts |= {"quant_map": "weight.quant_map"}
    parts |= {"quant_state": f"weight.quant_state.bitsandbytes__{table}"}
    if nested:
        keys = ("nested_absmax", "nested_quant_map")
        parts |= {key: f"weight.{key}" for key in keys}
    return Format(file, scheme, (48, 192), parts, "dequant")


BNB_INT8: Final = Scaled(
    *("i8", "i8", Spread(1, 0, "vector"), F32, "float", "none", "float32"),
    factor=0.00787401571869850,
    extras=(Extra("weight_format", ("U8",), (), optional=True),),
)


def hqq(bits: int, axis: int) -> Format:
    """A file of HQQ: blocks follow each other (axis 1), or their weights do (0)."""
    pack = "i32-split-high" if bits == 3 else "u8-split-high"
    spread = Spread(0, 64, "flat-column" if axis else "flat-row")
    zero = plain_zero("code", FLOAT)
    scheme = Integer(bits, pack, "unsigned", spread, FLOAT, zero, SEQUENTIAL, "scale")
    parts = {"codes": "W_q", "scales": "scale", "zeros": "zero"}
    return Format(f"hqq_b{bits}_axis{axis}", scheme, (48, 128), parts, "dequant_f32")


def quanto_int(bits: int) -> Format:
    """A file of quanto with two or four bits."""
    spread = Spread(0, 128, "flat-column")
    zero = plain_zero("shift", FLOAT)
    scheme = Integer(
        bits, "u8-split-low", "unsigned", spread, FLOAT, zero, SEQUENTIAL, "scale"
    )
    parts = {"codes": "0.weight._data._data", "scales": "0.weight._scale"}
    parts |= {"zeros": "0.weight._shift"}
    return Format(f"quanto_qint{bits}", scheme, (48, 256), parts, "dequant")


def quanto_byte(name: str, element: str, pack: str) -> Format:
    """A file of quanto with a byte per weight."""
    scheme = Scaled(element, pack, ROW, FLOAT, "float", "none", "scale")
    parts = {"codes": "0.weight._data", "scales": "0.weight._scale"}
    return Format(f"quanto_{name}", scheme, (48, 256), parts, "dequant")


TORCHAO_PARTS: Final = {"codes": "0._weight_qdata", "scales": "0._weight_scale"}
TORCHAO_ZERO: Final = {"zeros": "0._weight_zero_point"}
TORCHAO_INT8: Final = Integer(
    *(8, "i8", "signed", ROW, F32, plain_zero("code", ("I8",)), SEQUENTIAL, "float32"),
)
TORCHAO_INTX: Final = Integer(
    *(4, "i8", "signed", Spread(1, 32), FLOAT, plain_zero("code", ("I8",))),
    *(SEQUENTIAL, "scale"),
)
TORCHAO_FP8: Final = Scaled("e4m3", "f8-e4m3", ROW, F32, "float", "none", "BF16")
TORCHAO_NVFP4: Final = Scaled(
    *("e2m1", "u8-nibbles", Spread(1, 16, "swizzled"), E4M3, "e4m3"),
    *("multiply", "BF16"),
)
TORCHAO_MX: Final = Scaled(
    *("e4m3", "f8-e4m3", Spread(1, 32, "swizzled"), E8M0, "e8m0", "none", "BF16")
)


def torchao(name: str, scheme: Scheme, **parts: str) -> Format:
    """A file of torchao."""
    every = {**TORCHAO_PARTS, **parts}
    return Format(f"torchao_{name}", scheme, (64, 256), every, "dequant")


FP8_BLOCK: Final = Scaled(
    "e4m3", "f8-e4m3", Spread(32, 32), F32, "float", "none", "float32"
)
FP8_BLOCK_E8M0: Final = Scaled(
    "e4m3", "f8-e4m3", Spread(32, 32), E8M0, "e8m0", "none", "float32"
)
MODELOPT_NVFP4: Final = Scaled(
    "e2m1", "u8-nibbles", Spread(1, 16), E4M3, "e4m3", "multiply", "float32"
)
MODELOPT_INT4: Final = Integer(
    *(4, "u8-nibbles-stacked", "signed", Spread(1, 32), FLOAT, NO_ZERO),
    *(SEQUENTIAL, "float32"),
)
GPT_OSS: Final = Scaled(
    "e2m1", "u8-nibbles-blocks", Spread(1, 32), E8M0, "e8m0", "none", "BF16"
)

FORMATS: Final = (
    *(gptq(file, version=1) for file in gptq_files()),
    *(gptq(file, version=2) for file in gptq_files()),
    *(
        auto_round(bits, symmetric, kind)
        for bits in range(2, 9)
        for symmetric in ("sym", "asym")
        for kind in ("zp", "raw")
    ),
    Format(
        *("awq_gemm_b4_g64", AWQ["gemm"], (64, 256), AWQ_PARTS, "dequant_in_out"),
        turned=True,
    ),
    *(ct(preset, scheme) for preset, scheme in CT.items()),
    *(
        bnb(f"bnb_{table}{double}_{dtype}", table, nested)
        for table in ("nf4", "fp4")
        for double, nested in (("", 0), ("_double", 256))
        for dtype in ("float32", "bfloat16")
    ),
    Format(
        *("bnb_int8", BNB_INT8, (48, 192), {"codes": "weight", "scales": "SCB"}),
        expected="dequant",
        extra={"weight_format": "weight_format"},
    ),
    *(hqq(bits, axis) for bits in (1, 2, 3, 4, 8) for axis in (0, 1)),
    *(quanto_int(bits) for bits in (2, 4)),
    quanto_byte("qint8", "i8", "i8"),
    quanto_byte("qfloat8_e4m3fn", "e4m3", "f8-e4m3"),
    *(
        torchao(name, TORCHAO_INT8, **TORCHAO_ZERO)
        for name in ("int8wo", "int8wo_v1", "int8dyn")
    ),
    torchao("intx4", TORCHAO_INTX, **TORCHAO_ZERO),
    torchao("fp8wo", TORCHAO_FP8),
    torchao(
        "NVFP4WeightOnlyConfig",
        TORCHAO_NVFP4,
        global_scale="0._weight_per_tensor_scale",
    ),
    torchao("MXDynamicActivationMXWeightConfig", TORCHAO_MX),
    Format(
        *("gptoss_mxfp4", GPT_OSS, (2, 6, 96)),
        {"codes": "gate_up_proj_blocks", "scales": "gate_up_proj_scales"},
        expected="dequant_E_in_out",
        turned=True,
    ),
    Format(
        *("fp8_block32_float", FP8_BLOCK, (96, 64)),
        {"codes": "m.weight", "scales": "m.weight_scale_inv"},
        expected="dequant_f32",
    ),
    Format(
        *("fp8_block32_ue8m0", FP8_BLOCK_E8M0, (96, 64)),
        {"codes": "m.weight", "scales": "m.weight_scale_inv_u8"},
        expected="dequant_f32",
    ),
    Format(
        *("modelopt_nvfp4", MODELOPT_NVFP4, (32, 128)),
        {
            "codes": "weight",
            "scales": "weight_scale",
            "global_scale": "weight_scale_2",
        },
        expected="dequant_f32",
        unsigned_zero=True,
    ),
)
"""Every weight that its owner rebuilt."""
