"""The exact numpy reference: what the stored numbers of every scheme stand for.

It is written to be read and it is what every other backend is judged by. For affine
and microscaling weights it gives, bit for bit, what `mx.dequantize` gives on the CPU;
for other schemes, what the library gives that writes the format, wherever that has been
measured (`tests/golden`).

To add a scheme, write a decoder as those of `groups`, `integers`, `scaled` or
`codebook`, and a branch in `weights`.
"""

from __future__ import annotations

from qmanifest.backends.reference.groups import (
    dequantize_affine,
    dequantize_microscaling,
    dequantize_zero_point,
)
from qmanifest.backends.reference.products import matmul
from qmanifest.backends.reference.weights import decoder, dequantize

__all__ = [
    "decoder",
    "dequantize",
    "dequantize_affine",
    "dequantize_microscaling",
    "dequantize_zero_point",
    "matmul",
]
