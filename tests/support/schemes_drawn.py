"""Weights that each dialect has words for: scheme, names of parts and shape, for tests.

Dialects that are not written come with a document of their own instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from qmanifest.dialects import mxfp4
from qmanifest.dialects.auto_round_schemes import words
from qmanifest.dialects.awq_schemes import VERSIONS
from qmanifest.dialects.bitsandbytes_schemes import INT8
from qmanifest.dialects.compressed_tensors_args import QuantizationArgs
from qmanifest.dialects.compressed_tensors_schemes import Stored
from qmanifest.dialects.compressed_tensors_schemes import scheme_of as ct_scheme
from qmanifest.dialects.gptq_schemes import PLANAR, PLANES, Numbers
from qmanifest.dialects.gptq_schemes import scheme_of as gptq_scheme
from qmanifest.dialects.hqq_schemes import scheme_of as hqq_scheme
from qmanifest.dialects.modelopt_schemes import ALGORITHMS, Scales
from qmanifest.dialects.modelopt_schemes import scheme_of as modelopt_scheme
from qmanifest.dialects.quanto_schemes import KINDS, NARROW
from qmanifest.dialects.quanto_schemes import scheme_of as quanto_scheme
from qmanifest.dialects.quark_schemes import scheme_of as quark_scheme
from qmanifest.dtypes import FLOAT
from qmanifest.families import (
    BLOCK_FP8,
    BNB4,
    BNB8,
    EXL2,
    EXL3,
    GPT_OSS,
    GPTQ,
    HQQ,
    METAL,
    MISTRAL_FP8,
    OWN_FP8,
    PACKED,
    QUANTO,
    QUANTO_PACKED,
    SCALED,
    TORCHAO,
    PartNames,
)
from qmanifest.schemes import (
    Affine,
    Codebook,
    Dim,
    Integer,
    Opaque,
    OpaquePart,
    Scaled,
    Scheme,
    Zero,
)
from qmanifest.schemes.floats import E8M0, WIDE, fp8
from qmanifest.spreads import Spread
from qmanifest.tensors import TensorInfo

if TYPE_CHECKING:
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


def _codes(dtype: str, shape: Shape) -> TensorInfo:
    return TensorInfo("codes", dtype, shape, 0, 0, "")


@st.composite
def _gptq(draw: st.DrawFn) -> Drawn:
    bits = draw(st.sampled_from([2, 3, 4, 5, 6, 7, 8]))
    layouts = (PLANES,) if bits in PLANAR else ("gptq", "gptq_v2", PLANES)
    group, sym, act = draw(st.sampled_from(GROUPS)), *draw(_two)
    scheme = gptq_scheme(Numbers(bits, group, sym, act), draw(st.sampled_from(layouts)))
    return Drawn(scheme, GPTQ.names)


_two: Final = st.tuples(st.booleans(), st.booleans())


@st.composite
def _auto_round(draw: st.DrawFn) -> Drawn:
    packing = draw(
        st.sampled_from(["auto_round:auto_gptq", "auto_round", "auto_round:auto_awq"])
    )
    bits = draw(st.sampled_from([2, 4, 8] if "awq" not in packing else [4]))
    sym = draw(st.booleans()) and "awq" not in packing
    scheme = words(packing, bits, draw(st.sampled_from(GROUPS)), sym=sym)
    assert scheme is not None
    return Drawn(scheme, GPTQ.names)


_FP8_SHAPES: Final[tuple[Shape, ...]] = ((40, 100), (64, 128), (130, 200), (2, 64, 32))


@st.composite
def _fp8(draw: st.DrawFn) -> Drawn:
    family = draw(st.sampled_from([BLOCK_FP8, OWN_FP8, MISTRAL_FP8]))
    if draw(st.booleans()):
        scale = draw(st.sampled_from([(WIDE, "float"), (E8M0, "e8m0")]))
        sides = draw(st.sampled_from([(128, 128), (32, 64)]))
        return Drawn(fp8(Spread(*sides), *scale, ()), family.names, _FP8_SHAPES)
    form = draw(st.sampled_from(["one", "scalar"]))
    scheme = fp8(Spread(0, 0, "one" if form == "one" else "scalar"), extras=())
    return Drawn(scheme, family.names, _FP8_SHAPES[:3])


@st.composite
def _modelopt(draw: st.DrawFn) -> Drawn:
    algorithm = draw(st.sampled_from(sorted(ALGORITHMS)))
    spaced = ((1, 1, 1, 1),) if ALGORITHMS[algorithm] == "fp8-blocks" else ()
    first: Shape = draw(st.sampled_from([(), (1,), (2,), (2, 1), *spaced]))
    second, of_input = draw(st.tuples(_ONE, _ONE))
    nv = ALGORITHMS[algorithm] == "nvfp4"
    group = 16 if nv else draw(st.sampled_from([32, 64]))
    scheme = modelopt_scheme(algorithm, group, Scales(first, second, of_input))
    assert scheme is not None
    document = {
        "quant_algo": algorithm,
        "group_size": group,
        "exclude_modules": ["lm_head"],
    }
    return Drawn(scheme, SCALED.names, document=document)


_ONE: Final[st.SearchStrategy[Shape]] = st.sampled_from([(), (1,)])
"""Shapes that one number is stored in."""


@st.composite
def _bitsandbytes(draw: st.DrawFn) -> Drawn:
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


@st.composite
def _torchao(draw: st.DrawFn) -> Drawn:
    kind = draw(st.sampled_from(["i8", "fp8", "mxfp8", "mxfp4", "nvfp4"]))
    swizzled: Any = draw(st.sampled_from(["table", "swizzled"]))
    if kind == "i8":
        bits, group = draw(st.sampled_from([(8, 0), (4, 32), (4, 0), (8, 64)]))
        zero = draw(st.sampled_from([Zero("none"), Zero("code", ("I8",))]))
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
            *(draw(st.sampled_from(["none", "multiply"])), "BF16"),
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
    return Drawn(scheme, family.names, parameter=parameter)


@st.composite
def _hqq(draw: st.DrawFn) -> Drawn:
    own = {
        "nbits": draw(st.sampled_from([1, 2, 4, 8, 3])),
        "group_size": 64,
        "axis": draw(st.sampled_from([0, 1])),
    }
    # 3-bit codes lie ten to a word, so that rows of blocks are multiples of ten
    shapes: tuple[Shape, ...] = ((80, 64),) if own["nbits"] == 3 else SHAPES
    if own["nbits"] == 3 and own["axis"] == 0:
        own["group_size"] = 80
    return Drawn(hqq_scheme(own, _codes("U8", (8, 64)), None), HQQ.names, shapes)


@st.composite
def _quanto(draw: st.DrawFn) -> Drawn:
    kind = draw(st.sampled_from([each for each in KINDS if each != "none"]))
    zeros = draw(st.sampled_from([None, _codes("I8", (1,))]))
    scheme = quanto_scheme(kind, _codes("U8", (8, 128)) if kind in NARROW else None, zeros)
    assert scheme is not None
    family = QUANTO_PACKED if kind in NARROW else QUANTO
    return Drawn(scheme, family.names)


@st.composite
def _compressed_tensors(draw: st.DrawFn) -> Drawn:
    stored_as, said = draw(
        st.sampled_from(
            [
                ("pack-quantized", {"num_bits": 4, "group_size": 32}),
                ("pack-quantized", {"num_bits": 3, "strategy": "channel"}),
                ("pack-quantized", {"num_bits": 8, "group_size": 64}),
                (
                    "pack-quantized",
                    {"num_bits": 4, "group_size": 32, "symmetric": False},
                ),
                (
                    "pack-quantized",
                    {"num_bits": 4, "group_size": 32, "actorder": "group"},
                ),
                ("int-quantized", {"num_bits": 8, "strategy": "channel"}),
                ("int-quantized", {"num_bits": 8, "strategy": "tensor"}),
                (
                    "float-quantized",
                    {"num_bits": 8, "type": "float", "strategy": "channel"},
                ),
                (
                    "float-quantized",
                    {
                        "num_bits": 8,
                        "type": "float",
                        "strategy": "block",
                        "block_structure": [16, 32],
                    },
                ),
                (
                    "nvfp4-pack-quantized",
                    {
                        "num_bits": 4,
                        "type": "float",
                        "strategy": "tensor_group",
                        "group_size": 16,
                    },
                ),
                (
                    "mxfp4-pack-quantized",
                    {
                        "num_bits": 4,
                        "type": "float",
                        "group_size": 32,
                        "scale_dtype": "torch.uint8",
                    },
                ),
            ]
        )
    )
    args = QuantizationArgs(**{"strategy": "group", **said})
    stored = Stored(whole=False, scalar=False, dims=2, scalar_input=False)
    scheme = ct_scheme(args, stored_as, stored, ())
    assert scheme is not None
    family = PACKED if "pack" in stored_as else SCALED
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
def _quark(draw: st.DrawFn) -> Drawn:
    spec = draw(st.sampled_from(_QUARK))
    scheme = quark_scheme((spec,), None, None, in_order=draw(st.just(False)))
    document = {
        "quant_method": "quark",
        "global_quant_config": {"weight": spec},
        "exclude": ["lm_head"],
    }
    return Drawn(scheme, SCALED.names, document=document)


@st.composite
def _exl2(draw: st.DrawFn) -> Drawn:
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
def _exl3(draw: st.DrawFn) -> Drawn:
    tiles = (Dim("K", 16), Dim("N", 16), Dim("one", times=16 * draw(_exl3_bits)))
    parts = (
        OpaquePart("codes", ("I16",), tiles),
        OpaquePart("input_signs", ("F16",), (Dim("K"),)),
        OpaquePart("output_signs", ("F16",), (Dim("N"),)),
    )
    document = {"quant_method": "exl3", "bits": 4.5}
    return Drawn(Opaque("exl3", 0, 0, parts), EXL3.names, SHAPES, document)


_exl3_bits: Final = st.integers(2, 8)


DRAWN: Final[dict[str, st.SearchStrategy[Drawn]]] = {
    "metal": st.builds(
        lambda bits, group: Drawn(Affine(bits, group, FLOAT), METAL.names),
        st.sampled_from([2, 4, 8]),
        st.sampled_from([32, 64]),
    ),
    "gptq": _gptq(),
    "awq": st.builds(
        lambda make, group: Drawn(make(4, group), GPTQ.names),
        st.sampled_from([each for key, each in VERSIONS.items() if key != "marlin"]),
        st.sampled_from([32, 64]),
    ),
    "compressed-tensors": _compressed_tensors(),
    "fp8": _fp8(),
    "modelopt": _modelopt(),
    "mxfp4": st.just(
        Drawn(
            mxfp4.SCHEME,
            GPT_OSS.names,
            ((2, 8, 64), (3, 4, 32)),
            parameter="experts.gate_up_proj",
        )
    ),
    "bitsandbytes": _bitsandbytes(),
    "auto-round": _auto_round(),
    "torchao": _torchao(),
    "hqq": _hqq(),
    "quanto": _quanto(),
    "quark": _quark(),
    "exl2": _exl2(),
    "exl3": _exl3(),
}
