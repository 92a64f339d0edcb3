"""`torchao`: tensor subclasses of torchao, as transformers saves them in safetensors.

The config names one torchao config, or one for each module; what each weight became
shows by the dtypes and shapes of its fields, `._weight_qdata` and the like.

Source: https://github.com/pytorch/ao, `prototype/safetensors`; described in
docs/dialects/torchao.md.
"""

from __future__ import annotations

import re
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
from qmanifest.dialects.documents.parsing import emitted
from qmanifest.dialects.documents.tolerant import TolerantDocument
from qmanifest.dialects.lowering.claims import Claim
from qmanifest.dialects.lowering.one_model import (
    SUFFIX,
    components,
    keeps,
    modules_kept,
    only,
)
from qmanifest.dialects.lowering.stored import Saying, lower_stored
from qmanifest.dialects.torchao.defects import contradiction, impossible
from qmanifest.dialects.torchao.emit import quant_type
from qmanifest.dialects.torchao.said import BY_NAME, TABLES, WAY, said_by
from qmanifest.dialects.torchao.schemes import scheme_as_stored
from qmanifest.families import TORCHAO
from qmanifest.findings import Severity
from qmanifest.manifest import Manifest, Weight
from qmanifest.patterns import Pattern, Syntax, read_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qmanifest.evidence import Found
    from qmanifest.findings import Defect
    from qmanifest.manifest import Component, Entry, Kept

PARAMETER: Final = re.compile(r"(weight|experts(\\?\.)\w+)$")
"""How a key ends that is about a parameter; others are about modules."""
REGEX: Final = "re:"
"""How a key starts that is a regular expression."""
DEFAULT: Final = "_default"
"""The key of what no other key names."""


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

    def by_module(self) -> tuple[tuple[str, ...], Mapping[str, Any]]:
        """Give the config of each module, and where the table lies in the document.

        A config of null keeps its module as it is.
        """
        config = self.config()
        data = config.get("_data")
        if config.get("_type") in BY_NAME and isinstance(data, dict):
            for key in TABLES:
                if isinstance(table := data.get(key), dict) and table:
                    return (*WAY, "_data", key), table
        return WAY, {}


def _locate(raw: Raw) -> tuple[Keys, ...]:
    return by_method(raw, ("torchao",))


def _claims(document: TorchAoConfig) -> list[Claim]:
    """List what stays 16-bit, and what has a config of its own; the first decides.

    torchao asks for names before it asks for expressions, of parameters before those
    of modules.
    """
    kept = keeps(
        "torchao",
        "modules_to_not_convert",
        document.modules_to_not_convert,
        Syntax.BOUNDARY,
    )
    way, table = document.by_module()
    own = [
        Claim(
            (*way, name),
            Pattern(name, Syntax.REGEX if name.startswith(REGEX) else Syntax.EXACT),
            "keep" if config is None else "quantize",
            Severity.NOTE if name.startswith(REGEX) else Severity.WARNING,
            "" if PARAMETER.search(name) else SUFFIX,
            *read_by("torchao", "quant_type"),
        )
        for name, config in table.items()
        if name != DEFAULT
    ]
    return [*kept, *sorted(own, key=_rank)]


def _rank(claim: Claim) -> tuple[bool, bool]:
    return claim.pattern.text.startswith(REGEX), bool(claim.appended)


def _lower(document: TorchAoConfig, place: Place, indexes: Indexes | None) -> Lowered:
    index = None if indexes is None else indexes.get("")
    way, table = document.by_module()
    configs = {place.pointer(*way, name): own for name, own in table.items()}
    whole = place.pointer(*way, DEFAULT) if table else place.pointer("quant_type")
    configs.setdefault(whole, None if table else document.config())
    contradictions: dict[str, Defect] = {}

    def make(name: str, found: Found, said: Entry | None) -> Weight | None:
        if index is None or found.family not in TORCHAO:
            return None
        names = found.family.names
        pointer = said.pointer if said else whole
        config = configs.get(pointer)
        if table and config is None:
            return None
        own = said_by(config if isinstance(config, dict) else {})
        others = {
            role: index.get(names.name(name, role))
            for role in ("scales", "zeros", "global_scale")
        }
        if own.contradicts(found.codes, others["scales"]):
            defect = contradiction(place, pointer, name, own, found.codes)
            contradictions.setdefault(pointer, defect)
        scheme = scheme_as_stored(own, found.codes, others)
        return Weight(name, scheme, pointer, names=names)

    every = not table or configs.get(whole) is not None
    saying = Saying(_claims(document), every_linear=every)
    component, defects = lower_stored(saying, place, index, make)
    component = replace(component, kept=_kept(component))
    found = (*defects, *impossible(document, place), *contradictions.values())
    return Lowered(Manifest("torchao", place.file, (component,)), found)


def _kept(component: Component) -> tuple[Kept, ...]:
    """Leave out what a line that comes first quantizes."""
    first: dict[str, str] = {}
    for entry in component.entries:
        for name in entry.matches:
            first.setdefault(name, entry.pointer)
    return tuple(each for each in component.kept if first[each.name] == each.pointer)


def _emit(manifest: Manifest) -> TorchAoConfig:
    component = only(manifest, "torchao")
    kept = modules_kept(component)
    document = {"quant_method": "torchao", "quant_type": quant_type(component)}
    return emitted(TorchAoConfig, {**document, "modules_to_not_convert": kept or None})


DIALECT: Final = Dialect(
    id="torchao",
    title="torchao's tensors, as transformers saves them",
    file_name="config.json",
    document=TorchAoConfig,
    locate=_locate,
    components=components,
    lower=_lower,
    emit=_emit,
    blocks=("quantization_config",),
    decodes="most",
)
