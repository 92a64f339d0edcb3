"""Tied heads, under configs of every shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import memory

from qmanifest.rules.across import tied_head

if TYPE_CHECKING:
    from qmanifest.findings import Finding
    from qmanifest.tensors import Shape

Tensors = dict[str, tuple[str, "Shape"]]
EMBEDDING: Tensors = {"model.embed_tokens.weight": ("F16", (8, 4))}
HEAD: Tensors = {"lm_head.weight": ("F16", (8, 4))}
CAUSAL = {"architectures": ["ToyForCausalLM"]}


def findings(config: dict[str, Any], *tensors: Tensors) -> list[Finding]:
    stored = {name: each for part in tensors for name, each in part.items()}
    return list(tied_head.run(memory.checkpoint(stored, model_config=config)))


def test_tied_and_stored() -> None:
    (found,) = findings({"tie_word_embeddings": True}, EMBEDDING, HEAD)
    assert found.at[0].tensor == "lm_head.weight"
    assert "64 bytes" in found.message
    assert not findings({"tie_word_embeddings": True}, EMBEDDING)
    assert not findings({"tie_word_embeddings": True}, HEAD)


def test_untied_and_absent() -> None:
    untied = {"tie_word_embeddings": False, **CAUSAL}
    (found,) = findings(untied, EMBEDDING)
    assert found.at[0].pointer == "/tie_word_embeddings"
    assert not findings(untied, EMBEDDING, HEAD)
    encoder = {"tie_word_embeddings": False, "architectures": ["ToyModel"]}
    assert not findings(encoder, EMBEDDING)
    assert not findings(untied, {"model.norm.weight": ("F16", (4,))})


@pytest.mark.parametrize("name", ["output", "model.output_layer", "head", "embed_out"])
def test_heads_of_other_names(name: str) -> None:
    untied = {"tie_word_embeddings": False, **CAUSAL}
    assert not findings(untied, EMBEDDING, {f"{name}.weight": ("F16", (8, 4))})
    assert findings(untied, EMBEDDING, {f"{name}.bias": ("F16", (8,))})


def test_the_text_config_may_say_it() -> None:
    inner = {"text_config": {"tie_word_embeddings": True}}
    assert findings(inner, EMBEDDING, HEAD)
    assert findings({**inner, "tie_word_embeddings": True}, EMBEDDING, HEAD)
    both = {**inner, **CAUSAL, "tie_word_embeddings": False}
    assert not findings(both, EMBEDDING, HEAD)
    assert not findings(both, EMBEDDING)


@pytest.mark.parametrize("value", [None, "false", 0, 1.5, [], {}, [True]])
def test_what_is_no_boolean_says_nothing(value: object) -> None:
    config = {"tie_word_embeddings": value, "text_config": value, **CAUSAL}
    assert not findings(config, EMBEDDING)
    assert not findings(config, EMBEDDING, HEAD)


@pytest.mark.parametrize("value", [None, 5, True, "ToyForCausalLM", {}, [None, {}, 3]])
def test_odd_architectures(value: object) -> None:
    config = {"tie_word_embeddings": False, "architectures": value}
    assert not findings(config, EMBEDDING)
