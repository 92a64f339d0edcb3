"""What is wrong with a config of compressed-tensors by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qmanifest.dialects.compressed_tensors.args import QuantizationScheme
from qmanifest.dialects.compressed_tensors.checks import (
    faults,
    version_of,
    weight_faults,
)
from qmanifest.dialects.compressed_tensors.groups import FORMATS, told_by
from qmanifest.dialects.compressed_tensors.presets import preset
from qmanifest.dialects.compressed_tensors.schemes import SPARSE
from qmanifest.findings import DefectKind, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.compressed_tensors.args import QuantizationArgs
    from qmanifest.dialects.compressed_tensors.checks import Fault
    from qmanifest.dialects.compressed_tensors.groups import Group
    from qmanifest.dialects.compressed_tensors.lower import Said
    from qmanifest.findings import Defect

_ARGS: Final = ("weights", "input_activations", "output_activations")


def defects_of(said: Said, place: Place) -> Iterator[Defect]:
    """Find what readers refuse, or read otherwise than it looks."""
    yield from _formats(said, place)
    yield from _presets(said, place)
    for group in said.read:
        yield from _group(said, group, place)
    yield from _twice(said, place)
    if said.cache is not None:
        yield from _faults(said.cache, said, place, ("kv_cache_scheme",))


def _formats(said: Said, place: Place) -> Iterator[Defect]:
    """Judge the formats of the whole, and of pruned weights."""
    if said.format is not None and said.format not in FORMATS:
        yield place.defect(
            DefectKind.IMPOSSIBLE_SCHEME,
            f"compressed-tensors has no format {said.format!r}",
            "format",
            expected=", ".join(FORMATS),
            actual=said.format,
        )
    pruned = said.sparse or "dense"
    if pruned not in {"dense", *SPARSE}:
        yield place.defect(
            DefectKind.IMPOSSIBLE_SCHEME,
            f"compressed-tensors stores no pruned weights as {pruned!r}",
            *("sparsity_config", "format"),
            expected=", ".join(("dense", *SPARSE)),
            actual=pruned,
        )


def _presets(said: Said, place: Place) -> Iterator[Defect]:
    """Report lists of targets whose name is no preset."""
    for name, group in said.groups.items():
        if not isinstance(group, QuantizationScheme) and preset(name) is None:
            yield place.defect(
                DefectKind.INVALID_VALUE,
                f"config group {name!r} is a list of targets, and no preset has its "
                "name",
                *("config_groups", name),
                actual=name,
                hint="name it after a preset (W4A16, FP8_DYNAMIC, NVFP4), or write "
                "its scheme in full",
            )


def _group(said: Said, group: Group, place: Place) -> Iterator[Defect]:
    """Judge the numbers of one group, and its format."""
    own = group.scheme.format
    if own == "mixed-precision":
        yield place.defect(
            DefectKind.IMPOSSIBLE_SCHEME,
            "a config group has one format, not mixed-precision",
            *(*group.keys, "format"),
        )
    elif own is not None and told_by(said.format) not in {None, own}:
        yield place.defect(
            DefectKind.CONTRADICTION,
            f"a config group is stored as {own}, and the whole as {said.format}",
            *(*group.keys, "format"),
            expected=said.format,
            actual=own,
            hint="make the whole mixed-precision, or both the same",
            severity=Severity.WARNING,
        )
    for name in () if group.preset else _ARGS:
        args = getattr(group.scheme, name)
        if args is not None:
            yield from _faults(args, said, place, (*group.keys, name))
    for fault in weight_faults(group):
        key = () if group.preset else ("weights", fault.key)
        yield _defect(fault, place, (*group.keys, *key))


def _faults(
    args: QuantizationArgs, said: Said, place: Place, keys: tuple[str, ...]
) -> Iterator[Defect]:
    """Judge the arguments at `keys`."""
    for fault in faults(args, version_of(said.version)):
        yield _defect(fault, place, (*keys, fault.key))


def _defect(fault: Fault, place: Place, keys: tuple[str, ...]) -> Defect:
    where = ".".join(key for key in keys if key != fault.key)
    return place.defect(
        DefectKind.IMPOSSIBLE_SCHEME,
        f"{where} has {fault.reason}",
        *keys,
        severity=fault.severity,
    )


def _twice(said: Said, place: Place) -> Iterator[Defect]:
    """Report targets of two groups, of which the later one counts."""
    first: dict[str, Group] = {}
    for group in said.read:
        for number, text in enumerate(group.scheme.targets):
            other = first.setdefault(text, group)
            if other.scheme != group.scheme:
                yield place.defect(
                    DefectKind.CONTRADICTION,
                    f"target {text!r} is of config groups {other.keys[-1]!r} and "
                    f"{group.keys[-1]!r}; the later one counts",
                    *group.place(number),
                    hint="name every target in one group",
                    severity=Severity.WARNING,
                )
