"""`quark`: what AMD's Quark exports into `config.json` beside its tensors.

One spec for the weights of all layers, and others for layers that a wildcard names;
`exclude` lists wildcards of what stays 16-bit.

Source: https://github.com/amd/Quark, `torch/export`; described in
docs/dialects/quark.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from qmanifest.dialects.base import (
    Dialect,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
)
from qmanifest.dialects.documents.blocks import by_method
from qmanifest.dialects.documents.tolerant import TolerantDocument
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.one_model import SUFFIX, components, keeps
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.dialects.quark.schemes import BLOCKS, DTYPES, scheme_of
from qmanifest.errors import EmitError
from qmanifest.families import SCALED
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Component, Entry
    from qmanifest.tensors import TensorIndex


class QuarkConfig(TolerantDocument):
    """The document exactly as stored."""

    quant_method: str
    global_quant_config: dict[str, Any] | None = None
    """Specs of weights, inputs, outputs and biases of all layers."""
    layer_quant_config: dict[str, dict[str, Any]] | None = None
    """Specs of layers that a wildcard names; they win over the global ones."""
    layer_type_quant_config: dict[str, Any] | None = None
    exclude: Annotated[tuple[str, ...] | None, Field(strict=False)] = None
    """Wildcards of the modules that stay 16-bit."""
    kv_cache_quant_config: dict[str, Any] | None = None
    kv_cache_post_rope: bool | None = None
    softmax_quant_spec: Any = None
    algo_config: Any = None
    quant_mode: str | None = None
    version: str | None = None
    export: dict[str, Any] | None = None
    """How tensors were written; `pack_method` is `reorder` or `order`."""

    def packs_in_order(self) -> bool:
        """Whether packed codes follow each other plainly."""
        return (self.export or {}).get("pack_method") == "order"


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return by_method(raw, ("quark",))


def _claims(document: QuarkConfig) -> list[Claim]:
    """List what stays 16-bit, and what has specs of its own."""
    kept = keeps("quark", "exclude", document.exclude, Syntax.FNMATCH)
    return kept + [
        Claim(
            ("layer_quant_config", text),
            Pattern(text, Syntax.FNMATCH),
            "quantize",
            Severity.WARNING,
            SUFFIX,
            *read_by("quark", "layer_quant_config"),
        )
        for text in document.layer_quant_config or {}
    ]


def _weight_specs(config: Mapping[str, Any] | None) -> tuple[Mapping[str, Any], ...]:
    """Give the specs of the weights: one, or one for each of two levels."""
    spec = (config or {}).get("weight")
    specs = spec if isinstance(spec, list) else [spec]
    return tuple(each for each in specs if isinstance(each, dict))


def _defects(document: QuarkConfig, place: Place) -> Iterator[Defect]:
    """Find the dtypes that are not known."""
    yield from document.unknown(place)
    configs: list[tuple[tuple[str, ...], Mapping[str, Any] | None]] = [
        (("global_quant_config",), document.global_quant_config),
        *(
            (("layer_quant_config", text), own)
            for text, own in (document.layer_quant_config or {}).items()
        ),
    ]
    for parts, config in configs:
        spec = next(iter(_weight_specs(config)), {})
        dtype, group = spec.get("dtype"), spec.get("group_size")
        if spec.get("qscheme") == "per_group" and (type(group) is not int or group < 1):
            yield place.defect(
                DefectKind.INVALID_VALUE,
                f"per_group asks for a positive group_size; found {group!r}",
                *parts,
                "weight",
            )
        if dtype is not None and str(dtype).lower() not in DTYPES:
            yield place.defect(
                DefectKind.INVALID_VALUE,
                f"weights have dtype {dtype!r}, which is not known",
                *parts,
                "weight",
                expected=", ".join(DTYPES),
                actual=str(dtype),
                severity=Severity.WARNING,
            )


def _lower(document: QuarkConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    layers = {
        place.pointer("layer_quant_config", text): own
        for text, own in (document.layer_quant_config or {}).items()
    }

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        if index is None or found.family is not SCALED:
            return None
        own = layers[said.pointer] if said else document.global_quant_config
        scheme = scheme_of(
            _weight_specs(own),
            index.get(SCALED.names.name(name, "scales")),
            index.get(SCALED.names.name(name, "zeros")),
            in_order=document.packs_in_order(),
        )
        pointer = said.pointer if said else place.pointer("global_quant_config")
        return Weight(name, scheme, pointer, names=SCALED.names)

    saying = Saying(_claims(document), every_linear=True)
    component, defects = lower_stored(saying, place, index, make)
    specs = _weight_specs(document.global_quant_config)
    if index is not None and specs and specs[0].get("dtype") in BLOCKS:
        weights = (*component.weights, *_blocks(component, index, specs, place))
        component = replace(component, weights=weights)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("quark", place.file, (component,)), found)


def _blocks(
    component: Component,
    index: TensorIndex,
    specs: tuple[Mapping[str, Any], ...],
    place: Place,
) -> Iterator[Weight]:
    """Find the weights whose scales lie among their codes, so that no name shows it."""
    others = {kept.name for kept in component.kept}
    others |= {weight.name for weight in component.weights}
    scheme = scheme_of(specs, None, None, in_order=True)
    for name, tensor in index.items():
        bytes_of_rows = tensor.dtype == "U8" and len(tensor.shape) > 1
        if bytes_of_rows and name.endswith(SUFFIX) and name not in others:
            pointer = place.pointer("global_quant_config")
            yield Weight(name, scheme, pointer, names=SCALED.names)


def _emit(_manifest: Manifest) -> QuarkConfig:
    raise EmitError("quark is read here, and not written")


DIALECT: Final = Dialect(
    id="quark",
    title="AMD Quark's export",
    file_name="config.json",
    document=QuarkConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
    emits=False,
    decodes="most",
)
