"""What a family is: how a format calls the parts of a weight, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.dtypes import FLOAT

if TYPE_CHECKING:
    from collections.abc import Container

WORDS: Final = ("U32", "I32", "U8", "I8")
"""Dtypes that codes are stored in."""


F8: Final = ("F8_E4M3", "F8_E5M2")
"""Dtypes that are codes and numbers at once."""


DENSE: Final = (*FLOAT, "F64")
"""Dtypes that a weight has before it is quantized."""


@dataclass(frozen=True, slots=True)
class PartNames:
    """How the stored tensors of a weight are called: a stem and a suffix per role."""

    stem_suffix: str
    """Taken off the weight's name to make the stem, where the name ends with it."""
    suffixes: tuple[tuple[str, str], ...]
    """Role and suffix of every part whose name is not the weight's own."""

    def name(self, weight: str, role: str) -> str:
        """Name the part of `weight` that plays `role`."""
        for part, suffix in self.suffixes:
            if part == role:
                return weight.removesuffix(self.stem_suffix) + suffix
        return weight

    def weight(self, codes: str) -> str:
        """Name the weight whose codes are called `codes`."""
        for part, suffix in self.suffixes:
            if part == "codes":
                return codes.removesuffix(suffix) + self.stem_suffix
        return codes

    def of(self, weight: str) -> tuple[str, ...]:
        """Name every part of `weight` but its codes."""
        stem = weight.removesuffix(self.stem_suffix)
        return tuple(stem + suffix for role, suffix in self.suffixes if role != "codes")


@dataclass(frozen=True, slots=True)
class Family:
    """One way to call the parts of a weight, and what shows that it is in use."""

    id: str
    title: str
    names: PartNames
    dtypes: tuple[str, ...]
    """Dtypes that the codes may have."""
    marks: tuple[str, ...] = ()
    """Roles; a part of one of them has to stand beside the codes."""
    alone: tuple[str, ...] = ()
    """Dtypes of codes that need no mark."""
    own: tuple[str, ...] = ()
    """Roles whose suffix no other family has: one of them tells that codes are lost."""
    described: bool = False
    """Whether readers know its weights by what the headers' metadata says of them."""
    turned: bool = False
    """Whether the 16-bit model has the inputs of its weights before the outputs."""

    @property
    def codes(self) -> str:
        """Suffix of the codes; empty where they are called as the weight is."""
        return next((s for role, s in self.names.suffixes if role == "codes"), "")

    def weight(self, codes: str, dtype: str, names: Container[str]) -> str | None:
        """Name the weight that `codes` holds, if they are codes of this family.

        Args:
            codes: a stored tensor's name.
            dtype: its dtype.
            names: the names of all stored tensors.

        """
        if dtype not in self.dtypes or not codes.endswith(self.codes):
            return None
        weight = self.names.weight(codes)
        if weight == codes and not weight.endswith(self.names.stem_suffix):
            return None
        if dtype in self.alone:
            return weight
        beside = (self.names.name(weight, role) for role in self.marks)
        return weight if any(name in names for name in beside) else None


def parts_of(codes: str, /, **suffixes: str) -> PartNames:
    """Name the parts of a weight `X.weight` by suffixes of `X`."""
    own = () if codes == ".weight" else (("codes", codes),)
    return PartNames(".weight", (*own, *suffixes.items()))


def stack_of(**suffixes: str) -> PartNames:
    """Name the parts of a stack of experts `X` by what follows its name."""
    return PartNames("", tuple(suffixes.items()))


def swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Exchange the last two axes, if there are two."""
    return (*shape[:-2], *reversed(shape[-2:]))
