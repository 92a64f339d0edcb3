"""Write a manifest as the config of a dialect, the way its readers look for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.dialects import dialect_named
from qmanifest.errors import WriteError
from qmanifest.reading.config_file import MODEL_CONFIG, read_config
from qmanifest.writing.atomic import write_json

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.findings import JsonValue
    from qmanifest.manifest import Manifest


def write_config(
    manifest: Manifest, folder: Path, *, dialect: str = "tensor-map"
) -> Path:
    """Write the config of a checkpoint into its folder, whole or not at all.

    `quant_config.json` for the dialects that have a file of their own. The `mlx` block
    goes into the model's `config.json`, which keeps whatever else it says.

    Args:
        manifest: what to promise.
        folder: the checkpoint's folder; must exist.
        dialect: the vocabulary to write it in.

    Returns:
        The file that was written.

    Raises:
        EmitError: the dialect has no words for something in the manifest.
        UnknownDialectError: there is no such dialect.
        WriteError: the file cannot be written, or the one to extend cannot be read.

    """
    chosen = dialect_named(dialect)
    document: dict[str, JsonValue] = chosen.emit(manifest).to_json()
    path = folder / chosen.file_name
    if chosen.file_name == MODEL_CONFIG:
        document = {**_model_config(path), **chosen.wrap(document)}
    write_json(path, document)
    return path


def _model_config(path: Path) -> dict[str, JsonValue]:
    """Read what the model's own config says, if there is one."""
    if not path.exists():
        return {}
    file = read_config(path, path.name)
    if file.object is None:
        raise WriteError(f"{path} cannot be read, so it is not replaced")
    return dict(file.object)
