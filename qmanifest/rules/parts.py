"""QM2, parts: that a weight is stored as it was promised, packed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.dtypes import DTYPES
from qmanifest.evidence import served, stem
from qmanifest.families import DENSE, MLX_NAMES, WORDS
from qmanifest.findings import Location, Problem, Severity
from qmanifest.rules.base import Depth, rule
from qmanifest.rules.doubtful import doubtful, doubts
from qmanifest.rules.misfits import bereft, missing_beside_namesakes, missing_parts
from qmanifest.rules.readings import is_row
from qmanifest.schemes import Microscaling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Component, Weight
    from qmanifest.reading.stores import Store
    from qmanifest.tensors import TensorInfo


@rule("QM206", "missing-companion", Severity.ERROR, needs=Depth.HEADERS, absence=True)
def missing_companion(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Packed codes are stored, and the scales or biases they need are not.

    ## Why it matters
    Codes without their scales are noise: the weight cannot be recovered.

    ## Fix
    Convert the layer again; no reader can repair it.
    """
    for _, store, weight in doubtful(checkpoint):
        codes = store.index.get(weight.name)
        if codes is None or codes.dtype not in WORDS or not is_row(weight):
            continue
        for part in weight.parts():
            if part.name in store.index or _other_mode(weight, store, part.role):
                continue
            yield Problem(
                f"{weight.name!r} is packed ({codes}) and its {part.role} "
                f"{part.name!r} are in no safetensors file",
                (
                    Location(codes.file, tensor=part.name),
                    Location(codes.file, tensor=weight.name),
                    Location(checkpoint.config_name, weight.pointer),
                ),
                expected=f"{part.name}, {' or '.join(part.dtypes)}",
                hint="convert the layer again; codes without it are noise",
            )
    yield from missing_parts(checkpoint)
    yield from missing_beside_namesakes(checkpoint)


def _other_mode(weight: Weight, store: Store, role: str) -> bool:
    """Whether biases are absent because the scales are another mode's (QM303)."""
    scales = store.index.get(f"{stem(weight.name)}.scales")
    return role == "biases" and scales is not None and scales.dtype == "U8"


@rule("QM207", "orphan-companion", Severity.ERROR, needs=Depth.HEADERS)
def orphan_companion(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A companion is stored that its weight cannot have, or without any weight.

    Microscaling modes have no biases, and a weight has biases or zeros but not both.

    ## Why it matters
    The mode in the config is not the one the layer was quantized in, or the weight
    itself was lost.

    ## Fix
    Correct the mode for this module, or convert the layer again.
    """
    for each in doubts(checkpoint):
        for weight in each.weights:
            yield from _impossible(checkpoint, weight, each.store)
        if each.others:
            yield from bereft(each.store)
        companions = [
            (name, base) for name in each.others if (base := served(name)) is not None
        ]
        if not companions:
            continue
        declared = {stem(weight.name) for weight in each.component.weights}
        declared |= {kept.name for kept in each.component.kept}
        evidence = each.store.evidence
        declared |= {stem(name) for name in (*evidence.bereft, *evidence.packed)}
        for name, base in sorted(companions):
            if base not in declared and name not in declared:
                yield from _alone(each.store, base, each.store.index[name])


def _alone(store: Store, base: str, companion: TensorInfo) -> Iterator[Problem]:
    """Report a companion without a packed weight; a vector may be a parameter."""
    codes = store.index.get(f"{base}.weight")
    biases = f"{base}.biases" in store.index or f"{base}.qbiases" in store.index
    pair = f"{base}.scales" in store.index and biases
    sure = pair or companion.dtype == "U8"
    vector = codes is not None and len(codes.shape) == 1
    packed = codes is not None and codes.dtype in WORDS and not vector
    if codes is not None and (packed or not sure):
        return  # packed: QM202 or QM208 has it
    lost = codes is None and not store.complete  # with its shard
    if lost or base in store.index or len(companion.shape) == 1:
        return
    kind = "vector" if vector else "16-bit"
    beside = "there is no" if codes is None else f"a {kind} ({codes})"
    yield Problem(
        f"companion {companion.name!r} ({companion}) serves no packed weight: "
        f"{beside} {base + '.weight'!r}",
        (Location(companion.file, tensor=companion.name),),
        hint="remove it, or convert the layer again",
        severity=None if sure else Severity.WARNING,
    )


def _impossible(
    checkpoint: Checkpoint, weight: Weight, store: Store
) -> Iterator[Problem]:
    """Report the companions that the weight's scheme has no place for."""
    if weight.names is not MLX_NAMES:
        return
    roles = {part.role for part in weight.parts()}
    for role, suffix in (("biases", ".biases"), ("zeros", ".zeros")):
        name = stem(weight.name) + suffix
        if role in roles or name not in store.index or weight.name not in store.index:
            continue
        codes, tensor = store.index[weight.name], store.index[name]
        where = "mode" if isinstance(weight.scheme, Microscaling) else "entry"
        yield Problem(
            f"{weight.name!r} ({codes}) has {role} {name!r} ({tensor}), which "
            f"{weight.scheme} of {checkpoint.config_name}#{weight.pointer} does not",
            (
                Location(tensor.file, tensor=name),
                Location(checkpoint.config_name, weight.pointer, weight.name),
            ),
            expected=str(weight.scheme),
            actual=f"{role} {tensor}",
            hint=f"correct the {where} for this module: it was quantized in another",
        )


@rule("QM208", "kept-but-packed", Severity.ERROR, needs=Depth.HEADERS)
def kept_but_packed(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A tensor that the config keeps 16-bit is stored quantized.

    ## Why it matters
    The keep list was not in force when the layer was converted: the sensitive layer
    that it protects is the one that lost its precision.

    ## Fix
    Convert again with the list in force, or remove the tensor from it.
    """
    for component, store in checkpoint.found():
        for kept in component.kept:
            found = store.evidence.stored.get(kept.name)
            tensor = store.index.get(kept.name) if found is None else found.codes
            if tensor is None or not (found or _holds_codes(tensor)):
                continue
            yield Problem(
                f"{kept.name!r} is kept 16-bit by {kept.pointer} and stored packed "
                f"({tensor})",
                (
                    Location(checkpoint.config_name, kept.pointer, kept.name),
                    Location(tensor.file, tensor=tensor.name),
                ),
                expected=" or ".join(kept.dtypes),
                actual=str(tensor),
                hint="convert again with the list in force, or remove the entry",
            )


def _holds_codes(tensor: TensorInfo) -> bool:
    """Whether a tensor is a weight of few bits: no mask, counter or index table."""
    narrow = tensor.dtype in WORDS or DTYPES[tensor.dtype].bits <= 8  # noqa: PLR2004 - a byte
    named = tensor.dtype.startswith("F") or tensor.name.endswith(".weight")
    return narrow and named and tensor.dtype != "BOOL" and len(tensor.shape) > 1


@rule("QM209", "quantized-but-dense", Severity.ERROR, needs=Depth.HEADERS)
def quantized_but_dense(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A tensor that the config quantizes is stored as plain floats.

    Also a whole checkpoint of plain floats under a config that quantizes.

    ## Why it matters
    Loaders look for scales that are not there.

    ## Fix
    Convert the layer, or remove it from the config.
    """
    for each in doubts(checkpoint):
        component, store = each.component, each.store
        for weight in each.weights:
            plain = store.index.get(weight.name)
            tensor = store.index.get(weight.codes, plain)
            if tensor is None or tensor.dtype not in DENSE:
                continue
            if store.evidence.is_packed(weight.name):
                continue  # bytes that are viewed as floats
            yield Problem(
                f"{weight.name!r} is quantized by {weight.pointer} ({weight.scheme}) "
                f"and stored {tensor}",
                (
                    Location(checkpoint.config_name, weight.pointer, weight.name),
                    Location(tensor.file, tensor=weight.name),
                ),
                expected=str(weight.scheme),
                actual=str(tensor),
                hint="convert the layer, or remove it from the config",
            )
        if not component.weights and not component.exhaustive and store.complete:
            yield from _nothing_packed(checkpoint, component, store)


def _nothing_packed(
    checkpoint: Checkpoint, component: Component, store: Store
) -> Iterator[Problem]:
    """Report a model that is promised quantized, and of which nothing is."""
    matrices = [
        tensor
        for tensor in store.index.values()
        if tensor.dtype in DENSE and len(tensor.shape) > 1
    ]
    if matrices and not (store.evidence.packed or store.evidence.bereft):
        first = matrices[0]
        yield Problem(
            f"{checkpoint.config_name}#{component.pointer} says that the model is "
            f"quantized, and no matrix is: {first.name!r} is stored {first}",
            (
                Location(checkpoint.config_name, component.pointer),
                Location(first.file, tensor=first.name),
            ),
            expected="packed tensors",
            actual=str(first),
            hint="convert the model, or remove the quantization config",
        )


RULES = (missing_companion, orphan_companion, kept_but_packed, quantized_but_dense)
