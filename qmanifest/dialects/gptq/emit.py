"""`gptq`, written: a manifest in GPTQ's keys, with `dynamic` for what differs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from qmanifest.dialects.gptq.schemes import (
    PLANAR,
    PLANES,
    V1,
    V2,
    Numbers,
    scheme_of,
)
from qmanifest.dialects.lowering.dynamic import HEAD, KEEP, QUANTIZE, pattern_of
from qmanifest.dialects.lowering.one_model import SUFFIX, only
from qmanifest.errors import EmitError
from qmanifest.schemes import Integer

if TYPE_CHECKING:
    from qmanifest.manifest import Manifest
    from qmanifest.schemes import Scheme


def emitted_values(manifest: Manifest) -> dict[str, Any]:
    """Say a manifest in GPTQ's keys.

    Raises:
        EmitError: a scheme, or the mixture of schemes, is none of GPTQ's.

    """
    component = only(manifest, "gptq")
    numbers: dict[str, Numbers] = {}
    layouts: tuple[str, ...] = (V1, V2, PLANES)
    for weight in component.weights:
        numbers[weight.name], possible = _said(weight.name, weight.scheme)
        layouts = tuple(each for each in layouts if each in possible)
    if not layouts or not numbers:
        raise EmitError("gptq has one format for all modules, which these have not")
    ((usual, _),) = Counter(numbers.values()).most_common(1)
    document = _values(usual)
    document["quant_method"] = "gptq"
    document["checkpoint_format"] = layouts[0]
    if HEAD + SUFFIX in numbers:
        document[HEAD] = True
    dynamic: dict[str, Any] = {
        pattern_of(kept.name, KEEP): {} for kept in component.kept
    }
    for name, own in numbers.items():
        if own != usual:
            dynamic[pattern_of(name, QUANTIZE)] = _values(own)
    if dynamic:
        document["dynamic"] = dynamic
    return document


def _values(numbers: Numbers) -> dict[str, Any]:
    return {
        "bits": numbers.bits,
        "group_size": numbers.group_size or -1,
        "desc_act": numbers.act,
        "sym": numbers.sym,
    }


def _said(name: str, scheme: Scheme) -> tuple[Numbers, list[str]]:
    """Read a scheme back into its numbers, and the formats in which they make it."""
    if isinstance(scheme, Integer) and name.endswith(SUFFIX):
        zero, act = scheme.zero, scheme.order == "listed"
        numbers = Numbers(scheme.bits, scheme.group_size, zero.symmetric, act)
        made = (PLANES,) if scheme.bits in PLANAR else (V1, V2, PLANES)
        layouts = [each for each in made if scheme_of(numbers, each) == scheme]
        if layouts:
            return numbers, layouts
    raise EmitError(f"gptq has no words for {name!r}: {scheme}")
