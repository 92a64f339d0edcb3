"""The libraries that write formats, imported without their noise.

They are development dependencies with pinned versions. Where one is not installed, the
tests with it are skipped; the golden vectors remain.
"""

from __future__ import annotations

import importlib
import logging
import warnings
from typing import Any, Final

import pytest
import torch

from qmanifest.packings.arrays import Stored, storage_dtype

DTYPES: Final = {
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e8m0fnu: "F8_E8M0",
}


def owner(module: str) -> Any:  # noqa: ANN401 - a library
    """Import a module of a library, or skip."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(module.partition(".")[0])
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            return importlib.import_module(module)
        finally:
            logging.disable(before)


def stored(tensor: torch.Tensor) -> Stored:
    """View a tensor as a file would hold it."""
    dtype = DTYPES[tensor.dtype]
    octets = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    return Stored(dtype, octets.view(storage_dtype(dtype)).reshape(tensor.shape))
