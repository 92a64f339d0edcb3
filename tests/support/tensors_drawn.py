"""Tensors as any of the families calls them, right and wrong, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st
from support import compressed_tensors
from support.documents_base import STEMS, names
from support.lowering import index_of

from qmanifest.families import (
    AQLM,
    BLOCK_FP8,
    BNB4,
    BNB8,
    EXL2,
    EXL3,
    EXPERT_FP8,
    GEMMA,
    GEMMA_TABLE,
    GPT_OSS,
    GPTQ,
    HIGGS,
    HQQ,
    MARLIN,
    METAL,
    MISTRAL_FP8,
    MLX,
    OWN_FP8,
    PACKED,
    QUANTO,
    QUANTO_PACKED,
    SCALED,
    SPQR,
    TORCHAO,
    VPTQ,
    Family,
)
from qmanifest.tensors import Shape

if TYPE_CHECKING:
    from qmanifest.tensors import TensorIndex

Tensors = dict[str, tuple[str, Shape]]
OF_DIALECT: Final[dict[str, tuple[Family, ...]]] = {
    "metal": (METAL, MLX),
    "gptq": (GPTQ, MARLIN),
    "awq": (GPTQ,),
    "fp8": (BLOCK_FP8, OWN_FP8, MISTRAL_FP8, EXPERT_FP8, SCALED),
    "modelopt": (SCALED,),
    "mxfp4": (GPT_OSS,),
    "bitsandbytes": (BNB4, BNB8),
    "auto-round": (GPTQ, PACKED, SCALED, BLOCK_FP8),
    "torchao": TORCHAO,
    "hqq": (HQQ,),
    "quanto": (QUANTO, QUANTO_PACKED),
    "quark": (SCALED,),
    "exl2": (EXL2,),
    "exl3": (EXL3,),
    "gemma": (GEMMA, GEMMA_TABLE),
    "aqlm": (AQLM,),
    "vptq": (VPTQ,),
    "spqr": (SPQR,),
    "higgs": (HIGGS,),
    "bitnet": (SCALED,),
}
"""The families of the dialects whose tensors are drawn by family here."""
_SHAPES: Final[st.SearchStrategy[Shape]] = st.sampled_from(
    [
        *((8, 64), (8, 32), (8, 8), (8, 2), (8, 1), (64, 8), (2, 8), (1, 8), (64, 1)),
        *((), (1,), (2,), (8,), (64,), (0,), (0, 8), (2, 8, 32), (2, 1, 1), (8, 1, 2)),
        *((2, 8, 2, 16), (1, 1, 32, 4)),
    ]
)
_DTYPES: Final = st.sampled_from(
    ["F16", "BF16", "F32", "F8_E4M3", "F8_E8M0", "U8", "I8", "I16", "I32", "I64", "U32"]
)


@st.composite
def ours(draw: st.DrawFn) -> TensorIndex:
    """Draw tensors of some names, stored 16-bit or packed in any of MLX's ways."""
    tensors: Tensors = {}
    for name in draw(st.lists(names, max_size=8, unique=True)):
        stem, kind = name.removesuffix(".weight"), draw(st.integers(0, 5))
        tensors[name] = (("U32", "U8", "F16")[kind % 3], (4, 32))
        if kind < 2:
            tensors[f"{stem}.scales"] = ("F16", (4, 1))
            other = draw(st.sampled_from(["biases", "zeros", "global_scale"]))
            tensors[f"{stem}.{other}"] = (draw(st.sampled_from(["F16", "U8"])), (4, 1))
    return index_of(tensors)


@st.composite
def of_families(draw: st.DrawFn, *families: Family) -> TensorIndex:
    """Draw codes with any parts beside them, of any dtypes and shapes."""
    tensors: Tensors = {}
    for stem in draw(st.lists(st.sampled_from(STEMS), max_size=3, unique=True)):
        name = f"{stem}.weight"
        if draw(st.integers(0, 5)) == 0:
            tensors[name] = ("BF16", (8, 64))
            continue
        family = draw(st.sampled_from(families))
        if draw(st.integers(0, 9)):
            dtypes = st.sampled_from(family.dtypes) | _DTYPES
            tensors[family.names.name(name, "codes")] = (draw(dtypes), draw(_SHAPES))
        roles = [role for role, _ in family.names.suffixes if role != "codes"]
        for role in draw(st.lists(st.sampled_from(roles), max_size=4, unique=True)):
            part = family.names.name(name, role)
            tensors[part] = (draw(_DTYPES), draw(_SHAPES))
    return index_of(tensors)


def indexes(dialect: str) -> st.SearchStrategy[TensorIndex]:
    """Draw tensors that a dialect's documents may lie beside."""
    if dialect == "compressed-tensors":
        return compressed_tensors.indexes()
    return of_families(*OF_DIALECT[dialect]) if dialect in OF_DIALECT else ours()
