"""Which logical shape stored codes have under a scheme, by all that stands beside them.

Codes alone do not always tell: rows may be padded, and weights flattened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmanifest.dtypes import elements
from qmanifest.layouts import LAYOUTS
from qmanifest.schemes import Integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape, TensorInfo
    from qmanifest.witness import Witness


@dataclass(frozen=True, slots=True)
class StoredShapes:
    """The codes of a weight, the parts beside them, and who else knows its shape."""

    codes: TensorInfo
    stored: Mapping[str, TensorInfo]
    """Every part that is stored, by role."""
    witness: Witness | None

    def under(self, scheme: Scheme) -> Shape | None:
        """Find the logical shape that the codes have under `scheme`."""
        (_, dtypes, _), *_ = scheme.parts(None)
        if self.codes.dtype not in dtypes:
            return None
        known = self.witness.shape if self.witness else None
        whole = scheme.logical(self.codes.shape)
        inputs = self._groups(scheme, whole) or self._listed(whole)
        flat = (self._flat(scheme), self._by_codes(scheme))
        for shape in (known, self._width(whole), inputs, whole, *flat):
            if shape is not None and scheme.parts(shape)[0][2] == self.codes.shape:
                return shape
        return known if whole is None else None

    def _width(self, whole: Shape | None) -> Shape | None:
        """Give `whole` the witness's number of inputs."""
        if whole is None or self.witness is None:
            return None
        return (*whole[:-1], self.witness.in_features)

    def _flat(self, scheme: Scheme) -> Shape | None:
        """Count the weights of a flattened one by its blocks."""
        scales = self.stored.get("scales")
        if isinstance(scheme, Integer) and scheme.spread.columns and scales is not None:
            return (elements(scales.shape) * scheme.spread.columns,)
        return None

    def _by_codes(self, scheme: Scheme) -> Shape | None:
        """Count the weights of a flattened one by its codes, should they fill words."""
        return (self.codes.nbytes * 8 // scheme.bits,) if scheme.bits else None

    def _groups(self, scheme: Scheme, whole: Shape | None) -> Shape | None:
        """Give `whole` as many inputs as its groups have, where rows are padded."""
        scales = self.stored.get("scales")
        padded = getattr(LAYOUTS.get(scheme.pack), "padded", False)
        if whole is None or scales is None or not padded or not scheme.group_size:
            return None
        inputs = scales.shape[-1] * scheme.group_size if scales.shape else 0
        return (*whole[:-1], inputs) if 0 < inputs <= whole[-1] else None

    def _listed(self, whole: Shape | None) -> Shape | None:
        """Give `whole` as many inputs as are listed, where words are padded."""
        listed = self.stored.get("g_idx")
        if whole is None or listed is None or len(listed.shape) != 1:
            return None
        inputs = listed.shape[0]
        return (*whole[:-1], inputs) if 0 < inputs <= whole[-1] else None
