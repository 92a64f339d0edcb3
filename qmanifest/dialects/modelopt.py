"""`modelopt`: what NVIDIA's Model Optimizer writes, in either of its two files.

`hf_quant_config.json` has one algorithm for all layers but those that `exclude_modules`
names, or one for each of `quantized_layers`; `config.json` repeats it in other words.

Source: https://github.com/NVIDIA/Model-Optimizer, `torch/export/quant_utils.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from pydantic import Field

from qmanifest.dialects.base import (
    ComponentNames,
    Dialect,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.blocks import blocks, method_of
from qmanifest.dialects.claims import Claim
from qmanifest.dialects.modelopt_groups import (
    group_defects,
    group_size_of,
    kept_and_quantized,
)
from qmanifest.dialects.modelopt_schemes import (
    ALGORITHMS,
    Scales,
    scales_of,
    scheme_of,
)
from qmanifest.dialects.parsing import emitted
from qmanifest.dialects.promised import with_promised
from qmanifest.dialects.stored import Saying, lower_stored
from qmanifest.dialects.tolerant import TolerantDocument
from qmanifest.errors import EmitError
from qmanifest.families import SCALED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by
from qmanifest.schemes import Integer, Scaled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.schemes import Scheme
    from qmanifest.spreads import Form
    from qmanifest.tensors import Shape, TensorIndex

SUFFIX: Final = ".weight"
"""What a module path lacks to be a tensor name."""
MIXED: Final = "MIXED_PRECISION"
LOW_RANK: Final = "NVFP4_SVD"
"""The algorithm that leaves a part of the weight beside its codes."""
NVFP4_GROUP: Final = 16
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
    own = raw.get("quantization")
    found: list[Keys] = []
    if isinstance(own, dict) and "quant_algo" in own:
        found.append(("quantization",))
    found += [keys for keys, block in blocks(raw) if keys and _is_modelopt(block)]
    return tuple(found)


def _is_modelopt(block: Raw) -> bool:
    method = method_of(block)
    if method is not None:
        return method.startswith("modelopt")
    producer = block.get("producer")
    named = isinstance(producer, dict) and producer.get("name") == "modelopt"
    return named or ("quant_algo" in block and "config_groups" in block)


def _components(_document: ModeloptConfig, place: Place) -> tuple[ComponentNames, ...]:
    return (ComponentNames("", place.pointer()),)


def _claims(document: ModeloptConfig, index: TensorIndex | None) -> list[Claim]:
    """List what stays 16-bit, and what is quantized in a way of its own."""
    kept = [
        Claim(
            (key, number),
            Pattern(text, Syntax.FNMATCH),
            "keep",
            Severity.NOTE,
            SUFFIX,
            *read_by("modelopt", key),
        )
        for key, texts in document.left_alone().items()
        for number, text in enumerate(texts or ())
    ]
    return kept + [
        Claim(
            ("quantized_layers", module),
            _layer(module, index),
            "quantize",
            Severity.WARNING,
            SUFFIX,
        )
        for module in document.quantized_layers or ()
    ]


def _layer(module: str, index: TensorIndex | None) -> Pattern:
    """Read a key of `quantized_layers`: a module, or what its modules begin with."""
    if index is None or module + SUFFIX in index:
        return Pattern(module, Syntax.EXACT)
    return Pattern(f"{module}.", Syntax.PREFIX)


def _defects(document: ModeloptConfig, place: Place) -> Iterator[Defect]:
    """Find what does not exist, and what is said in two ways."""
    yield from document.unknown(place)
    yield from group_defects(document, place)
    yield from kept_and_quantized(document, place, document.left_alone())
    yield from _said(document.algorithm(), document.group_size, place)
    layers = document.quantized_layers or {}
    for module, own in layers.items():
        parts = ("quantized_layers", module)
        yield from _said(
            str(own.get("quant_algo")), own.get("group_size"), place, *parts
        )
    if document.algorithm() == MIXED and not layers:
        yield place.defect(
            DefectKind.MISSING_KEY,
            f"quant_algo is {MIXED}, and no quantized_layers say what is mixed",
            "quant_algo",
        )
    algorithms = {document.algorithm(), *(o.get("quant_algo") for o in layers.values())}
    if LOW_RANK in algorithms:
        yield place.defect(
            DefectKind.IMPOSSIBLE_SCHEME,
            f"{LOW_RANK} adds the product of svdquant_lora_b and svdquant_lora_a to a "
            "weight; it is not decoded here, the codes are",
            severity=Severity.NOTE,
        )


def _said(
    algorithm: str, group: object, place: Place, *parts: str | int
) -> Iterator[Defect]:
    """Find an algorithm or a group size that does not exist."""
    name = algorithm.upper()
    if name and name not in ALGORITHMS and (name != MIXED or parts):
        yield place.defect(
            DefectKind.INVALID_VALUE,
            f"quant_algo {algorithm!r} is none that is known",
            *(*parts, "quant_algo"),
            expected=", ".join(sorted({*ALGORITHMS, MIXED})),
            actual=algorithm,
        )
    elif "NVFP4" in name and group not in {None, NVFP4_GROUP}:
        yield place.defect(
            DefectKind.IMPOSSIBLE_SCHEME,
            f"{name} has group_size {NVFP4_GROUP} only; found {group!r}",
            *(*parts, "group_size"),
        )


def _lower(document: ModeloptConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    layers = {
        place.pointer("quantized_layers", module): each
        for module, each in (document.quantized_layers or {}).items()
    }

    def scheme(said: Entry | None, scales: Scales) -> Scheme | None:
        own = layers[said.pointer] if said else {}
        algorithm = str(own.get("quant_algo") or document.algorithm()).upper()
        group = own.get("group_size") or group_size_of(document)
        return scheme_of(algorithm, group, scales)

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        if index is None or found.family is not SCALED:
            return None
        made = scheme(said, scales_of(name, index))
        pointer = said.pointer if said else place.pointer()
        return None if made is None else Weight(name, made, pointer, names=SCALED.names)

    whole = document.algorithm() not in {"", MIXED}
    saying = Saying(_claims(document, index), every_linear=whole)
    component, defects = lower_stored(saying, place, index, make)
    component = with_promised(component, index, lambda said: scheme(said, Scales()))
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("modelopt", place.file, (component,)), found)


def _emit(manifest: Manifest) -> ModeloptConfig:
    if len(manifest.components) != 1:
        raise EmitError("modelopt describes one model")
    (component,) = manifest.components
    schemes = {weight.scheme for weight in component.weights}
    for algorithm in ALGORITHMS:
        for scheme in schemes:
            group = scheme.group_size or None
            if len(schemes) == 1 and scheme == _plain(algorithm, group, scheme):
                kept = [each.name.removesuffix(SUFFIX) for each in component.kept]
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
    components=_components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization",),
    decodes="most",
    synonyms={
        "ignore": "exclude_modules",
        "kv_cache_scheme": "kv_cache_quant_algo",
    },
)
