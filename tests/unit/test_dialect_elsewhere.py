"""Configs that describe no safetensors, and those that only look like them."""

from __future__ import annotations

from typing import Any

import pytest

from qmanifest.dialects.documents.elsewhere import elsewhere


@pytest.mark.parametrize(
    ("raw", "title"),
    [
        ({"per_model_config": {}}, "ONNX"),
        ({"per_channel": True, "reduce_range": False, "mode": "q8"}, "ONNX"),
        ({"wbits": 4}, "SqueezeLLM"),
    ],
)
def test_configs_of_other_files(raw: dict[str, Any], title: str) -> None:
    assert title in (elsewhere(raw) or "")


@pytest.mark.parametrize(
    "raw", [{}, {"per_channel": True}, {"wbits": 4, "groupsize": 128}, {"bits": 4}]
)
def test_configs_of_safetensors(raw: dict[str, Any]) -> None:
    assert elsewhere(raw) is None
