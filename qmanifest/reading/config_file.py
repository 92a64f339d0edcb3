"""The config file of a checkpoint: found by name, read strictly.

The names are tried in order. `config.json` belongs to the model and only counts as a
quantization config where it holds one; the others are nothing else.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import msgspec

from qmanifest.dimensions import TEXT_CONFIGS
from qmanifest.findings import Defect, DefectKind, JsonValue, Location, Problem
from qmanifest.reading.files import FileProblem, read_whole
from qmanifest.reading.json_text import parse_json
from qmanifest.reading.limits import MAX_CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MODEL_CONFIG: Final = "config.json"
CONFIG_NAMES: Final = (
    "quant_config.json",
    "quantize_config.json",
    "quantization.json",
    "quanto_qmap.json",
    "hf_quant_config.json",
)
"""Names of files that hold a quantization config and nothing else, best first."""
LAST: Final = CONFIG_NAMES[-1]
"""What ModelOpt writes; readers take it where `config.json` holds nothing."""
BLOCKS: Final = ("quantization", "quantization_config", "compression_config")
"""Keys of a model's config under which a quantization config lies."""


class ConfigFile(msgspec.Struct, frozen=True):
    """One JSON file: what it says, or what is wrong with it."""

    file: str
    """Path relative to the checkpoint."""
    value: JsonValue
    text: str
    """The file as text, to find lines and columns in; empty where it has none."""
    defects: tuple[Defect, ...]

    @property
    def object(self) -> Mapping[str, Any] | None:
        """The top-level object, or None where the file is none."""
        return self.value if isinstance(self.value, dict) else None

    @property
    def block(self) -> Mapping[str, Any] | None:
        """The quantization config under one of its usual keys, else the object."""
        found = (block for block in self._blocks() if isinstance(block, dict))
        return next(found, self.object)

    @property
    def holds_block(self) -> bool:
        """Whether there is anything but null under one of the usual keys."""
        return any(block is not None for block in self._blocks())

    def _blocks(self) -> Iterator[JsonValue]:
        """Walk over the values under the usual keys, the text model's last."""
        top = self.object or {}
        for scope in (top, *map(top.get, TEXT_CONFIGS)):
            if isinstance(scope, dict):
                yield from map(scope.get, BLOCKS)


def read_config(path: Path, file: str) -> ConfigFile:
    """Read one config file; `file` is its name in messages."""
    try:
        data = read_whole(path, MAX_CONFIG)
    except FileProblem as problem:
        at = (Location(file),)
        kind = problem.kind
        if kind is not DefectKind.OVER_LIMIT:
            kind = DefectKind.UNREADABLE_JSON
        found = Defect(kind, Problem(problem.message, at, hint=problem.hint))
        return ConfigFile(file, None, "", (found,))
    parsed = parse_json(data, file)
    defects = parsed.defects
    if parsed.readable and not isinstance(parsed.value, dict):
        shown = "null" if parsed.value is None else type(parsed.value).__name__
        problem_found = Problem(
            f"{file} holds {shown}, not an object",
            (Location(file, ""),),
            expected="object",
            actual=shown,
            hint="write the config as a JSON object",
        )
        defects = (*defects, Defect(DefectKind.UNREADABLE_JSON, problem_found))
    return ConfigFile(file, parsed.value, parsed.text, defects)


def find_configs(root: Path) -> tuple[str, ...]:
    """List the config files that a folder has, best first, whatever they are.

    A broken link counts: that the config cannot be read is news, not its absence.
    """
    names = (*CONFIG_NAMES[:-1], MODEL_CONFIG, LAST)
    return tuple(name for name in names if os.path.lexists(root / name))
