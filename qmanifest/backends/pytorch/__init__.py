"""The torch backend: weights, products, layers and whole models from stored parts.

Nothing here names a device: every operation runs where its tensors are, so a weight
moved with `.to("cuda")` is used by the same calls. The tests run on the CPU only.

What is rebuilt in the dtype of a weight's scales equals `qmanifest.backends.reference`
bit for bit when run eagerly. `torch.compile` may keep intermediate sums in float32 and
then rounds less often.
"""

from __future__ import annotations

from qmanifest.backends.base import MissingLibraryError

try:
    import torch as _torch  # noqa: F401 - only to say what is missing
except ImportError as error:
    raise MissingLibraryError(
        "the torch backend needs torch, which is not installed; "
        "install it with: pip install 'qmanifest[torch]'",
        name="torch",
    ) from error

from qmanifest.backends.pytorch.loading import load_into
from qmanifest.backends.pytorch.modules import QuantizedEmbedding, QuantizedLinear
from qmanifest.backends.pytorch.ops import dequantize, quantized_matmul
from qmanifest.backends.pytorch.quantizing import quantize
from qmanifest.backends.pytorch.report import LoadReport
from qmanifest.backends.pytorch.weight import (
    QuantizedWeight,
    load_weight,
    weight_from_parts,
)

__all__ = [
    "LoadReport",
    "QuantizedEmbedding",
    "QuantizedLinear",
    "QuantizedWeight",
    "dequantize",
    "load_into",
    "load_weight",
    "quantize",
    "quantized_matmul",
    "weight_from_parts",
]
