"""Hypothesis strategies: names, shapes, tensor tables, weights and manifests.

Everything drawn is valid, odd as it may look; break it in the test that needs it
broken. Needs hypothesis, which qmanifest itself does not install.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from qmanifest.dtypes import DTYPES, FLOAT16, nbytes
from qmanifest.manifest import Component, Kept, Manifest, Weight
from qmanifest.schemes import Affine, Microscaling

if TYPE_CHECKING:
    from qmanifest.schemes import Scheme
    from qmanifest.tensors import Shape
    from qmanifest.testing.tables import RawTensor

AFFINE_BITS: Final = (2, 3, 4, 5, 6, 8)
AFFINE_GROUPS: Final = (32, 64, 128)
_MAX_EXPERTS: Final = 3

_MICROSCALING: Final = (
    Microscaling("e2m1", 32, "e8m0", "u32-lsb", "none"),
    Microscaling("e4m3", 32, "e8m0", "u32-lsb", "none"),
    Microscaling("e2m1", 16, "e4m3", "u32-lsb", "none"),
)
_SEGMENTS: Final = st.sampled_from(
    ("model", "layers", "encoder", "layer", "0", "1", "11", "q_proj", "up", "norm")
)
_DOTTED: Final = st.lists(_SEGMENTS, min_size=1, max_size=4).map(".".join)
_ODD: Final = st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda name: name != "__metadata__")


def tensor_names() -> st.SearchStrategy[str]:
    """Draw names as models have them, and now and then any Unicode text."""
    return _DOTTED | _DOTTED.map(lambda stem: f"{stem}.weight") | _ODD


def shapes(*, max_dims: int = 3, max_side: int = 6) -> st.SearchStrategy[Shape]:
    """Draw shapes, those of scalars and of tensors without elements included."""
    return st.lists(st.integers(0, max_side), max_size=max_dims).map(tuple)


@st.composite
def raw_tensors(draw: st.DrawFn) -> RawTensor:
    """Draw a tensor of any dtype with random bytes, NaN patterns included."""
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    shape = draw(shapes())
    if prod(shape) * DTYPES[dtype].bits % 8:
        shape = (*shape, 4)  # four elements of 4 or 6 bits are whole bytes
    size = nbytes(dtype, shape)
    return dtype, shape, draw(st.binary(min_size=size, max_size=size))


def tensor_tables(*, max_size: int = 6) -> st.SearchStrategy[dict[str, RawTensor]]:
    """Draw the tensors of a file: what `write_raw` takes."""
    return st.dictionaries(tensor_names(), raw_tensors(), max_size=max_size)


def affine_schemes() -> st.SearchStrategy[Affine]:
    """Draw MLX's affine schemes, with 16-bit scales."""
    return st.builds(
        Affine,
        st.sampled_from(AFFINE_BITS),
        st.sampled_from(AFFINE_GROUPS),
        st.just(FLOAT16),
        st.just("u32-lsb"),
    )


def schemes() -> st.SearchStrategy[Scheme]:
    """Draw any scheme that MLX writes."""
    return affine_schemes() | st.sampled_from(_MICROSCALING)


@st.composite
def weights(draw: st.DrawFn, scheme: st.SearchStrategy[Scheme] | None = None) -> Weight:
    """Draw a weight that declares its shape, at times one with experts in front."""
    chosen = draw(schemes() if scheme is None else scheme)
    groups, rows = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    width = groups * max(chosen.group_size, 32)  # 32 codes of any width fill words
    experts = draw(st.lists(st.integers(1, _MAX_EXPERTS), max_size=1))
    return Weight(
        name=f"{draw(_DOTTED)}.weight",
        scheme=chosen,
        pointer="",
        shape=(*experts, rows, width),
    )


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """Draw a manifest of one or two components; no name is kept and quantized."""
    names = draw(st.sampled_from([("",), ("emb", "rr")]))
    return Manifest(
        "drawn", components=tuple(draw(_components(name)) for name in names)
    )


@st.composite
def _components(draw: st.DrawFn, name: str) -> Component:
    listed = draw(st.lists(weights(), max_size=4, unique_by=lambda each: each.name))
    kept = draw(st.lists(_DOTTED.map(lambda stem: f"{stem}.bias"), unique=True))
    return Component(
        name,
        weights=tuple(listed),
        kept=tuple(Kept(each, "", FLOAT16) for each in kept),
    )
