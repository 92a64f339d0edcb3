"""Laws of schemes and layouts: shapes by arithmetic, and one line for each scheme."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from qmanifest.dtypes import DTYPES, FLOAT, FLOAT16
from qmanifest.errors import LayoutError
from qmanifest.layouts import ROWS, RowLayout
from qmanifest.schemes import Affine, Microscaling, Scheme, ZeroPoint
from qmanifest.testing.strategies import shapes

layouts = st.sampled_from(sorted(ROWS))
dtypes = st.sampled_from([("F16",), FLOAT16, FLOAT])
widths, groups = st.integers(1, 8), st.sampled_from([16, 32, 64, 128])
schemes: st.SearchStrategy[Scheme] = (
    st.builds(Affine, widths, groups, dtypes, layouts)
    | st.builds(ZeroPoint, widths, groups, dtypes, dtypes | st.just(("U8",)), layouts)
    | st.builds(
        Microscaling,
        st.sampled_from(["e2m1", "e4m3"]),
        groups,
        st.sampled_from(["e8m0", "e4m3"]),
        layouts,
        st.sampled_from(["none", "amax"]),
    )
)


@given(one=schemes, two=schemes)
def test_schemes_are_equal_just_where_their_lines_are(one: Scheme, two: Scheme) -> None:
    assert (str(one) == str(two)) == (one == two)
    assert "\n" not in str(one)


@given(
    layout=st.sampled_from(sorted(ROWS.values(), key=lambda each: each.id)),
    shape=shapes(max_side=70),
    bits=st.integers(0, 9),
)
def test_words_hold_just_the_bits_of_the_codes(
    layout: RowLayout, shape: tuple[int, ...], bits: int
) -> None:
    fits = bits in layout.bits and len(shape) > 0
    if fits and layout.straddles and not layout.padded:
        fits = not shape[-1] % layout.unit and not shape[-1] * bits % layout.word_bits
    try:
        packed = layout.packed_shape(shape, bits)
    except LayoutError:
        assert not fits
        return
    assert fits
    assert packed[:-1] == shape[:-1]
    assert DTYPES[layout.word_dtype].bits == layout.word_bits
    held = layout.codes_per_row(packed[-1], bits)
    assert 0 <= held - shape[-1] < layout.word_bits // bits + 1
    assert layout.logical_shape(packed, bits) == (*shape[:-1], held)
    if not layout.padded and layout.straddles:
        assert prod(packed) * layout.word_bits == prod(shape) * bits
        assert held == shape[-1]


@given(
    scheme=schemes,
    rows=st.integers(0, 5),
    groups_in_row=st.integers(0, 5),
    data=st.data(),
)
def test_every_group_has_its_numbers(
    scheme: Scheme, rows: int, groups_in_row: int, data: st.DataObject
) -> None:
    experts = data.draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    shape = (*experts, rows, groups_in_row * scheme.group_size)
    for role, _, part in scheme.parts(shape):
        if role in {"scales", "biases", "zeros"}:
            assert part == (*experts, rows, groups_in_row)
        if role == "global_scale":
            assert part == (experts or (1,))
        if role == "codes" and part is not None:
            stored = prod(part) * ROWS[scheme.pack].word_bits
            assert stored >= prod(shape) * scheme.bits


@given(scheme=schemes, width=st.integers(1, 300))
def test_the_last_group_may_be_short(scheme: Scheme, width: int) -> None:
    sizes = {role: part for role, _, part in scheme.parts((2, width))}
    assert sizes["scales"] is not None
    covered = sizes["scales"][-1] * scheme.group_size
    assert covered - scheme.group_size < width <= covered
