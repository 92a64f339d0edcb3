"""`mxfp4`: gpt-oss's experts, their biases, lists that look like globs, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest
from support.configs import CONFIGS, defects_of_real_config
from support.lowering import component, emit_again, index_of, lower

from qmanifest.dialects import dialect_named
from qmanifest.errors import EmitError
from qmanifest.families import GPT_OSS
from qmanifest.findings import Severity
from qmanifest.manifest import Component, Manifest, Weight
from qmanifest.schemes import Affine
from qmanifest.sizes import sizes_of, stored_sizes
from qmanifest.tensors import Shape

if TYPE_CHECKING:
    from pathlib import Path

Tensors: TypeAlias = dict[str, tuple[str, Shape]]
ID: Final = "mxfp4"
SAID: Final[dict[str, Any]] = {
    "quant_method": ID,
    "modules_to_not_convert": ["lm_head"],
}
E, OUT, K = 4, 6, 96
REAL = [path for path in CONFIGS if path.name.startswith(ID)]


def experts(stem: str = "l.0.mlp.experts.up_proj") -> Tensors:
    """Describe a stack of experts with its own biases."""
    return {
        f"{stem}_blocks": ("U8", (E, OUT, K // 32, 16)),
        f"{stem}_scales": ("U8", (E, OUT, K // 32)),
        f"{stem}_bias": ("BF16", (E, OUT)),
    }


@pytest.mark.parametrize(
    ("method", "count"), [("mxfp4", 1), ("MXFP4", 1), ("mxfp8", 0), (None, 0)]
)
def test_where_it_lies(method: str | None, count: int) -> None:
    raw = {"quantization_config": {"quant_method": method}}
    assert len(dialect_named(ID).locate(raw)) == count


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name[:40])
def test_real_configs_have_no_defects(path: Path) -> None:
    assert defects_of_real_config(path, ID) == ()


def test_experts_are_called_without_their_suffix() -> None:
    found = component(ID, SAID, index_of(experts()))
    (weight,) = found.weights
    assert (weight.name, weight.names) == ("l.0.mlp.experts.up_proj", GPT_OSS.names)
    assert [part.name for part in weight.parts()] == [
        "l.0.mlp.experts.up_proj_blocks",
        "l.0.mlp.experts.up_proj_scales",
    ]
    assert weight.scheme.logical((E, OUT, K // 32, 16)) == (E, OUT, K)
    assert found.every_linear


@pytest.mark.parametrize("lost", ["blocks", "scales"])
def test_half_of_a_stack_is_still_promised(lost: str) -> None:
    tensors = experts()
    del tensors[f"l.0.mlp.experts.up_proj_{lost}"]
    (weight,) = component(ID, SAID, index_of(tensors)).weights
    assert weight.name == "l.0.mlp.experts.up_proj"


def test_other_families_are_not_declared() -> None:
    tensors: Tensors = {"a.weight": ("U32", (4, 8)), "a.scales": ("F16", (4, 1))}
    assert component(ID, SAID, index_of(tensors)).weights == ()


def test_scales_of_something_else_are_none_of_a_stack() -> None:
    tensors: Tensors = {"l.0.attn.logit_scales": ("F32", (4,))}
    assert component(ID, SAID, index_of(tensors)).weights == ()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("model.layers.*.self_attn", ["model.layers.10.self_attn.q_proj.weight"]),
        ("model.layers.1.self_attn", []),
        ("router", ["model.layers.10.mlp.router.weight"]),
        ("model.embed", []),
        (
            "model.layers.10.mlp.experts",
            [
                "model.layers.10.mlp.experts.up_proj",
                "model.layers.10.mlp.experts.up_proj_bias",
            ],
        ),
    ],
)
def test_lists_are_expressions(text: str, kept: list[str]) -> None:
    """A `*` repeats the dot before it, which happens to work as a glob would."""
    matrix = ("BF16", (8, K))
    layer = "model.layers.10"
    tensors: Tensors = {
        f"{layer}.self_attn.q_proj.weight": matrix,
        f"{layer}.mlp.router.weight": matrix,
        "model.embed_tokens.weight": matrix,
        f"{layer}.mlp.experts.up_proj": ("BF16", (E, OUT, K)),
        f"{layer}.mlp.experts.up_proj_bias": ("BF16", (E, OUT)),
    }
    said = {**SAID, "modules_to_not_convert": [text]}
    found = component(ID, said, index_of(tensors | experts()))
    assert [each.name for each in found.kept] == kept
    (entry,) = found.entries
    assert (entry.reader, entry.unused) == ("transformers", Severity.NOTE)


def test_sizes() -> None:
    index = index_of(experts())
    found = component(ID, SAID, index)
    bias = 2 * E * OUT
    there = stored_sizes(index, found)
    assert there.total - there.overhead == E * OUT * (K // 2 + K // 32) + bias
    assert there.quantized_parameters == E * OUT * K
    assert there.bits_per_weight == 4.25
    known = {
        "l.0.mlp.experts.up_proj": ("BF16", (E, OUT, K)),
        "l.0.mlp.experts.up_proj_bias": ("BF16", (E, OUT)),
    }
    promised = sizes_of(Manifest(ID, components=(found,)), {"": known})
    assert promised.total == there.total - there.overhead
    assert promised.parameters == there.parameters == E * OUT * (K + 1)


def test_unknown_keys() -> None:
    (defect,) = lower(ID, {**SAID, "group_size": 32}).defects
    assert defect.problem.severity is Severity.NOTE


def test_written_again() -> None:
    index = index_of(experts() | {"lm_head.weight": ("BF16", (8, K))})
    written = emit_again(ID, lower(ID, SAID, index))
    assert written == SAID


def test_what_it_has_no_words_for() -> None:
    affine = Weight("a.weight", Affine(4, 64, ("F16",), "u32-lsb"), "")
    emit = dialect_named(ID).emit
    for components in ((Component("", (affine,)),), ()):
        with pytest.raises(EmitError):
            emit(Manifest(ID, components=components))
