"""From what a config of compressed-tensors says to a manifest, with stored tensors.

The tensors show which weights are quantized; targets, in the library's own order, say
by which group. A config that quantizes no weights keeps every matrix as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from qmanifest.dialects.compressed_tensors.cache import cache_defects
from qmanifest.dialects.compressed_tensors.groups import (
    LINEAR,
    Group,
    Target,
    classes,
    ranked,
    read_groups,
    told_by,
)
from qmanifest.dialects.compressed_tensors.ignored import ignored_claims
from qmanifest.dialects.compressed_tensors.weights import Maker
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.evidence import Evidence
from qmanifest.families import DENSE
from qmanifest.findings import Severity
from qmanifest.manifest import Component, Kept, Manifest
from qmanifest.patterns import READ_BY, READERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.compressed_tensors.args import AnyGroup, QuantizationArgs
    from qmanifest.findings import Defect
    from qmanifest.tensors import TensorIndex


@dataclass(frozen=True)
class Said:
    """What a document says of one model."""

    groups: Mapping[str, AnyGroup]
    ignore: Sequence[str]
    format: str | None
    sparse: str | None
    """How pruned weights are stored, if any are."""
    version: str | None
    cache: QuantizationArgs | None
    """How keys and values are quantized."""
    compressed: bool
    """Whether it says that weights are stored as their format has them."""

    @cached_property
    def read(self) -> tuple[Group, ...]:
        """The groups with nothing left open."""
        return tuple(read_groups(self.groups, self.format))


def lower_said(
    dialect: str, said: Said, place: Place, index: TensorIndex | None
) -> tuple[Manifest, tuple[Defect, ...]]:
    """Make the manifest of what a document says, and find its unusable patterns.

    Args:
        dialect: id of the dialect.
        said: what the document says.
        place: where it lies.
        index: the stored tensors; without them nothing is known to be quantized.

    """
    by_class = classes(said.read)
    targets = ranked(said.read)
    claims = [*ignored_claims(said.ignore, index, SUFFIX), *_quantizing(targets)]
    pointers = {place.pointer(*t.group.place(t.number)): t for t in targets}
    maker = Maker(said.version, said.sparse, place, index, pointers, by_class)
    linear = by_class.get(LINEAR)
    saying = Saying(claims, linear is not None and linear.group.weights is not None)
    component, defects = lower_stored(saying, place, index, maker.make)
    if index is not None:
        if not component.weights and not _promises(said):
            component = _as_it_is(component, index)
        defects = (*defects, *cache_defects(said.cache, index, place))
    return Manifest(dialect, place.file, (component,)), defects


def _promises(said: Said) -> bool:
    """Whether the document says that weights are stored quantized or pruned."""
    quantized = any(group.weights is not None for group in said.read)
    untold = said.format in {None, "fakequant"} and not said.compressed
    dense = untold or said.format == "dense"
    packed = any(told_by(group.scheme.format) for group in said.read)
    return said.sparse not in {None, "dense"} or (quantized and (packed or not dense))


def _as_it_is(component: Component, index: TensorIndex) -> Component:
    """Keep every matrix of a model that the config leaves as it is."""
    kept = {each.name: each for each in component.kept}
    evidence = index.derived(Evidence)
    for name in evidence.logical:
        tensor = index.get(name)
        if tensor is not None and tensor.dtype in DENSE and len(tensor.shape) > 1:
            kept.setdefault(name, Kept(name, component.pointer, DENSE))
    return Component(
        component.name,
        (),
        tuple(kept.values()),
        component.entries,
        exhaustive=True,
        pointer=component.pointer,
    )


def _quantizing(targets: Sequence[Target]) -> Iterator[Claim]:
    """List the targets that are names; the library warns of dead ones."""
    reader, *others = READ_BY["compressed-tensors", "targets"]
    for target in targets:
        (pattern,) = READERS[reader].patterns(target.text)
        yield Claim(
            target.group.place(target.number),
            pattern,
            "quantize",
            Severity.WARNING,
            SUFFIX,
            reader,
            tuple(others),
        )
