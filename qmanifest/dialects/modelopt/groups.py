"""What ModelOpt says twice: by algorithm, and in compressed-tensors' words.

`config_groups` repeats the algorithm as bits and group size for other readers, and the
lists of modules may name one both as quantized and as left alone.

Source: https://github.com/NVIDIA/Model-Optimizer, `torch/export/convert_hf_config.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dialects.modelopt.schemes import ALGORITHMS, BITS, WEIGHT_ONLY
from qmanifest.findings import DefectKind, Severity
from qmanifest.patterns import Pattern, Syntax, match

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.dialects.base import Place
    from qmanifest.dialects.modelopt import ModeloptConfig
    from qmanifest.findings import Defect

GROUPS: Final = "config_groups"


def group_size_of(document: ModeloptConfig) -> object:
    """Read the inputs of a group: said plainly, or by all groups of `config.json`."""
    if document.group_size is not None:
        return document.group_size
    sizes = [_weights(group).get("group_size") for group in _groups(document).values()]
    return sizes[0] if sizes and all(size == sizes[0] for size in sizes) else None


def group_defects(document: ModeloptConfig, place: Place) -> Iterator[Defect]:
    """Report groups that say other numbers than the algorithm of their layers."""
    for key, group in _groups(document).items():
        for said, algorithm in _algorithms(document, group):
            problem = _problem(group, algorithm)
            if problem is not None:
                yield place.defect(
                    DefectKind.CONTRADICTION,
                    f"{GROUPS} {key!r} says {problem}, and {said} is {algorithm}",
                    *(GROUPS, key),
                    hint="correct the one that is wrong; loaders differ in which they "
                    "read",
                    severity=Severity.WARNING,
                )
                break


def _algorithms(
    document: ModeloptConfig, group: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Walk over the algorithms of a group's layers, each with where it is said."""
    if document.algorithm() in ALGORITHMS:
        yield "quant_algo", document.algorithm()
        return
    layers = document.quantized_layers or {}
    targets = group.get("targets")
    for target in targets if isinstance(targets, list) else ():
        said = layers.get(target) if isinstance(target, str) else None
        algorithm = str((said or {}).get("quant_algo")).upper()
        if algorithm in ALGORITHMS:
            yield f"{target!r}", algorithm


def _problem(group: Mapping[str, Any], algorithm: str) -> str | None:
    """Say what a group has that the algorithm has not."""
    bits = _weights(group).get("num_bits")
    if isinstance(bits, int) and bits != BITS[ALGORITHMS[algorithm]]:
        return f"weights of {bits} bits"
    if group.get("input_activations") and algorithm in WEIGHT_ONLY:
        return "quantized inputs"
    return None


def kept_and_quantized(
    document: ModeloptConfig, place: Place, lists: Mapping[str, tuple[str, ...] | None]
) -> Iterator[Defect]:
    """Report layers with an algorithm that a list leaves alone."""
    layers = tuple(document.quantized_layers or ())
    lines = [
        (key, number, text)
        for key, texts in lists.items()
        for number, text in enumerate(texts or ())
    ]
    patterns = [Pattern(text, Syntax.FNMATCH) for _, _, text in lines]
    found = match(patterns, layers) if layers and patterns else None
    for at, (key, number, text) in enumerate(lines if found else ()):
        for module in found.of(at)[:1] if found else ():
            yield place.defect(
                DefectKind.CONTRADICTION,
                f"{module!r} has an algorithm in quantized_layers, and {key} has "
                f"{text!r}, which leaves it 16-bit",
                *(key, number),
                hint="remove one of the two",
            )


def _groups(document: ModeloptConfig) -> dict[str, dict[str, Any]]:
    """Pick the groups that are objects."""
    groups = (document.config_groups or {}).items()
    return {key: group for key, group in groups if isinstance(group, dict)}


def _weights(group: Mapping[str, Any]) -> Mapping[str, Any]:
    weights = group.get("weights")
    return weights if isinstance(weights, dict) else {}
