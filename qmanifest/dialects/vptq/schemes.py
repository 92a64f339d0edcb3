"""How VPTQ stores a layer: the shapes of its parts, by what the document says.

Source: https://github.com/microsoft/VPTQ, `vptq/layers/vqlinear.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import FLOAT
from qmanifest.schemes import Dim, Opaque, OpaquePart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.lowering.undecoded import Parts
    from qmanifest.dialects.vptq import Layer
    from qmanifest.tensors import Shape

WORD: Final = 32
"""Bits of a word of packed indices."""
ONE: Final = Dim("one")
K: Final = Dim("K")
INDEX: Final = ("I16", "F16")
"""Dtypes of an index of 16 bits; writers view them as floats at times."""


def scheme(said: Layer | None, parts: Parts) -> Opaque:
    """Name the scheme of a layer; without a word on it no shape is known."""
    if said is None or min(said.vector_lens[1], said.num_centroids[1]) < 1:
        return Opaque("vptq", 0, 0, (OpaquePart("codes", ("I32", "I16"), None),))
    stored = tuple(_stored(said))
    return Opaque("vptq", 0, 0, stored, _shape(said, parts))


def _shape(said: Layer, parts: Parts) -> Shape | None:
    """Tell the logical shape: as it is said, or by parts that every input is in."""
    each = (parts[role] for role in ("weight_scale", "perm") if role in parts)
    counts = [part.shape[0] for part in each if len(part.shape) == 1]
    codes = parts["codes"].shape
    outputs = codes[1] * said.vector_lens[1] if len(codes) > 1 else 0
    shape = (
        said.out_features if said.out_features > 0 else outputs,
        said.in_features if said.in_features > 0 else next(iter(counts), 0),
    )
    return shape if all(shape) else None


def _stored(said: Layer) -> Iterator[OpaquePart]:
    """List the parts; outliers come before all others in every pair of numbers."""
    outlier_length, length = said.vector_lens
    outlier_count, count = said.num_centroids
    residuals = max(said.num_res_centroids[1], 0)
    groups, vectors = Dim("one", times=said.group_num), Dim("N", length)
    indices: tuple[Dim, ...] | None = (groups, vectors, _index(said, residuals))
    if said.group_size < 1:
        indices = None
    packed = said.is_indice_packed
    yield OpaquePart("codes", ("I32",) if packed else INDEX, indices)
    yield OpaquePart("centroids", FLOAT, (groups, Dim("one", times=count * length)))
    if residuals:
        table = (groups, Dim("one", times=residuals * length))
        yield OpaquePart("res_centroids", FLOAT, table)
        if not packed:
            yield OpaquePart("res_indices", INDEX, indices)
    if outlier_length > 1 and outlier_count > 0:
        table = (ONE, Dim("one", times=outlier_count * outlier_length))
        places = Dim("one", times=said.outlier_size)
        apart = (ONE, Dim("N", outlier_length), places)
        yield OpaquePart("outlier_indices", INDEX, apart)
        yield OpaquePart("outlier_centroids", FLOAT, table)
    if said.enable_norm:
        yield OpaquePart("weight_scale", FLOAT, (K,))
        yield OpaquePart("weight_bias", FLOAT, (K,))
    if said.enable_perm:
        yield OpaquePart("perm", ("I16",) if packed else ("I64",), (K,))


def _index(said: Layer, residuals: int) -> Dim:
    """Count the words of a group: each input's index, and that of what it leaves."""
    if not said.is_indice_packed:
        return Dim("one", times=said.group_size)
    bits = said.num_centroids[1].bit_length() - 1
    bits += residuals.bit_length() - 1 if residuals else 0
    return Dim("one", times=-(-said.group_size * bits // WORD))
