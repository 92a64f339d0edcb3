"""Plain names lowered all at once are lowered as one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lowering import index_of, lower

from qmanifest.dialects import tensor_map
from qmanifest.dialects.lowering.plain_names import are_plain
from qmanifest.patterns import Pattern, Syntax, read_entry

if TYPE_CHECKING:
    from qmanifest.tensors import TensorIndex

Config = dict[str, Any]

NAMES = (
    *("a.weight", "b.weight", "c.weight", "d.weight", "a.scales", "lost.weight", "e"),
    *("x/y~z.weight", "re:", "*", "a[0]", "é.weight", "n" * 1024),
)
ENTRIES: tuple[Config, ...] = (
    {"shape": [4, 64]},
    {"shape": [4, 64], "bits": 8},
    {"shape": [4, 80]},
    {"shape": [4, 64], "bits": 7},
    {"shape": [4, 64], "mode": "mxfp4", "group_size": 32},
    {"shape": [4, 64], "mode": "nvfp4", "group_size": 16},
    {"shape": [4, 64], "mode": "mxfp4"},
    {},
    {"group_size": 32},
)
INDEX = index_of(
    {
        "a.weight": ("U32", (4, 8)),
        "a.scales": ("F16", (4, 1)),
        "a.biases": ("F16", (4, 1)),
        "b.weight": ("U8", (4, 32)),
        "b.scales": ("F16", (4, 1)),
        "b.zeros": ("U8", (4, 1)),
        "c.weight": ("U32", (4, 8)),
        "c.scales": ("U8", (4, 4)),
        "c.global_scale": ("F32", (1,)),
        "d.weight": ("F16", (4, 64)),
        "x/y~z.weight": ("U32", (4, 8)),
        "é.weight": ("U32", (4, 8)),
    }
)
FEW = index_of({"a.weight": ("U32", (4, 8)), "d.weight": ("F16", (4, 64))})
KEPT = st.lists(
    st.sampled_from(["a.weight", "d.weight", "*.weight", "re:d.*", "no"]), unique=True
)


@given(
    tensors=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(ENTRIES)),
    kept=KEPT,
    index=st.sampled_from([None, INDEX, FEW]),
)
def test_as_one_by_one(
    tensors: Config, kept: list[str], index: TensorIndex | None
) -> None:
    config = {"bits": 4, "group_size": 64, "kept_16bit": kept, "tensors": tensors}
    config["scan"] = {"keep_backbone": 1, "keep_depth": 0}
    at_once = lower("tensor-map", config, index)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tensor_map, "plain_lines", lambda *_: None)
        assert lower("tensor-map", config, index) == at_once


def exact(*names: str) -> tuple[Pattern, ...]:
    return tuple(Pattern(name, Syntax.EXACT) for name in names)


@pytest.mark.parametrize(
    ("names", "plain"),
    [
        ((), True),
        (("a", "b" * 1024, "*"), True),
        (("a", ""), False),
        (("a", "re:"), False),
        (("a", "re:b"), True),
        (("b" * 1025, "a"), False),
        (("é", "a"), False),
    ],
)
def test_which_names_are_plain(names: tuple[str, ...], *, plain: bool) -> None:
    assert are_plain(names, exact(*names)) is plain


def test_a_glob_is_none() -> None:
    assert not are_plain(("a", "b*"), (*exact("a"), read_entry("b*")))
