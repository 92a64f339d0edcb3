"""What the stored tensors alone say: which are packed, which are their companions.

Labels lie more often than bytes do, so lowering, rules and the search for a component
all ask here what a tensor is. What a format calls its tensors is in `families`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from qmanifest.families import BNB4, DENSE, FAMILIES, MLX, WORDS, Family

if TYPE_CHECKING:
    from qmanifest.tensors import TensorIndex, TensorInfo

COMPANIONS: Final = (".scales", ".biases", ".zeros", ".qbiases", ".global_scale")
"""Suffixes of the tensors that stand beside packed codes in MLX's layout."""
OTHERS: Final = tuple(family for family in FAMILIES if family is not MLX)
"""The families but MLX's, whose tensors may be called anything."""
BY_DTYPE: Final[dict[str, tuple[Family, ...]]] = {
    dtype: tuple(family for family in OTHERS if dtype in family.dtypes)
    for dtype in {dtype for family in OTHERS for dtype in family.dtypes}
}


def stem(name: str) -> str:
    """Name the module of a weight: `X` for `X.weight`."""
    return name.removesuffix(".weight")


_OWN: Final = tuple(
    (suffix, family)
    for family in OTHERS
    for role, suffix in family.names.suffixes
    if role in family.own
)
_OWN_SUFFIXES: Final = tuple(suffix for suffix, _ in _OWN)


class Found(NamedTuple):
    """A weight that is stored quantized, as its tensors show."""

    family: Family
    codes: TensorInfo


@dataclass(frozen=True)
class Evidence:
    """What one model's stored tensors show, worked out once each."""

    index: TensorIndex

    @cached_property
    def stored(self) -> dict[str, Found]:
        """The weights that are stored quantized, by name, in the order of the files."""
        found: dict[str, Found] = {}
        for name, tensor in self.index.items():
            family, weight = _family(name, tensor, self.index)
            if family is not None:
                found[weight] = Found(family, tensor)
        return found

    def tensor(self, name: str) -> TensorInfo:
        """Find what a logical name is stored as: a tensor, or a weight's codes."""
        found = self.stored.get(name)
        return self.index[name] if found is None else found.codes

    def names_of(self, *families: Family) -> tuple[str, ...]:
        """Name the weights that are stored as one of `families`, in their order."""
        return tuple(n for n, found in self.stored.items() if found.family in families)

    @cached_property
    def packed(self) -> frozenset[str]:
        """Names of the weights that are stored quantized, in whatever way."""
        return frozenset(self.stored)

    @cached_property
    def suffixed(self) -> tuple[tuple[str, str], ...]:
        """The tensors that are called like companions, each with its stem."""
        return tuple(
            (name, name[: name.rindex(".")])
            for name in self.index
            if name.endswith(COMPANIONS)
        )

    @cached_property
    def companions(self) -> frozenset[str]:
        """Names of the tensors that only serve a weight beside them."""
        names = self.index.keys()
        mlx = {
            name
            for name, base in self.suffixed
            if f"{base}.weight" in names or base in names
        }
        others = (
            part
            for weight, found in self.stored.items()
            if found.family is not MLX
            for part in found.family.names.of(weight)
        )
        return frozenset(mlx.union(part for part in others if part in names))

    @cached_property
    def bereft(self) -> dict[str, tuple[Family, TensorInfo]]:
        """The weights whose codes are in no file, with a part that still is."""
        found: dict[str, tuple[Family, TensorInfo]] = {}
        for name in self.index:
            if name.endswith(_OWN_SUFFIXES):
                suffix, family = next(own for own in _OWN if name.endswith(own[0]))
                weight = name.removesuffix(suffix) + family.names.stem_suffix
                if family.names.name(weight, "codes") not in self.index:
                    found.setdefault(weight, (family, self.index[name]))
        return found

    @cached_property
    def logical(self) -> tuple[str, ...]:
        """The names that a config talks about: weights, and what is not quantized."""
        companions, called = self.companions, self.called
        return tuple(
            called.get(name, name) for name in self.index if name not in companions
        )

    @cached_property
    def called(self) -> dict[str, str]:
        """The weights whose codes have another name, by that name."""
        return {
            found.codes.name: weight
            for weight, found in self.stored.items()
            if found.codes.name != weight
        }

    @cached_property
    def vectors(self) -> frozenset[int]:
        """Lengths of the tensors of one dimension: norms have the hidden size's."""
        return frozenset(t.shape[0] for t in self.index.values() if len(t.shape) == 1)

    @cached_property
    def family(self) -> tuple[str, str] | None:
        """What the first quantized weight is stored as, and its codes, if any is."""
        for found in self.stored.values():
            return found.family.title, found.codes.name
        return None


def _family(
    name: str, tensor: TensorInfo, index: TensorIndex
) -> tuple[Family | None, str]:
    """Find the family that a tensor holds codes of, and the weight they are of."""
    dtype = tensor.dtype
    if dtype in DENSE:
        beside = f"{name}.absmax" in index or f"{name}.quant_map" in index
        if len(tensor.shape) == 2 and beside:  # noqa: PLR2004 - a column
            return BNB4, name  # bytes that are viewed as floats
        if not name.endswith((".W_q", ".compressed")):
            return None, name
    for family in BY_DTYPE.get(dtype, ()):
        weight = family.weight(name, dtype, index)
        if weight is not None:
            return family, weight
    if dtype in WORDS and _is_mlx(name, tensor, index):
        return MLX, name
    if dtype == "U8" and tensor.shape[1:] == (1,) and name.endswith(".weight"):
        return BNB4, name  # a column of bytes that has lost all beside it
    return None, name


def _is_mlx(name: str, tensor: TensorInfo, index: TensorIndex) -> bool:
    """Whether a tensor holds packed codes of MLX's layout or its kin."""
    if len(tensor.shape) < 2 or name.endswith(COMPANIONS):  # noqa: PLR2004 - a matrix
        return False
    alone = tensor.dtype == "U32" and name.endswith(".weight")
    return alone or f"{stem(name)}.scales" in index
