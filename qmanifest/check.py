"""Run the rules over a checkpoint, and report what was found and what was skipped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from qmanifest.checkpoint import open_checkpoint
from qmanifest.errors import InvalidCheckpointError
from qmanifest.findings import Finding, Severity
from qmanifest.reading.collector import collector_paused
from qmanifest.rules import RULES
from qmanifest.rules.base import Depth
from qmanifest.rules.doubtful import doubts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from qmanifest.checkpoint import Checkpoint
    from qmanifest.rules.base import Rule
    from qmanifest.rules.value_scan import Progress


NO_CONFIG: Final = "there is no quantization config"
CONFIG_ALONE: Final = "only the config is checked"
UNREAD: Final = "the config could not be read"


@dataclass(frozen=True, slots=True)
class Skip:
    """A rule that could not run, and why."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found; `skipped` says what it did not look at."""

    findings: tuple[Finding, ...]
    skipped: tuple[Skip, ...]
    checked: tuple[str, ...]
    """Codes of the rules that ran."""
    path: str = ""
    dialect: str | None = None
    weights: int = 0
    tensors: int = 0
    packings: tuple[str, ...] = ()
    """Layouts that the weights are stored in, as seen; none where none was found."""

    def count(self, severity: Severity) -> int:
        """Count the findings of one severity."""
        return Counter(finding.severity for finding in self.findings)[severity]

    def reaches(self, least: Severity) -> bool:
        """Whether any finding is `least` or worse."""
        return any(finding.severity.reaches(least) for finding in self.findings)


def check(
    checkpoint: Checkpoint,
    *,
    deep: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    rules: Iterable[Rule] = RULES,
    progress: Progress | None = None,
) -> Report:
    """Check a checkpoint against every rule that applies.

    Args:
        checkpoint: what `open_checkpoint` or `open_config` gave.
        deep: read the tensors' bytes too.
        select: prefixes of the codes to run; none means all.
        ignore: prefixes of the codes to leave out; wins over `select`.
        rules: the rules to choose from.
        progress: told how many bytes are read, where `deep` reads any.

    """
    if deep and progress is not None:
        from qmanifest.rules.value_scan import scan  # noqa: PLC0415 - numpy

        scan(checkpoint, progress)
    with collector_paused():
        return _judged(checkpoint, deep, tuple(select), tuple(ignore), rules)


def _judged(
    checkpoint: Checkpoint,
    deep: bool,  # noqa: FBT001 - as `check` has it
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    rules: Iterable[Rule],
) -> Report:
    """Run the rules, as `check` says."""
    findings: list[Finding] = []
    skipped: list[Skip] = []
    checked: list[str] = []
    for each in rules:
        if not each.code.startswith(select or ""):
            continue
        if ignore and each.code.startswith(ignore):
            skipped.append(Skip(each.code, "ignored on request"))
        elif (reason := _cannot_run(each, checkpoint, deep=deep)) is not None:
            skipped.append(Skip(each.code, reason))
        else:
            found = list(each.run(checkpoint))
            findings += found
            if not found and each.needs is Depth.MANIFEST and not checkpoint.manifest:
                skipped.append(Skip(each.code, UNREAD))
            else:
                checked.append(each.code)
    order = list(Severity)
    findings.sort(key=lambda finding: (order.index(finding.severity), finding.code))
    manifest = checkpoint.manifest
    packings = {pack for each in doubts(checkpoint) for pack in each.packings}
    return Report(
        tuple(findings),
        tuple(skipped),
        tuple(checked),
        str(checkpoint.root),
        checkpoint.dialect.id if checkpoint.dialect else None,
        sum(len(c.weights) for c in manifest.components) if manifest else 0,
        sum(len(store.index) for store in checkpoint.all_stores),
        tuple(sorted(packings)),
    )


def _cannot_run(each: Rule, checkpoint: Checkpoint, *, deep: bool) -> str | None:
    """Say what keeps a rule from running, or None."""
    unknown = checkpoint.manifest is None and not each.any_files
    obstacles = (
        (Depth.FILES, each.any_files and checkpoint.config_only, CONFIG_ALONE),
        (Depth.MANIFEST, checkpoint.config is None and not each.any_files, NO_CONFIG),
        (Depth.HEADERS, checkpoint.config_only, CONFIG_ALONE),
        (Depth.HEADERS, not checkpoint.all_stores, "there are no safetensors files"),
        (Depth.HEADERS, unknown, UNREAD),
        (
            Depth.HEADERS,
            each.absence and not checkpoint.complete,
            "not every shard could be read, so nothing can be called absent",
        ),
        (Depth.DATA, not deep, "tensor data is read with --deep only"),
        (Depth.REFERENCE, checkpoint.base is None, "no 16-bit original (--base)"),
    )
    for depth, is_met, reason in obstacles:
        if is_met and each.needs >= depth:
            return reason
    return None


def validate(
    path: Path,
    *,
    config: Path | None = None,
    components: Mapping[str, Path] | None = None,
    base: Path | None = None,
    deep: bool = False,
) -> Report:
    """Open a checkpoint and check it against every rule that applies.

    Args:
        path: folder or file of the checkpoint.
        config: its config, where that is not in the folder under a usual name.
        components: folder or file of each component that is not in `path`.
        base: the 16-bit original, a witness of logical shapes.
        deep: read the tensors' bytes too.

    Raises:
        FileNotFoundError: there is nothing at one of the paths.

    """
    opened = open_checkpoint(path, config=config, components=components, base=base)
    return check(opened, deep=deep)


def assert_valid(
    path: Path,
    *,
    config: Path | None = None,
    components: Mapping[str, Path] | None = None,
    base: Path | None = None,
    deep: bool = False,
) -> Report:
    """Check a checkpoint as `validate` does, and raise where there are errors.

    Returns:
        The report, with what warnings and notes there are.

    Raises:
        InvalidCheckpointError: there are errors; it has a line for each.
        FileNotFoundError: there is nothing at one of the paths.

    """
    report = validate(path, config=config, components=components, base=base, deep=deep)
    errors = [each for each in report.findings if each.severity is Severity.ERROR]
    if errors:
        lines = [f"{each.code}: {each.message}" for each in errors]
        raise InvalidCheckpointError(str(path), lines)
    return report
