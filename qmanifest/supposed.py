"""What a 16-bit model would be stored as under a config that names few weights.

The configs of most formats say how, and list what stays 16-bit; which weights are
quantized shows by their tensors. Where there are none yet, this makes up the tensors
that the config's own dialect reads as its own, and lowers the config against them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from qmanifest.dialects.base import Place
from qmanifest.dtypes import nbytes
from qmanifest.families import DENSE, FAMILIES, GPT_OSS
from qmanifest.findings import Severity
from qmanifest.schemes import Opaque
from qmanifest.tensors import TensorIndex, TensorInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.families import Family
    from qmanifest.manifest import Component, Manifest, Weight
    from qmanifest.tensors import Shape

ROUNDS: Final = 4
"""Times that tensors are made up anew from what the dialect made of the last ones."""
HEADS: Final = ("lm_head", "embed_out", "output_layer", "output", "score", "classifier")
"""Modules at a model's end that stay 16-bit unless the config says otherwise."""
ROUTERS: Final = ("gate", "router", "shared_expert_gate")
"""Modules that choose experts, which most models have as no linear layer."""
EMBEDDINGS: Final = ("wte", "wpe", "shared", "relative_attention_bias")
"""Tables that do not have `embed` in their names."""
EXPERTS: Final = ".experts."
"""What stacks of experts have in their names."""
WITH_TABLES: Final = ("mlx",)
"""Dialects whose writers quantize embeddings and heads too."""
_SUFFIX: Final = ".weight"
_MATRIX: Final = 2


class Supposed(NamedTuple):
    """A manifest as if there were weights, and what was taken for granted."""

    manifest: Manifest
    assumed: tuple[str, ...]


def suppose(opened: Checkpoint, original: TensorIndex) -> Supposed | None:
    """Lower a config of one model against the tensors that it implies.

    Args:
        opened: a config alone.
        original: the tensors of the 16-bit model.

    Returns:
        None where the config declares its weights itself, has several models, or is of
        a format that is not decoded, which stores no weight by a config alone.

    """
    lower, manifest = _lowering(opened), opened.manifest
    if lower is None or manifest is None or len(manifest.components) != 1:
        return None
    if opened.dialect is None or opened.dialect.decodes == "none":
        return None
    if manifest.components[0].weights:
        return None
    tables = opened.dialect.id in WITH_TABLES
    bare = lower(original)
    chosen = _chosen(bare.component, original, tables=tables)
    found: dict[str, Sequence[TensorInfo]] = {}
    for family, dtype in _forms():
        left = {
            name: tensor
            for name, tensor in chosen.items()
            if name not in found
            and _is_stacked(family) == (len(tensor.shape) > _MATRIX)
        }
        if left:
            made = _Trial(lower, original, family, dtype).stable(left, found)
            if made and lower(_index(original, found | made)).errors <= bare.errors:
                found |= made
    component = lower(_index(original, found)).component
    return Supposed(
        replace(manifest, components=(component,)),
        tuple(_sentences(component, chosen, tables=tables)),
    )


def _forms() -> Iterator[tuple[Family, str]]:
    """Walk over the families of tensors, and the dtypes that codes have in them."""
    for family in FAMILIES:
        for dtype in family.dtypes:
            yield family, dtype


def _is_stacked(family: Family) -> bool:
    """Whether weights of a family are stacks of experts, which are no layers' own."""
    own = family.names.stem_suffix not in {"", _SUFFIX}
    return own or family is GPT_OSS or family.id.startswith("expert")


class _Read(NamedTuple):
    """What a dialect makes of some tensors."""

    component: Component
    errors: int


def _lowering(opened: Checkpoint) -> Callable[[TensorIndex], _Read] | None:
    """Make a function of a dialect and its document, from tensors to what it reads."""
    dialect, document, config = opened.dialect, opened.document, opened.config
    if dialect is None or document is None or config is None:
        return None
    raw = config.object or {}
    place = Place(config.file, (dialect.locate(raw) or ((),))[0])

    def lower(index: TensorIndex) -> _Read:
        lowered = dialect.lower(document, place, {"": index})
        (component,) = lowered.manifest.components
        levels = [each.problem.severity for each in lowered.defects]
        return _Read(
            component, sum(level in {None, Severity.ERROR} for level in levels)
        )

    return lower


def _chosen(
    bare: Component, original: TensorIndex, *, tables: bool
) -> dict[str, TensorInfo]:
    """Pick the weights that such configs quantize: linear layers that nothing keeps.

    With `tables` also embeddings and heads.
    """
    kept = {each.name for each in bare.kept}
    named = {
        name
        for entry in bare.entries
        if entry.purpose == "quantize"
        for name in entry.matches
    }
    return {
        name: tensor
        for name, tensor in original.items()
        if tensor.dtype in DENSE and name not in kept
        if ((tables or name in named) and _is_matrix(name, tensor))
        or _is_linear(name, tensor)
    }


def _is_matrix(name: str, tensor: TensorInfo) -> bool:
    return len(tensor.shape) == _MATRIX and name.endswith(_SUFFIX)


def _is_linear(name: str, tensor: TensorInfo) -> bool:
    """Whether a tensor is a linear layer's, or a stack of some, by name and shape."""
    if EXPERTS in name and len(tensor.shape) == _MATRIX + 1:
        return not name.endswith("bias")
    if not _is_matrix(name, tensor):
        return False
    segments = name.removesuffix(_SUFFIX).split(".")
    if segments[-1] in HEADS or segments[-1] in ROUTERS:
        return False
    return not any("embed" in each or each in EMBEDDINGS for each in segments)


class _Trial(NamedTuple):
    """One family of tensors, tried on the weights that no other fits."""

    lower: Callable[[TensorIndex], _Read]
    original: TensorIndex
    family: Family
    dtype: str

    def stable(
        self, left: Mapping[str, TensorInfo], found: Mapping[str, Sequence[TensorInfo]]
    ) -> dict[str, Sequence[TensorInfo]]:
        """Make up tensors until the dialect reads them as what they were made for."""
        shapes = {name: self._logical(tensor) for name, tensor in left.items()}
        made: dict[str, Sequence[TensorInfo]] = {
            name: tuple(self._first(name, shape)) for name, shape in shapes.items()
        }
        done: dict[str, Sequence[TensorInfo]] = {}
        for _ in range(ROUNDS):
            read = self.lower(_index(self.original, {**found, **done, **made}))
            weights = {w.name: w for w in read.component.weights if _is_told(w)}
            again = {
                name: tuple(_parts(weights[name], shapes[name]))
                for name in made
                if name in weights
            }
            done |= {n: parts for n, parts in again.items() if parts == made[n]}
            made = {n: parts for n, parts in again.items() if parts and n not in done}
            if not made:
                break
        return done

    def _logical(self, tensor: TensorInfo) -> Shape:
        """Give outputs before inputs, where the 16-bit model has inputs first."""
        turned = self.family.turned
        *lead, n, k = tensor.shape
        return (*lead, k, n) if turned else tensor.shape

    def _first(self, name: str, shape: Shape) -> Iterator[TensorInfo]:
        """Make up codes, and what shows that they are some of the family."""
        names = self.family.names
        yield _tensor(names.name(name, "codes"), self.dtype, shape)
        if self.dtype not in self.family.alone:
            for role in self.family.marks[:1]:
                yield _tensor(names.name(name, role), "F32", ())


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
            yield _tensor(spec.name, spec.dtypes[0], spec.shape or (1,))


def _tensor(name: str, dtype: str, shape: Shape) -> TensorInfo:
    return TensorInfo(name, dtype, shape, 0, nbytes(dtype, shape), "")


def _index(
    original: TensorIndex, found: Mapping[str, Iterable[TensorInfo]]
) -> TensorIndex:
    """Put made-up tensors in place of those of the 16-bit model."""
    kept = [tensor for name, tensor in original.items() if name not in found]
    return TensorIndex([*kept, *(each for parts in found.values() for each in parts)])


def _sentences(
    component: Component, chosen: Mapping[str, TensorInfo], *, tables: bool
) -> Iterator[str]:
    """Say what was taken for granted."""
    quantized = {each.name for each in component.weights}
    others = "all tables" if tables else "no embeddings, routers or heads"
    yield (
        "Taken as quantized, because the config names no weights: "
        f"{len(quantized):,} linear layers that no entry keeps, and {others}"
    )
    lost = [name for name in chosen if name not in quantized]
    if lost:
        yield (
            "Taken as 16-bit, because the config does not tell how they are stored: "
            f"{len(lost):,} linear layers ({lost[0]!r}{', ...' if lost[1:] else ''})"
        )
