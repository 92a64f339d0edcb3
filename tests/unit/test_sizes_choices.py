"""What a promise leaves open: counted in one way that is said, or as it is stored."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from qmanifest.dtypes import nbytes
from qmanifest.families import BNB4, EXL3, GPTQ, SCALED
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.schemes import Codebook, Dim, Opaque, OpaquePart, Scheme
from qmanifest.schemes.floats import fp8_whole
from qmanifest.schemes.qweight import gptq
from qmanifest.sizes import Sizes, sizes_of, stored_sizes
from qmanifest.tensors import TensorIndex, TensorInfo

if TYPE_CHECKING:
    from qmanifest.families import Family
    from qmanifest.tensors import Shape

N, K = 64, 256
NF4 = Codebook("nf4", 64, 0, "u8-flat-high")
ONE = (Dim("N"), Dim("K", 16))
TOLD = Opaque("told", 0, 0, (OpaquePart("codes", ("I16",), ONE),))
UNTOLD = Opaque("untold", 4, 0, (OpaquePart("codes", ("I16",), None),))


def index_of(**parts: tuple[str, Shape]) -> TensorIndex:
    return TensorIndex(
        TensorInfo(name, dtype, shape, 0, nbytes(dtype, shape), "m")
        for name, (dtype, shape) in parts.items()
    )


def promised(scheme: Scheme, family: Family, there: TensorIndex | None = None) -> Sizes:
    weight = Weight("a.weight", scheme, "", names=family.names)
    manifest = Manifest("test", components=(Component("", (weight,)),))
    shapes = {"": {"a.weight": ("BF16", (N, K))}}
    return sizes_of(manifest, shapes, stored=None if there is None else {"": there})


def test_optional_parts_are_counted_and_said() -> None:
    sizes = promised(gptq(4, 128, plus=1), GPTQ)
    assert sizes.codes == N * K // 2
    assert {row.role for row in sizes.rows} == {"codes", "scales", "zeros", "g_idx"}
    assert sizes.assumed[-1] == (
        "Counted with parts that readers do without: 1 quantized weight ('a.weight')"
    )


@pytest.mark.parametrize("listed", [True, False])
def test_optional_parts_count_where_they_are_stored(listed: bool) -> None:  # noqa: FBT001 - a case
    parts: dict[str, tuple[str, Shape]] = {
        "a.qweight": ("I32", (K // 8, N)),
        "a.qzeros": ("I32", (2, N // 8)),
        "a.scales": ("F32", (2, N)),
    }
    there = index_of(**parts, **({"a.g_idx": ("I32", (K,))} if listed else {}))
    sizes = promised(gptq(4, 128, plus=1), GPTQ, there)
    assert sizes.total == sum(tensor.nbytes for tensor in there.values())
    assert {row.dtype for row in sizes.rows} == {"I32", "F32"}
    assert sizes.assumed == ()


def test_a_dtype_that_breaks_the_promise_does_not_count() -> None:
    there = index_of(**{"a.weight": ("F8_E4M3", (N, K)), "a.weight_scale": ("U8", ())})
    sizes = promised(fp8_whole("scalar"), SCALED, there)
    assert [row.dtype for row in sizes.rows] == ["F8_E4M3", "F32"]
    assert "several dtypes of different widths" in sizes.assumed[0]


def test_parts_of_no_fixed_length() -> None:
    sizes = promised(NF4, BNB4)
    assert (sizes.codes, sizes.scales, sizes.other) == (N * K // 2, N * K // 16, 64)
    assert sizes.unknown == (
        "Not counted is a part of no fixed length: 1 quantized weight ('a.weight')",
    )
    state = "a.weight.quant_state.bitsandbytes__nf4"
    assert promised(NF4, BNB4, index_of(**{state: ("U8", (79,))})).other == 64 + 79
    assert promised(NF4, BNB4, index_of(**{state: ("U8", (79,))})).unknown == ()


def test_formats_that_only_their_tensors_tell() -> None:
    sizes = promised(UNTOLD, EXL3)
    assert sizes.rows == ()
    assert "nothing tells in what shape it is stored" in sizes.unknown[0]
    there = index_of(**{"a.trellis": ("I16", (4, 16, 64))})
    assert promised(UNTOLD, EXL3, there).codes == 8192


def test_parameters_count_where_a_shape_shows_and_no_width() -> None:
    component = Component("", (Weight("a.weight", TOLD, "", names=EXL3.names),))
    sizes = stored_sizes(index_of(**{"a.trellis": ("I16", (N, K // 16))}), component)
    assert sizes.parameters == N * K
    assert sizes.bits_per_weight == Fraction(1)
    assert sizes.unknown == ()


def test_padding_is_no_parameter_where_the_shape_is_known() -> None:
    weight = Weight("a.weight", gptq(3, 0, plus=1), "", names=GPTQ.names)
    component = Component("", (weight,))
    index = index_of(**{"a.qweight": ("I32", (7, N))})
    assert stored_sizes(index, component).parameters == 74 * N
    known = stored_sizes(index, component, {"a.weight": (N, 70)})
    assert known.parameters == 70 * N
