"""From a manifest to config groups of compressed-tensors, where it has words for it.

The commonest scheme is that of every linear layer; others name their modules.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from qmanifest.dialects.compressed_tensors.args import (
    QuantizationArgs,
    QuantizationScheme,
)
from qmanifest.dialects.compressed_tensors.groups import LINEAR
from qmanifest.dialects.compressed_tensors.schemes import (
    PACKED_FORMATS,
    SPARSE,
    Stored,
    input_parts,
    scheme_of,
)
from qmanifest.dialects.lowering.one_model import SUFFIX, only
from qmanifest.errors import EmitError
from qmanifest.families import PACKED, SCALED
from qmanifest.patterns.reader import looks_like_class
from qmanifest.patterns.syntax import REGEX_MARK
from qmanifest.schemes import Integer, Opaque, Scaled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from qmanifest.manifest import Manifest, Weight
    from qmanifest.schemes import Extra, Scheme

Words: TypeAlias = tuple[str, QuantizationScheme]
"""A format, and a group without targets."""
WHOLE: Final = "0.17.1"
"""The last version that packed whole codes into words."""
_FORMATS: Final = {
    ("e2m1", "e4m3"): "nvfp4-pack-quantized",
    ("e2m1", "e8m0"): "mxfp4-pack-quantized",
    ("e2m3", "e8m0"): "mxfp6-pack-quantized",
    ("e4m3", "e8m0"): "mxfp8-quantized",
    ("e4m3", "float"): "float-quantized",
}
"""Formats of small floats, by number format of codes and of scales."""


def emitted_groups(manifest: Manifest) -> dict[str, Any]:
    """Write format, groups and ignored modules of a manifest of one model.

    Raises:
        EmitError: it has several models, or a weight that no group can describe.

    """
    component = only(manifest, "compressed-tensors")
    kept = [each.name for each in component.kept if each.name.endswith(SUFFIX)]
    pruned = {w.scheme for w in component.weights if _is_pruned(w.scheme)}
    said: dict[str, Any] = {"config_groups": {}, "ignore": [_name(n) for n in kept]}
    if pruned:
        said["sparsity_config"] = {"format": _pruned_format(pruned)}
    weights = [w for w in component.weights if not _is_pruned(w.scheme)]
    common = Counter(weight.scheme for weight in weights).most_common()
    formats = set()
    for number, (scheme, _) in enumerate(common):
        own = [weight for weight in weights if weight.scheme == scheme]
        stored_as, group = _words(own[0])
        _check_names(own, stored_as)
        targets = [_name(weight.name) for weight in own] if number else [LINEAR]
        formats.add(stored_as)
        said["config_groups"][f"group_{number}"] = {
            **group.model_dump(mode="json", exclude_unset=True),
            "targets": targets,
            "format": stored_as,
        }
    said["format"] = formats.pop() if len(formats) == 1 else "mixed-precision"
    if not common:
        said["format"] = "dense"
    if any(weight.scheme.pack == "i32-whole" for weight in weights):
        said["version"] = WHOLE
    return said


def _is_pruned(scheme: Scheme) -> bool:
    return isinstance(scheme, Opaque) and scheme.format in SPARSE


def _pruned_format(schemes: Iterable[Scheme]) -> str:
    """Name the one format of pruned weights.

    Raises:
        EmitError: there are several.

    """
    formats = {each.format for each in schemes if isinstance(each, Opaque)}
    if len(formats) > 1:
        raise EmitError("compressed-tensors has one format of pruned weights")
    return formats.pop()


def _check_names(weights: Sequence[Weight], stored_as: str) -> None:
    """Refuse parts that are called otherwise than the format calls them."""
    family = PACKED if stored_as in PACKED_FORMATS else SCALED
    for weight in weights:
        if weight.names != family.names or not weight.name.endswith(SUFFIX):
            codes = family.codes or SUFFIX
            raise EmitError(
                f"compressed-tensors stores {stored_as} as {codes[1:]} of a module; "
                f"{weight.name!r} is called otherwise"
            )


def _words(weight: Weight) -> Words:
    """Find the format and the arguments that mean a weight's scheme.

    Raises:
        EmitError: there are none.

    """
    scheme = weight.scheme
    if isinstance(scheme, Integer):
        stored_as = "pack-quantized" if scheme.pack != "i8" else "int-quantized"
        args = _args(scheme.bits, "int", scheme)
    elif isinstance(scheme, Scaled):
        stored_as = _FORMATS.get((scheme.element, scheme.scale_format), "")
        args = _args(scheme.bits, "float", scheme)
    else:
        raise EmitError(
            f"compressed-tensors has no words for {weight.name!r}: {scheme}"
        )
    group = QuantizationScheme(
        targets=[],
        weights=args,
        input_activations=_activations(scheme.extras, "input"),
        output_activations=_activations(scheme.extras, "output"),
    )
    stored = _stored(scheme)
    extras = (
        *input_parts(group.input_activations, "input", scalar=stored.scalar_input),
        *input_parts(group.output_activations, "output", scalar=stored.scalar_input),
    )
    if not stored_as or scheme_of(args, stored_as, stored, extras) != scheme:
        raise EmitError(
            f"compressed-tensors has no words for {weight.name!r}: {scheme}"
        )
    return stored_as, group


def _stored(scheme: Integer | Scaled) -> Stored:
    """Say what the stored parts of a scheme show."""
    shapes = {extra.role: extra.shape for extra in scheme.extras}
    return Stored(
        scheme.pack == "i32-whole",
        scheme.spread.form == "scalar",
        (shapes.get("shape") or (2,))[0],
        () in {shapes.get("input_scale"), shapes.get("output_scale")},
    )


def _args(
    bits: int, kind: Literal["int", "float"], scheme: Integer | Scaled
) -> QuantizationArgs:
    """Write the arguments of weights."""
    said: dict[str, Any] = {"num_bits": bits, "type": kind, "symmetric": True}
    spread = scheme.spread
    if isinstance(scheme, Integer):
        said["symmetric"] = scheme.zero.kind == "none"
        if scheme.order == "listed":
            said["actorder"] = "group"
    elif scheme.scale_format == "e8m0":
        said["scale_dtype"] = "torch.uint8"
    if spread.form in {"one", "scalar"}:
        said["strategy"] = "tensor"
    elif spread.rows == 1 and spread.columns == 0:
        said["strategy"] = "channel"
    elif spread.rows == 1:
        divides = isinstance(scheme, Scaled) and scheme.global_scale == "divide"
        said["strategy"] = "tensor_group" if divides else "group"
        said["group_size"] = spread.columns
    elif spread.rows and spread.columns:
        said["strategy"] = "block"
        said["block_structure"] = [spread.rows, spread.columns]
    return QuantizationArgs(**said)


def _activations(extras: Sequence[Extra], side: str) -> QuantizationArgs | None:
    """Write the arguments of inputs or outputs whose scales are stored."""
    roles = {extra.role for extra in extras}
    if f"{side}_global_scale" in roles:
        return QuantizationArgs(
            num_bits=4,
            type="float",
            strategy="tensor_group",
            group_size=16,
            dynamic="local",
        )
    if f"{side}_scale" not in roles:
        return None
    symmetric = f"{side}_zero_point" not in roles
    return QuantizationArgs(num_bits=8, symmetric=symmetric, strategy="tensor")


def _name(weight: str) -> str:
    """Write a module's name so that it is read as that name alone."""
    module = weight.removesuffix(SUFFIX)
    if not module.startswith(REGEX_MARK) and not looks_like_class(module):
        return module
    escaped = re.sub(r"[^\w\x80-\U0010ffff]", r"\\\g<0>", module, flags=re.ASCII)
    return f"{REGEX_MARK}{escaped}$"
