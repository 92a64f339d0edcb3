"""gguf itself: the number tables that it shares with other formats."""

from __future__ import annotations

import numpy as np
from support.owners import owner

from qmanifest.elements import ELEMENTS

constants = owner("gguf.constants")
quants = owner("gguf.quants")
KINDS = constants.GGMLQuantizationType


def values(element: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(ELEMENTS[element].values, np.float32)


def test_e2m1_and_e8m0() -> None:
    scales = np.arange(255, dtype=np.uint8)  # 255 is NaN to OCP, and a number to gguf
    codes = np.tile(np.arange(16, dtype=np.uint8), (255, 2))
    octets = codes[:, :16] | codes[:, 16:] << 4
    blocks = np.concatenate([scales[:, None], octets], axis=1)
    with np.errstate(over="ignore"):
        theirs = quants.dequantize(blocks, KINDS.MXFP4)
        ours = values("e2m1")[codes] * values("e8m0")[scales][:, None]
    np.testing.assert_array_equal(theirs, ours)


def test_int8() -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(8, 32)
    scale = np.array([0.5], "<f2").view(np.uint8)
    blocks = np.concatenate([np.tile(scale, (8, 1)), codes], axis=1)
    theirs = quants.dequantize(blocks, KINDS.Q8_0)
    np.testing.assert_array_equal(theirs, values("i8")[codes] / 2)
