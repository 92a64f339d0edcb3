"""The schemas in `schemas/v1`: up to date, valid, and fitting real configs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry

from qmanifest.checkpoint import open_config
from qmanifest.dialects import DIALECTS, recognize
from qmanifest.dialects.documents.parsing import descend
from qmanifest.manifest import to_json
from qmanifest.schema import SCHEMAS, schema, write_schemas

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "schemas" / "v1"
SEEDS: Final = sorted((ROOT.parent / "shared" / "seeds").glob("*.json"))
EXAMPLES: Final = sorted(ROOT.glob("examples/*/*config.json"))


def validator(name: str) -> Draft202012Validator:
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text), registry=Registry())


def documents(path: Path) -> list[tuple[str, Any]]:
    """List the documents in a config file, each with its dialect."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    return [
        (dialect.id, descend(raw, keys))
        for dialect in recognize(raw)
        for keys in dialect.locate(raw)
    ]


def test_files_are_up_to_date(tmp_path: Path) -> None:
    """Run `qmanifest schema --write schemas/v1` when this fails."""
    write_schemas(tmp_path)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
    assert made == kept


def test_every_dialect_has_a_schema() -> None:
    assert set(SCHEMAS) == {each.id for each in DIALECTS} | {"manifest", "report"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_valid_and_refers_to_nothing_outside(name: str) -> None:
    made = schema(name)
    Draft202012Validator.check_schema(made)
    assert made["$id"] == f"urn:qmanifest:schema:v1:{name}"
    assert made["description"]
    references = [
        line for line in json.dumps(made, indent=0).split("\n") if "$ref" in line
    ]
    assert all('"#/$defs/' in line for line in references)


@pytest.mark.parametrize("name", SCHEMAS)
def test_most_keys_are_described(name: str) -> None:
    made = schema(name)
    objects = [made, *made.get("$defs", {}).values()]
    values = [
        value for each in objects for value in each.get("properties", {}).values()
    ]
    described = [value for value in values if "description" in value]
    assert len(described) >= len(values) // 3


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_examples_fit(path: Path) -> None:
    found = documents(path)
    assert found
    for name, document in found:
        validator(name).validate(document)


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name)
def test_founding_configs_fit_and_broken_ones_do_not(path: Path) -> None:
    ((name, document),) = documents(path)
    check = validator(name)
    check.validate(document)
    for key in document:
        without = {k: v for k, v in document.items() if k != key}
        optional = key in {"mode", "scan"} or key.endswith("_q4")
        assert check.is_valid(without) == optional, key
        assert not check.is_valid({**document, key: 7.5}), key
    assert not check.is_valid({**document, "bit": 4})


@pytest.mark.parametrize("path", [*SEEDS, *EXAMPLES], ids=lambda path: str(path)[-40:])
def test_manifests_fit(path: Path) -> None:
    manifest = open_config(path).manifest
    assert manifest is not None
    validator("manifest").validate(json.loads(to_json(manifest)))


def test_a_manifest_without_dialect_does_not_fit() -> None:
    assert not validator("manifest").is_valid({"components": []})
