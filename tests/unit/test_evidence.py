"""What stored tensors show by themselves: codes, companions, and whose format it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import memory

from qmanifest.evidence import COMPANIONS, Evidence, stem
from qmanifest.families import BNB4, FAMILIES, GPTQ, Family

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

TENSORS = {
    "a.weight": ("U32", (4, 8)),
    "a.scales": ("F16", (4, 1)),
    "a.biases": ("F16", (4, 1)),
    "a.bias": ("F16", (4,)),
    "bytes.weight": ("U8", (4, 32)),
    "bytes.scales": ("F16", (4, 1)),
    "bytes.zeros": ("U8", (4, 1)),
    "experts.up": ("U32", (2, 4, 8)),
    "experts.up.scales": ("U8", (2, 4, 2)),
    "experts.up.global_scale": ("F32", (2,)),
    "bare.weight": ("U32", (4, 8)),
    "signed.weight": ("I32", (4, 8)),
    "signed.scales": ("F16", (4, 1)),
    "mask.weight": ("U8", (4, 4)),
    "ids": ("U32", (4, 4)),
    "counter.weight": ("U32", (4,)),
    "norm.weight": ("F16", (64,)),
    "dense.weight": ("BF16", (4, 64)),
    "alone.scales": ("F16", (4, 1)),
}

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.id)


def evidence() -> Evidence:
    return Evidence(memory.index(TENSORS))


def test_packed() -> None:
    assert evidence().packed == {
        "a.weight",
        "bytes.weight",
        "experts.up",
        "bare.weight",
        "signed.weight",
    }


def test_companions_serve_a_weight() -> None:
    assert set(filter(evidence().is_companion, TENSORS)) == {
        name for name in TENSORS if name.endswith(COMPANIONS) and "alone" not in name
    }


def test_logical_names_are_the_rest_in_order() -> None:
    shown = evidence()
    rest = [name for name in TENSORS if not shown.is_companion(name)]
    assert list(shown.logical) == rest
    assert "a.bias" in shown.logical
    assert "alone.scales" in shown.logical


def test_vectors_are_lengths() -> None:
    assert evidence().vectors == {4, 64, 2}


def test_the_first_weight_tells_the_family() -> None:
    assert evidence().family == ("MLX", "a.weight")
    assert Evidence(memory.index({})).family is None


@each_family
def test_families_are_known_by_their_parts(family: Family) -> None:
    weight, codes = f"layer.0{family.names.stem_suffix}", f"layer.0{family.codes}"
    if codes == "layer.0":
        codes = weight
    tensors = {codes: (family.dtypes[0], (4, 4))}
    for role in family.marks[:1]:
        tensors[family.names.name(weight, role)] = ("U8", (4, 2))
    shown = Evidence(memory.index(tensors))
    assert shown.family == (family.title, codes)
    assert shown.packed == {weight}
    assert set(shown.logical) == {weight}
    assert shown.names_of(family) == (weight,)


@each_family
def test_without_its_marks_it_is_no_family(family: Family) -> None:
    shown = Evidence(memory.index({f"layer.0{family.codes}x": ("I64", (4, 4))}))
    assert shown.family is None


@pytest.mark.parametrize("suffix", [".weight", "_blocks", ".trellis"])
def test_plain_floats_are_no_codes(suffix: str) -> None:
    tensors = {f"layer.0{suffix}": ("BF16", (4, 4)), "layer.0_scales": ("F16", (4,))}
    assert Evidence(memory.index(tensors)).family is None


def test_codes_of_a_dtype_that_none_have_are_known_by_their_name() -> None:
    tensors = {"a.qweight": ("F32", (4, 4)), "a.scales": ("F16", (4, 1))}
    assert Evidence(memory.index(tensors)).names_of(GPTQ) == ("a.weight",)


@pytest.mark.parametrize(
    ("dtype", "shape", "lost"),
    [
        ("I64", (4, 4), {"a.weight"}),
        ("BF16", (16,), {"a.weight"}),
        ("BF16", (4, 4), set()),
        ("F8_E4M3", (4, 4), set()),
    ],
)
def test_codes_that_are_none_leave_their_scales_bereft(
    dtype: str, shape: Shape, lost: set[str]
) -> None:
    tensors = {"a.weight": (dtype, shape), "a.weight_scale_inv": ("F32", (1, 1))}
    assert Evidence(memory.index(tensors)).bereft.keys() == lost


def test_bytes_viewed_as_floats_are_codes_beside_their_absmax() -> None:
    tensors = {"a.weight": ("BF16", (64, 1)), "a.weight.absmax": ("F32", (4,))}
    assert Evidence(memory.index(tensors)).names_of(BNB4) == ("a.weight",)


def test_stem() -> None:
    assert stem("a.b.weight") == "a.b"
    assert stem("a.b") == "a.b"
