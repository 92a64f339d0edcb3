"""Logical shapes of weights that are stored flattened: read off the bytes beside them.

bitsandbytes writes the shape into `quant_state`, HQQ into a tensor of its own. quanto
writes none; there the bias of the layer tells the outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.backends.reference.quant_state import shape_of_state
from qmanifest.dtypes import elements
from qmanifest.packings.arrays import Stored, to_array
from qmanifest.reading.tensor_bytes import read_tensor
from qmanifest.schemes import Integer

if TYPE_CHECKING:
    from qmanifest.manifest import Weight
    from qmanifest.reading.stores import Store
    from qmanifest.tensors import Shape, TensorInfo

MAX_DIMS: Final = 8
"""Dimensions that a stored shape may have."""


def flattened_shape(weight: Weight, codes: TensorInfo, store: Store) -> Shape | None:
    """Find the shape of a flattened weight; None where nothing says it, or wrongly.

    Raises:
        BackendError: `quant_state` is there and cannot be read.

    """
    for shape in _said(weight, store) or _guessed(weight, codes, store):
        if shape and weight.scheme.parts(shape)[0][2] == codes.shape:
            return shape
    return None


def _said(weight: Weight, store: Store) -> list[Shape]:
    """List the shapes that are written beside the codes."""
    found: list[Shape] = []
    state = store.index.get(weight.part("quant_state"))
    if state is not None and state.name != weight.codes and state.dtype == "U8":
        found.append(shape_of_state(_read(store, state)))
    shape = store.index.get(weight.part("hqq_shape"))
    if shape is not None and shape.dtype == "I64" and _is_short(shape):
        numbers = _read(store, shape).array.reshape(-1).tolist()
        found.append(tuple(numbers) if min(numbers) > 0 else ())
    return found


def _guessed(weight: Weight, codes: TensorInfo, store: Store) -> list[Shape]:
    """Find the shape that the bias of the layer tells."""
    count = _count(weight, codes, store)
    bias = store.index.get(f"{weight.name.removesuffix('.weight')}.bias")
    outputs = bias.shape[0] if bias is not None and len(bias.shape) == 1 else 0
    return [(outputs, count // outputs)] if outputs and count % outputs == 0 else []


def _count(weight: Weight, codes: TensorInfo, store: Store) -> int:
    """Count the weights: by the blocks, or by the codes should they fill words."""
    scheme, scales = weight.scheme, store.index.get(weight.part("scales"))
    if isinstance(scheme, Integer) and scheme.group_size and scales is not None:
        return elements(scales.shape) * scheme.group_size
    return codes.nbytes * 8 // max(1, scheme.bits)


def _is_short(tensor: TensorInfo) -> bool:
    return len(tensor.shape) == 1 and 0 < tensor.shape[0] <= MAX_DIMS


def _read(store: Store, tensor: TensorInfo) -> Stored:
    data = read_tensor(store.root, tensor)
    return Stored(tensor.dtype, to_array(tensor.dtype, tensor.shape, data))
