"""What one of torchao's configs says of a weight: kind, width and group.

Source: https://github.com/pytorch/ao, `quantization/quant_api.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.tensors import TensorInfo

INT8: Final = (
    "Int8WeightOnlyConfig",
    "Int8DynamicActivationInt8WeightConfig",
    "Int8StaticActivationInt8WeightConfig",
)
INTX: Final = (
    "IntxWeightOnlyConfig",
    "Int8DynamicActivationIntxWeightConfig",
    "Int8DynamicActivationInt4WeightConfig",
)
FP8: Final = (
    "Float8WeightOnlyConfig",
    "Float8DynamicActivationFloat8WeightConfig",
    "Float8StaticActivationFloat8WeightConfig",
)
MX: Final = ("MXDynamicActivationMXWeightConfig", "MXFPInferenceConfig")
NVFP4: Final = ("NVFP4WeightOnlyConfig", "NVFP4DynamicActivationNVFP4WeightConfig")
INT4: Final = ("Int4WeightOnlyConfig", "Float8DynamicActivationInt4WeightConfig")
KINDS: Final = (*INT8, *INTX, *FP8, *MX, *NVFP4, *INT4)
"""torchao's configs; old files write them in lower case, `int8_weight_only`."""
BY_NAME: Final = ("FqnToConfig", "ModuleFqnToConfig")
"""Configs that have one for each module."""
WAY: Final = ("quant_type", "default")
"""Where the config of all modules lies."""
TABLES: Final = ("fqn_to_config", "module_fqn_to_config")
"""Keys of the configs by module; torchao writes the same under both."""
STORED: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys((*INT8, *INTX), ("I8",)),
    **dict.fromkeys(FP8, ("F8_E4M3", "F8_E5M2")),
    **dict.fromkeys(MX, ("F8_E4M3", "F8_E5M2", "U8")),
    **dict.fromkeys(NVFP4, ("U8",)),
    **dict.fromkeys(INT4, ("I8", "U8", "I32")),
}
"""Dtypes that a kind's codes are stored in."""
SCALES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(MX, ("F8_E8M0", "U8")),
    **dict.fromkeys(NVFP4, ("F8_E4M3",)),
}
"""Dtypes of the scales, of kinds whose codes do not tell them apart."""
_PLAIN: Final = {name.removesuffix("Config").lower(): name for name in KINDS}
_WIDTHS: Final = {f"int{bits}": bits for bits in range(1, 9)}
_GROUP: Final = 128
"""Inputs of a group of Int4WeightOnlyConfig, where it says nothing else."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a config comes to."""

    kind: str | None
    """One of `KINDS`; None where it is none that is known."""
    bits: int
    """Width of integer codes; a code may fill a byte anyway."""
    group: int | None
    """Inputs that share a scale; 0 for a row; None where that is left open."""

    def contradicts(self, codes: TensorInfo, scales: TensorInfo | None) -> bool:
        """Whether codes and scales are stored as another kind has them."""
        if self.kind is None:
            return False
        if codes.dtype not in STORED[self.kind]:
            return True
        dtypes = SCALES.get(self.kind)
        return dtypes is not None and scales is not None and scales.dtype not in dtypes


def said_by(config: Mapping[str, Any]) -> Said:
    """Read one config, `{"_type": ..., "_data": ...}`."""
    kind = canonical(config.get("_type"))
    data = config.get("_data")
    data = data if isinstance(data, dict) else {}
    four = kind in INT4 or kind == "Int8DynamicActivationInt4WeightConfig"
    bits = _WIDTHS.get(str(_value(data.get("weight_dtype"))), 4 if four else 8)
    group = _group(data)
    return Said(kind, bits, _GROUP if group is None and kind in INT4 else group)


def canonical(kind: object) -> str | None:
    """Give the name of a config in today's spelling; None where there is none."""
    plain = str(kind).removesuffix("Config").replace("_", "").lower()
    return _PLAIN.get(plain)


def _value(nested: object) -> object:
    """Take a value out of `{"_type": ..., "_data": value}`."""
    return nested.get("_data") if isinstance(nested, dict) else nested


def _group(data: Mapping[str, Any]) -> int | None:
    """Read how many inputs share a scale, by the granularity or the group size."""
    granularity = data.get("weight_granularity", data.get("granularity"))
    if isinstance(granularity, list) and granularity:
        granularity = granularity[-1]  # that of weights; the first is activations'
    if isinstance(granularity, dict):
        kind, own = granularity.get("_type"), granularity.get("_data")
        size = own.get("group_size") if isinstance(own, dict) else None
        if kind == "PerGroup" and type(size) is int and size > 0:
            return size
        return 0 if kind in {"PerRow", "PerAxis"} else None
    size = data.get("group_size")
    return size if type(size) is int and size > 0 else None
