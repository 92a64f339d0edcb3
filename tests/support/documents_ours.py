"""Documents of the dialects that name every weight, for tests."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from support.documents_base import STEMS, Documents, line_lists, lines

from qmanifest.testing.strategies import tensor_names

_entries: Final = st.fixed_dictionaries(
    {},
    optional={
        "bits": st.sampled_from([2, 3, 4, 6, 8]),
        "group_size": st.sampled_from([16, 32, 64, 128]),
        "mode": st.sampled_from(["affine", "mxfp4", "mxfp8", "nvfp4"]),
        "shape": st.lists(
            st.integers(0, 4).map(lambda n: 64 * n), min_size=2, max_size=3
        ),
    },
)
_scans: Final = st.fixed_dictionaries(
    {},
    optional={
        "file": st.sampled_from(["8b64", "x.json"]) | st.none(),
        "keep_backbone": st.integers(0, 9),
        "keep_depth": st.integers(0, 999),
    },
)
_overrides: Final = st.booleans() | st.fixed_dictionaries(
    {},
    optional={
        "bits": st.sampled_from([3, 4, 8]),
        "group_size": st.sampled_from([16, 32, 64]),
        "mode": st.sampled_from(["affine", "mxfp4", "nvfp4"]),
        "global_scale": st.booleans(),
    },
)
_modules: Final = st.sampled_from(STEMS) | tensor_names().filter(
    lambda name: name not in {"bits", "group_size", "mode", "$schema"}
)
OURS: Final[dict[str, Documents]] = {
    "tensor-map": st.fixed_dictionaries(
        {
            "bits": st.sampled_from([4, 5, 7, 8]),
            "group_size": st.sampled_from([32, 48, 64]),
            "kept_16bit": line_lists,
            "tensors": st.dictionaries(lines, _entries, max_size=5),
        },
        optional={
            "mode": st.sampled_from(["affine", "mxfp4"]),
            "scan": _scans | st.none(),
            "$schema": st.just("urn:x"),
        },
    ),
    "q4-lists": st.fixed_dictionaries(
        {
            "quant": st.just("q4"),
            "group": st.sampled_from([16, 64]),
            "scheme": st.sampled_from(["", "8-bit bf16", "4-bit"]),
            "protected_fp16": line_lists,
            "emb_q4": line_lists,
        },
        optional={"rr_q4": line_lists, "x_y_q4": line_lists},
    ),
    "mlx": st.builds(
        dict.__or__,
        st.dictionaries(_modules, _overrides, max_size=5),
        st.fixed_dictionaries(
            {
                "bits": st.sampled_from([4, 8]),
                "group_size": st.sampled_from([32, 64]),
            },
            optional={"mode": st.sampled_from(["affine", "nvfp4"])},
        ),
    ),
}
