"""What the stored tensors alone say: which are packed, which are their companions.

Labels lie more often than bytes do, so lowering, rules and the search for a component
all ask here what a tensor is. To teach it a format's mark, add a row to `MARKS`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from qmanifest.dtypes import FLOAT

if TYPE_CHECKING:
    from qmanifest.tensors import TensorIndex

COMPANIONS: Final = (".scales", ".biases", ".zeros", ".qbiases", ".global_scale")
"""Suffixes of the tensors that stand beside packed codes in MLX's layout."""
WORDS: Final = ("U32", "I32", "U8", "I8")
"""Dtypes that codes are stored in."""
DENSE: Final = (*FLOAT, "F64")
"""Dtypes that a weight has before it is quantized."""
MARKS: Final = (
    (".qweight", ".qweight", "GPTQ or AWQ"),
    (".weight_packed", ".weight_packed", "compressed-tensors"),
    (".weight.absmax", ".weight", "bitsandbytes 4-bit"),
    (".SCB", ".weight", "bitsandbytes int8"),
    (".weight_scale_inv", ".weight", "fine-grained FP8"),
    (".weight_scale", ".weight", "FP8 or NVFP4"),
    (".W_q", ".W_q", "HQQ"),
    ("._weight_qdata", "._weight_qdata", "torchao"),
    (".weight._data", ".weight._data", "quanto"),
    (".q_weight", ".q_weight", "EXL2"),
    (".trellis", ".trellis", "EXL3"),
    ("_blocks", "_blocks", "gpt-oss MXFP4"),
)
"""Suffix that one family of formats writes, that of its codes, and the family's name.

A mark counts where the codes are no plain floats: models have parameters of the name.
"""


def stem(name: str) -> str:
    """Name the module of a weight: `X` for `X.weight`."""
    return name.removesuffix(".weight")


def served(name: str) -> str | None:
    """Name the module that a companion of this name serves; None for other names."""
    return name.rpartition(".")[0] if name.endswith(COMPANIONS) else None


class Evidence(msgspec.Struct, frozen=True, dict=True):
    """What one model's stored tensors show, worked out once each."""

    index: TensorIndex

    @cached_property
    def packed(self) -> frozenset[str]:
        """Names of the tensors that hold packed codes of MLX's layout or its kin."""
        return frozenset(
            name
            for name, tensor in self.index.items()
            if tensor.dtype in WORDS and self.is_packed(name)
        )

    def is_packed(self, name: str) -> bool:
        """Whether a tensor is there and holds packed codes, as `packed` has them."""
        tensor = self.index.get(name)
        if tensor is None or tensor.dtype not in WORDS or len(tensor.shape) < 2:  # noqa: PLR2004 - a matrix
            return False
        if name.endswith(COMPANIONS):
            return False
        sure = tensor.dtype == "U32" and name.endswith(".weight")
        return sure or f"{stem(name)}.scales" in self.index

    def is_companion(self, name: str) -> bool:
        """Whether a tensor is called like a companion and has a weight beside it."""
        base = served(name)
        if base is None:
            return False
        return f"{base}.weight" in self.index or base in self.index

    @cached_property
    def logical(self) -> tuple[str, ...]:
        """The names that a config talks about: everything but companions."""
        names = self.index.by_name.copy()  # asked for each companion, so a plain dict
        return tuple(
            name
            for name in names
            if not name.endswith(COMPANIONS)
            or not (
                (base := name.rpartition(".")[0]) + ".weight" in names or base in names
            )
        )

    @cached_property
    def vectors(self) -> frozenset[int]:
        """Lengths of the tensors of one dimension: norms have the hidden size's."""
        return frozenset(t.shape[0] for t in self.index.values() if len(t.shape) == 1)

    @cached_property
    def family(self) -> tuple[str, str] | None:
        """Another format's name and the first tensor that shows it, if one does."""
        for name in self.index:
            for suffix, codes, family in MARKS:
                if name.endswith(suffix):
                    packed = self.index.get(name.removesuffix(suffix) + codes)
                    if packed is not None and packed.dtype not in DENSE:
                        return family, name
        return None
