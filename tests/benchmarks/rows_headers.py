"""Bars 6, 7 and 8: headers, whole processes and configs of 100,000 tensors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal

from benchmarks import checkpoints
from benchmarks.harness import Contender, Contest, Limit, Row, faster, within
from benchmarks.processes import Peak

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness import Setup

TENSORS: Final = 99_840
SHARDS: Final = 160
TENTH: Final = 10
SAFE_OPEN: Final = """\
import sys
from pathlib import Path
from safetensors import safe_open
for path in sorted(Path(sys.argv[1]).glob("*.safetensors")):
    with safe_open(path, framework="numpy") as file:
        for name in file.keys():
            part = file.get_slice(name)
            part.get_dtype(), part.get_shape()
"""


def _safe_open(files: list[Path]) -> int:
    """Learn every tensor's dtype and shape from the safetensors library."""
    from safetensors import safe_open

    seen = 0
    for path in files:
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - the file is no dict
                part = file.get_slice(name)
                part.get_dtype()
                seen += len(part.get_shape())
    return seen


def _headers(shards: int) -> Setup:
    """Read every header and check its layout."""

    def setup(folder: Path) -> Contest:
        from qmanifest.reading.safetensors_header import read_header

        files = checkpoints.write_many(folder, TENSORS, shards)

        def read() -> int:
            return sum(len(read_header(path, path.name).defects) for path in files)

        def limits() -> Iterator[Limit]:
            yield Limit("defects of sound files", read(), 0)
            yield Limit("duplicate keys missed", _missed(folder), 0)

        peer = Contender(lambda: _safe_open(files))
        return Contest(Contender(read), {"safe_open": peer}, limits)

    return setup


def _missed(folder: Path) -> int:
    """Count the headers with one key twice in which no such defect is found: 0 or 1."""
    from qmanifest.findings import DefectKind
    from qmanifest.reading.safetensors_header import read_header
    from qmanifest.testing.tables import write_raw

    path = folder / "twice.safetensors"
    entry = '"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
    write_raw(path, {"a": ("U8", (1,), b"a")}, f"{{{entry},{entry}}}")
    kinds = [defect.kind for defect in read_header(path, path.name).defects]
    return int(DefectKind.DUPLICATE_KEY not in kinds)


def _process(config: Literal["glob", "entries"]) -> Setup:
    """Run `qmanifest validate`, and a script that only opens the same files."""

    def setup(folder: Path) -> Contest:
        checkpoints.write_many(folder, TENSORS, SHARDS)
        if config == "glob":
            checkpoints.write_glob_config(folder)
        else:
            checkpoints.write_entries_config(folder, TENSORS)
        command = ("-m", "qmanifest", "validate", str(folder), "--ignore", "QM9")
        return Contest(
            Contender(Peak(command)),
            {"safe_open process": Contender(Peak(("-c", SAFE_OPEN, str(folder))))},
        )

    return setup


def _pydantic(data: bytes) -> Callable[[], object]:
    """Read a config with a BaseModel for each entry."""
    from pydantic import BaseModel, ConfigDict

    class Entry(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)
        bits: int
        group_size: int
        shape: tuple[int, int]

    class Config(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)
        bits: int
        group_size: int
        kept_16bit: list[str]
        tensors: dict[str, Entry]

    return lambda: Config.model_validate_json(data)


def _jsonschema(data: bytes) -> Callable[[], object]:
    """Check a parsed config with python-jsonschema."""
    from jsonschema import Draft202012Validator

    side = {"type": "integer", "minimum": 0}
    entry = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "bits": {"type": "integer", "minimum": 1},
            "group_size": {"type": "integer", "minimum": 1},
            "shape": {"type": "array", "items": side, "minItems": 2, "maxItems": 2},
        },
    }
    validator = Draft202012Validator(
        {
            "type": "object",
            "required": ["bits", "group_size", "kept_16bit", "tensors"],
            "properties": {"tensors": {"additionalProperties": entry}},
        }
    )
    return lambda: validator.validate(json.loads(data))


def _config(folder: Path) -> Contest:
    """Read a config of 100,000 entries from its bytes to its document."""
    from qmanifest.dialects import tensor_map
    from qmanifest.dialects.base import Place
    from qmanifest.dialects.documents.parsing import parse
    from qmanifest.reading.config_file import read_config

    whole, part = (
        checkpoints.write_entries_config(folder, checkpoints.PARTS * count).read_bytes()
        for count in (100_000, 100_000 // TENTH)
    )
    path = folder / "quant_config.json"
    path.write_bytes(whole)

    def read() -> object:
        raw: Any = read_config(path, path.name).value
        return parse(tensor_map.DIALECT, raw, Place(path.name))

    return Contest(
        Contender(read),
        {
            "pydantic": Contender(_pydantic(whole)),
            "jsonschema": Contender(_jsonschema(part), scale=TENTH),
        },
    )


ROWS: Final = (
    Row(
        "headers, 99,840 tensors in 1 shard",
        6,
        (faster("safe_open", 1.5),),
        _headers(1),
    ),
    Row(
        "headers, 99,840 tensors in 160 shards",
        6,
        (faster("safe_open", 1.5),),
        _headers(SHARDS),
    ),
    Row(
        "validate, 160 shards, one pattern",
        7,
        (within("safe_open process", 1.5),),
        _process("glob"),
    ),
    Row(
        "validate, 160 shards, 33,280 entries",
        7,
        (within("safe_open process", 1.5),),
        _process("entries"),
    ),
    Row(
        "config of 100,000 entries",
        8,
        (faster("pydantic", 1.7), faster("jsonschema", 15)),
        _config,
    ),
)
