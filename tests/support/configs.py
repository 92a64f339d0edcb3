"""Real config files, where the workplace has them; tests of them are none elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qmanifest.dialects import recognize
from qmanifest.dialects.base import Place
from qmanifest.dialects.documents.parsing import parse

if TYPE_CHECKING:
    from qmanifest.findings import Defect

FOLDER: Final = Path(__file__).parents[3] / "shared" / "configs"
CONFIGS: Final = tuple(
    path for path in sorted(FOLDER.glob("*.json")) if ".index." not in path.name
)


def defects_of_real_config(path: Path, dialect_id: str) -> tuple[Defect, ...]:
    """Read and lower a config without weights, as the one dialect that knows it."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    (dialect,) = recognize(raw)
    assert dialect.id == dialect_id
    place = Place(path.name, dialect.locate(raw)[0])
    document = parse(dialect, raw, place)
    return dialect.lower(document, place, None).defects
