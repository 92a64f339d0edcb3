"""From what a config of compressed-tensors says to a manifest, with stored tensors.

The tensors show which weights are quantized; targets, in the library's own order, say
by which group. A config that quantizes no weights keeps every matrix as it is.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from qmanifest.dialects.claims import Claim
from qmanifest.dialects.compressed_tensors_cache import cache_defects
from qmanifest.dialects.compressed_tensors_groups import (
    LINEAR,
    Group,
    Target,
    classes,
    ranked,
    read_groups,
)
from qmanifest.dialects.compressed_tensors_weights import Maker
from qmanifest.dialects.stored import Saying, lower_stored
from qmanifest.evidence import Evidence
from qmanifest.families import DENSE
from qmanifest.findings import Severity
from qmanifest.manifest import Component, Kept, Manifest
from qmanifest.patterns import READ_BY, READERS
from qmanifest.patterns.reader import looks_like_class
from qmanifest.patterns.syntax import REGEX_MARK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.compressed_tensors_args import AnyGroup, QuantizationArgs
    from qmanifest.findings import Defect
    from qmanifest.tensors import TensorIndex

SUFFIX: Final = ".weight"
"""What a module path lacks to be a tensor name."""
HEADS: Final = ("lm_head", "embed_out", "output_layer", "embed_tokens", "score")
"""Modules that many lists name and that a model may share with another, or not have."""


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
    claims = [*_keeping(said, index), *_quantizing(targets)]
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
    dense = said.format in (None, "fakequant", "dense")
    packed = any(group.scheme.format not in {None, "dense"} for group in said.read)
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


def _keeping(said: Said, index: TensorIndex | None) -> Iterator[Claim]:
    """List what is ignored, but for classes, which no file tells of."""
    reader, *others = READ_BY["compressed-tensors", "ignore"]
    names = [] if index is None else sorted(index)
    for number, text in enumerate(said.ignore):
        if looks_like_class(text):
            continue
        (pattern,) = READERS[reader].patterns(text)
        yield Claim(
            ("ignore", number),
            pattern,
            "keep",
            _unused(text, names),
            SUFFIX,
            reader,
            tuple(others),
        )


def _unused(text: str, names: Sequence[str]) -> Severity:
    """Say how bad it is when an ignored name matches nothing.

    The library lists the modules that a model has, so a name that is in no file was
    changed. A module that holds others is listed where its class is.
    """
    if text.startswith(REGEX_MARK) or text.rpartition(".")[2] in HEADS:
        return Severity.NOTE
    at = bisect_left(names, f"{text}.")
    if at < len(names) and names[at].startswith(f"{text}."):
        return Severity.WARNING
    return Severity.ERROR
