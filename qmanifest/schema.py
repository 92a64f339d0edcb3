"""JSON Schemas of every public document, generated from the types that read it.

`write_schemas` makes `schemas/v1`, and a test compares the two. A dialect in `DIALECTS`
has a schema without a line here; any other document is a row of `SCHEMAS`.
"""

from __future__ import annotations

import ast
import inspect
import json
from functools import partial
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from qmanifest.dialects import DIALECTS
from qmanifest.manifest import Manifest
from qmanifest.reports.json_form import ReportForm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pydantic_core import core_schema

    from qmanifest.dialects.base import Dialect

Schema: TypeAlias = dict[str, Any]
"""A JSON Schema."""

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
VERSION: Final = 1
"""Counts up when a document that fitted no longer fits."""


def schema(name: str) -> Schema:
    """Generate one document's schema.

    Raises:
        KeyError: there is no document called `name`.

    """
    return SCHEMAS[name]()


def write_schemas(folder: Path) -> None:
    """Write every schema to `folder/NAME.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SCHEMAS:
        text = json.dumps(schema(name), indent=2) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


class _Generator(GenerateJsonSchema):
    """pydantic's generator, with our docstrings as descriptions."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401 - a core schema
        """Leave out titles that only repeat the key."""
        del schema
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        """Describe the fields of a pydantic model."""
        return _described(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Schema:
        """Describe the fields of a dataclass."""
        return _described(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> Schema:
        """Describe the keys of a dictionary."""
        found = super().typed_dict_schema(schema)
        cls = schema.get("cls")
        return found if cls is None else _described(found, cls)


def _described(found: Schema, cls: type) -> Schema:
    """Add the docstrings below a class's attributes to its properties."""
    aliases = {
        name: field.alias or name
        for name, field in getattr(cls, "model_fields", {}).items()
    }
    properties = found.get("properties", {})
    for parent in reversed(cls.__mro__):
        for name, text in _attribute_docstrings(parent).items():
            value = properties.get(aliases.get(name, name))
            if value is not None:
                value["description"] = text
    return found


def _attribute_docstrings(cls: type) -> dict[str, str]:
    """Read the strings that stand below a class's annotated attributes."""
    if not cls.__module__.startswith("qmanifest."):
        return {}
    (tree,) = ast.parse(dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text.value.value).replace("\n", " ")
        for field, text in zip(tree.body, tree.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _of_dialect(dialect: Dialect[Any]) -> Schema:
    return _schema_of(dialect.document, dialect.id, dialect.title)


def _schema_of(kind: Any, name: str, description: str) -> Schema:  # noqa: ANN401 - any type
    """Generate the schema of a type under its name."""
    found = TypeAdapter(kind).json_schema(schema_generator=_Generator)
    head = {"$schema": DRAFT, "$id": f"urn:qmanifest:schema:v{VERSION}:{name}"}
    return head | found | {"title": f"qmanifest {name}", "description": description}


SCHEMAS: Final[dict[str, Callable[[], Schema]]] = {
    **{dialect.id: partial(_of_dialect, dialect) for dialect in DIALECTS},
    "manifest": partial(
        _schema_of, Manifest, "manifest", "what a config promises, in no dialect"
    ),
    "report": partial(
        _schema_of, ReportForm, "report", "what `validate --format json` writes"
    ),
}
"""How to generate each document's schema, by its name."""
