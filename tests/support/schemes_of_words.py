"""Weights of GPTQ, AWQ, FP8 and their kin, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st
from support.scheme import GROUPS, Drawn

from qmanifest.dialects.auto_round.schemes import words
from qmanifest.dialects.compressed_tensors.args import QuantizationArgs
from qmanifest.dialects.compressed_tensors.schemes import Stored
from qmanifest.dialects.compressed_tensors.schemes import scheme_of as ct_scheme
from qmanifest.dialects.gptq.schemes import PLANAR, PLANES, Numbers
from qmanifest.dialects.gptq.schemes import scheme_of as gptq_scheme
from qmanifest.dialects.modelopt.schemes import ALGORITHMS, Scales
from qmanifest.dialects.modelopt.schemes import scheme_of as modelopt_scheme
from qmanifest.families import (
    BLOCK_FP8,
    GPTQ,
    MISTRAL_FP8,
    OWN_FP8,
    PACKED,
    SCALED,
)
from qmanifest.schemes.floats import E8M0, WIDE, fp8
from qmanifest.spreads import Spread

if TYPE_CHECKING:
    from qmanifest.tensors import Shape


@st.composite
def gptq_weights(draw: st.DrawFn) -> Drawn:
    bits = draw(st.sampled_from([2, 3, 4, 5, 6, 7, 8]))
    layouts = (PLANES,) if bits in PLANAR else ("gptq", "gptq_v2", PLANES)
    group, sym, act = draw(st.sampled_from(GROUPS)), *draw(_two)
    scheme = gptq_scheme(Numbers(bits, group, sym, act), draw(st.sampled_from(layouts)))
    return Drawn(scheme, GPTQ.names)


_two: Final = st.tuples(st.booleans(), st.booleans())


@st.composite
def auto_round_weights(draw: st.DrawFn) -> Drawn:
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
def fp8_weights(draw: st.DrawFn) -> Drawn:
    family = draw(st.sampled_from([BLOCK_FP8, OWN_FP8, MISTRAL_FP8]))
    if draw(st.booleans()):
        scale = draw(st.sampled_from([(WIDE, "float"), (E8M0, "e8m0")]))
        sides = draw(st.sampled_from([(128, 128), (32, 64)]))
        return Drawn(fp8(Spread(*sides), *scale, ()), family.names, _FP8_SHAPES)
    form = draw(st.sampled_from(["one", "scalar"]))
    scheme = fp8(Spread(0, 0, "one" if form == "one" else "scalar"), WIDE, "float", ())
    return Drawn(scheme, family.names, _FP8_SHAPES[:3])


@st.composite
def modelopt_weights(draw: st.DrawFn) -> Drawn:
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


_FLOAT4: Final = {"num_bits": 4, "type": "float"}
_FLOAT8: Final = {"num_bits": 8, "type": "float"}
_GROUPED: Final = {"num_bits": 4, "group_size": 32}
_CT: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("pack-quantized", _GROUPED),
    ("pack-quantized", {"num_bits": 3, "strategy": "channel"}),
    ("pack-quantized", {"num_bits": 8, "group_size": 64}),
    ("pack-quantized", {**_GROUPED, "symmetric": False}),
    ("pack-quantized", {**_GROUPED, "actorder": "group"}),
    ("int-quantized", {"num_bits": 8, "strategy": "channel"}),
    ("int-quantized", {"num_bits": 8, "strategy": "tensor"}),
    ("float-quantized", {**_FLOAT8, "strategy": "channel"}),
    ("float-quantized", {**_FLOAT8, "strategy": "block", "block_structure": [16, 32]}),
    (
        "nvfp4-pack-quantized",
        {**_FLOAT4, "strategy": "tensor_group", "group_size": 16},
    ),
    (
        "mxfp4-pack-quantized",
        {**_FLOAT4, "group_size": 32, "scale_dtype": "torch.uint8"},
    ),
)
"""Formats of compressed-tensors, and arguments of weights."""


@st.composite
def compressed_tensors_weights(draw: st.DrawFn) -> Drawn:
    stored_as, said = draw(st.sampled_from(_CT))
    args = QuantizationArgs.model_validate({"strategy": "group", **said})
    stored = Stored(whole=False, scalar=False, dims=2, scalar_input=False)
    scheme = ct_scheme(args, stored_as, stored, ())
    assert scheme is not None
    family = PACKED if "pack" in stored_as else SCALED
    return Drawn(scheme, family.names)
