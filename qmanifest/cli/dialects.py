"""`qmanifest dialects`: the config vocabularies that are read and written."""

from __future__ import annotations

from typing import Final

from qmanifest.cli.console import say_json, say_table
from qmanifest.cli.options import ListingOption
from qmanifest.cli.values import Listing

EXAMPLES: Final = """\
  qmanifest dialects
  qmanifest dialects --format json"""


def dialects(
    output_format: ListingOption = Listing.TEXT,
) -> None:
    """List the config dialects.

    With their id, the file they are written to, and what they are.
    """
    from qmanifest.dialects import DIALECTS

    listed = [
        {
            "id": dialect.id,
            "title": dialect.title,
            "file_name": dialect.file_name,
            "read": True,
            "emit": True,
        }
        for dialect in DIALECTS
    ]
    if output_format is Listing.JSON:
        say_json(listed)
        return
    say_table(
        [
            (dialect.id, dialect.file_name, "read, emit", dialect.title)
            for dialect in DIALECTS
        ]
    )
