"""`modelopt`: what NVIDIA's Model Optimizer writes, in either of its two files.

`hf_quant_config.json` has one algorithm for all layers but those that `exclude_modules`
names, or one for each of `quantized_layers`; `config.json` repeats it in other words.

Source: https://github.com/NVIDIA/Model-Optimizer, `export/quant_utils.py`; FORMATS 6
is retold in docs/dialects/modelopt.md.
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
from qmanifest.dialects.modelopt_schemes import ALGORITHMS, scheme_of
from qmanifest.dialects.parsing import emitted
from qmanifest.dialects.stored import Saying, lower_stored
from qmanifest.dialects.tolerant import TolerantDocument
from qmanifest.errors import EmitError
from qmanifest.families import SCALED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry
    from qmanifest.tensors import TensorIndex

SUFFIX: Final = ".weight"
"""What a module path lacks to be a tensor name."""
MIXED: Final = "MIXED_PRECISION"
NVFP4_GROUP: Final = 16
Names: TypeAlias = Annotated[tuple[str, ...] | None, Field(strict=False)]


class ModeloptConfig(TolerantDocument):
    """The document of either file exactly as stored."""

    quant_algo: str | None = None
    """The algorithm, in either case; `MIXED_PRECISION` has one for each layer."""
    kv_cache_quant_algo: str | None = None
    kv_cache_scheme: Any = None
    """`config.json`'s word for the same."""
    group_size: int | None = None
    """Inputs that share a scale; NVFP4 has 16 only."""
    has_zero_point: bool | None = None
    pre_quant_scale: bool | None = None
    """Whether inputs are scaled before the layer, as AWQ does."""
    exclude_modules: Names = None
    """Modules that stay 16-bit, with `*` for any characters."""
    ignore: Names = None
    """`config.json`'s word for the same."""
    quantized_layers: dict[str, dict[str, Any]] | None = None
    """Algorithm and group size by module, where they are mixed."""
    config_groups: dict[str, Any] | None = None
    producer: dict[str, Any] | None = None
    quant_method: str | None = None
    quantization: dict[str, Any] | None = None

    def algorithm(self) -> str:
        """Name the algorithm, in upper case; empty where there is none."""
        return (self.quant_algo or "").upper()


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
    lists = (
        ("exclude_modules", document.exclude_modules),
        ("ignore", document.ignore),
    )
    kept = [
        Claim(
            *(
                (key, number),
                Pattern(text, Syntax.FNMATCH),
                "keep",
                Severity.NOTE,
                SUFFIX,
            ),
            *read_by("modelopt", key),
        )
        for key, texts in lists
        for number, text in enumerate(texts or ())
    ]
    layers = document.quantized_layers or {}
    return kept + [
        Claim(
            ("quantized_layers", module),
            _layer(module, index),
            "quantize",
            Severity.WARNING,
            SUFFIX,
        )
        for module in layers
    ]


def _layer(module: str, index: TensorIndex | None) -> Pattern:
    """Read a key of `quantized_layers`: a module, or what its modules begin with."""
    if index is None or module + SUFFIX in index:
        return Pattern(module, Syntax.EXACT)
    return Pattern(f"{module}.", Syntax.PREFIX)


def _defects(document: ModeloptConfig, place: Place) -> Iterator[Defect]:
    """Find the algorithms and group sizes that do not exist."""
    yield from document.unknown(place)
    said: Iterator[tuple[tuple[str, ...], Mapping[str, Any]]] = iter(
        [((), {"quant_algo": document.quant_algo, "group_size": document.group_size})]
    )
    layers = (document.quantized_layers or {}).items()
    for parts, each in (*said, *((("quantized_layers", m), o) for m, o in layers)):
        algorithm, group = each.get("quant_algo"), each.get("group_size")
        name = algorithm.upper() if isinstance(algorithm, str) else ""
        if name and name not in ALGORITHMS and not (name == MIXED and not parts):
            yield place.defect(
                DefectKind.INVALID_VALUE,
                f"quant_algo {algorithm!r} is none that is known",
                *parts,
                "quant_algo",
                expected=", ".join(sorted({*ALGORITHMS, MIXED})),
                actual=algorithm,
            )
        elif "NVFP4" in name and group not in {None, NVFP4_GROUP}:
            yield place.defect(
                DefectKind.IMPOSSIBLE_SCHEME,
                f"{name} has group_size {NVFP4_GROUP} only; found {group!r}",
                *parts,
                "group_size",
            )


def _lower(document: ModeloptConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    layers = {
        place.pointer("quantized_layers", module): each
        for module, each in (document.quantized_layers or {}).items()
    }

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        if index is None or found.family is not SCALED:
            return None
        own = layers[said.pointer] if said else {}
        algorithm = str(own.get("quant_algo") or document.algorithm()).upper()
        group = own.get("group_size") or document.group_size
        scales = index.get(SCALED.names.name(name, "scales"))
        scheme = scheme_of(algorithm, group, None if scales is None else scales.shape)
        if scheme is None:
            return None
        pointer = said.pointer if said else place.pointer()
        return Weight(name, scheme, pointer, names=SCALED.names)

    whole = document.algorithm() not in {"", MIXED}
    saying = Saying(_claims(document, index), every_linear=whole)
    component, defects = lower_stored(saying, place, index, make)
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
            if len(schemes) == 1 and scheme == scheme_of(algorithm, group, ()):
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
    synonyms={"ignore": "exclude_modules"},
)
