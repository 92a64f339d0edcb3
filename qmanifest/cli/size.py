"""`qmanifest size`: the bytes that a config promises, beside those that are stored."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from qmanifest.cli.console import say_json
from qmanifest.cli.opening import indexes_of, manifest_of, opened, shapes_of
from qmanifest.cli.options import ComponentOption
from qmanifest.cli.values import placed, require

if TYPE_CHECKING:
    from qmanifest.checkpoint import Checkpoint
    from qmanifest.manifest import Manifest
    from qmanifest.sizes import Sizes

EXAMPLES: Final = """\
  qmanifest size ./model
  qmanifest size ./model --by layer --format markdown
  qmanifest size --config quant_config.json --shapes ./model-bf16"""


class By(StrEnum):
    """What one row of the table is."""

    PART = "part"
    LAYER = "layer"
    BITS = "bits"
    DTYPE = "dtype"


class Format(StrEnum):
    """How to show the sizes."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


PathArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(metavar="PATH", help="The checkpoint.", show_default=False),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The config; without PATH it is enough."),
]
ShapesOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="CHECKPOINT",
        help="The 16-bit original, for shapes that the config does not have.",
    ),
]


def size(
    path: PathArgument = None,
    *,
    config: ConfigOption = None,
    shapes: ShapesOption = None,
    component: ComponentOption = None,
    by: Annotated[By, typer.Option(help="What one row is.")] = By.PART,
    size_format: Annotated[
        Format, typer.Option("--format", help="How to show the sizes.")
    ] = Format.TEXT,
) -> None:
    """Count the bytes that are promised, and stored.

    A config with shapes needs no weights at all; else --shapes or PATH has them. Of a
    config that names no weights, with --shapes: what its format would make of them.
    """
    from qmanifest.cli.size_view import SizeView, as_json, notes_of, tables_of
    from qmanifest.cli.tables import say_markdown, say_tables

    require(shapes)
    checkpoint = opened(path, config, placed(component), shapes)
    view = SizeView(
        by.value, _promised(checkpoint, shapes), _stored(checkpoint), _files(checkpoint)
    )
    if size_format is Format.JSON:
        say_json(as_json(view))
    else:
        write = say_tables if size_format is Format.TEXT else say_markdown
        write(tables_of(view), notes_of(view))


def _promised(checkpoint: Checkpoint, original: Path | None) -> Sizes | None:
    """Size the promise; None for a checkpoint that has no config."""
    from qmanifest.sizes import Sizes, sizes_of

    if checkpoint.config is None and checkpoint.all_stores:
        return None
    manifest: Manifest = manifest_of(checkpoint)
    assumed: tuple[str, ...] = ()
    if original is not None and checkpoint.config_only:
        manifest, assumed = _supposed(checkpoint, original)
    stored = {name: store.index for name, store in checkpoint.stores.items()}
    shapes = shapes_of(checkpoint, original, manifest)
    sizes = sizes_of(manifest, shapes, stored=stored or None)
    return sizes + Sizes((), assumed=assumed)


def _supposed(
    checkpoint: Checkpoint, original: Path
) -> tuple[Manifest, tuple[str, ...]]:
    """Find what the original would be stored as, if the config leaves that to see."""
    from qmanifest.supposed import suppose

    manifest = manifest_of(checkpoint)
    indexes = indexes_of(original, manifest)
    found = suppose(checkpoint, indexes[""]) if "" in indexes else None
    return found or (manifest, ())


def _stored(checkpoint: Checkpoint) -> Sizes | None:
    """Size what is stored; None for a config alone."""
    from qmanifest.logical import logical_shapes
    from qmanifest.sizes import stored_sizes

    found = [
        stored_sizes(store.index, component, logical_shapes(component, store))
        for component, store in checkpoint.found()
    ]
    found += [stored_sizes(store.index) for store in checkpoint.loose]
    if not found:
        return None
    first, *others = found
    for each in others:
        first += each
    return first


def _files(checkpoint: Checkpoint) -> dict[str, int]:
    """Give every shard's size in bytes, as the file system has it."""
    return {
        header.file: header.size
        for store in checkpoint.all_stores
        for header in store.headers
    }
