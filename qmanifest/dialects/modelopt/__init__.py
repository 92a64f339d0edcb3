"""`modelopt`: what NVIDIA's Model Optimizer writes, in either of its two files.

`hf_quant_config.json` has one algorithm for all layers but those that `exclude_modules`
names, or one for each of `quantized_layers`; `config.json` repeats it in other words.

Source: https://github.com/NVIDIA/Model-Optimizer, `torch/export/quant_utils.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from pydantic import Field

from qmanifest.dialects.base import Dialect, Keys, Raw
from qmanifest.dialects.documents.blocks import blocks, method_of
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.documents.tolerant import TolerantDocument
from qmanifest.dialects.lowering.one_model import components, modules_kept, only
from qmanifest.dialects.modelopt.lower import lower
from qmanifest.dialects.modelopt.schemes import ALGORITHMS, Scales, scheme_of
from qmanifest.errors import EmitError
from qmanifest.schemes import Integer, Scaled

if TYPE_CHECKING:
    from qmanifest.manifest import Manifest
    from qmanifest.schemes import Scheme
    from qmanifest.spreads import Form
    from qmanifest.tensors import Shape

Names: TypeAlias = Annotated[tuple[str, ...] | None, Field(strict=False)]


class ModeloptConfig(TolerantDocument):
    """The document of either file exactly as stored."""

    quant_algo: str | None = None
    """The algorithm, in either case; `MIXED_PRECISION` has one for each layer."""
    kv_cache_quant_algo: str | None = None
    """What the cache of keys and values is stored as; it has scales of its own."""
    kv_cache_scheme: Any = None
    """`config.json`'s word for the same."""
    group_size: int | None = None
    """Inputs that share a scale; NVFP4 has 16 only."""
    has_zero_point: bool | None = None
    """False; AWQ has no zero points here."""
    pre_quant_scale: bool | None = None
    """Whether inputs are scaled before the layer, as AWQ does."""
    exclude_modules: Names = None
    """Modules that stay 16-bit, with `*` for any characters."""
    ignore: Names = None
    """`config.json`'s word for the same."""
    quantized_layers: dict[str, dict[str, Any]] | None = None
    """Algorithm and group size by module, where they are mixed."""
    config_groups: dict[str, Any] | None = None
    """The same in compressed-tensors' words."""
    producer: dict[str, Any] | None = None
    """The writer's name and version."""
    quant_method: str | None = None
    """`modelopt`, in `config.json`."""

    def algorithm(self) -> str:
        """Name the algorithm, in upper case; empty where there is none."""
        return (self.quant_algo or "").upper()

    def left_alone(self) -> dict[str, tuple[str, ...] | None]:
        """Give the lists of modules that stay 16-bit, by their keys."""
        return {"exclude_modules": self.exclude_modules, "ignore": self.ignore}


def _locate(raw: Raw) -> tuple[Keys, ...]:
    """Find the block of `hf_quant_config.json`, and those of `config.json`."""
    scopes: list[tuple[Keys, Raw]] = [((), raw)]
    scopes += [
        (keys, each) for keys, each in blocks(raw) if keys and _is_modelopt(each)
    ]
    found: list[Keys] = []
    for keys, scope in scopes:
        inner = scope.get("quantization")
        if isinstance(inner, dict) and "quant_algo" in inner:
            found.append((*keys, "quantization"))
        elif keys:
            found.append(keys)
    return tuple(found)


def _is_modelopt(block: Raw) -> bool:
    method = method_of(block)
    if method is not None:
        return method.startswith("modelopt")
    producer = block.get("producer")
    named = isinstance(producer, dict) and producer.get("name") == "modelopt"
    return named or ("quant_algo" in block and "config_groups" in block)


def _emit(manifest: Manifest) -> ModeloptConfig:
    component = only(manifest, "modelopt")
    schemes = {weight.scheme for weight in component.weights}
    for algorithm in ALGORITHMS:
        for scheme in schemes:
            group = scheme.group_size or None
            if len(schemes) == 1 and scheme == _plain(algorithm, group, scheme):
                kept = modules_kept(component)
                document: dict[str, object] = {
                    "quant_algo": algorithm,
                    "kv_cache_quant_algo": None,
                    "exclude_modules": kept,
                }
                if group:
                    document["group_size"] = group
                return emitted(ModeloptConfig, document)
    raise EmitError("modelopt has one algorithm of ModelOpt's for all layers")


def _plain(algorithm: str, group: int | None, like: Scheme) -> Scheme | None:
    """Name the scheme of an algorithm, with scales that lie as those of `like` do."""
    form = like.spread.form if isinstance(like, Integer | Scaled) else "scalar"
    shapes: dict[Form, Shape] = {"one": (1,), "vector": (2,), "table": (2, 1)}
    return scheme_of(algorithm, group, Scales(shapes.get(form, ())))


DIALECT: Final = Dialect(
    id="modelopt",
    title="FP8, NVFP4 and INT4, as NVIDIA's Model Optimizer writes them",
    file_name="hf_quant_config.json",
    document=ModeloptConfig,
    locate=_locate,
    components=components,
    lower=lower,
    emit=_emit,
    blocks=("quantization",),
    decodes="most",
    synonyms={
        "ignore": "exclude_modules",
        "kv_cache_scheme": "kv_cache_quant_algo",
    },
    akin=("fp8",),
)
