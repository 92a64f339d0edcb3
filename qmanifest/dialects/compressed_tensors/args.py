"""What a config of compressed-tensors says of numbers: `QuantizationArgs` and schemes.

Source: https://github.com/vllm-project/compressed-tensors,
`compressed_tensors/quantization/quant_args.py` and `quant_scheme.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge, Gt, Len
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

Strategy: TypeAlias = Literal[
    "tensor", "channel", "group", "block", "token", "tensor_group", "attn_head"
]
"""Which weights share a scale; `token` and `attn_head` are for activations alone."""
Format: TypeAlias = Literal[
    "dense",
    "int-quantized",
    "float-quantized",
    "naive-quantized",
    "pack-quantized",
    "mixed-precision",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mxfp6-pack-quantized",
    "mxfp8-quantized",
    "sparse-bitmask",
    "sparse-24-bitmask",
    "marlin-24",
]
"""How weights are stored."""
Side: TypeAlias = Annotated[int, Gt(0)]
Block: TypeAlias = (
    Annotated[list[Side], Len(2, 2)]
    | Annotated[str, Field(pattern=r"^[1-9][0-9]*x[1-9][0-9]*$")]
)
"""Outputs and inputs of a block: `[128, 128]`, or `"128x128"` as old versions wrote."""


class _Closed(BaseModel):
    """An object in which the library refuses unknown keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, defer_build=True
    )


class QuantizationArgs(_Closed):
    """How one kind of numbers is quantized: weights, inputs, outputs or the cache."""

    num_bits: int = 8
    """Bits of a code."""
    type: Literal["int", "float"] = "int"
    """Whether codes are whole numbers or small floats."""
    symmetric: bool = True
    """Whether there are no zero points."""
    group_size: Annotated[int, Ge(-1)] | None = None
    """Inputs that share a scale; -1 is all of a row."""
    strategy: Strategy | None = None
    """Which numbers share a scale; inferred from `group_size` where it is null."""
    block_structure: Block | None = None
    """Outputs and inputs of a block, for strategy `block`."""
    dynamic: bool | Literal["local"] = False
    """Whether scales are made when the model runs; `local`: all but the global one."""
    actorder: bool | Literal["weight", "static", "group", "dynamic"] | None = None
    """Order of the inputs; `group` and `dynamic` store a `weight_g_idx`."""
    scale_dtype: str | None = None
    """Dtype of stored scales, `torch.uint8`; null is that of the model."""
    zp_dtype: str | None = None
    """Dtype of zero points before they are packed."""
    observer: str | None = None
    """How ranges were found when the model was quantized."""
    observer_kwargs: dict[str, Any] | None = None
    """Arguments of the observer."""

    @property
    def spread(self) -> Strategy:
        """The strategy, inferred as the library does where it is null."""
        if self.strategy is not None:
            return self.strategy
        if self.group_size is None:
            return "tensor"
        return "group" if self.group_size > 0 else "channel"

    @property
    def block(self) -> tuple[int, int] | None:
        """Outputs and inputs of a block."""
        if self.block_structure is None:
            return None
        sides = self.block_structure
        rows, columns = sides.split("x") if isinstance(sides, str) else sides
        return int(rows), int(columns)

    @property
    def lists_groups(self) -> bool:
        """Whether `weight_g_idx` says which group an input is of."""
        return self.actorder is True or self.actorder in {"group", "dynamic"}


class QuantizationScheme(_Closed):
    """A config group: which modules, and how their numbers are quantized."""

    targets: list[str]
    """Names of modules, `re:` and a regular expression, or classes of modules."""
    weights: QuantizationArgs | None = None
    """How weights are quantized; null leaves them as they are."""
    input_activations: QuantizationArgs | None = None
    output_activations: QuantizationArgs | None = None
    format: Format | None = None
    """How this group's weights are stored, where the whole is of mixed precision."""


class SparsityConfig(BaseModel):
    """How pruned weights are stored, by versions before 0.13."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)

    format: str | None = None
    """`dense`, `sparse-bitmask` or `sparse-24-bitmask`."""
    targets: list[str] | None = None
    ignore: list[str] | None = None
    global_sparsity: float | None = None
    sparsity_structure: str | None = None


def _kind(value: object) -> str:
    return "targets" if isinstance(value, list) else "scheme"


AnyGroup: TypeAlias = Annotated[
    Annotated[QuantizationScheme, Tag("scheme")] | Annotated[list[str], Tag("targets")],
    Discriminator(_kind),
]
"""A group in full, or the targets of a preset that the group is named after."""
