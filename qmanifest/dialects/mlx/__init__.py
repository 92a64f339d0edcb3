"""`mlx`: the `quantization` block that mlx-lm writes into `config.json`.

The block has defaults and, under module paths, overrides. Which modules are quantized
it does not say: the tensors do, by a `.scales` beside the weight.

Source: https://github.com/ml-explore/mlx-lm, `mlx_lm/utils.py`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pydantic import ConfigDict, Field

from qmanifest.dialects.base import (
    Dialect,
    Document,
    Indexes,
    Keys,
    Lowered,
    Place,
    Raw,
    few,
)
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.lowering.claims import Claim, expand, is_exact
from qmanifest.dialects.lowering.mlx_layout import (
    Mode,
    Positive,
    as_stored,
    impossible,
    mode_of,
    scheme_of,
)
from qmanifest.dialects.lowering.one_model import SUFFIX, components
from qmanifest.dialects.mlx.overrides import (
    AnyOverride,
    Numbers,
    Override,
    Said,
    resolve,
)
from qmanifest.dtypes import FLOAT
from qmanifest.errors import EmitError
from qmanifest.evidence import Evidence, stem
from qmanifest.families import MLX
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Kept, Manifest, Weight
from qmanifest.patterns import Pattern, Syntax
from qmanifest.schemes import Microscaling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.findings import Defect
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import TensorIndex

BLOCKS: Final = ("quantization", "quantization_config")
"""Keys of `config.json` that hold the document: MLX's own, and its copy for others."""


class MlxQuantization(Document):
    """The document exactly as stored: defaults, and overrides by module path."""

    model_config = ConfigDict(extra="allow")
    vocabulary = ("group_size", "bits", "mode")
    __pydantic_extra__: dict[str, AnyOverride] = Field(init=False)

    group_size: Positive
    """Inputs per scale of every module that no override names."""
    bits: Positive
    mode: Mode = "affine"

    def numbers(self) -> Numbers:
        """Give mode, bits and group size of every module without an override."""
        return self.mode, self.bits, self.group_size

    def overrides(self) -> dict[str, bool | Override]:
        """Give every override by its module path; false keeps the module 16-bit."""
        return self.__pydantic_extra__


def _locate(raw: Raw) -> tuple[Keys, ...]:
    """Find `quantization`, and its twin `quantization_config` for other readers."""
    found = []
    for key in BLOCKS:
        block = raw.get(key)
        if isinstance(block, dict) and "quant_method" not in block and "bits" in block:
            found.append((key,))
    return tuple(found)


def _claims(document: MlxQuantization) -> list[Claim]:
    """List every override as a line that claims one module."""
    return [
        Claim(
            (module,),
            Pattern(module, Syntax.EXACT),
            "keep" if override is False else "quantize",
            Severity.NOTE if isinstance(override, bool) else Severity.WARNING,
            SUFFIX,
        )
        for module, override in document.overrides().items()
    ]


def _scheme_defects(document: MlxQuantization, place: Place) -> Iterator[Defect]:
    """Find the combinations that MLX does not have."""
    lines: tuple[tuple[str | None, Said], ...] = ((None, None),)
    for module, override in (*lines, *document.overrides().items()):
        if isinstance(override, bool):
            continue
        misfit = impossible(*resolve(document.numbers(), override))
        if misfit is not None:
            says = override is None or misfit.key in override.model_fields_set
            yield place.defect(
                DefectKind.IMPOSSIBLE_SCHEME,
                misfit.reason if module is None else f"{module!r}: {misfit.reason}",
                *(() if module is None else (module,)),
                *((misfit.key,) if says else ()),
                tensor=None if module is None else f"{module}{SUFFIX}",
            )


def _names(document: MlxQuantization, index: TensorIndex | None) -> tuple[str, ...]:
    """Name the quantized weights: those stored packed, and those with an override."""
    named = [m + SUFFIX for m, o in document.overrides().items() if o is not False]
    if index is None:
        return tuple(named)
    stored = index.derived(Evidence).names_of(MLX)
    return tuple(dict.fromkeys((*stored, *(name for name in named if name in index))))


def _lower(document: MlxQuantization, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    names = None if index is None else index.derived(Evidence).logical
    entries, defects = expand(_claims(document), place, names)
    overrides = document.overrides()
    off = [module for module, override in overrides.items() if override is False]
    weights = tuple(_weights(document, place, index))
    kept = tuple(
        Kept(module + SUFFIX, place.pointer(module), FLOAT)
        for module in off
        if index is None or module + SUFFIX in index
    )
    component = Component("", weights, kept, entries, pointer=place.pointer())
    found = (*defects, *few(_scheme_defects(document, place)))
    return Lowered(Manifest("mlx", place.file, (component,)), found)


def _weights(
    document: MlxQuantization, place: Place, index: TensorIndex | None
) -> Iterator[Weight]:
    """Make the weights: by the defaults, or by the override of their module."""
    overrides = document.overrides()
    default, block = _scheme(document, None), place.pointer()
    for name in _names(document, index):
        override = overrides.get(stem(name))
        if override is None:
            yield Weight(name, as_stored(default, name, index), block)
        elif override is not False:
            scheme = as_stored(_scheme(document, override), name, index)
            yield Weight(name, scheme, place.pointer(stem(name)))


def _scheme(document: MlxQuantization, override: Said) -> Scheme:
    mode, bits, group_size = resolve(document.numbers(), override)
    scheme = scheme_of(mode, bits, group_size, FLOAT)
    if not isinstance(override, Override) or not isinstance(scheme, Microscaling):
        return scheme
    return replace(scheme, global_scale="amax") if override.global_scale else scheme


def _emit(manifest: Manifest) -> MlxQuantization:
    if len(manifest.components) != 1:
        raise EmitError("mlx describes one model; emit q4-lists instead")
    (component,) = manifest.components
    numbers = {stem(weight.name): _arguments(weight) for weight in component.weights}
    counted = Counter(
        tuple(each.items()) for each in numbers.values() if "global_scale" not in each
    )
    default = (
        dict(counted.most_common(1)[0][0])
        if counted
        else {"group_size": 64, "bits": 4, "mode": "affine"}
    )
    lines = [e for e in component.entries if e.appended == SUFFIX and is_exact(e)]
    named = {line.pattern.text for line in lines}
    overrides: dict[str, object] = {
        module: True if each == default else each
        for module, each in numbers.items()
        if each != default or module in named
    }
    # whatever else is kept has no module of its own, and MLX never quantizes it
    kept = [stem(each.name) for each in component.kept if each.name.endswith(SUFFIX)]
    kept += [line.pattern.text for line in lines if line.purpose == "keep"]
    overrides.update(dict.fromkeys(kept, False))
    if taken := sorted(overrides.keys() & {*default, "$schema"}):
        raise EmitError(f"mlx has no words for a module called {taken[0]!r}")
    return emitted(MlxQuantization, {**default, **overrides})


def _arguments(weight: Weight) -> dict[str, object]:
    """Write what `to_quantized` has to be told."""
    scheme = weight.scheme
    mode = mode_of(scheme)
    if mode is None or scheme.pack != "u32-lsb":
        raise EmitError(f"mlx has no words for {weight.name!r}: {scheme}")
    arguments: dict[str, object] = {
        "group_size": scheme.group_size,
        "bits": scheme.bits,
        "mode": mode,
    }
    if isinstance(scheme, Microscaling) and scheme.global_scale != "none":
        arguments["global_scale"] = True
    return arguments


DIALECT = Dialect(
    id="mlx",
    title="the quantization block of an MLX config.json",
    file_name="config.json",
    document=MlxQuantization,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    blocks=BLOCKS,
    tables=True,
)
