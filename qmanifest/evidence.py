"""What the stored tensors alone say: which are packed, which are their companions.

Labels lie more often than bytes do, so lowering, rules and the search for a component
all ask here what a tensor is. What a format calls its tensors is in `families`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from qmanifest.families import BNB4, DENSE, FAMILIES, METAL, MLX, WORDS, Family

if TYPE_CHECKING:
    from qmanifest.tensors import TensorIndex, TensorInfo

COMPANIONS: Final = (".scales", ".biases", ".zeros", ".qbiases", ".global_scale")
"""Suffixes of the tensors that stand beside packed codes in MLX's layout."""
OTHERS: Final = tuple(each for each in FAMILIES if each not in {MLX, METAL})
"""The families of other layouts than MLX's."""
BY_DTYPE: Final[dict[str, tuple[Family, ...]]] = {
    dtype: tuple(family for family in OTHERS if dtype in family.dtypes)
    for dtype in {dtype for family in OTHERS for dtype in family.dtypes}
}
_TELLING: Final = frozenset(BY_DTYPE) - frozenset(DENSE)
"""Dtypes of which there are none where no tensor is of another layout than MLX's."""
_OWN: Final = tuple(
    (suffix, family)
    for family in OTHERS
    for role, suffix in family.names.suffixes
    if role in family.own
)
_OWN_SUFFIXES: Final = tuple(suffix for suffix, _ in _OWN)
_CODES: Final = tuple(
    (family.codes, family)
    for family in OTHERS
    if family.codes.startswith(".") and family.alone
)
"""Suffixes of codes that tell their family by themselves."""
_CODES_SUFFIXES: Final = (*(suffix for suffix, _ in _CODES), ".compressed")


def stem(name: str) -> str:
    """Name the module of a weight: `X` for `X.weight`."""
    return name.removesuffix(".weight")


def served(name: str) -> str | None:
    """Name the module that a companion of this name serves; None for other names."""
    return name.rpartition(".")[0] if name.endswith(COMPANIONS) else None


class Found(NamedTuple):
    """A weight that is stored quantized, as its tensors show."""

    family: Family
    codes: TensorInfo


class Evidence(msgspec.Struct, frozen=True, dict=True):
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

    def is_packed(self, name: str) -> bool:
        """Whether a weight is stored quantized, as `packed` has them."""
        tensor = self.index.get(name)
        if tensor is not None and _is_mlx(name, tensor, self.index):
            return True
        return not self.is_plain and name in self.stored

    def holds(self, tensor: str) -> tuple[str, Found] | None:
        """Find the weight whose codes a stored tensor holds, if it holds any."""
        info = self.index[tensor]
        family, weight = _family(tensor, info, self.index)
        return None if family is None else (weight, Found(family, info))

    @cached_property
    def is_plain(self) -> bool:
        """Whether no tensor can be of another layout than MLX's, by its dtype."""
        return _TELLING.isdisjoint({tensor.dtype for tensor in self.index.values()})

    def is_companion(self, name: str) -> bool:
        """Whether a tensor only serves a weight beside it."""
        base = served(name)
        if base is not None and (f"{base}.weight" in self.index or base in self.index):
            return True
        return name in self._parts

    @cached_property
    def _parts(self) -> frozenset[str]:
        """Names of what serves weights of other layouts than MLX's."""
        if self.is_plain:
            return frozenset()
        return frozenset(
            part
            for weight, found in self.stored.items()
            if found.family is not MLX
            for part in found.family.names.of(weight)
            if part in self.index
        )

    @cached_property
    def bereft(self) -> dict[str, tuple[Family, TensorInfo]]:
        """The weights whose codes are lost, with a part that is not.

        They are in no file, or are stored as something that no codes are.
        """
        found: dict[str, tuple[Family, TensorInfo]] = {}
        for name in self.index:
            if name.endswith(_OWN_SUFFIXES):
                suffix, family = next(own for own in _OWN if name.endswith(own[0]))
                weight = name.removesuffix(suffix) + family.names.stem_suffix
                codes = self.index.get(family.names.name(weight, "codes"))
                plain = codes is not None and codes.dtype in DENSE
                matrix = codes is not None and len(codes.shape) > 1
                if weight not in self.stored and not (plain and matrix):
                    found.setdefault(weight, (family, self.index[name]))
        return found

    @cached_property
    def logical(self) -> tuple[str, ...]:
        """The names that a config talks about: weights, and what is not quantized."""
        names = self.index.by_name.copy()  # asked for each companion, so a plain dict
        called = self._called
        parts = self._parts
        return tuple(
            called.get(name, name)
            for name in names
            if name not in parts
            and (
                not name.endswith(COMPANIONS)
                or not (
                    (base := name.rpartition(".")[0]) + ".weight" in names
                    or base in names
                )
            )
        )

    @cached_property
    def _called(self) -> dict[str, str]:
        """The weights whose codes have another name, by that name."""
        if self.is_plain:
            return {}
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


def _has_blocks(name: str, index: TensorIndex) -> bool:
    """Whether a tensor has beside it what bitsandbytes stores of blocks."""
    return f"{name}.absmax" in index or f"{name}.quant_map" in index


def _family(
    name: str, tensor: TensorInfo, index: TensorIndex
) -> tuple[Family | None, str]:
    """Find the family that a tensor holds codes of, and the weight they are of."""
    dtype = tensor.dtype
    if dtype in DENSE:
        if tensor.shape[1:] == (1,) and _has_blocks(name, index):
            return BNB4, name  # bytes that are viewed as floats
        if not name.endswith(_CODES_SUFFIXES):
            return None, name
    for family in BY_DTYPE.get(dtype, ()):
        weight = family.weight(name, dtype, index)
        if weight is not None:
            return family, weight
    if dtype in WORDS and _is_mlx(name, tensor, index):
        return METAL if f"{stem(name)}.qbiases" in index else MLX, name
    if dtype == "U8" and tensor.shape[1:] == (1,) and name.endswith(".weight"):
        return BNB4, name  # a column of bytes that has lost all beside it
    return _misstored(name, index)


def _misstored(name: str, index: TensorIndex) -> tuple[Family | None, str]:
    """Find the family of codes whose dtype is none of it, by name and companions."""
    if name.endswith(_CODES_SUFFIXES):
        for suffix, family in _CODES:
            weight = family.names.weight(name)
            if name.endswith(suffix) and any(
                part in index for part in family.names.of(weight)
            ):
                return family, weight
    return None, name


def _is_mlx(name: str, tensor: TensorInfo, index: TensorIndex) -> bool:
    """Whether a tensor holds packed codes of MLX's layout or its kin."""
    if tensor.dtype not in WORDS or len(tensor.shape) < 2:  # noqa: PLR2004 - a matrix
        return False
    if name.endswith(COMPANIONS):
        return False
    alone = tensor.dtype == "U32" and name.endswith(".weight")
    return alone or f"{stem(name)}.scales" in index
