"""What stored tensors show by themselves: codes, companions, and whose format it is."""

from __future__ import annotations

import pytest
from support import memory

from qmanifest.evidence import COMPANIONS, MARKS, Evidence, stem

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

each_mark = pytest.mark.parametrize(
    ("suffix", "codes", "family"), MARKS, ids=[mark[0] for mark in MARKS]
)


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


def test_own_layout_is_no_family() -> None:
    assert evidence().family is None
    assert Evidence(memory.index({})).family is None


@pytest.mark.parametrize(
    ("suffix", "codes", "family"), MARKS, ids=[m[0] for m in MARKS]
)
def test_families_are_known_by_a_mark(suffix: str, codes: str, family: str) -> None:
    tensors = {f"layer.0{suffix}": ("F32", (4, 1))}
    tensors[f"layer.0{codes}"] = ("U8", (4, 4))
    found = Evidence(memory.index(tensors)).family
    assert found == (family, f"layer.0{suffix}")


@pytest.mark.parametrize(
    ("suffix", "codes", "family"), MARKS, ids=[m[0] for m in MARKS]
)
def test_plain_parameters_are_no_mark(suffix: str, codes: str, family: str) -> None:
    tensors = {f"layer.0{suffix}": ("F32", (4, 1)), f"layer.0{codes}": ("BF16", (4, 4))}
    assert Evidence(memory.index(tensors)).family is None, family


def test_stem() -> None:
    assert stem("a.b.weight") == "a.b"
    assert stem("a.b") == "a.b"
