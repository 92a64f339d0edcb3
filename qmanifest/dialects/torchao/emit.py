"""Writing a manifest as torchao's config: one for all modules, or one for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.dialects.lowering.one_model import SUFFIX
from qmanifest.errors import EmitError
from qmanifest.schemes import Integer, Scaled

if TYPE_CHECKING:
    from qmanifest.manifest import Component
    from qmanifest.schemes import Scheme

BYTE: Final = 8
"""Bits of the integers that have a config of their own."""


def quant_type(component: Component) -> dict[str, Any]:
    """Write the config of every weight.

    Raises:
        EmitError: torchao has no config that makes a weight what it is.

    """
    configs = [
        (weight.name.removesuffix(SUFFIX), _config(weight.name, weight.scheme))
        for weight in component.weights
    ]
    first = configs[0][1] if configs else _made("Int8WeightOnlyConfig", {})
    if all(config == first for _, config in configs):
        return {"default": first}
    if not all(weight.name.endswith(SUFFIX) for weight in component.weights):
        raise EmitError("torchao names modules, and not the parameters of experts")
    table = dict(configs)
    data = {"fqn_to_config": table, "module_fqn_to_config": table}
    return {"default": _made("FqnToConfig", data, version=1)}


def _config(name: str, scheme: Scheme) -> dict[str, Any]:
    """Write the config that makes such a weight."""
    if isinstance(scheme, Integer) and scheme.pack == "i8" and scheme.spread.rows:
        row = _made("PerRow", {"dim": -1}, version=1)
        if scheme.bits == BYTE and not scheme.group_size:
            return _made("Int8WeightOnlyConfig", {"granularity": row})
        size = {"group_size": scheme.group_size}
        group = _made("PerGroup", size, version=1)
        axis = _made("PerAxis", {"axis": 0}, version=1)
        data = {
            "weight_dtype": {"_type": "torch.dtype", "_data": f"int{scheme.bits}"},
            "granularity": group if scheme.group_size else axis,
        }
        return _made("IntxWeightOnlyConfig", data)
    if isinstance(scheme, Scaled) and scheme.factor == 1:
        if scheme.scale_format == "e8m0":
            dtype = {"e4m3": "float8_e4m3fn", "e2m1": "float4_e2m1fn_x2"}
            data = {
                "weight_dtype": {
                    "_type": "torch.dtype",
                    "_data": dtype.get(scheme.element, scheme.element),
                }
            }
            return _made("MXDynamicActivationMXWeightConfig", data, version=1)
        if scheme.scale_format == "e4m3" and scheme.global_scale != "divide":
            return _made("NVFP4WeightOnlyConfig", {}, version=1)
        if scheme.element == "e4m3" and (scheme.spread.rows, scheme.group_size) == (
            *(1, 0),
        ):
            return _made("Float8WeightOnlyConfig", {})
    raise EmitError(f"torchao has no words for {name!r}: {scheme}")


def _made(kind: str, data: dict[str, Any], *, version: int = 2) -> dict[str, Any]:
    return {"_type": kind, "_version": version, "_data": data}
