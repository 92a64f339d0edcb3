"""QM0: that files are what they say they are, and can be read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmanifest.findings import DefectKind, Problem, Severity
from qmanifest.rules.base import Depth, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmanifest.checkpoint import Checkpoint


@rule("QM001", "not-safetensors", Severity.ERROR, needs=Depth.FILES, any_files=True)
def not_safetensors(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A file is called `.safetensors` and holds something else.

    The usual guests are git-lfs pointers (a clone without git-lfs), web pages saved
    by a failed download, pickles and zip archives of `torch.save`, and empty files.

    ## Why it matters
    Some loaders read the first bytes as a length and allocate exabytes; others fall
    back to unpickling, which runs code.

    ## Fix
    Fetch the real file: `git lfs pull`, or download it again.
    """
    yield from checkpoint.defects_of(DefectKind.NOT_SAFETENSORS)


@rule("QM002", "truncated", Severity.ERROR, needs=Depth.FILES, any_files=True)
def truncated(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A file ends before the data that its header promises.

    The message has the bytes expected and found, and the tensors that are lost.

    ## Why it matters
    An interrupted download or a full disk leaves such a file. A reader that maps it
    into memory crashes, or serves zeros.

    ## Fix
    Download or write the file again.
    """
    yield from checkpoint.defects_of(DefectKind.TRUNCATED)


@rule("QM003", "trailing-bytes", Severity.ERROR, needs=Depth.FILES, any_files=True)
def trailing_bytes(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A file goes on after the last tensor that its header lists.

    ## Why it matters
    The safetensors library refuses it. Other readers take it, so one file can be two
    things at once, a checkpoint and an archive.

    ## Fix
    Write the file again with a conforming writer.
    """
    yield from checkpoint.defects_of(DefectKind.TRAILING_BYTES)


@rule("QM004", "bad-header", Severity.ERROR, needs=Depth.FILES, any_files=True)
def bad_header(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A header is not the JSON object that the format asks for.

    It has to be UTF-8 without a byte order mark, begin with `{`, and be padded with
    spaces alone; `__metadata__` maps strings to strings. A null `__metadata__` is
    accepted, since MLX writes one.

    ## Why it matters
    No tensor of the file can be found.

    ## Fix
    Write the file again.
    """
    yield from checkpoint.defects_of(DefectKind.BAD_HEADER)


@rule("QM005", "duplicate-key", Severity.ERROR, needs=Depth.FILES)
def duplicate_key(checkpoint: Checkpoint) -> Iterator[Problem]:
    r"""A JSON object has one key twice, in a header, an index or a config.

    Escapes do not hide it: `"h\\u0065ad"` and `"head"` are one key.

    ## Why it matters
    Readers keep the first or the last, silently, and so read different tensors.

    ## Fix
    Remove one of the two.
    """
    yield from checkpoint.defects_of(DefectKind.DUPLICATE_KEY)


@rule("QM006", "bad-tensor-entry", Severity.ERROR, needs=Depth.FILES, any_files=True)
def bad_tensor_entry(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A header describes a tensor in a way that cannot be right.

    Its dtype is unknown, its shape is not a list of whole numbers, or its byte range
    is not what dtype and shape take. Names that hide control characters, and fields
    that the format does not have, are warnings.

    ## Why it matters
    Readers that do not check compute a size of their own and read other tensors.

    ## Fix
    Write the file again; the numbers in the message say what is off.
    """
    yield from checkpoint.defects_of(DefectKind.BAD_ENTRY)


@rule("QM007", "overlap-or-gap", Severity.ERROR, needs=Depth.FILES, any_files=True)
def overlap_or_gap(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Tensors of one file share bytes, or leave bytes that no tensor owns.

    ## Why it matters
    Shared bytes multiply memory: a small file becomes gigabytes when every tensor is
    copied. Unowned bytes hide data.

    ## Fix
    Write the file again.
    """
    yield from checkpoint.defects_of(DefectKind.OVERLAP_OR_GAP)


@rule("QM008", "unsafe-path", Severity.ERROR, needs=Depth.FILES, any_files=True)
def unsafe_path(checkpoint: Checkpoint) -> Iterator[Problem]:
    """An index names a shard outside the checkpoint, or no shard at all.

    Shard names are plain relative names that end with `.safetensors` and resolve
    inside the folder. Links into a hub cache's own blobs are allowed.

    ## Why it matters
    Loaders that follow `../` read files that nobody meant to share; a name without
    the suffix sends some of them to unpickling.

    ## Fix
    Name the shard by its file name, and put it into the folder.
    """
    yield from checkpoint.defects_of(DefectKind.UNSAFE_PATH)


@rule("QM009", "unreadable-json", Severity.ERROR, needs=Depth.FILES)
def unreadable_json(checkpoint: Checkpoint) -> Iterator[Problem]:
    """A config or an index is not strict JSON.

    The message has the line and the column. NaN and Infinity, comments, trailing
    commas and a missing file behind a link all count; a byte order mark is a warning.

    ## Why it matters
    Parsers disagree about everything that is not JSON, and one of them is the loader.

    ## Fix
    Correct the text at the place named.
    """
    yield from checkpoint.defects_of(DefectKind.UNREADABLE_JSON)


@rule("QM010", "over-limit", Severity.ERROR, needs=Depth.FILES)
def over_limit(checkpoint: Checkpoint) -> Iterator[Problem]:
    """Something is larger than any real checkpoint has it, and was not read.

    A header has at most 100,000,000 bytes and 1,000,000 tensors, a config 16 MiB, an
    index 64 MiB, JSON 64 levels, a name 1,024 bytes, a config 10,000 patterns.

    ## Why it matters
    Such input is made to exhaust whoever reads it.

    ## Fix
    If the checkpoint is real, please report it: the limits are meant to be generous.
    """
    yield from checkpoint.defects_of(DefectKind.OVER_LIMIT)


RULES = (
    not_safetensors,
    truncated,
    trailing_bytes,
    bad_header,
    duplicate_key,
    bad_tensor_entry,
    overlap_or_gap,
    unsafe_path,
    unreadable_json,
    over_limit,
)
