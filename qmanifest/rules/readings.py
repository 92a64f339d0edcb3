"""How a packed weight can be read: which bits and group sizes fit what is stored.

A row of codes has `columns x word_bits` bits and a row of scales one scale per group,
so their quotient is `bits x group_size`. Rules about layout all ask here, so that one
wrong number is one finding.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from qmanifest.families import WORDS
from qmanifest.layouts import ROWS
from qmanifest.schemes import ROW_SCHEMES, Microscaling
from qmanifest.witness import Witness, witness

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.layouts import RowLayout
    from qmanifest.manifest import Component, Weight
    from qmanifest.reading.stores import Store
    from qmanifest.tensors import TensorInfo

Fault: TypeAlias = Literal["bits", "group", "shape", "rows"]
BITS: Final = (2, 3, 4, 5, 6, 8)
GROUPS: Final = (32, 64, 128)


class Packed(msgspec.Struct, frozen=True, dict=True):
    """A packed weight with its scales, and what they can mean."""

    component: Component
    weight: Weight
    codes: TensorInfo
    scales: TensorInfo
    witness: Witness | None
    others: tuple[TensorInfo, ...] = ()
    """The biases, zeros and global scale that are stored beside the scales."""

    @property
    def row_bits(self) -> int:
        """Bits of one row of codes."""
        return self.codes.shape[-1] * ROWS[self.weight.scheme.pack].word_bits

    @property
    def product(self) -> int | None:
        """`bits x group_size` as stored, where it is a whole number."""
        groups = self.scales.shape[-1]
        if not groups or self.row_bits % groups:
            return None
        return self.row_bits // groups

    @property
    def promised_width(self) -> int:
        """Input features at the promised bits."""
        return self.row_bits // self.weight.scheme.bits

    @property
    def fitting(self) -> tuple[tuple[int, int], ...]:
        """Every bits and group size that exist and explain the product."""
        product, scheme = self.product, self.weight.scheme
        if product is None:
            return ()
        if isinstance(scheme, Microscaling):
            own = (scheme.bits, scheme.group_size)
            return (own,) if product == own[0] * own[1] else ()
        return fitting_pairs(ROWS[scheme.pack], product)

    @cached_property
    def readings(self) -> tuple[tuple[int, int], ...]:
        """What the stored shapes can mean, the likeliest first.

        At most one where a witness has the width. Otherwise those that share the
        promised group size, or else the promised bits, come before the rest.
        """
        if self.witness is not None:
            return tuple(
                (bits, group)
                for bits, group in self.fitting
                if bits * self.witness.in_features == self.row_bits
            )
        scheme = self.weight.scheme
        return tuple(
            sorted(
                self.fitting,
                key=lambda fit: (fit[1] != scheme.group_size, fit[0] != scheme.bits),
            )
        )

    @property
    def explained(self) -> bool:
        """Whether some reading has the width that the witness speaks of."""
        return bool(self.readings)

    @cached_property
    def fault(self) -> Fault | None:
        """What is wrong, as one word; None where the promise is kept."""
        scheme, known = self.weight.scheme, self.witness
        if self.codes.shape[:-1] != self.scales.shape[:-1]:
            return "rows"
        if known and known.shape and known.shape[:-1] != self.codes.shape[:-1]:
            return "shape"
        promised = (scheme.bits, scheme.group_size)
        if promised in self.readings:
            return None
        if self.product == promised[0] * promised[1]:
            return "bits" if self.readings else "shape"
        if self.readings:
            return "group" if self.readings[0][0] == scheme.bits else "bits"
        return self._unexplained()

    def _unexplained(self) -> Fault:
        """Say which side is off where no bits and group size fit both."""
        scheme, known = self.weight.scheme, self.witness
        if known is not None:
            right = known.in_features * scheme.bits == self.row_bits
            return "group" if right else "bits"
        whole = self.row_bits % (scheme.bits * scheme.group_size) == 0
        return "group" if whole else "bits"


def fitting_pairs(layout: RowLayout, product: int) -> tuple[tuple[int, int], ...]:
    """List the affine bits and group sizes that make a product, fewest bits first."""
    return tuple(
        (bits, product // bits)
        for bits in BITS
        if bits in layout.bits and product % bits == 0 and product // bits in GROUPS
    )


def packed_weights(
    checkpoint: Checkpoint,
    weights: Iterable[tuple[Component, Store, Weight]] | None = None,
) -> Iterator[Packed]:
    """Walk over the weights, or some of them, that are stored packed with scales."""
    every = (
        (component, store, weight)
        for component, store in checkpoint.found()
        for weight in component.weights
    )
    for component, store, weight in every if weights is None else weights:
        packed = _packed(checkpoint, component, weight, store)
        if packed is not None:
            yield packed


def _packed(
    checkpoint: Checkpoint, component: Component, weight: Weight, store: Store
) -> Packed | None:
    if not is_row(weight):
        return None
    codes = store.index.get(weight.codes)
    scales = store.index.get(weight.names.name(weight.name, "scales"))
    if codes is None or scales is None or codes.dtype not in WORDS:
        return None
    if codes.dtype != ROWS[weight.scheme.pack].word_dtype:
        return None
    if not codes.shape or not scales.shape or not _same_mode(weight, scales):
        return None
    known = witness(checkpoint, component, weight)
    names = (part.name for part in weight.parts()[2:])
    others = tuple(store.index[name] for name in names if name in store.index)
    packed = Packed(component, weight, codes, scales, known, others)
    if packed.witness and not packed.witness.strict and not packed.explained:
        return msgspec.structs.replace(
            packed, witness=None
        )  # another module of the same name
    return packed


def is_row(weight: Weight) -> bool:
    """Whether a weight is of MLX's layout: rows of codes, a number for each group."""
    return isinstance(weight.scheme, ROW_SCHEMES)


def _same_mode(weight: Weight, scales: TensorInfo) -> bool:
    """Whether the scales are bytes just where the scheme has bytes (else QM303)."""
    return isinstance(weight.scheme, Microscaling) == (scales.dtype == "U8")
