"""Number formats: every code's value, against hand-made numbers and torch."""

from __future__ import annotations

import math

import pytest

from qmanifest.elements import (
    E2M1,
    E2M3,
    E4M3,
    E5M2,
    E8M0,
    ELEMENTS,
    FP4,
    I8,
    NF4,
    Element,
)


@pytest.mark.parametrize("element", ELEMENTS.values(), ids=ELEMENTS)
def test_every_code_has_a_value(element: Element) -> None:
    assert len(element.values) == 1 << element.bits


def test_e2m1() -> None:
    assert E2M1.values[:8] == (0, 0.5, 1, 1.5, 2, 3, 4, 6)
    assert E2M1.values[9:] == (-0.5, -1, -1.5, -2, -3, -4, -6)
    assert math.copysign(1, E2M1.values[8]) == -1
    assert E2M1.nan_codes == ()


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (0x00, 0.0),
        (0x01, 2**-9),
        (0x07, 7 * 2**-9),
        (0x08, 2**-6),
        (0x38, 1.0),
        (0x3C, 1.5),
        (0x7E, 448.0),
        (0x81, -(2**-9)),
        (0xFE, -448.0),
    ],
)
def test_e4m3(code: int, value: float) -> None:
    assert E4M3.values[code] == value


def test_e4m3_has_two_nans_and_no_infinity() -> None:
    assert E4M3.nan_codes == (0x7F, 0xFF)
    assert not any(map(math.isinf, E4M3.values))


def test_e8m0() -> None:
    assert (E8M0.values[0], E8M0.values[127], E8M0.values[254]) == (2**-127, 1, 2**127)
    assert E8M0.nan_codes == (255,)


def test_e2m3() -> None:
    assert E2M3.values[:8] == tuple(code / 8 for code in range(8))
    assert (E2M3.values[8], E2M3.values[16], E2M3.values[31]) == (1, 2, 7.5)
    assert E2M3.values[32:] == tuple(-value for value in E2M3.values[:32])
    assert E2M3.nan_codes == ()


def test_e5m2() -> None:
    assert (E5M2.values[1], E5M2.values[3], E5M2.values[4]) == (
        2**-16,
        3 * 2**-16,
        2**-14,
    )
    assert (E5M2.values[0x3C], E5M2.values[0x7B]) == (1, 57344)
    assert (E5M2.values[0x7C], E5M2.values[0xFC]) == (math.inf, -math.inf)
    assert E5M2.nan_codes == (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF)


def test_i8() -> None:
    assert (I8.values[0], I8.values[127], I8.values[128], I8.values[255]) == (
        *(0, 127),
        *(-128, -1),
    )


def test_tables_of_bitsandbytes() -> None:
    assert NF4.values == tuple(sorted(NF4.values))
    assert (NF4.values[0], NF4.values[7], NF4.values[15]) == (-1, 0, 1)
    assert [12 * value for value in FP4.values[:8]] == [0, 0.0625, 8, 12, 4, 6, 2, 3]
    assert math.copysign(1, FP4.values[8]) == 1
    assert FP4.values[9:] == tuple(-value for value in FP4.values[1:8])


def test_torch_agrees() -> None:
    torch = pytest.importorskip("torch")
    codes = torch.arange(256, dtype=torch.uint8)
    peers = {"float8_e4m3fn": E4M3, "float8_e5m2": E5M2, "float8_e8m0fnu": E8M0}
    for dtype, element in peers.items():
        theirs = codes.view(getattr(torch, dtype)).to(torch.float64).tolist()
        for ours, peer in zip(element.values, theirs, strict=True):
            assert ours == peer or (math.isnan(ours) and math.isnan(peer))
