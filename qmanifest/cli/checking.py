"""From paths on the command line to reports that are ready to be written."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from qmanifest.cli.progress import ProgressLine
from qmanifest.cli.values import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from qmanifest.check import Report
    from qmanifest.checkpoint import Checkpoint
    from qmanifest.findings import Location


class Request(msgspec.Struct, frozen=True):
    """What `validate` was asked to do with each path."""

    config: Path | None = None
    components: Mapping[str, Path] = msgspec.field(default_factory=dict)
    base: Path | None = None
    dialect: str | None = None
    deep: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    config_only: bool = False
    """Whether the path is a config, whatever it is called."""

    def run(self, path: Path) -> Report:
        """Check one path, and find the lines of what was found."""
        from qmanifest.check import check
        from qmanifest.reports.locations import resolve_lines

        checkpoint = self._open(path)
        with ProgressLine() as progress:
            report = check(
                checkpoint,
                deep=self.deep,
                select=self.select,
                ignore=self.ignore,
                progress=progress,
            )
        return self._relocated(checkpoint, resolve_lines(report, texts_of(checkpoint)))

    def _open(self, path: Path) -> Checkpoint:
        """Open a path; a JSON file is a config without weights."""
        from qmanifest.checkpoint import open_checkpoint, open_config

        if self.config_only or (path.suffix == ".json" and not path.is_dir()):
            return open_config(path, dialect=self.dialect)
        return open_checkpoint(
            path,
            config=self.config,
            components=self.components,
            base=self.base,
            dialect=self.dialect,
        )

    def _relocated(self, checkpoint: Checkpoint, report: Report) -> Report:
        """Say of a config that lies elsewhere where that is."""
        if self.config is None or checkpoint.config is None:
            return report
        own, real = checkpoint.config.file, _way(checkpoint.root, self.config)
        if own == real:
            return report
        findings = tuple(
            replace(finding, at=tuple(_renamed(at, own, real) for at in finding.at))
            for finding in report.findings
        )
        return replace(report, findings=findings)


def _renamed(at: Location, own: str, real: str) -> Location:
    return replace(at, file=real) if at.file == own else at


def texts_of(checkpoint: Checkpoint) -> dict[str, str]:
    """Collect the texts that lines can be found in: the config and the index files."""
    indexes = (
        each.index_file
        for store in checkpoint.all_stores
        for each in store.sets
        if each.index_file is not None
    )
    texts = {index.file: index.text for index in indexes}
    if checkpoint.config is not None:
        texts[checkpoint.config.file] = checkpoint.config.text
    return texts


def known_prefixes(values: Sequence[str]) -> tuple[str, ...]:
    """Check that every value is the start of some rule's code.

    Raises:
        UsageError: one is not.

    """
    from qmanifest.rules import RULES

    codes = {rule.name: rule.code for rule in RULES}
    for value in values:
        if any(code.startswith(value.upper()) for code in codes.values()):
            continue
        from difflib import get_close_matches

        near = get_close_matches(value, [*codes.values(), *codes], 1, 0.4)
        meant = codes.get(near[0], near[0]) if near else None
        hint = f"did you mean {meant!r}?" if meant else "`qmanifest rules` lists them."
        raise UsageError(f"{value!r} is the start of no rule's code; {hint}")
    return tuple(value.upper() for value in values)


def _way(folder: Path, file: Path) -> str:
    """Lead from a folder to a file, with `/`."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # on Windows no path leads from one drive to another
        return file.as_posix()
