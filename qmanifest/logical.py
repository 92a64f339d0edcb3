"""Logical shapes of stored weights: by their codes, and by what is written beside them.

Codes alone show the largest weight that is stored so. Where their rows are padded, a
smaller one is stored alike; then a stored `weight_shape`, `g_idx` or the number of
groups tells the inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.errors import BackendError
from qmanifest.flattened import MAX_DIMS, flattened_shape
from qmanifest.packings.arrays import Stored, to_array
from qmanifest.reading.tensor_bytes import read_tensor
from qmanifest.schemes import ROW_SCHEMES, Integer, Scaled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.manifest import Component, Weight
    from qmanifest.reading.stores import Store
    from qmanifest.tensors import Shape, TensorInfo

_GROUPS: Final = {"table": -1, "transposed": -2}
"""Which axis of the stored scales counts groups of inputs, by their form."""


def logical_shape(weight: Weight, store: Store) -> Shape | None:
    """Find a weight's logical shape, `(..., out_features, in_features)`.

    Reads no bytes but those of a small tensor that says a shape, where one is stored.

    Returns:
        None where the codes are in no file or cannot be of the weight's scheme.

    Raises:
        BackendError: what is written beside the codes cannot be read, or is the shape
            of other codes.

    """
    codes = store.index.get(weight.codes)
    if codes is None:
        return None
    whole = weight.logical(codes)
    if weight.shape and _fits(weight, weight.shape, codes):
        return weight.shape
    if isinstance(weight.scheme, ROW_SCHEMES):
        return whole
    said = said_shape(weight, store)
    if said is not None and codes.dtype in weight.scheme.parts(None)[0][1]:
        return _confirmed(weight, said, codes)
    if whole is None:
        return flattened_shape(weight, codes, store)
    return _narrowed(weight, whole, codes, store)


def _confirmed(weight: Weight, said: Shape, codes: TensorInfo) -> Shape:
    """Take the shape that is written beside the codes, if it is theirs."""
    if _fits(weight, said, codes):
        return said
    raise BackendError(
        f"{weight.part('shape')!r} says {list(said)}, and codes of {weight.scheme} "
        f"that are {codes} are of another shape"
    )


def _narrowed(weight: Weight, whole: Shape, codes: TensorInfo, store: Store) -> Shape:
    """Take off the largest shape what only pads its rows."""
    if not whole or not _fits(weight, (*whole[:-1], whole[-1] - 1), codes):
        return whole
    narrower = (
        (*whole[:-1], inputs)
        for inputs in _inputs(weight, store)
        if 0 < inputs <= whole[-1]
    )
    fitting = (shape for shape in narrower if _fits(weight, shape, codes))
    return next(fitting, whole)


def logical_shapes(component: Component, store: Store) -> dict[str, Shape]:
    """Find the logical shapes of all weights of a model that have one, by name."""
    found = {}
    for weight in component.weights:
        try:
            shape = logical_shape(weight, store)
        except BackendError:
            continue  # as unknown as a shape that nothing says
        if shape is not None:
            found[weight.name] = shape
    return found


def said_shape(weight: Weight, store: Store) -> Shape | None:
    """Read the shape that is stored beside the codes, as `weight_shape` is.

    None where no such tensor is stored, or it is not a short row of positive integers.
    """
    if all(role != "shape" for role, _ in weight.names.suffixes):
        return None
    tensor = store.index.get(weight.part("shape"))
    if tensor is None or tensor.dtype not in {"I64", "I32"}:
        return None
    if len(tensor.shape) != 1 or not 0 < tensor.shape[0] <= MAX_DIMS:
        return None
    data = read_tensor(store.root, tensor)
    numbers = Stored(tensor.dtype, to_array(tensor.dtype, tensor.shape, data))
    shape = tuple(int(number) for number in numbers.array)
    return shape if min(shape) > 0 else None


def _inputs(weight: Weight, store: Store) -> Iterator[int]:
    """Count the inputs by the list of their groups, or by the groups themselves."""
    scheme = weight.scheme
    if not isinstance(scheme, Integer | Scaled):
        return
    named = {role: store.index.get(weight.part(role)) for role in ("g_idx", "scales")}
    listed, scales = named["g_idx"], named["scales"]
    if isinstance(scheme, Integer) and scheme.order != "sequential" and listed:
        yield listed.shape[-1] if listed.shape else 0
    axis = _GROUPS.get(scheme.spread.form)
    if axis is not None and scales and len(scales.shape) >= -axis:
        yield scales.shape[axis] * scheme.spread.columns


def _fits(weight: Weight, shape: Shape, codes: TensorInfo) -> bool:
    """Whether the codes of a weight of `shape` are stored as `codes` are."""
    return min(shape) > 0 and weight.scheme.parts(shape)[0][2] == codes.shape
