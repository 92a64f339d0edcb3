"""Tensors that are not there yet, as a dialect would read them.

A dialect says what a weight is by the tensors that it finds. So codes are made up, the
dialect gives them a scheme, the scheme says what all parts are like, and the dialect is
asked again. What it then reads as what it was made for is what a writer would write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from qmanifest.dialects.base import Place
from qmanifest.dtypes import nbytes
from qmanifest.families import FAMILIES, GPT_OSS, swapped
from qmanifest.findings import Severity
from qmanifest.names import numberless
from qmanifest.schemes import Opaque
from qmanifest.tensors import TensorIndex, TensorInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.dialects.base import Dialect, Document
    from qmanifest.families import Family
    from qmanifest.manifest import Component, Weight
    from qmanifest.tensors import Shape

ROUNDS: Final = 4
"""Times that a dialect is asked about one form of tensors."""
_SUFFIX: Final = ".weight"
_MATRIX: Final = 2
Made = dict[str, tuple[TensorInfo, ...]]
"""The tensors in place of each weight, by name."""


class Read(NamedTuple):
    """What a dialect makes of some tensors."""

    component: Component
    errors: int


@dataclass(frozen=True, slots=True)
class Reader:
    """A dialect with its document."""

    dialect: Dialect[Any]
    document: Document
    place: Place

    @classmethod
    def of(cls, opened: Checkpoint) -> Reader | None:
        """Take the dialect of a config; None where it cannot be read."""
        dialect, document, config = opened.dialect, opened.document, opened.config
        if dialect is None or document is None or config is None:
            return None
        places = dialect.locate(config.object or {}) or ((),)
        return cls(dialect, document, Place(config.file, places[0]))

    def read(self, index: TensorIndex) -> Read:
        """Lower the document against the tensors of its one model."""
        lowered = self.dialect.lower(self.document, self.place, {"": index})
        (component,) = lowered.manifest.components
        levels = [each.problem.severity for each in lowered.defects]
        return Read(component, sum(each in {None, Severity.ERROR} for each in levels))


def made_up(
    reader: Reader, original: TensorIndex, chosen: Mapping[str, TensorInfo]
) -> TensorIndex:
    """Put made-up tensors in place of weights of a 16-bit model.

    Args:
        reader: what reads them.
        original: the tensors of the 16-bit model.
        chosen: those of them that are to be quantized. What the dialect has no form
            for stays as it is.

    """
    found: Made = {}
    errors = reader.read(original).errors
    for sampled in (True, False):  # what no sample tells is tried one and all
        for family in FAMILIES:
            stacked = _is_stacked(family)
            for dtype in family.dtypes:
                left = {
                    name: tensor
                    for name, tensor in chosen.items()
                    if name not in found and (len(tensor.shape) > _MATRIX) == stacked
                }
                some = _sample(left) if sampled else left
                if len(some) < len(left) and not _tried(
                    reader, TensorIndex(some.values()), family, dtype, some
                ):
                    continue
                made = _tried(reader, original, family, dtype, left) if left else {}
                if made and reader.read(_index(original, made)).errors <= errors:
                    found |= made
    return _index(original, found)


def _sample(left: Mapping[str, TensorInfo]) -> dict[str, TensorInfo]:
    """Take the first and the last of the weights whose names differ by numbers."""
    names = tuple(left)
    first = {numberless(name): name for name in reversed(names)}
    last = {numberless(name): name for name in names}
    return {name: left[name] for name in (*first.values(), *last.values())}


def _is_stacked(family: Family) -> bool:
    """Whether weights of a family are stacks of experts, which are no layers' own."""
    own = family.names.stem_suffix not in {"", _SUFFIX}
    return own or family is GPT_OSS or family.id.startswith("expert")


def _tried(
    reader: Reader,
    original: TensorIndex,
    family: Family,
    dtype: str,
    left: Mapping[str, TensorInfo],
) -> Made:
    """Make up tensors until the dialect reads them as what they were made for."""
    shapes = {name: _logical(family, tensor) for name, tensor in left.items()}
    made: Made = {
        name: tuple(_first(family, dtype, name, shape))
        for name, shape in shapes.items()
    }
    done: Made = {}
    for _ in range(ROUNDS):
        component = reader.read(_index(original, done | made)).component
        weights = {each.name: each for each in component.weights if _is_told(each)}
        again = {
            name: tuple(_parts(weights[name], shapes[name]))
            for name in made
            if name in weights
        }
        done |= {name: parts for name, parts in again.items() if parts == made[name]}
        made = {n: parts for n, parts in again.items() if parts and n not in done}
        if not made:
            break
    return done


def _logical(family: Family, tensor: TensorInfo) -> Shape:
    """Give outputs before inputs, where the 16-bit model has inputs first."""
    return swapped(tensor.shape) if family.turned else tensor.shape


def _first(family: Family, dtype: str, name: str, shape: Shape) -> Iterator[TensorInfo]:
    """Make up codes, and what shows that they are some of the family."""
    yield _tensor(family.names.name(name, "codes"), dtype, shape)
    if dtype not in family.alone:
        for role in family.marks[:1]:
            yield _tensor(family.names.name(name, role), "F32", ())


def _is_told(weight: Weight) -> bool:
    """Whether the config tells how a weight is stored, and not the tensors alone."""
    scheme = weight.scheme
    if not isinstance(scheme, Opaque):
        return True
    return scheme.shape is None and all(
        part.dims is not None for part in scheme.stored if not part.optional
    )


def _parts(weight: Weight, shape: Shape) -> Iterator[TensorInfo]:
    """Make up the tensors of a weight; none where it cannot have the shape."""
    specs = weight.parts(shape)
    if specs[0].shape is None:
        return
    for spec in specs:
        if not (spec.optional and spec.shape is None):
            size = (1,) if spec.shape is None else spec.shape
            yield _tensor(spec.name, spec.dtypes[0], size)


def _tensor(name: str, dtype: str, shape: Shape) -> TensorInfo:
    return TensorInfo(name, dtype, shape, 0, nbytes(dtype, shape), "")


def _index(original: TensorIndex, made: Made) -> TensorIndex:
    """Put made-up tensors in place of those of the 16-bit model."""
    kept = [tensor for name, tensor in original.items() if name not in made]
    return TensorIndex([*kept, *(each for parts in made.values() for each in parts)])
