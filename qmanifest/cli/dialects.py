"""`qmanifest dialects`: the config vocabularies that are read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from qmanifest.cli.console import say_json, say_table
from qmanifest.cli.options import ListingOption
from qmanifest.cli.values import Listing

if TYPE_CHECKING:
    from qmanifest.dialects.base import Dialect

EXAMPLES: Final = """\
  qmanifest dialects
  qmanifest dialects --format json"""


_DECODED: Final = {"all": "decode", "most": "decode most", "none": "no values"}
"""How the table says what `Dialect.decodes` says."""


def dialects(
    output_format: ListingOption = Listing.TEXT,
) -> None:
    """List the config dialects.

    With their id, the file they are written to, what they are, and what is done with
    them: read, emitted as a config, and their weights' values decoded, all or most.
    """
    from qmanifest.dialects import DIALECTS

    if output_format is Listing.JSON:
        say_json(
            [
                {
                    "id": dialect.id,
                    "title": dialect.title,
                    "file_name": dialect.file_name,
                    "read": True,
                    "emit": dialect.emits,
                    "decode": dialect.decodes,
                }
                for dialect in DIALECTS
            ]
        )
        return
    say_table(
        [
            (dialect.id, dialect.file_name, _abilities(dialect), dialect.title)
            for dialect in DIALECTS
        ]
    )


def _abilities(dialect: Dialect[Any]) -> str:
    """Say what is done with configs and weights of a dialect."""
    emit = ["emit"] if dialect.emits else []
    return ", ".join(["read", *emit, _DECODED[dialect.decodes]])
