"""Rebuilding weights that do not come row by row: through the reference, on the CPU.

Correct for every scheme that the reference knows, on every device, and not fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

from qmanifest.backends import reference
from qmanifest.backends.pytorch.weight import SIGNED
from qmanifest.dtypes import DTYPES, FLOAT
from qmanifest.errors import BackendError
from qmanifest.packings.arrays import Stored, storage_dtype

if TYPE_CHECKING:
    from torch import Tensor

    from qmanifest.backends.pytorch.weight import QuantizedWeight

_TORCH: Final = {
    code: f"int{row.bits}" if code in SIGNED else row.torch
    for code, row in DTYPES.items()
}
"""The name of the torch dtype that holds a stored dtype."""


def rebuild_whole(weight: QuantizedWeight) -> Tensor:
    """Rebuild a weight as the reference does.

    Returns:
        float32 of `weight.shape`, on the weight's device.

    Raises:
        BackendError: the parts are none of such a weight.
        PackingError: codes or numbers are none of those that the scheme can have.

    """
    promised = {role: dtypes for role, dtypes, _ in weight.scheme.parts(None)}
    parts = {
        role: stored_of(part, promised[role])
        for role, part in weight.parts.items()
        if role in promised
    }
    made = reference.dequantize(weight.scheme, parts, weight.shape)
    return torch.from_numpy(made).to(weight.device)


def stored_of(tensor: Tensor, dtypes: tuple[str, ...]) -> Stored:
    """Copy a tensor to numpy, as the first of some stored dtypes that it can be.

    Raises:
        BackendError: it can be none of them, and is no float.

    """
    name = str(tensor.dtype).removeprefix("torch.")
    for dtype in (*dtypes, *FLOAT):
        if _TORCH[dtype] == name:
            octets = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            array = octets.numpy().view(storage_dtype(dtype))
            return Stored(dtype, array.reshape(tensor.shape))
    raise BackendError(f"a tensor of {tensor.dtype} is none of {'|'.join(dtypes)}")
