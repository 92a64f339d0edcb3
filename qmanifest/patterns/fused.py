"""Modules that readers load as one, though files have them apart, or the reverse.

A list is about one whole fused module or none of it, so its parts have to agree. To
add a fused module, add a line to `FUSED`.

Source: https://github.com/vllm-project/vllm, `packed_modules_mapping` of the models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.patterns.matching import match

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from qmanifest.patterns.syntax import Pattern

FUSED: Final[dict[str, tuple[str, ...]]] = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
    "in_proj_qkvz": ("in_proj_qkv", "in_proj_z"),
    "in_proj_ba": ("in_proj_b", "in_proj_a"),
    "w13": ("w1", "w3"),
    "to_qkv": ("to_q", "to_k", "to_v"),
}
"""The shards of each fused module, by the last segments of their names."""
_FUSED_AS: Final = {shard: name for name, shards in FUSED.items() for shard in shards}


def fused_name(module: str) -> str | None:
    """Name the module that a shard is loaded in; None for any other module.

    >>> fused_name("layers.0.q_proj")
    'layers.0.qkv_proj'
    """
    stem, dot, last = module.rpartition(".")
    return f"{stem}{dot}{_FUSED_AS[last]}" if last in _FUSED_AS else None


def shard_names(module: str) -> tuple[str, ...]:
    """Name the shards of a fused module; none for any other module."""
    stem, dot, last = module.rpartition(".")
    return tuple(f"{stem}{dot}{shard}" for shard in FUSED.get(last, ()))


@dataclass(frozen=True, slots=True)
class Split:
    """A fused module that patterns match in part, which readers refuse to load."""

    fused: str
    matched: tuple[str, ...]
    unmatched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expanded:
    """What patterns match once fused modules and shards stand for each other."""

    found: tuple[tuple[str, ...], ...]
    """The modules that each pattern matches, in the order of the modules."""
    splits: tuple[Split, ...]
    """The fused modules that all patterns together match in part."""


def unstored(
    modules: Collection[str], *, by_fused: bool = True
) -> dict[str, tuple[str, ...]]:
    """List the names that files do not have, each with the modules it stands for.

    Args:
        modules: those that files have.
        by_fused: whether a fused module stands for its shards, and not only a shard
            for a fused module that is stored whole.

    """
    there = frozenset(modules)
    found: dict[str, list[str]] = {}
    for module in dict.fromkeys(modules):
        fused = fused_name(module) if by_fused else None
        others = (*shard_names(module), *((fused,) if fused else ()))
        for other in others:
            if other not in there:
                found.setdefault(other, []).append(module)
    return {name: tuple(stand) for name, stand in found.items()}


def expand(
    patterns: Sequence[Pattern], modules: Iterable[str], *, by_fused: bool = True
) -> Expanded:
    """Match patterns with modules, as readers do that load them fused.

    A pattern that matches a shard takes part in matching a fused module that is stored
    whole, and one that matches a fused module matches its shards.

    Args:
        patterns: the entries of one list.
        modules: names of stored modules.
        by_fused: whether the name of a fused module counts, as it does to readers
            whose `fused` is `either`.

    """
    stored = tuple(dict.fromkeys(modules))
    stands_for = unstored(stored, by_fused=by_fused)
    matches = match(patterns, (*stored, *stands_for))
    found = [matches.of(number) for number in range(len(patterns))]
    places = {module: at for at, module in enumerate(stored)}
    spread = tuple(
        tuple(sorted(set(_stored(names, stands_for)), key=places.__getitem__))
        for names in found
    )
    named = {name for names in found for name in names}
    return Expanded(spread, tuple(_splits(stored, named)))


def _stored(
    names: Iterable[str], stands_for: dict[str, tuple[str, ...]]
) -> Iterator[str]:
    """Walk over the stored modules that names mean."""
    for name in names:
        yield from stands_for.get(name, (name,))


def _splits(stored: Sequence[str], named: Collection[str]) -> Iterator[Split]:
    """Find the fused modules of which some shards are named and others are not."""
    there = frozenset(stored)
    groups = {
        fused_name(module) or module: None
        for module in stored
        if fused_name(module) or shard_names(module)
    }
    for fused in groups:
        shards = shard_names(fused)
        parts = shards if fused in there else tuple(s for s in shards if s in there)
        matched = tuple(part for part in parts if part in named)
        if fused not in named and 0 < len(matched) < len(parts):
            others = tuple(part for part in parts if part not in named)
            yield Split(fused, matched, others)
