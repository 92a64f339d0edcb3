"""Bytes and parameters of a whole model, counted by another library.

An 8B Qwen3 that mlx-lm converted: its `config.json` says the dimensions and 4 bits in
groups of 64, and mlx-lm wrote `total_size` and `total_parameters` into the index. Here
the dimensions alone make the tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from support.lowering import component, index_of

from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.schemes import Affine
from qmanifest.sizes import sizes_of, stored_sizes

if TYPE_CHECKING:
    from qmanifest.tensors import Shape

HIDDEN, INNER, LAYERS, VOCABULARY = 4096, 12288, 36, 151936
HEADS, KEYS, HEAD = 32, 8, 128
TOTAL_SIZE: Final = 4_607_731_712
TOTAL_PARAMETERS: Final = 8_190_735_360
TENSORS: Final = 907
BLOCK: Final = {"group_size": 64, "bits": 4, "mode": "affine"}


def matrices() -> dict[str, Shape]:
    """Shape every matrix; the head is not tied to the embedding."""
    attention: dict[str, Shape] = {
        "q_proj": (HEADS * HEAD, HIDDEN),
        "k_proj": (KEYS * HEAD, HIDDEN),
        "v_proj": (KEYS * HEAD, HIDDEN),
        "o_proj": (HIDDEN, HEADS * HEAD),
    }
    inner: dict[str, Shape] = {
        "gate_proj": (INNER, HIDDEN),
        "up_proj": (INNER, HIDDEN),
        "down_proj": (HIDDEN, INNER),
    }
    found: dict[str, Shape] = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        start = f"model.layers.{layer}"
        found |= {f"{start}.self_attn.{n}.weight": s for n, s in attention.items()}
        found |= {f"{start}.mlp.{n}.weight": s for n, s in inner.items()}
    return found | {"lm_head.weight": (VOCABULARY, HIDDEN)}


def vectors() -> dict[str, Shape]:
    """Shape the norms: two of each layer, and two of the heads of its attention."""
    found: dict[str, Shape] = {"model.norm.weight": (HIDDEN,)}
    for layer in range(LAYERS):
        start = f"model.layers.{layer}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            found[f"{start}.{norm}.weight"] = (HIDDEN,)
        for norm in ("q_norm", "k_norm"):
            found[f"{start}.self_attn.{norm}.weight"] = (HEAD,)
    return found


def stored() -> dict[str, tuple[str, Shape]]:
    """List the tensors of the converted model, from the formulas of MLX's layout."""
    tensors: dict[str, tuple[str, Shape]]
    tensors = {name: ("BF16", shape) for name, shape in vectors().items()}
    for name, (rows, columns) in matrices().items():
        stem = name.removesuffix(".weight")
        tensors[name] = ("U32", (rows, columns * 4 // 32))
        tensors[f"{stem}.scales"] = ("BF16", (rows, columns // 64))
        tensors[f"{stem}.biases"] = ("BF16", (rows, columns // 64))
    return tensors


def test_what_is_stored() -> None:
    index = index_of(stored())
    assert len(index) == TENSORS
    sizes = stored_sizes(index, component("mlx", BLOCK, index))
    assert sizes.total - sizes.overhead == TOTAL_SIZE
    assert sizes.parameters == TOTAL_PARAMETERS


def test_what_the_config_promises() -> None:
    known = {n: ("BF16", shape) for n, shape in (matrices() | vectors()).items()}
    promised = component("mlx", BLOCK, index_of(stored()))
    sizes = sizes_of(Manifest("mlx", components=(promised,)), {"": known})
    assert sizes.total == TOTAL_SIZE
    assert sizes.parameters == TOTAL_PARAMETERS
    assert not sizes.unknown


def test_schemes_and_shapes_alone_are_enough() -> None:
    scheme = Affine(4, 64, ("BF16",), "u32-lsb")
    weights = tuple(Weight(n, scheme, "", shape) for n, shape in matrices().items())
    known = {name: ("BF16", shape) for name, shape in vectors().items()}
    built = Manifest("mlx", components=(Component("", weights),))
    sizes = sizes_of(built, {"": known})
    assert (sizes.total, sizes.parameters) == (TOTAL_SIZE, TOTAL_PARAMETERS)
