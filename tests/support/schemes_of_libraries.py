"""Weights of libraries that quantize, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st
from support.scheme import SHAPES, Drawn, codes_of

from qmanifest.dialects.bitsandbytes.schemes import INT8
from qmanifest.dialects.gemma.schemes import gemma
from qmanifest.dialects.hqq.schemes import scheme_of as hqq_scheme
from qmanifest.dialects.quanto.schemes import KINDS, NARROW
from qmanifest.dialects.quanto.schemes import scheme_of as quanto_scheme
from qmanifest.dialects.quark.schemes import scheme_of as quark_scheme
from qmanifest.dtypes import FLOAT
from qmanifest.families import (
    AQLM,
    BNB4,
    BNB8,
    EXL2,
    EXL3,
    GEMMA,
    GEMMA_TABLE,
    HQQ,
    QUANTO,
    QUANTO_PACKED,
    SCALED,
    TORCHAO,
    PartNames,
)
from qmanifest.schemes import (
    NO_ZERO,
    Codebook,
    Dim,
    Integer,
    Opaque,
    OpaquePart,
    Scaled,
    Scheme,
    plain_zero,
)
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.tensors import Shape


@st.composite
def bitsandbytes_weights(draw: st.DrawFn) -> Drawn:
    table = draw(st.sampled_from(["nf4", "fp4", "int8"]))
    if table == "int8":
        return Drawn(INT8, BNB8.names)
    nested, block = draw(st.sampled_from([0, 256])), draw(st.sampled_from([64, 128]))
    pack = draw(st.sampled_from(["u8-flat-high", "bf16-flat-high"]))
    scheme = Codebook("nf4" if table == "nf4" else "fp4", block, nested, pack)
    others = tuple(pair for pair in BNB4.names.suffixes if "state" not in pair[0])
    state = ("quant_state", f".quant_state.bitsandbytes__{table}")
    return Drawn(scheme, PartNames("", (*others, state)), ((16, 64), (24, 40)))


_EXPERTS: Final = TORCHAO[1]
_KINDS: Final = {
    "i8": "IntxUnpackedToInt8Tensor",
    "fp8": "Float8Tensor",
    "mxfp8": "MXTensor",
    "mxfp4": "MXTensor",
    "nvfp4": "NVFP4Tensor",
}
"""What torchao calls the tensors of a kind."""


@st.composite
def torchao_weights(draw: st.DrawFn) -> Drawn:
    kind = draw(st.sampled_from(["i8", "fp8", "mxfp8", "mxfp4", "nvfp4"]))
    swizzled: Any = draw(st.sampled_from(["table", "swizzled"]))
    if kind == "i8":
        bits, group = draw(st.sampled_from([(8, 0), (4, 32), (4, 0), (8, 64)]))
        zero = draw(st.sampled_from([NO_ZERO, plain_zero("code", ("I8",))]))
        scheme: Scheme = Integer(
            *(bits, "i8", "signed", Spread(1, group), FLOAT, zero),
            *("sequential", "scale"),
        )
    elif kind == "fp8":
        scheme = Scaled(
            *("e4m3", "f8-e4m3", Spread(1, 0), FLOAT, "float", "none"), rounds="BF16"
        )
    elif kind == "nvfp4":
        scheme = Scaled(
            *("e2m1", "u8-nibbles", Spread(1, 16, swizzled), ("F8_E4M3",), "e4m3"),
            "multiply" if draw(st.booleans()) else "none",
            "BF16",
        )
    else:
        element, pack = {"mxfp8": ("e4m3", "f8-e4m3"), "mxfp4": ("e2m1", "u8-nibbles")}[
            kind
        ]
        scheme = Scaled(
            *(element, pack, Spread(1, 32, swizzled), ("F8_E8M0", "U8"), "e8m0"),
            *("none", "BF16"),
        )
    family = draw(st.sampled_from([TORCHAO[0], _EXPERTS]))
    parameter = family.names.stem_suffix.removeprefix(".")
    # a row of 128 inputs is a tile of as many
    shapes: tuple[Shape, ...] = ((32, 256), (64, 384)) if kind == "fp8" else SHAPES
    return Drawn(scheme, family.names, shapes, parameter=parameter, kind=_KINDS[kind])


@st.composite
def hqq_weights(draw: st.DrawFn) -> Drawn:
    own = {
        "nbits": draw(st.sampled_from([1, 2, 4, 8, 3])),
        "group_size": 64,
        "axis": draw(st.sampled_from([0, 1])),
    }
    # 3-bit codes lie ten to a word, so that rows of blocks are multiples of ten
    shapes: tuple[Shape, ...] = ((80, 64),) if own["nbits"] == 3 else SHAPES
    if own["nbits"] == 3 and own["axis"] == 0:
        own["group_size"] = 80
    return Drawn(hqq_scheme(own, codes_of("U8", (8, 64)), None), HQQ.names, shapes)


@st.composite
def quanto_weights(draw: st.DrawFn) -> Drawn:
    kind = draw(st.sampled_from([each for each in KINDS if each != "none"]))
    zeros = draw(st.sampled_from([None, codes_of("I8", (1,))]))
    codes = codes_of("U8", (8, 128)) if kind in NARROW else None
    scheme = quanto_scheme(kind, codes, zeros)
    assert scheme is not None
    family = QUANTO_PACKED if kind in NARROW else QUANTO
    return Drawn(scheme, family.names)


_QUARK: Final[tuple[dict[str, Any], ...]] = (
    {"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
    {"dtype": "fp8_e4m3", "qscheme": "per_channel"},
    {"dtype": "int8", "qscheme": "per_channel", "symmetric": True},
    {"dtype": "int4", "qscheme": "per_group", "group_size": 32, "symmetric": True},
    {"dtype": "uint4", "qscheme": "per_group", "group_size": 32, "symmetric": False},
    {
        "dtype": "fp4",
        "qscheme": "per_group",
        "group_size": 32,
        "scale_format": "e8m0",
    },
)


@st.composite
def quark_weights(draw: st.DrawFn) -> Drawn:
    spec = draw(st.sampled_from(_QUARK))
    scheme = quark_scheme((spec,), None, None, in_order=False)
    document = {
        "quant_method": "quark",
        "global_quant_config": {"weight": spec},
        "exclude": ["lm_head"],
    }
    return Drawn(scheme, SCALED.names, document=document)


@st.composite
def exl2_weights(draw: st.DrawFn) -> Drawn:
    rows, groups = draw(st.sampled_from([16, 24])), draw(st.integers(1, 3))
    parts = (
        OpaquePart("codes", ("I32",), (Dim("one", times=rows), Dim("N"))),
        OpaquePart("scales", ("I32",), (Dim("one", times=groups), Dim("N", 8))),
        OpaquePart("scale_max", ("F16",), (Dim("one", times=groups),)),
        OpaquePart("groups", ("I16",), (Dim("one", times=2 * groups),)),
        OpaquePart("order", ("I32",), (Dim("K"),)),
    )
    scheme = Opaque("exl2", 0, 0, parts)
    document = {"quant_method": "exl2", "bits": 4.5}
    return Drawn(scheme, EXL2.names, ((32, 128),), document)


@st.composite
def exl3_weights(draw: st.DrawFn) -> Drawn:
    tiles = (Dim("K", 16), Dim("N", 16), Dim("one", times=16 * draw(_exl3_bits)))
    parts = (
        OpaquePart("codes", ("I16",), tiles),
        OpaquePart("input_signs", ("F16",), (Dim("K"),)),
        OpaquePart("output_signs", ("F16",), (Dim("N"),)),
    )
    document = {"quant_method": "exl3", "bits": 4.5}
    return Drawn(Opaque("exl3", 0, 0, parts), EXL3.names, SHAPES, document)


_exl3_bits: Final = st.integers(2, 8)


@st.composite
def gemma_weights(draw: st.DrawFn) -> Drawn:
    bits, table = draw(st.sampled_from([2, 4, 8])), draw(st.booleans())
    names = (GEMMA_TABLE if table else GEMMA).names
    return Drawn(gemma(bits, table=table), names)


@st.composite
def aqlm_weights(draw: st.DrawFn) -> Drawn:
    books, bits = draw(st.sampled_from([(1, 8), (2, 8)]))
    one, number = Dim("one"), Dim("one", times=books)
    patch = (Dim("one", times=1 << bits), one, Dim("one", times=8))
    parts = (
        OpaquePart("codes", (f"I{bits}",), (Dim("N"), Dim("K", 8), number)),
        OpaquePart("scales", FLOAT, (Dim("N"), one, one, one)),
        OpaquePart("codebooks", FLOAT, (number, *patch)),
    )
    document = {
        "quant_method": "aqlm",
        "num_codebooks": books,
        "nbits_per_codebook": bits,
        "linear_weights_not_to_quantize": ["lm_head.weight"],
    }
    return Drawn(Opaque("aqlm", books, 8, parts), AQLM.names, SHAPES, document)
