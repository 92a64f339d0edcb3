"""Schemes: the canonical line, and the parts that each takes."""

from __future__ import annotations

import pytest

from qmanifest.dtypes import FLOAT16
from qmanifest.schemes import Affine, Microscaling, Scheme, ZeroPoint
from qmanifest.tensors import Shape

Part = tuple[str, tuple[str, ...], Shape | None]


@pytest.mark.parametrize(
    ("scheme", "line"),
    [
        (
            Affine(4, 64, ("F16",), "u32-lsb"),
            "affine(bits=4, group=64, scale=F16, pack=u32-lsb)",
        ),
        (
            Affine(3, 32, FLOAT16, "u8-nibbles"),
            "affine(bits=3, group=32, scale=F16|BF16, pack=u8-nibbles)",
        ),
        (
            ZeroPoint(4, 64, FLOAT16, ("U8",), "u32-lsb"),
            "zero-point(bits=4, group=64, scale=F16|BF16, zero=U8, pack=u32-lsb)",
        ),
        (
            Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
            "microscaling(element=e2m1, group=32, scale=e8m0, pack=u32-lsb)",
        ),
        (
            Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb"),
            (
                "microscaling(element=e2m1, group=16, scale=e4m3, pack=u32-lsb, "
                "global=amax)"
            ),
        ),
    ],
)
def test_canonical_line(scheme: Scheme, line: str) -> None:
    assert str(scheme) == line


@pytest.mark.parametrize(
    ("scheme", "shape", "parts"),
    [
        (
            Affine(4, 64, ("F16",), "u32-lsb"),
            (3, 128),
            (
                ("codes", ("U32",), (3, 16)),
                ("scales", ("F16",), (3, 2)),
                ("biases", ("F16",), (3, 2)),
            ),
        ),
        (
            Affine(3, 32, ("F16",), "u32-lsb"),
            (2, 5, 96),
            (
                ("codes", ("U32",), (2, 5, 9)),
                ("scales", ("F16",), (2, 5, 3)),
                ("biases", ("F16",), (2, 5, 3)),
            ),
        ),
        (
            ZeroPoint(4, 64, ("F16",), ("U8",), "u8-nibbles"),
            (3, 128),
            (
                ("codes", ("U8",), (3, 64)),
                ("scales", ("F16",), (3, 2)),
                ("zeros", ("U8",), (3, 2)),
            ),
        ),
        (
            Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
            (3, 64),
            (("codes", ("U32",), (3, 16)), ("scales", ("U8",), (3, 2))),
        ),
        (
            Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb"),
            (7, 3, 64),
            (
                ("codes", ("U32",), (7, 3, 8)),
                ("scales", ("U8",), (7, 3, 4)),
                ("global_scale", ("F32",), (7,)),
            ),
        ),
        (
            Microscaling("e2m1", 16, "e4m3", global_scale="amax", pack="u32-lsb"),
            (3, 64),
            (
                ("codes", ("U32",), (3, 8)),
                ("scales", ("U8",), (3, 4)),
                ("global_scale", ("F32",), (1,)),
            ),
        ),
    ],
    ids=str,
)
def test_parts(scheme: Scheme, shape: Shape, parts: tuple[Part, ...]) -> None:
    assert scheme.parts(shape) == parts
    unknown = tuple((role, dtypes, None) for role, dtypes, _ in parts)
    assert scheme.parts(None) == unknown


def test_a_row_that_fills_no_whole_words_has_no_packed_shape() -> None:
    found = Affine(4, 64, ("F16",), "u32-lsb").parts((2, 65))
    parts = {role: shape for role, _, shape in found}
    assert parts == {"codes": None, "scales": (2, 2), "biases": (2, 2)}
    assert Affine(8, 64, ("F16",), "u8-nibbles").parts((2, 64))[0][2] is None


@pytest.mark.parametrize(("element", "bits"), [("e2m1", 4), ("e4m3", 8)])
def test_bits_of_small_floats(element: str, bits: int) -> None:
    assert Microscaling(element, 32, "e8m0", "u32-lsb", "none").bits == bits


def test_equal_schemes_are_equal() -> None:
    assert Affine(4, 64, FLOAT16, "u32-lsb") == Affine(4, 64, FLOAT16, "u32-lsb")
    assert Affine(4, 64, FLOAT16, "u32-lsb") != Affine(4, 64, ("F16",), "u32-lsb")
    assert (
        len({Affine(4, 64, FLOAT16, "u32-lsb"), Affine(4, 64, FLOAT16, "u32-lsb")}) == 1
    )
