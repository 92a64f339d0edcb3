"""The dtype that a rebuilt weight is written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.backends.reference.quant_state import dtype_of_state
from qmanifest.converting.blocks import read_stored
from qmanifest.converting.dense import DTYPE_NAMES, is_float
from qmanifest.dimensions import TEXT_CONFIGS
from qmanifest.dtypes import FLOAT16
from qmanifest.schemes import ROW_SCHEMES, Scaled
from qmanifest.schemes.floats import PRE_QUANT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.tensors import TensorInfo
    from qmanifest.weights import CheckpointWeights

_KEYS: Final = ("dtype", "torch_dtype")
"""Keys under which a model's config says its dtype, the newer one first."""


def weight_dtype(source: CheckpointWeights, name: str, model: Mapping[str, Any]) -> str:
    """Choose the dtype that a weight is written in where the user chose none.

    What the format itself says counts first, then the scales' dtype where that has 16
    bits, then what the model's config says. Scales of F32 make F32 otherwise, and
    scales that are bytes make BF16.

    Raises:
        BackendError: a part is in no file, or `quant_state` cannot be read.

    """
    scheme, _ = source.weight(name)
    parts = source.tensors(name)
    if "quant_state" in parts:
        return dtype_of_state(read_stored(source.store.root, parts["quant_state"]))
    if isinstance(scheme, Scaled) and scheme.rounds == "BF16":
        return "BF16"
    scales = source.scales(name)
    if scales.dtype in FLOAT16 or isinstance(scheme, ROW_SCHEMES):
        return scales.dtype if is_float(scales) else "BF16"
    return model_dtype(model) or ("F32" if scales.dtype == "F32" else "BF16")


def model_dtype(model: Mapping[str, Any]) -> str | None:
    """Read the dtype that a model's config says; None where it says none of ours."""
    inner = [model.get(key) for key in TEXT_CONFIGS]
    scopes = [model, *(each for each in inner if isinstance(each, dict))]
    for scope in scopes:
        for key in _KEYS:
            said = scope.get(key)
            if isinstance(said, str) and said in DTYPE_NAMES:
                return DTYPE_NAMES[said]
    return None


def scaled_inputs(source: CheckpointWeights, name: str) -> TensorInfo | None:
    """Find the numbers that a layer multiplies its inputs by, which a dense one lacks.

    They belong into the columns of the rebuilt weight.
    """
    return source.companion(name, PRE_QUANT.role)
