"""The lines of a `tensor-map`: what each promises, and which no reader could have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.founding import Keeping, Quantizing
from qmanifest.dialects.lowering.mlx_layout import (
    AFFINE_GROUPS,
    Mode,
    impossible,
    scheme_of,
)
from qmanifest.dialects.lowering.plain_names import PlainNames, are_plain
from qmanifest.dtypes import FLOAT16
from qmanifest.findings import DefectKind, Severity, json_pointers
from qmanifest.patterns import Syntax

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.dialects.base import ComponentNames, Place
    from qmanifest.dialects.tensor_map import TensorEntry, TensorMap
    from qmanifest.findings import Defect


def keeping(named: ComponentNames) -> Keeping:
    """List the lines that keep; a plain name that is dead is worse than a pattern."""
    claims = []
    for number, pattern in enumerate(named.keeps):
        plain = pattern.syntax is Syntax.EXACT
        unused = Severity.ERROR if plain else Severity.WARNING
        claims.append(Claim(("kept_16bit", number), pattern, "keep", unused))
    return Keeping(claims, FLOAT16)


def quantizing(document: TensorMap, named: ComponentNames) -> Iterator[Quantizing]:
    """Walk over the entries with what each promises."""
    for (name, entry), pattern in zip(
        document.tensors.items(), named.patterns, strict=True
    ):
        plain = pattern.syntax is Syntax.EXACT
        unused = None if plain else Severity.ERROR  # an absent name is QM201's
        yield Quantizing(
            Claim(("tensors", name), pattern, "quantize", unused),
            scheme_of(*_numbers(document, entry)),
            tuple(entry["shape"]) if "shape" in entry else None,
        )


def plain_lines(
    document: TensorMap, named: ComponentNames, place: Place
) -> PlainNames | None:
    """Read the entries all at once, where every one is a plain name."""
    names = tuple(document.tensors)
    if not are_plain(names, named.patterns):
        return None
    said = {
        key: (
            scheme_of(*_numbers(document, entry)),
            tuple(entry["shape"]) if "shape" in entry else None,
        )
        for key, entry in document.distinct.items()
    }
    each = [said[id(entry)] for entry in document.tensors.values()]
    return PlainNames(
        names,
        named.patterns,
        json_pointers(place.pointer("tensors"), names),
        [scheme for scheme, _ in each],
        [shape for _, shape in each],
    )


def _numbers(document: TensorMap, entry: TensorEntry) -> tuple[Mode, int, int]:
    """Resolve an entry's mode, bits and group size against the top level."""
    return (
        entry.get("mode", document.mode),
        entry.get("bits", document.bits),
        entry.get("group_size", document.group_size),
    )


def _is_sound(document: TensorMap, entry: TensorEntry) -> bool:
    """Whether a reader could have written an entry."""
    mode, bits, group_size = _numbers(document, entry)
    if impossible(mode, bits, group_size) is not None:
        return False
    return "shape" not in entry or entry["shape"][-1] % group_size == 0


def entry_defects(document: TensorMap, place: Place) -> Iterator[Defect]:
    """Find the entries that no reader could have written."""
    sound = {
        key for key, each in document.distinct.items() if _is_sound(document, each)
    }
    for name, entry in document.tensors.items():
        if id(entry) in sound:
            continue
        mode, bits, group_size = _numbers(document, entry)
        misfit = impossible(mode, bits, group_size)
        if misfit is not None:
            own = [key for key in (misfit.key, "mode") if key in entry]
            parts = ("tensors", name, own[0]) if own else (misfit.key,)
            yield place.defect(
                DefectKind.IMPOSSIBLE_SCHEME,
                f"{name!r}: {misfit.reason}",
                *parts,
                tensor=name,
            )
        else:
            width = entry["shape"][-1]
            fits = [size for size in AFFINE_GROUPS if width % size == 0]
            other = f"use group_size {fits[-1]}, or keep" if fits else "keep"
            yield place.defect(
                DefectKind.GROUP_DIVISION,
                f"{name!r} has {width} input features, which group_size {group_size} "
                "does not divide",
                *("tensors", name, "shape"),
                tensor=name,
                expected=f"a multiple of {group_size}",
                actual=width,
                hint=f"{other} the tensor 16-bit",
            )
