"""A stored weight of another layout than MLX's: which numbers fit all of its parts.

The codes' shape gives a logical shape at the promised bits, and from it follows the
shape of every other part. Where one differs, other bits and group sizes are tried on
all parts at once, so that one wrong number is one finding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from qmanifest.families import GPTQ
from qmanifest.layouts import LAYOUTS, PlainLayout, SplitLayout
from qmanifest.reading.tensor_bytes import read_tensor
from qmanifest.rules.fit_shapes import StoredShapes
from qmanifest.schemes import Integer, Opaque
from qmanifest.schemes.qweight import RIVALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.layouts import Layout
    from qmanifest.manifest import Component, Weight
    from qmanifest.reading.stores import Store
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorInfo
    from qmanifest.witness import Witness

Fault: TypeAlias = Literal["bits", "group", "shape", "parts", "label"]
"""What is wrong; `label`: the parts are those of another format of the same names."""
GROUPS: Final = (0, 16, 32, 64, 128, 256, 512, 1024)
"""Group sizes that are tried; 0 is one group for a whole row."""


@dataclass(frozen=True)
class Fit:
    """A stored weight of another layout, held against its scheme."""

    component: Component
    store: Store
    weight: Weight
    codes: TensorInfo
    stored: Mapping[str, TensorInfo]
    """Every part that is stored, by role."""
    witness: Witness | None
    like: Fit | None = None
    """One of the same scheme, shapes and witness, which has worked out all of it."""

    @property
    def kind(self) -> tuple[object, ...]:
        """What two fits share of which one thing is true."""
        known = self.witness
        return (
            id(self.weight.scheme),
            id(self.weight.names),
            (self.codes.dtype, self.codes.shape),
            tuple((role, p.dtype, p.shape) for role, p in self.stored.items()),
            known and (known.in_features, known.shape, known.strict),
        )

    @cached_property
    def shape(self) -> Shape | None:
        """The logical shape at the promised bits, if the codes show one."""
        return self.like.shape if self.like else self._shapes.under(self.weight.scheme)

    @cached_property
    def _shapes(self) -> StoredShapes:
        return StoredShapes(self.codes, self.stored, self.witness)

    def bytes_of(self, role: str) -> bytes | None:
        """Read a part; None where it is not stored, or cut short (QM002)."""
        part = self.stored.get(role)
        sizes = {header.file: header.size for header in self.store.headers}
        if part is None or part.end > sizes[part.file]:
            return None
        return bytes(read_tensor(self.store.root, part))

    @cached_property
    def uneven(self) -> tuple[tuple[TensorInfo, Shape], ...]:
        """The parts that are not of the promised shape, with that shape."""
        return tuple(self._uneven(self.weight.scheme, self.shape))

    def _uneven(
        self, scheme: Scheme, shape: Shape | None
    ) -> Iterator[tuple[TensorInfo, Shape]]:
        for role, _, size in scheme.parts(shape):
            part = self.stored.get(role)
            if part is not None and size is not None and part.shape != size:
                yield part, size

    def _fits(self, scheme: Scheme) -> bool:
        """Whether every part is as `scheme` says."""
        shape = self._shapes.under(scheme)
        known = self.witness
        if shape is None or (known and _is_other(shape, known)):
            return False
        return not any(self._uneven(scheme, shape))

    @cached_property
    def readings(self) -> tuple[tuple[int, int], ...]:
        """Every bits and group size that explain all parts, the promised ones first."""
        scheme = self.weight.scheme
        if self.like:
            return self.like.readings
        if not isinstance(scheme, Integer):
            return ()
        layout = LAYOUTS[scheme.pack]
        own = _fills(layout, scheme.bits)  # then no other width that does is news
        others = (b for b in layout.bits if not (own and _fills(layout, b)))
        widths = (scheme.bits, *others)
        each = scheme.spread.form in {"vector", "one", "scalar"}  # without groups
        groups = (scheme.group_size, *(() if each else GROUPS))
        pairs = dict.fromkeys((bits, group) for bits in widths for group in groups)
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for bits, group in pairs:
            spread = replace(scheme.spread, columns=group)
            other = replace(scheme, bits=bits, spread=spread)
            if self._fits(other):
                inputs = (self._shapes.under(other) or (0,))[-1]
                # a group that is no shorter than a row is the row
                alike = (bits, group if group < inputs else 0)
                found.setdefault(alike, (bits, group))
        return tuple(found.values())

    @cached_property
    def rival(self) -> str | None:
        """What the parts are of instead, where another format of the names fits."""
        scheme = self.weight.scheme
        if self.like:
            return self.like.rival
        known = isinstance(scheme, (Integer, Opaque))
        if not known or self.weight.names is not GPTQ.names or self.readings:
            return None
        for group in dict.fromkeys((scheme.group_size, *GROUPS)):
            own = group == scheme.group_size
            for title, make in RIVALS:
                other = make(scheme.bits, group)
                if other.pack != scheme.pack and self._fits(other):
                    return title if own else f"{title}, group_size {group or -1}"
        return None

    @cached_property
    def fault(self) -> Fault | None:
        """What is wrong, as one word; None where the promise is kept."""
        scheme = self.weight.scheme
        if self.like:
            return self.like.fault
        if isinstance(scheme, Opaque) and scheme.stored[0].dims is None:
            return None  # nothing says what shape the codes have
        if self.codes.dtype not in scheme.parts(None)[0][1] and self.rival is None:
            return None  # QM303 has it
        if self.shape is not None and not self.uneven:
            known = self.witness
            wide = known is not None and _is_other(self.shape, known)
            return self._misread() if wide else None
        return self._misread()

    def _misread(self) -> Fault:
        scheme = self.weight.scheme
        if self.readings:
            return "group" if self.readings[0][0] == scheme.bits else "bits"
        if self.rival:
            return "label"
        if self.shape is None:
            return "bits" if isinstance(scheme, Integer) else "shape"
        numbers = {"scales", "zeros"}
        roles = {
            role
            for role, part in self.stored.items()
            for p, _ in self.uneven
            if p is part
        }
        if roles & numbers:
            return "group"
        return "parts" if roles else "shape"


def _fills(layout: Layout, bits: int) -> bool:
    """Whether a code has a word to itself, so that no shape tells its width."""
    split = isinstance(layout, SplitLayout) and layout.parts(bits) == 1
    return split or isinstance(layout, PlainLayout)


def _is_other(shape: Shape, known: Witness) -> bool:
    """Whether a shape has other inputs than the witness; a flattened one shows none."""
    return len(shape) > 1 and shape[-1] != known.in_features
