"""`torchao`: tensor subclasses of torchao, as transformers saves them in safetensors.

The config names one torchao config, or one for each module; what each weight became
shows by the dtypes and shapes of its fields, `._weight_qdata` and the like.

Source: https://github.com/pytorch/ao, `prototype/safetensors`; FORMATS 9 is retold in
docs/dialects/torchao.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

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
from qmanifest.dialects.blocks import by_method
from qmanifest.dialects.claims import Claim
from qmanifest.dialects.parsing import emitted
from qmanifest.dialects.stored import Saying, lower_stored
from qmanifest.dialects.tolerant import TolerantDocument
from qmanifest.dialects.torchao_schemes import (
    KINDS,
    MX,
    known,
    scheme_as_stored,
    width_of,
)
from qmanifest.errors import EmitError
from qmanifest.families import TORCHAO
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax
from qmanifest.schemes import Integer, Scaled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Entry

SUFFIX: Final = ".weight"
"""What a module path lacks to be a tensor name."""
BY_NAME: Final = ("FqnToConfig", "ModuleFqnToConfig")
"""Configs that have one for each module."""
REGEX: Final = "re:"
DEFAULT: Final = "_default"


class TorchAoConfig(TolerantDocument):
    """The document exactly as stored."""

    quant_method: str
    quant_type: str | dict[str, Any]
    """A torchao config under `default`; old files have a name here."""
    quant_type_kwargs: dict[str, Any] | None = None
    """Arguments of the named config, in old files."""
    modules_to_not_convert: Annotated[tuple[str, ...] | None, Field(strict=False)] = (
        None
    )
    """Modules that stay 16-bit, as transformers reads them."""
    include_input_output_embeddings: bool | None = None
    untie_embedding_weights: bool | None = None
    autoquant: bool | None = None
    param_name: str | None = None

    def config(self) -> Mapping[str, Any]:
        """Give the torchao config of all modules, `{"_type": ..., "_data": ...}`."""
        if isinstance(self.quant_type, str):
            return {"_type": self.quant_type, "_data": self.quant_type_kwargs or {}}
        found = self.quant_type.get("default", self.quant_type)
        return found if isinstance(found, dict) else {}

    def by_module(self) -> dict[str, Any]:
        """Give the config of each module; null keeps it as it is."""
        config = self.config()
        data = config.get("_data")
        if config.get("_type") not in BY_NAME or not isinstance(data, dict):
            return {}
        for key in ("fqn_to_config", "module_fqn_to_config"):
            if isinstance(data.get(key), dict):
                return dict(data[key])
        return {}


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return by_method(raw, ("torchao",))


def _components(_document: TorchAoConfig, place: Place) -> tuple[ComponentNames, ...]:
    return (ComponentNames("", place.pointer()),)


def _claims(document: TorchAoConfig) -> list[Claim]:
    """List what stays 16-bit: transformers' list, and modules without a config."""
    kept = [
        Claim(
            ("modules_to_not_convert", number),
            Pattern(text, Syntax.BOUNDARY),
            "keep",
            Severity.NOTE,
            SUFFIX,
        )
        for number, text in enumerate(document.modules_to_not_convert or ())
    ]
    return kept + [
        Claim(
            ("quant_type", "default", "_data", name),
            Pattern(name, Syntax.REGEX if name.startswith(REGEX) else Syntax.EXACT),
            "keep",
            Severity.NOTE,
            SUFFIX,
        )
        for name, own in document.by_module().items()
        if own is None and name != DEFAULT
    ]


def _defects(document: TorchAoConfig, place: Place) -> Iterator[Defect]:
    """Find what no reader takes."""
    yield from document.unknown(place)
    kind = document.config().get("_type")
    if not known(kind) and kind not in BY_NAME:
        yield place.defect(
            DefectKind.INVALID_VALUE,
            f"quant_type {kind!r} is no torchao config that is known",
            "quant_type",
            expected=", ".join(sorted({*KINDS, *BY_NAME})),
            actual=str(kind),
            severity=Severity.WARNING,
        )


def _lower(document: TorchAoConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    bits = width_of(document.config())

    def make(name: str, found: Found, _said: Entry | None) -> Weight | None:
        if index is None or found.family is not TORCHAO:
            return None
        names = TORCHAO.names
        others = {
            role: index.get(names.name(name, role))
            for role in ("scales", "zeros", "global_scale")
        }
        scheme = scheme_as_stored(bits, found.codes, others)
        if scheme is None:
            return None
        return Weight(name, scheme, place.pointer("quant_type"), names=names)

    saying = Saying(_claims(document), every_linear=False)
    component, defects = lower_stored(saying, place, index, make)
    found = (*defects, *_defects(document, place))
    return Lowered(Manifest("torchao", place.file, (component,)), found)


def _emit(manifest: Manifest) -> TorchAoConfig:
    if len(manifest.components) != 1:
        raise EmitError("torchao describes one model")
    (component,) = manifest.components
    kinds = {_config_of(weight) for weight in component.weights}
    if len(kinds) != 1:
        raise EmitError(
            f"torchao has one config for all modules here, not {len(kinds)}"
        )
    document = {
        "quant_method": "torchao",
        "quant_type": {"default": {"_type": kinds.pop(), "_version": 2, "_data": {}}},
    }
    return emitted(TorchAoConfig, document)


def _config_of(weight: Weight) -> str:
    """Name the torchao config that makes such a weight."""
    scheme = weight.scheme
    if isinstance(scheme, Integer) and scheme.pack == "i8":
        return (
            "Int8WeightOnlyConfig" if not scheme.group_size else "IntxWeightOnlyConfig"
        )
    if isinstance(scheme, Scaled) and scheme.element == "e4m3":
        return "Float8WeightOnlyConfig" if scheme.scale_format == "float" else MX[0]
    if isinstance(scheme, Scaled) and scheme.global_scale == "multiply":
        return "NVFP4WeightOnlyConfig"
    raise EmitError(f"torchao has no words for {weight.name!r}: {weight.scheme}")


DIALECT: Final = Dialect(
    id="torchao",
    title="torchao's tensors, as transformers saves them",
    file_name="config.json",
    document=TorchAoConfig,
    locate=_locate,
    components=_components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
    decodes="most",
)
