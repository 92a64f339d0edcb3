"""What no dense checkpoint can be made of, said before anything is written."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from qmanifest.converting.targets import scaled_inputs
from qmanifest.dtypes import FLOAT, elements
from qmanifest.errors import BackendError
from qmanifest.schemes import Opaque

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmanifest.tensors import Shape
    from qmanifest.weights import CheckpointWeights

_SHOWN: Final = 3
"""Names that a line gives as examples."""


def undecoded(source: CheckpointWeights) -> Iterator[str]:
    """Say which weights have values that are not decoded, one line for each scheme."""
    found: dict[str, list[str]] = defaultdict(list)
    for weight in source.component.weights:
        if isinstance(weight.scheme, Opaque):
            found[str(weight.scheme)].append(weight.name)
    for scheme, names in found.items():
        yield f"values of {scheme} are not decoded: {_counted(names)}"


def undeclared(source: CheckpointWeights) -> Iterator[str]:
    """Say what is stored quantized in a way that the config does not describe."""
    declared = frozenset(source.names())
    found: dict[str, list[str]] = defaultdict(list)
    for name, stored in source.store.evidence.stored.items():
        if name not in declared:
            found[stored.family.title].append(name)
    for title, names in found.items():
        yield f"stored as {title}, which the config does not describe: " + _counted(
            names
        )


def require_input_scale(source: CheckpointWeights, name: str, shape: Shape) -> None:
    """Refuse a weight whose inputs are multiplied by anything but one number each.

    Raises:
        BackendError: the numbers are of another dtype or shape.

    """
    scale = scaled_inputs(source, name)
    if scale is None:
        return
    if scale.dtype not in FLOAT or elements(scale.shape) != shape[-1]:
        raise BackendError(
            f"{scale.name!r} is {scale}, not a float for each of {shape[-1]} inputs"
        )


def _counted(names: Sequence[str]) -> str:
    """Count weights, and name the first of them."""
    shown = ", ".join(map(repr, names[:_SHOWN]))
    more = ", ..." if len(names) > _SHOWN else ""
    return f"{len(names):,} weight{'s' if len(names) > 1 else ''} ({shown}{more})"
