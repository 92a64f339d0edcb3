"""That the words on a dialect's line find it, whatever other dialects would say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import cases

from qmanifest.dialects import DIALECTS, IDS, recognize

ROOT = Path(__file__).parent.parent.parent
CONFIGS: dict[str, dict[str, Any]] = {
    **{
        path.parent.name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "examples").rglob("*.json"))
    },
    **{
        f"{name}/{file}": json.loads(text)
        for name, case in cases.load("valid").items()
        for file, text in case.files.items()
        if file.endswith(("config.json", "map.json"))
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_words_find_what_a_look_at_all_dialects_does(name: str) -> None:
    raw = CONFIGS[name]
    assert recognize(raw) == tuple(each for each in DIALECTS if each.locate(raw))


def test_ids_are_those_of_the_modules() -> None:
    assert tuple(dialect.id for dialect in DIALECTS) == IDS


def test_where_no_word_tells_all_are_asked() -> None:
    (dialect,) = recognize({"layers.0.up": {"weights": "qint4"}})
    assert dialect.id == "quanto"
    assert recognize({"nothing": 1}) == ()
