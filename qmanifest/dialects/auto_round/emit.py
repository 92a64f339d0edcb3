"""`auto-round`, written: a manifest in AutoRound's keys."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from qmanifest.dialects.auto_round.lower import DENSE_BITS
from qmanifest.dialects.auto_round.schemes import PACKINGS, words
from qmanifest.dialects.lowering.one_model import SUFFIX, only
from qmanifest.errors import EmitError

if TYPE_CHECKING:
    from qmanifest.manifest import Component, Manifest

Values: TypeAlias = tuple[int, int, bool]
"""Bits, group size, and whether zero points are the middle code."""


def emitted_values(manifest: Manifest) -> dict[str, Any]:
    """Say a manifest in AutoRound's keys.

    Raises:
        EmitError: a scheme, or the mixture of schemes, is none of a `.qweight`.

    """
    component = only(manifest, "auto-round")
    for packing in PACKINGS:
        said = _said(component, packing)
        if said:
            return _document(component, packing, said)
    raise EmitError("auto-round has GPTQ's and AWQ's schemes, in one format for all")


def _said(component: Component, packing: str) -> dict[str, Values] | None:
    """Find the values that make every scheme in one format; None where there are none.

    AWQ's zero points are always stored, and promised to be nothing.
    """
    said: dict[str, Values] = {}
    for weight in component.weights:
        bits, group = weight.scheme.bits, weight.scheme.group_size
        for sym in (False,) if "awq" in packing else (True, False):
            if words(packing, bits, group, sym=sym) == weight.scheme:
                said[weight.name] = (bits, group or -1, sym)
    return said if len(said) == len(component.weights) else None


def _document(
    component: Component, packing: str, said: dict[str, Values]
) -> dict[str, Any]:
    ((usual, _),) = Counter(said.values()).most_common(1)
    extra: dict[str, Any] = {kept.name: {"bits": DENSE_BITS} for kept in component.kept}
    extra |= {name: _values(own) for name, own in said.items() if own != usual}
    document = {
        "quant_method": "auto-round",
        **_values(usual),
        "packing_format": packing,
    }
    if extra:
        named = {name.removesuffix(SUFFIX): own for name, own in extra.items()}
        document["extra_config"] = named
    return document


def _values(values: Values) -> dict[str, Any]:
    return dict(zip(("bits", "group_size", "sym"), values, strict=True))
