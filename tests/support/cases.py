"""Cases: small checkpoints written as text, and every finding that is due.

tests/cases/README.md describes the format; `Case` is the format.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from qmanifest.check import Report, check
from qmanifest.checkpoint import Checkpoint, open_checkpoint, open_config
from qmanifest.findings import Finding, Location
from qmanifest.testing import tensors_of, write_raw

FOLDER = Path(__file__).parent.parent / "cases"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class File(_Strict):
    """A safetensors file that may be malformed; see `qmanifest.testing.write_raw`."""

    table: str = ""
    header: str | None = None
    tail: str = ""
    cut: int = 0
    metadata: dict[str, str] = {"format": "pt"}


class Case(_Strict):
    """One case file."""

    about: str
    """What is stored and promised, in one or two sentences."""
    expect: tuple[str, ...] = ()
    """Every finding: code, severity, and the tensor or place that it is about."""
    says: tuple[str, ...] = ()
    """Texts that messages or hints have to hold."""
    deep: bool = False
    config_only: bool = False
    path: str = "."
    """What is opened, relative to the case's folder."""
    config: str | None = None
    base: str | None = None
    components: dict[str, str] = {}
    files: dict[str, str] = {}
    """Text by file name."""
    tables: dict[str, str | File] = {}
    """safetensors files by name, as tables of tensors."""
    hex: dict[str, str] = {}
    """Bytes by file name."""
    links: dict[str, str] = {}
    """Targets of symbolic links by file name."""

    def build(self, folder: Path) -> None:
        """Write the checkpoint's files into a folder."""
        for name, text in self.files.items():
            _made(folder / name).write_text(text, encoding="utf-8", newline="")
        for name, digits in self.hex.items():
            _made(folder / name).write_bytes(bytes.fromhex(digits))
        for name, table in self.tables.items():
            file = File(table=table) if isinstance(table, str) else table
            write_raw(
                _made(folder / name),
                tensors_of(file.table),
                file.header,
                tail=file.tail.encode(),
                cut=file.cut,
                metadata=file.metadata,
            )
        for name, target in self.links.items():
            _made(folder / name).symlink_to(target)

    def open(self, folder: Path) -> Checkpoint:
        """Open the checkpoint that was built in a folder."""
        path = folder / self.path
        if self.config_only:
            return open_config(path)
        return open_checkpoint(
            path,
            config=folder / self.config if self.config else None,
            components={name: folder / at for name, at in self.components.items()},
            base=folder / self.base if self.base else None,
        )

    def run(self, folder: Path) -> tuple[Checkpoint, Report]:
        """Build the checkpoint, open it, and check it."""
        self.build(folder)
        checkpoint = self.open(folder)
        return checkpoint, check(checkpoint, deep=self.deep)


def _made(path: Path) -> Path:
    """Make the folder of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def load(verdict: str) -> dict[str, Case]:
    """Read the cases of a verdict, `valid` or `invalid`, by name."""
    return {
        path.stem: Case.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        for path in sorted((FOLDER / verdict).glob("*.toml"))
    }


def line(finding: Finding) -> str:
    """Write a finding as a line of `expect`."""
    (at, *_) = finding.at or (Location(),)
    return f"{finding.code} {finding.severity} {place(at)}"


def place(at: Location) -> str:
    """Name the tensor that a finding is about, or else the place in a file."""
    if at.tensor is not None:
        return at.tensor
    return f"{at.file}#{at.pointer}" if at.pointer is not None else str(at.file)
