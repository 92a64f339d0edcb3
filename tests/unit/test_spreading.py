"""Spreads: which number each weight has, found one weight at a time."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.spreads import Place, place

from qmanifest.errors import PackingError
from qmanifest.packings.spreading import blocks
from qmanifest.spreads import Form, Spread

CASES = {
    "table": (Spread(1, 16), (5, 40)),
    "table of blocks": (Spread(4, 16), (10, 40)),
    "table, rows alone": (Spread(1, 0), (5, 40)),
    "table, columns alone": (Spread(0, 8), (5, 40)),
    "table of experts": (Spread(4, 16), (3, 10, 40)),
    "transposed": (Spread(1, 16, "transposed"), (5, 40)),
    "transposed experts": (Spread(2, 16, "transposed"), (2, 2, 5, 40)),
    "spaced": (Spread(2, 16, "spaced"), (5, 40)),
    "vector": (Spread(1, 0, "vector"), (5, 40)),
    "vector of blocks": (Spread(2, 0, "vector"), (2, 5, 40)),
    "one": (Spread(0, 0, "one"), (5, 40)),
    "scalar": (Spread(0, 0, "scalar"), (2, 5, 40)),
    "flat": (Spread(0, 64, "flat"), (5, 40)),
    "flat, ragged": (Spread(0, 64, "flat"), (2, 5, 7)),
    "flat-column": (Spread(0, 50, "flat-column"), (5, 40)),
    "flat-row": (Spread(0, 50, "flat-row"), (5, 40)),
    "awq-rows": (Spread(1, 32, "awq-rows"), (8, 96)),
    "awq-rows, by 64": (Spread(1, 64, "awq-rows"), (8, 192)),
    "awq-columns": (Spread(1, 128, "awq-columns"), (8, 256)),
    "swizzled": (Spread(1, 16, "swizzled"), (130, 80)),
    "swizzled experts": (Spread(1, 32, "swizzled"), (2, 5, 64)),
}


@pytest.mark.parametrize(("spread", "shape"), CASES.values(), ids=CASES)
def test_every_weight_has_its_number(spread: Spread, shape: Place) -> None:
    stored = spread.shape(shape)
    numbers = np.arange(math.prod(stored), dtype=np.float32).reshape(stored)
    expected = np.empty(shape, np.float32)
    for at in product(*map(range, shape)):
        expected[at] = numbers[place(numbers, spread, shape, at)]
    found, rows = blocks(numbers, spread, shape), math.prod(shape[:-1])
    table = expected.reshape(rows, shape[-1])
    for start, stop in ((0, rows), (0, 1), (rows // 2, rows), (1, min(3, rows))):
        some = found.of_rows(slice(start, stop))
        np.testing.assert_array_equal(
            np.broadcast_to(some, (stop - start, shape[-1])), table[start:stop]
        )


@settings(deadline=None)
@given(
    form=st.sampled_from(["table", "transposed", "swizzled"]),
    sides=st.tuples(st.integers(0, 5), st.integers(0, 20)),
    shape=st.lists(st.integers(1, 24), min_size=2, max_size=3).map(tuple),
)
def test_any_blocks(form: Form, sides: tuple[int, int], shape: Place) -> None:
    test_every_weight_has_its_number(Spread(*sides, form), shape)


def test_a_vector_of_weights_is_one_row() -> None:
    numbers = np.array([1, 2, 3], np.float32)
    found = blocks(numbers, Spread(1, 2), (5,)).of_rows(slice(0, 1))
    np.testing.assert_array_equal(found, [[1, 1, 2, 2, 3]])


def test_listed_groups() -> None:
    numbers = np.array([[1, 2], [3, 4]], np.float32)
    groups = np.array([1, 0, 1, 1])
    found = blocks(numbers, Spread(1, 2), (2, 4)).of_rows(slice(0, 2), groups)
    np.testing.assert_array_equal(found, [[2, 1, 2, 2], [4, 3, 4, 4]])


@pytest.mark.parametrize("shape", [(4, 16), (8,), (2, 0), (-1, 8), ()])
def test_numbers_of_another_weight(shape: Place) -> None:
    with pytest.raises(PackingError):
        blocks(np.zeros((2, 2), np.float32), Spread(1, 4), shape)


@pytest.mark.parametrize(
    ("spread", "table"),
    [
        (Spread(1, 64), (48, 128)),
        (Spread(0, 64, "flat"), (48, 128)),
        (Spread(0, 64, "flat-column"), (96, 64)),
        (Spread(0, 64, "flat-row"), (64, 96)),
        (Spread(0, 0, "flat-column"), (1, 6144)),
    ],
)
def test_tables_of_codes(spread: Spread, table: Place) -> None:
    assert spread.table((48, 128)) == table
