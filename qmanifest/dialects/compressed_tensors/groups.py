"""Config groups of compressed-tensors: presets filled in, formats told, targets ranked.

Source: https://github.com/vllm-project/compressed-tensors,
`compressed_tensors/utils/match.py`, `compressed_tensors/compressors/format.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from qmanifest.dialects.compressed_tensors.args import Format, QuantizationScheme
from qmanifest.dialects.compressed_tensors.presets import preset
from qmanifest.patterns.reader import looks_like_class
from qmanifest.patterns.syntax import REGEX_MARK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.dialects.base import Keys
    from qmanifest.dialects.compressed_tensors.args import AnyGroup, QuantizationArgs

FORMATS: Final = ("fakequant", *get_args(Format))
"""Every format; the first is of a whole that was never compressed."""
UNTOLD: Final = ("fakequant", "dense", "mixed-precision")
"""Formats that do not say how a weight is stored that is quantized."""
LINEAR: Final = "Linear"
"""The class that most groups are about."""
_SMALL_FLOATS: Final[dict[tuple[int, int | None], Format]] = {
    (4, 32): "mxfp4-pack-quantized",
    (6, 32): "mxfp6-pack-quantized",
    (4, 16): "nvfp4-pack-quantized",
}


@dataclass(frozen=True, slots=True)
class Group:
    """A config group with nothing left open."""

    keys: Keys
    """Where it is, from the document's top."""
    scheme: QuantizationScheme
    format: str
    """How its weights are stored."""
    preset: bool
    """Whether the group is a list of targets, named after a preset."""

    @property
    def weights(self) -> QuantizationArgs | None:
        """How weights are quantized."""
        return self.scheme.weights

    @property
    def runs(self) -> bool:
        """Whether inputs or outputs are quantized when the model runs."""
        scheme = self.scheme
        return bool(scheme.input_activations or scheme.output_activations)

    def place(self, target: int) -> Keys | tuple[str | int, ...]:
        """Say where a target is, from the document's top."""
        return (*self.keys, *(() if self.preset else ("targets",)), target)


@dataclass(frozen=True, slots=True)
class Target:
    """One target, and the group that it chooses."""

    text: str
    group: Group
    number: int
    """Which of the group's targets it is."""


def read_groups(groups: Mapping[str, AnyGroup], whole: str | None) -> Iterator[Group]:
    """Walk over the groups of a config; names that are no preset are left out.

    Args:
        groups: the document's `config_groups`.
        whole: the document's `format`.

    """
    for name, said in groups.items():
        scheme: QuantizationScheme | None
        if isinstance(said, QuantizationScheme):
            scheme = said
        else:
            named = preset(name)
            scheme = named and named.model_copy(update={"targets": said})
        if scheme is not None:
            told = told_by(scheme.format) or told_by(whole)
            yield Group(
                ("config_groups", name),
                scheme,
                told or inferred(scheme),
                not isinstance(said, QuantizationScheme),
            )


def told_by(name: str | None) -> str | None:
    """Give a format if it says how weights are stored that are quantized."""
    return name if name in FORMATS and name not in UNTOLD else None


def inferred(scheme: QuantizationScheme) -> str:
    """Name the format that the library chooses where none is said."""
    weights, inputs = scheme.weights, scheme.input_activations
    if weights is None:
        return "dense"
    if weights.type == "float":
        found = _SMALL_FLOATS.get((weights.num_bits, weights.group_size))
        if found is not None:
            return found
        bytes_of_32 = (weights.num_bits, weights.group_size) == (8, 32)
        if bytes_of_32 and weights.scale_dtype == "torch.uint8":
            return "mxfp8-quantized"
        return "naive-quantized" if inputs is None else "float-quantized"
    if inputs is not None:
        return "int-quantized"
    return "pack-quantized" if weights.num_bits <= 8 else "naive-quantized"  # noqa: PLR2004 - a byte


def ranked(groups: tuple[Group, ...]) -> tuple[Target, ...]:
    """List the targets that are names, the one that decides before the others.

    Exact names come first, then regular expressions in the order of their text. A text
    that stands in two groups chooses the later one.
    """
    targets = _by_text(groups).values()
    names = (each for each in targets if not looks_like_class(each.text))
    return tuple(
        sorted(names, key=lambda each: (each.text.startswith(REGEX_MARK), each.text))
    )


def classes(groups: tuple[Group, ...]) -> dict[str, Target]:
    """Find the targets that are classes of modules, in the order of their names."""
    targets = _by_text(groups)
    return {text: targets[text] for text in sorted(targets) if looks_like_class(text)}


def _by_text(groups: tuple[Group, ...]) -> dict[str, Target]:
    return {
        text: Target(text, group, number)
        for group in groups
        for number, text in enumerate(group.scheme.targets)
    }
