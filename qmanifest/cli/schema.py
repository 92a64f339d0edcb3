"""`qmanifest schema`: JSON Schemas of the public documents, and files held to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from qmanifest.cli.console import say, say_json, say_table
from qmanifest.cli.values import UsageError, chosen, require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.reading.config_file import ConfigFile

EXAMPLES: Final = """\
  qmanifest schema
  qmanifest schema tensor-map > tensor-map.schema.json
  qmanifest schema --check quant_config.json
  qmanifest schema report --check report.json"""


NameArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="Which document.", show_default=False),
]
CheckOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Hold this file to the schema; without NAME to its dialect's.",
    ),
]
WriteOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Write every schema to FOLDER/NAME.json."),
]


def schema(
    name: NameArgument = None, *, check: CheckOption = None, write: WriteOption = None
) -> None:
    """Print JSON Schemas, or hold a file to one.

    Without NAME the documents that have a schema are listed.

    Exit code 1: the file given with --check does not fit.
    """
    from qmanifest.schema import SCHEMAS, write_schemas
    from qmanifest.schema import schema as schema_of

    if name is not None:
        chosen(name, list(SCHEMAS), "schema")
    if write is not None:
        write_schemas(write)
    elif check is not None:
        raise typer.Exit(_check(check, name))
    elif name is not None:
        say_json(schema_of(name))
    else:
        say_table([(each, schema_of(each)["description"]) for each in SCHEMAS])


def _check(path: Path, name: str | None) -> int:
    """Print everything in a file that does not fit, with its place."""
    from qmanifest.reading.config_file import read_config

    require(path)
    file = read_config(path, str(path))
    if file.object is None:
        problems = [_damage(file)]
    else:
        name = name or _dialect_of(file)
        problems = list(_misfits(file, name))
    say(*problems)
    if not problems:
        say(f"{path}: fits the schema of {name}")
    return int(bool(problems))


def _damage(file: ConfigFile) -> str:
    """Say why a file has no JSON object."""
    from qmanifest.reports.places import shown_location

    problem = file.defects[0].problem
    return f"{shown_location(problem.at[0])}: {problem.message}"


def _dialect_of(file: ConfigFile) -> str:
    """Recognise a file's dialect."""
    from qmanifest.dialects import recognize

    found = [dialect.id for dialect in recognize(file.object or {})]
    if len(found) == 1:
        return found[0]
    which = f"fits {' and '.join(found)}" if found else "is of no known dialect"
    raise UsageError(f"{file.file!r} {which}. Name a schema of `qmanifest schema`.")


def _misfits(file: ConfigFile, name: str) -> Iterator[str]:
    """Write every error of a file's documents as a line."""
    from qmanifest.findings import Location
    from qmanifest.reading.json_text import locate_all
    from qmanifest.reports.places import shown_location
    from qmanifest.reports.shorten import shorten

    errors = list(_errors(file, name))
    places = locate_all(file.text, [pointer for pointer, _ in errors])
    for pointer, message in errors:
        line, column = places.get(pointer, (None, None))
        at = Location(file.file, pointer, line=line, column=column)
        yield f"{shown_location(at)}: {shorten(message, 200)}"


def _errors(file: ConfigFile, name: str) -> Iterator[tuple[str, str]]:
    """Find every error of a file's documents, as pointer and message."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    from qmanifest.dialects import DIALECTS
    from qmanifest.dialects.documents.parsing import descend
    from qmanifest.findings import json_pointer
    from qmanifest.schema import schema as schema_of

    raw = file.object or {}
    places = [keys for each in DIALECTS if each.id == name for keys in each.locate(raw)]
    # An empty registry: jsonschema would fetch a reference to elsewhere.
    validator = Draft202012Validator(schema_of(name), registry=Registry())
    for keys in places or [()]:
        for error in validator.iter_errors(descend(raw, keys)):
            yield json_pointer(*keys, *error.absolute_path), error.message
