"""MLX's layout, and the same as transformers spells it."""

from __future__ import annotations

from typing import Final

from qmanifest.families.base import WORDS, Family, parts_of

MLX_NAMES: Final = parts_of(
    ".weight",
    scales=".scales",
    biases=".biases",
    zeros=".zeros",
    global_scale=".global_scale",
)
"""`X.weight` holds the codes, `X.scales` and `X.biases` stand beside it."""


METAL: Final = Family(
    "metal",
    "MLX's layout as transformers spells it",
    parts_of(".weight", scales=".scales", biases=".qbiases"),
    ("U32",),
    ("biases",),
)


MLX: Final = Family("mlx", "MLX", MLX_NAMES, WORDS, ("scales",), alone=("U32",))
