"""QM1: that the config makes sense by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import DefectKind, Location, Problem, Severity
from qmanifest.rules.base import Depth, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint


@rule("QM101", "unknown-key", Severity.ERROR, needs=Depth.MANIFEST)
def unknown_key(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The config has a key that its dialect does not know.

    ## Why it matters
    A misspelt `group_size` leaves the default in force, and nothing says so until
    the model talks nonsense.

    ## Fix
    Correct the spelling (the hint has the nearest key), or remove the key.
    """
    yield from checkpoint.defects_of(DefectKind.UNKNOWN_KEY)


@rule("QM102", "invalid-value", Severity.ERROR, needs=Depth.FILES)
def invalid_value(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A key of the config has a value of the wrong type, or out of range.

    Types are strict: `true` is not 1, `"64"` is not 64, `4.0` is not 4.

    ## Why it matters
    What one reader coerces, another refuses.

    ## Fix
    Write the value that the message asks for.
    """
    yield from checkpoint.defects_of(DefectKind.INVALID_VALUE)


@rule("QM103", "missing-key", Severity.ERROR, needs=Depth.FILES)
def missing_key(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The config lacks a key that its dialect requires.

    ## Why it matters
    Readers fill in defaults of their own, which differ.

    ## Fix
    Add the key.
    """
    yield from checkpoint.defects_of(DefectKind.MISSING_KEY)


@rule("QM104", "group-division", Severity.ERROR, needs=Depth.MANIFEST)
def group_division(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A declared shape has a number of inputs that the group size does not divide.

    ## Why it matters
    No writer of the format can store such a tensor, so the entry is wrong, or the
    converter will stop at it after hours.

    ## Fix
    Take a group size that divides, or keep the tensor 16-bit.
    """
    yield from checkpoint.defects_of(DefectKind.GROUP_DIVISION)


@rule("QM105", "bad-pattern", Severity.ERROR, needs=Depth.MANIFEST)
def bad_pattern(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A pattern cannot be compiled, or cannot be matched in bounded time.

    Regular expressions run in linear time, so there is no look-around and no
    back-reference; repetition may not multiply a program beyond bounds.

    ## Why it matters
    A pattern that no reader can run keeps nothing, silently; one that backtracks
    hangs the reader for minutes on one name.

    ## Fix
    Write a glob, or a plainer regular expression.
    """
    yield from checkpoint.defects_of(DefectKind.BAD_PATTERN)


@rule("QM106", "no-config", Severity.ERROR, needs=Depth.FILES)
def no_config(checkpoint: Checkpoint) -> Iterator[Problem]:
    """There is no quantization config, or none that any dialect recognises.

    Without one nothing is promised, and only the files themselves are checked. That
    is a note for a plain 16-bit checkpoint and an error where tensors are packed.

    ## Why it matters
    Packed codes without a config are taken for weights.

    ## Fix
    Write the config beside the shards, or name it with `--config`.
    """
    yield from checkpoint.defects_of(DefectKind.NO_CONFIG)
    if checkpoint.config is not None or checkpoint.config_only:
        return
    if not checkpoint.all_stores:
        yield Problem(
            "neither a quantization config nor a safetensors file is here",
            (Location("."),),
            hint="name the folder that holds the checkpoint",
        )
        return
    for store in checkpoint.all_stores:
        evidence = store.evidence
        packed = sorted(evidence.packed)
        family = evidence.family or (("MLX", packed[0]) if packed else None)
        if family is not None:
            tensor = store.index[family[1]]
            yield Problem(
                f"{tensor.name!r} is stored {tensor}, as {family[0]} quantization "
                "does, and no quantization config says so",
                (Location(tensor.file, tensor=tensor.name),),
                hint="write the quantization config beside the shards",
            )
            return
    yield Problem(
        "no quantization config, so only the files were checked",
        (Location("."),),
        hint="name the config with --config if there is one",
        severity=Severity.NOTE,
    )


@rule("QM107", "contradiction", Severity.ERROR, needs=Depth.MANIFEST)
def contradiction(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The config says two things of one tensor: kept and quantized, or listed twice.

    ## Why it matters
    Which one wins depends on the reader.

    ## Fix
    Remove one of the two entries.
    """
    yield from checkpoint.defects_of(DefectKind.CONTRADICTION)


@rule("QM108", "impossible-scheme", Severity.ERROR, needs=Depth.MANIFEST)
def impossible_scheme(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Bits, mode and group size are each fine and do not exist together.

    ## Why it matters
    No library reads or writes the combination.

    ## Fix
    Take one of the combinations in the message.
    """
    yield from checkpoint.defects_of(DefectKind.IMPOSSIBLE_SCHEME)


@rule("QM109", "provenance", Severity.WARNING, needs=Depth.MANIFEST)
def provenance(checkpoint: Checkpoint) -> Iterator[Problem]:
    """The counts of the sensitivity scan are not those of the lists.

    ## Why it matters
    The lists were edited after the scan, or made for another model.

    ## Fix
    Correct the counts, or make the lists again.
    """
    yield from checkpoint.defects_of(DefectKind.PROVENANCE)


RULES = (
    unknown_key,
    invalid_value,
    missing_key,
    group_division,
    bad_pattern,
    no_config,
    contradiction,
    impossible_scheme,
    provenance,
)
