"""The most that any one input may hold, so that hostile files cannot exhaust memory.

Every reader takes its limit from here at the moment of use. A limit itself is still
accepted; one more is refused as `DefectKind.OVER_LIMIT`.
"""

from __future__ import annotations

from typing import Final

MAX_HEADER: Final = 100_000_000
"""Bytes of a safetensors header; the safetensors library stops there too."""

MAX_CONFIG: Final = 16 * 1024 * 1024
"""Bytes of a config file."""

MAX_INDEX: Final = 64 * 1024 * 1024
"""Bytes of a `*.safetensors.index.json`."""

MAX_DEPTH: Final = 64
"""Arrays and objects inside one another in JSON; `[[1]]` is 2 deep."""

MAX_VALUES: Final = 10_000_000
"""Commas, arrays and objects of one JSON text: what its parsed form weighs."""

MAX_DIGITS: Final = 640
"""Digits in a row in a JSON number; Python converts this many under any setting."""

MAX_NAME: Final = 1_024
"""UTF-8 bytes of a tensor name or a shard name."""

MAX_RANK: Final = 256
"""Dimensions of one tensor, so that a shape can be shown; numpy stops at 64."""

MAX_TENSORS: Final = 1_000_000
"""Tensors of one header, and entries of one index."""

MAX_PATTERNS: Final = 10_000
"""Patterns of one config."""
