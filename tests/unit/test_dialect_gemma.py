"""`gemma`: widths by pattern, embeddings, what is emitted, and transformers itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
import torch
from safetensors.torch import save_file
from support.golden import assert_same
from support.lowering import component, emit_again, index_of, lower
from support.owners import owner, stored

from qmanifest.backends.reference import dequantize
from qmanifest.checkpoint import open_checkpoint
from qmanifest.dialects import dialect_named
from qmanifest.dialects.gemma.schemes import gemma
from qmanifest.dtypes import FLOAT
from qmanifest.errors import EmitError
from qmanifest.families import GEMMA, GEMMA_TABLE
from qmanifest.findings import DefectKind, Severity
from qmanifest.manifest import Component, Kept, Manifest, Weight
from qmanifest.packings.arrays import Stored
from qmanifest.schemes import Affine
from qmanifest.weights import CheckpointWeights

if TYPE_CHECKING:
    from pathlib import Path

    from qmanifest.tensors import Shape

Tensors = dict[str, tuple[str, "Shape"]]
ID: Final = "gemma"
SAID: Final[dict[str, Any]] = {"quant_method": ID}
N, K = 8, 64
theirs = owner("transformers.integrations.gemma_quant")


def layer(stem: str = "a", bits: int = 4, *, measured: bool = True) -> Tensors:
    """Describe a linear layer of 8 x 64, with or without scales of activations."""
    dtype = "I8" if bits == 8 else "U8"
    parts: Tensors = {
        f"{stem}.weight": (dtype, (N, K * bits // 8)),
        f"{stem}.weight_scale": ("F32", (N, 1)),
    }
    if measured:
        for end in ("input_activation_scale", "output_activation_scale"):
            parts[f"{stem}.{end}"] = ("F32", ())
    return parts


def table(stem: str = "embed_tokens", bits: int = 4) -> Tensors:
    """Describe an embedding of 8 x 64."""
    return {
        f"{stem}.embedding_quantized": ("U8", (N, K * bits // 8)),
        f"{stem}.embedding_scale": ("F32", (N, 1)),
    }


@pytest.mark.parametrize(("method", "count"), [("gemma", 1), ("Gemma", 1), ("gem", 0)])
def test_where_it_lies(method: str, count: int) -> None:
    raw = {"quantization_config": {"quant_method": method}}
    assert len(dialect_named(ID).locate(raw)) == count


@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize(("said", "bits"), [({}, 4), ({"num_bits": 2}, 2)])
def test_one_width(said: dict[str, int], bits: int, *, measured: bool) -> None:
    found = component(ID, SAID | said, index_of(layer(bits=bits, measured=measured)))
    scheme = gemma(bits, table=False)
    assert found.weights == (Weight("a.weight", scheme, "", names=GEMMA.names),)
    assert scheme.logical((N, K * bits // 8)) == (N, K)
    assert found.every_linear


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("layers.0.mlp", 8),  # "layers" begins before "mlp"
        ("layers.1.mlp", 2),
        ("layers.1.mlp.up", 2),  # both begin there: the first counts
        ("layers.1.attn", 4),
    ],
)
def test_the_match_that_begins_first_counts(name: str, bits: int) -> None:
    own = {
        "mlp": {"num_bits": 2},
        r"layers\.0\.": {"num_bits": 8},
        r"mlp\.up": {"num_bits": 8},
        "nothing": {},
    }
    index = index_of(layer(name, bits))
    config = SAID | {"module_quant_configs": own}
    (weight,) = component(ID, config, index).weights
    assert weight.scheme.bits == bits
    assert (weight.pointer == "") == (bits == 4)


def test_embeddings_are_quantized_on_demand() -> None:
    index = index_of(table() | layer())
    assert [w.name for w in component(ID, SAID, index).weights] == ["a.weight"]
    both = component(ID, SAID | {"quantize_embeddings": True}, index)
    weight = both.weights[0]
    assert (weight.name, weight.names) == ("embed_tokens.weight", GEMMA_TABLE.names)
    assert [part.name for part in weight.parts()] == [
        "embed_tokens.embedding_quantized",
        "embed_tokens.embedding_scale",
    ]


def test_other_families_are_not_declared() -> None:
    index = index_of({"a.weight": ("U32", (4, 8)), "a.scales": ("F16", (4, 1))})
    assert component(ID, SAID, index).weights == ()


def test_lists_and_patterns_are_read_as_transformers_does() -> None:
    config = SAID | {
        "modules_to_not_convert": ["head", "absent"],
        "module_quant_configs": {"m.p$": {"num_bits": 2}},
    }
    dense: Tensors = {"lm_head.weight": ("BF16", (4, 64))}
    found = component(ID, config, index_of(dense | layer("mlp", 2)))
    assert [each.name for each in found.kept] == ["lm_head.weight"]
    assert [entry.unused for entry in found.entries] == [
        Severity.NOTE,
        Severity.NOTE,
        Severity.WARNING,
    ]


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"num_bits": 3}, "/num_bits"),
        ({"module_quant_configs": {"a": {"num_bits": 6}}}, None),
    ],
)
def test_widths_that_do_not_exist(said: dict[str, Any], pointer: str | None) -> None:
    (defect,) = lower(ID, SAID | said, index_of(layer())).defects
    assert defect.kind is DefectKind.IMPOSSIBLE_SCHEME
    at = defect.problem.at[0].pointer
    assert at == (pointer or "/module_quant_configs/a/num_bits")


def test_what_is_emitted_is_read_again() -> None:
    config = SAID | {
        "quantize_embeddings": True,
        "modules_to_not_convert": ["lm_head"],
        "module_quant_configs": {"mlp": {"num_bits": 2}, "embed": {"num_bits": 8}},
    }
    tensors = layer("x.attn") | layer("x.mlp", 2) | table(bits=8)
    tensors["lm_head.weight"] = ("BF16", (4, 64))
    tensors["embed_tokens.embedding_quantized"] = ("I8", (N, K))
    index = index_of(tensors)
    lowered = lower(ID, config, index)
    written = emit_again(ID, lowered)
    assert written["module_quant_configs"] == {
        r"^x\.mlp$": {"num_bits": 2},
        "^embed_tokens$": {"num_bits": 8},
    }
    again = component(ID, written, index)
    (before,) = lowered.manifest.components
    assert [(w.name, w.scheme, w.names) for w in again.weights] == [
        (w.name, w.scheme, w.names) for w in before.weights
    ]
    assert [each.name for each in again.kept] == [each.name for each in before.kept]


@pytest.mark.parametrize("components", [0, 2])
def test_one_model_is_emitted(components: int) -> None:
    kept = (Kept("a.weight", "", FLOAT),)
    manifest = Manifest(ID, None, (Component("", (), kept),) * components)
    with pytest.raises(EmitError, match="one model"):
        dialect_named(ID).emit(manifest)


@pytest.mark.parametrize(
    "scheme", [Affine(4, 64, ("F16",), "u32-lsb"), gemma(3, table=False)]
)
def test_other_schemes_have_no_words(scheme: Any) -> None:  # noqa: ANN401 - any scheme
    weight = Weight("a.weight", scheme, "", names=GEMMA.names)
    manifest = Manifest(ID, None, (Component("", (weight,)),))
    with pytest.raises(EmitError, match=r"no words for 'a.weight'"):
        dialect_named(ID).emit(manifest)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_layer_of_transformers_has_its_values(bits: int, tmp_path: Path) -> None:
    torch.manual_seed(bits)
    own = theirs.QuantizedLinear(K, N, num_bits=bits)
    low, high = (-128, 128) if bits == 8 else (0, 256)
    codes = torch.randint(low, high, own.weight.shape, dtype=own.weight.dtype)
    own.weight.data = codes
    own.weight_scale.data = torch.rand(N, 1) + 0.5
    values = _opened(own, "m", tmp_path, {"num_bits": bits})
    assert_same(values, stored(own._dequantize_weights()))  # noqa: SLF001 - theirs


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_table_of_transformers_has_its_values(bits: int, tmp_path: Path) -> None:
    torch.manual_seed(bits)
    own = theirs.QuantizedEmbedding(N, K, torch.float32, num_bits=bits)
    codes = own.embedding_quantized
    low, high = (-128, 128) if bits == 8 else (0, 256)
    codes.data = torch.randint(low, high, codes.shape, dtype=codes.dtype)
    own.embedding_scale.data = torch.rand(N, 1) + 0.5
    said = {"num_bits": bits, "quantize_embeddings": True}
    values = _opened(own, "m", tmp_path, said)
    assert_same(values, stored(own.weight.detach()))


def _opened(own: Any, stem: str, folder: Path, said: dict[str, Any]) -> Stored:  # noqa: ANN401 - a module of theirs
    """Save a module as transformers does, open it, and rebuild its weight."""
    tensors = {f"{stem}.{name}": p.contiguous() for name, p in own.state_dict().items()}
    save_file(tensors, folder / "model.safetensors")
    config = {"quantization_config": SAID | said}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    source = CheckpointWeights(open_checkpoint(folder))
    scheme, shape = source.weight(f"{stem}.weight")
    parts = source.stored(f"{stem}.weight")
    return Stored("F32", dequantize(scheme, parts, shape))
