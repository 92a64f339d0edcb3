"""Loading a source into a model: what is swapped, copied, tied and reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from qmanifest.backends import reference
from qmanifest.errors import BackendError
from qmanifest.packings import PACKINGS
from qmanifest.packings.arrays import Float32, Stored, from_float32, to_float32
from qmanifest.schemes import Affine, Scheme
from qmanifest.writing.quantize import quantize_affine

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from torch import Tensor, nn

    from qmanifest.backends.base import WeightSource
    from qmanifest.tensors import Shape
else:
    torch = pytest.importorskip("torch")
    from torch import Tensor, nn

from qmanifest.backends.pytorch import (
    QuantizedEmbedding,
    QuantizedLinear,
    load_into,
    load_weight,
)

SCHEME = Affine(4, 32, ("F16",), "u32-lsb")


class FakeSource:
    """A checkpoint in memory: some weights quantized, others dense."""

    def __init__(
        self, quantized: Mapping[str, Float32], dense: Mapping[str, Stored]
    ) -> None:
        self.values, self.kept = dict(quantized), dict(dense)

    def names(self) -> list[str]:
        return list(self.values)

    def weight(self, name: str) -> tuple[Scheme, Shape]:
        return SCHEME, self.values[name].shape

    def stored(self, name: str) -> dict[str, Stored]:
        made = quantize_affine(from_float32(self.values[name], "F16"), 4, 32)
        words = Stored("U32", PACKINGS["u32-lsb"].pack(made.codes, 4))
        return {"codes": words, "scales": made.scales, "biases": made.biases}

    def dense_names(self) -> list[str]:
        return list(self.kept)

    def dense(self, name: str) -> Stored | None:
        return self.kept.get(name)

    def rebuilt(self, name: str) -> Tensor:
        shape = self.values[name].shape
        return torch.from_numpy(reference.dequantize(SCHEME, self.stored(name), shape))


class Tiny(nn.Module):
    """Embeds, normalises, mixes and projects back."""

    def __init__(self, *, tied: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(12, 64)
        self.mix = nn.Linear(64, 32)
        self.back = nn.Linear(32, 64, bias=False)
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, 12, bias=False)
        self.register_buffer("steps", torch.zeros(3, dtype=torch.int64))
        self.register_buffer("cache", torch.zeros(3), persistent=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.embed(tokens)
        logits: Tensor = self.head(self.norm(hidden + self.back(self.mix(hidden))))
        return logits


SHAPES = {"embed.weight": (12, 64), "mix.weight": (32, 64), "back.weight": (64, 32)}


def random(*shape: int) -> Float32:
    rng = np.random.default_rng(sum(shape))
    return np.asarray(rng.normal(size=shape), np.float32)


def make_source(prefix: str = "") -> FakeSource:
    """Everything that `Tiny` needs; the head is dense."""
    dense = {
        "head.weight": from_float32(random(12, 64), "F16"),
        "mix.bias": from_float32(random(32), "BF16"),
        "norm.weight": Stored("F32", random(64)),
        "norm.bias": Stored("F32", random(64)),
        "steps": Stored("I64", np.arange(3)),
    }
    return FakeSource(
        {prefix + name: random(*shape) for name, shape in SHAPES.items()},
        {prefix + name: stored for name, stored in dense.items()},
    )


def filled(source: FakeSource, *, tied: bool = False) -> Tiny:
    """Make the dense model that `source` stands for."""
    model = Tiny(tied=tied)
    state = {name: source.rebuilt(name) for name in source.names()}
    for name, stored in source.kept.items():
        values = stored.array if stored.dtype == "I64" else to_float32(stored)
        state[name] = torch.from_numpy(values.copy())
    model.load_state_dict(state, strict=not tied)
    return model


TOKENS = torch.arange(12).reshape(2, 6)


def test_fake_source_is_a_source() -> None:
    source: WeightSource = make_source()
    weight = load_weight(source, "mix.weight")
    assert weight.shape == (32, 64)
    assert weight.dtype == torch.float16


def test_every_weight_finds_its_place() -> None:
    source, model = make_source(), Tiny().eval()
    bias = model.mix.bias
    report = load_into(model, source, strict=True)
    assert report.complete
    assert sorted(report.swapped) == ["back", "embed", "mix"]
    assert sorted(report.copied) == sorted(source.kept)
    assert not report.tied
    assert type(model.get_submodule("embed")) is QuantizedEmbedding
    assert type(model.get_submodule("mix")) is QuantizedLinear
    assert type(model.get_submodule("head")) is nn.Linear
    assert not model.mix.training
    assert model.mix.bias is bias
    torch.testing.assert_close(model(TOKENS), filled(source)(TOKENS))
    assert str(report) == "3 layers swapped, 5 copied"


def test_loaded_model_trains_what_is_dense() -> None:
    source, model = make_source(), Tiny()
    load_into(model, source)
    twin = filled(source)
    wanted = torch.autograd.grad(twin(TOKENS).square().sum(), twin.mix.bias)
    found = torch.autograd.grad(model(TOKENS).square().sum(), model.mix.bias)
    # Products are summed in another order, and the square carries that on.
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-5)


def test_what_the_source_lacks_is_missing() -> None:
    source, model = make_source(), Tiny()
    del source.values["mix.weight"], source.kept["norm.bias"], source.kept["steps"]
    report = load_into(model, source)
    assert sorted(report.missing) == ["mix.weight", "norm.bias", "steps"]
    assert type(model.mix) is nn.Linear
    assert not report.unexpected
    assert "3 missing: " in str(report)


def test_what_the_model_lacks_is_unexpected() -> None:
    source, model = make_source(), Tiny()
    source.values["other.weight"] = random(4, 32)
    source.kept["other.bias"] = Stored("F32", random(4))
    source.kept["cache"] = Stored("F32", random(3))
    report = load_into(model, source)
    assert sorted(report.unexpected) == ["cache", "other.bias", "other.weight"]
    assert not report.missing


def test_what_does_not_fit_is_mismatched() -> None:
    source, model = make_source(), Tiny()
    before = model.norm.bias.detach().clone()
    source.values["mix.weight"] = random(64, 64)
    source.values["norm.weight"] = random(1, 64)
    del source.kept["norm.weight"]
    source.kept["norm.bias"] = Stored("F32", random(1, 64))
    source.kept["steps"] = Stored("F32", random(3))
    source.kept["head.weight"] = Stored("I8", np.zeros((12, 64), np.int8))
    report = load_into(model, source)
    assert report.mismatched == {
        "mix.weight": "has shape [64, 64], the model [32, 64]",
        "norm.weight": (
            "only nn.Linear and nn.Embedding inside a model hold quantized weights"
        ),
        "norm.bias": "has shape [1, 64], the model [64]",
        "steps": "is F32, the model has torch.int64",
        "head.weight": "is I8, the model has torch.float32",
    }
    assert not report.missing
    assert torch.equal(model.norm.bias, before)
    assert type(model.mix) is nn.Linear


@pytest.mark.parametrize("fault", ["missing", "unexpected", "mismatched"])
def test_strict_changes_nothing(fault: str) -> None:
    source, model = make_source(), Tiny()
    if fault == "missing":
        del source.kept["steps"]
    elif fault == "unexpected":
        source.kept["other"] = Stored("F32", random(4))
    else:
        source.values["mix.weight"] = random(64, 64)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    with pytest.raises(BackendError, match=f"model was not changed: .* 1 {fault}: '"):
        load_into(model, source, strict=True)
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_strict_finds_a_dense_shape_while_loading() -> None:
    source, model = make_source(), Tiny()
    source.kept["norm.bias"] = Stored("F32", random(63))
    with pytest.raises(BackendError, match=r"only partly loaded: .*'norm\.bias' "):
        load_into(model, source, strict=True)


def test_source_that_has_not_what_it_names() -> None:
    source, model = make_source(), Tiny()
    source.dense = {}.get  # type: ignore[method-assign,assignment] # a source that lost its tensors
    report = load_into(model, source)
    assert set(report.mismatched) == set(source.kept)


def test_prefixes_are_renamed() -> None:
    source, model = make_source("model.text."), Tiny()
    names = {"model.": "wrong.", "model.text.": ""}
    report = load_into(model, source, rename=names, strict=True)
    assert report.complete
    torch.testing.assert_close(model(TOKENS), filled(make_source())(TOKENS))
    untouched = load_into(Tiny(), source, rename={"nothing": ""})
    assert len(untouched.unexpected) == 8


def test_names_are_renamed_and_left_out_by_a_function() -> None:
    source, model = make_source("m."), Tiny()
    source.kept["m.extra"] = Stored("F32", random(1))
    report = load_into(
        model,
        source,
        rename=lambda name: None if "extra" in name else name.removeprefix("m."),
    )
    assert report.complete


def test_two_tensors_for_one_place() -> None:
    source = make_source()
    source.kept["x.norm.bias"] = Stored("F32", random(64))
    with pytest.raises(
        BackendError, match=r"'norm\.bias' and 'x\.norm\.bias' would both"
    ):
        load_into(Tiny(), source, rename={"x.": ""})
    source = make_source()
    source.kept["mix.weight"] = Stored("F32", random(32, 64))
    with pytest.raises(
        BackendError, match=r"'mix\.weight' and 'mix\.weight' would both"
    ):
        load_into(Tiny(), source)


def test_quantized_tied_weight_is_shared() -> None:
    source, model = make_source(), Tiny(tied=True)
    del source.kept["head.weight"]
    report = load_into(model, source, strict=True)
    assert report.tied == {"head.weight": "embed.weight"}
    assert {"embed", "head"} <= set(report.swapped)
    assert type(model.get_submodule("head")) is QuantizedLinear
    assert type(model.get_submodule("embed")) is QuantizedEmbedding
    assert model.head.get_buffer("weight") is model.embed.get_buffer("weight")
    torch.testing.assert_close(model(TOKENS), filled(source, tied=True)(TOKENS))


def test_dense_tied_weight_is_copied_once() -> None:
    source, model = make_source(), Tiny(tied=True)
    del source.values["embed.weight"]
    report = load_into(model, source, strict=True)
    assert report.tied == {"embed.weight": "head.weight"}
    assert model.embed.weight is model.head.weight


@pytest.mark.parametrize("same", [True, False])
def test_dense_tied_weight_stored_twice(same: bool) -> None:  # noqa: FBT001 - a case
    source, model = make_source(), Tiny(tied=True)
    del source.values["embed.weight"]
    values = random(12, 64) if same else random(12, 64) + 1
    source.kept["embed.weight"] = from_float32(values, "F16")
    report = load_into(model, source)
    assert report.complete == same
    if not same:
        expected = {"embed.weight": "differs from what it is tied to"}
        assert report.mismatched == expected


def test_tied_head_with_a_dense_weight_of_its_own_is_untied() -> None:
    source, model = make_source(), Tiny(tied=True)
    load_into(model, source, strict=True)
    assert type(model.get_submodule("embed")) is QuantizedEmbedding
    assert type(model.head) is nn.Linear
    torch.testing.assert_close(model(TOKENS), filled(source)(TOKENS))


def test_layer_used_twice_stays_one_layer() -> None:
    first = nn.Linear(64, 64)
    model = nn.ModuleDict({"a": first, "b": first})
    source = FakeSource(
        {"a.weight": random(64, 64)}, {"b.bias": Stored("F32", random(64))}
    )
    report = load_into(model, source, strict=True)
    assert model["a"] is model["b"]
    assert isinstance(model["a"], QuantizedLinear)
    assert report.tied == {"b.weight": "a.weight", "a.bias": "b.bias"}
    assert torch.equal(model["a"].get_parameter("bias"), torch.from_numpy(random(64)))


class SubclassedLinear(nn.Linear):
    """Might use its weight in another way."""


@pytest.mark.parametrize(
    "layer",
    [SubclassedLinear(32, 8, bias=False), nn.Embedding(8, 32, max_norm=1.0)],
    ids=["subclass", "max_norm"],
)
def test_layers_that_are_not_swapped(layer: nn.Module) -> None:
    model = nn.Sequential(layer)
    report = load_into(model, FakeSource({"0.weight": random(8, 32)}, {}))
    assert list(report.mismatched) == ["0.weight"]
    assert model[0] is layer


def test_the_model_itself_cannot_be_swapped() -> None:
    model = nn.Linear(32, 8, bias=False)
    report = load_into(model, FakeSource({"weight": random(8, 32)}, {}))
    assert list(report.mismatched) == ["weight"]


def test_tied_to_what_cannot_be_swapped_is_missing() -> None:
    model = Tiny(tied=True)
    model.extra = SubclassedLinear(64, 12, bias=False)
    model.extra.weight = model.embed.weight
    source = make_source()
    del source.kept["head.weight"]
    assert load_into(model, source).missing == ["extra.weight"]


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_model_without_memory(dtype: torch.dtype | None) -> None:
    with torch.device("meta"):
        model = Tiny()
    source = make_source()
    report = load_into(model, source, dtype=dtype)
    assert report.complete
    assert {each.device.type for each in model.state_dict().values()} == {"cpu"}
    kinds = {each.dtype for each in model.parameters()}
    assert kinds == {dtype or torch.float32}
    assert model.embed(TOKENS).dtype == (dtype or torch.float32)
    expected = filled(source).to(dtype or torch.float32)
    tolerance = 0.1 if dtype else 1e-5
    torch.testing.assert_close(
        model(TOKENS), expected(TOKENS), atol=tolerance, rtol=tolerance
    )


def test_parameters_keep_their_identity_and_dtype() -> None:
    model = Tiny().half()
    before = dict(model.norm.named_parameters())
    model.norm.bias.requires_grad_(False)  # noqa: FBT003 - torch's signature
    load_into(model, make_source())
    assert dict(model.norm.named_parameters()) == before
    assert model.norm.weight.dtype == torch.float16
    load_into(model, make_source(), dtype=torch.float32)
    assert model.norm.weight.dtype == torch.float32
    assert not model.norm.bias.requires_grad


def test_loading_shares_no_memory_with_the_source() -> None:
    source, model = make_source(), Tiny().to(torch.bfloat16)
    load_into(model, source, dtype=torch.float32)
    with torch.no_grad():
        model.norm.bias.zero_()
    np.testing.assert_array_equal(source.kept["norm.bias"].array, random(64))


def test_report_shows_the_first_names_only() -> None:
    source = FakeSource({}, {f"t{i}": Stored("F32", random(1)) for i in range(8)})
    text = str(load_into(nn.ReLU(), source))
    assert text.endswith("8 unexpected: 't0', 't1', 't2', 't3', 't4' and 3 more")
