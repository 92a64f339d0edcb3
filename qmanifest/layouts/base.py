"""What a layout is: the shape that packed codes have, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from qmanifest.tensors import Shape


class Layout(Protocol):
    """How the codes of a weight `(..., out_features, in_features)` are stored."""

    @property
    def id(self) -> str:
        """Name of the layout in canonical lines."""
        ...

    @property
    def word_dtype(self) -> str:
        """Safetensors dtype of the storage word."""
        ...

    @property
    def bits(self) -> tuple[int, ...]:
        """Code widths that the layout holds."""
        ...

    def packed_shape(self, shape: Shape, bits: int) -> Shape:
        """Shape of the words that hold codes of `shape`, `bits` wide each.

        Raises:
            LayoutError: the layout cannot hold them.

        """
        ...

    def logical_shape(self, packed: Shape, bits: int) -> Shape:
        """Shape of the largest weight whose words have shape `packed`.

        Raises:
            LayoutError: no weight's words have that shape, or it does not show.

        """
        ...
