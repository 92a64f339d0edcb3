"""`unpack_checkpoint` of every family: what the format's owner rebuilt, and no more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors import safe_open
from support.golden_checkpoints import CHECKPOINTS, Checkpoint
from support.models import floats, listing, load, same, save, stored, write_json

from qmanifest import open_checkpoint, unpack_checkpoint, validate
from qmanifest.errors import WriteError
from qmanifest.findings import Severity
from qmanifest.packings import pack
from qmanifest.packings.arrays import Stored, from_float32

if TYPE_CHECKING:
    from pathlib import Path

each_family = pytest.mark.parametrize("made", CHECKPOINTS, ids=lambda made: made.file)


@each_family
def test_values_names_and_shapes(tmp_path: Path, made: Checkpoint) -> None:
    folder = made.write(tmp_path / "packed")
    assert open_checkpoint(folder).dialect.id == made.dialect  # type: ignore[union-attr] # then it fails
    unpack_checkpoint(folder, tmp_path / "dense")
    found = load(tmp_path / "dense")
    assert found.keys() == {made.weight, "m.bias", "norm.weight"}
    weight, expected = found[made.weight], made.dense
    if made.dialect == "mxfp4":  # as the 16-bit model of gpt-oss has them
        expected = np.ascontiguousarray(np.swapaxes(expected, -1, -2))
    assert weight.dtype == made.dtype
    rounded = from_float32(expected, made.dtype)
    assert weight.shape == rounded.shape
    # not by bits: ModelOpt's table has no negative zero
    assert np.array_equal(floats(weight), floats(rounded))
    with safe_open(tmp_path / "dense" / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}
    before = load(folder)
    for name in ("m.bias", "norm.weight"):
        assert same(found[name], before[name])


@each_family
def test_asked_for_dtypes(tmp_path: Path, made: Checkpoint) -> None:
    folder = made.write(tmp_path / "packed")
    unpack_checkpoint(folder, tmp_path / "dense", dtype="float32")
    unpack_checkpoint(folder, tmp_path / "half", dtype="bfloat16")
    dense, half = load(tmp_path / "dense"), load(tmp_path / "half")
    assert {tensor.dtype for tensor in dense.values()} == {"F32"}
    for name, tensor in half.items():
        assert same(tensor, from_float32(floats(dense[name]), "BF16"))


@each_family
def test_the_result_is_the_model_that_is_packed(
    tmp_path: Path, made: Checkpoint
) -> None:
    """As a 16-bit original, it proves the shapes of what it was made from."""
    folder = made.write(tmp_path / "packed")
    unpack_checkpoint(folder, tmp_path / "dense")
    report = validate(folder, base=tmp_path / "dense", deep=True)
    found = [each for each in report.findings if each.severity is not Severity.NOTE]
    assert found == []


@each_family
def test_nothing_says_that_it_is_quantized(tmp_path: Path, made: Checkpoint) -> None:
    folder = made.write(tmp_path / "packed")
    own = {"hidden_size": 8, "text_config": {"layers": 2}}
    if made.config_name == "config.json":
        write_json(folder / "config.json", made.config | own)
    else:
        write_json(folder / "config.json", own)
    unpack_checkpoint(folder, tmp_path / "dense")
    assert listing(tmp_path / "dense") == ["config.json", "model.safetensors"]
    said = json.loads((tmp_path / "dense" / "config.json").read_text())
    kept = {key: made.config[key] for key in ("torch_dtype",) if key in made.config}
    assert said == own | kept
    assert open_checkpoint(tmp_path / "dense").config is None


def one(file: str) -> Checkpoint:
    """Find a checkpoint by its file."""
    return next(each for each in CHECKPOINTS if each.file == file)


def refusal(folder: Path, out: Path) -> str:
    """Give the reasons; nothing may have been written."""
    with pytest.raises(WriteError) as caught:
        unpack_checkpoint(folder, out)
    assert not out.exists()
    return str(caught.value)


def test_what_scaled_the_inputs_goes_into_the_columns(tmp_path: Path) -> None:
    made = one("modelopt_nvfp4")
    folder = made.write(tmp_path / "packed")
    numbers = np.linspace(0.5, 2, made.shape[1], dtype=np.float32)
    scale = {"m.pre_quant_scale": Stored("F32", numbers)}
    save(folder, made.tensors() | scale)
    unpack_checkpoint(folder, tmp_path / "dense", dtype="float32")
    found = load(tmp_path / "dense")
    assert found.keys() == {made.weight, "m.bias", "norm.weight"}
    assert np.array_equal(floats(found[made.weight]), made.dense * numbers)
    scale = {"m.pre_quant_scale": Stored("F32", numbers[1:])}
    save(folder, made.tensors() | scale)
    assert "not a float for each of 128 inputs" in refusal(folder, tmp_path / "d")


def test_low_rank_parts_are_refused(tmp_path: Path) -> None:
    made = one("modelopt_nvfp4")
    folder = made.write(tmp_path / "packed")
    added = {"m.svdquant_lora_a": stored(np.ones((4, 128)))}
    save(folder, made.tensors() | added)
    assert "'m.svdquant_lora_a' changes what" in refusal(folder, tmp_path / "d")


def test_values_that_are_not_decoded_are_one_line(tmp_path: Path) -> None:
    tensors = {
        f"{n}.{part}": Stored(dtype, np.zeros(shape, kind))
        for n in range(30)
        for part, dtype, kind, shape in (
            ("trellis", "I16", np.int16, (8, 8, 48)),
            ("suh", "F16", np.float16, (128,)),
            ("svh", "F16", np.float16, (128,)),
        )
    }
    folder = save(tmp_path / "packed", tensors)
    said = {"quant_method": "exl3", "version": "0.0.1", "bits": 3.0}
    write_json(folder / "config.json", {"quantization_config": said})
    lines = refusal(folder, tmp_path / "d").splitlines()
    assert len(lines) == 2
    assert "values of exl3" in lines[1]
    assert (
        "are not decoded: 30 weights ('0.weight', '1.weight', '2.weight', ...)"
        in (lines[1])
    )


def test_what_the_config_does_not_describe_is_refused(tmp_path: Path) -> None:
    made, other = one("ct_W3A16"), one("bnb_int8").tensors()
    folder = made.write(tmp_path / "packed")
    beside = {n.replace("m.", "o."): t for n, t in other.items() if n != "m.bias"}
    save(folder, made.tensors() | beside)
    said = refusal(folder, tmp_path / "d")
    assert "which the config does not describe: 1 weight ('o.weight')" in said


def test_parts_that_cannot_be_are_named(tmp_path: Path) -> None:
    made = one("gptq_b4_asym_cont_actorder")
    folder = made.write(tmp_path / "packed")
    listed = {"m.g_idx": Stored("I32", np.full(128, 9, np.int32))}
    save(folder, made.tensors() | listed)
    with pytest.raises(WriteError, match=r"'m\.weight': g_idx has groups 9 to 9"):
        unpack_checkpoint(folder, tmp_path / "dense")
    assert listing(tmp_path / "dense") == []


def test_padded_rows_are_cut_where_the_shape_is_written(tmp_path: Path) -> None:
    words = Stored("I32", pack("i32-lsb", np.full((4, 70), 5, np.uint8), 3))
    tensors = {
        "m.weight_packed": words,
        "m.weight_scale": Stored("F32", np.ones((4, 1), np.float32)),
        "m.weight_shape": Stored("I64", np.array([4, 70])),
    }
    group = {"num_bits": 3, "type": "int", "strategy": "channel", "symmetric": True}
    config = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"a": {"targets": ["Linear"], "weights": group}},
    }
    folder = save(tmp_path / "packed", tensors)
    write_json(folder / "config.json", {"quantization_config": config})
    assert words.shape == (4, 7)
    unpack_checkpoint(folder, tmp_path / "dense")
    assert same(load(tmp_path / "dense")["m.weight"], stored(np.full((4, 70), 1.0)))
    tensors["m.weight_shape"] = Stored("I64", np.array([4, 80]))
    save(folder, tensors)
    assert "'m.weight_shape' says [4, 80]" in refusal(folder, tmp_path / "d")


@pytest.mark.parametrize("scopes", ["dtype", "torch_dtype", "text_config"])
def test_the_models_dtype_counts_where_scales_are_wide(
    tmp_path: Path, scopes: str
) -> None:
    made = one("fp8_block32_float")
    folder = made.write(tmp_path / "packed")
    own = made.config | {"torch_dtype": "no dtype of ours"}
    inner = {"dtype": "float16"}
    own |= {scopes: inner} if scopes == "text_config" else {scopes: "float16"}
    write_json(folder / "config.json", own)
    unpack_checkpoint(folder, tmp_path / "dense")
    assert load(tmp_path / "dense")["m.weight"].dtype == "F16"


def test_large_weights_are_rebuilt_by_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = one("gptq_b4_asym_cont_actorder")
    folder = made.write(tmp_path / "packed")
    unpack_checkpoint(folder, tmp_path / "whole")
    monkeypatch.setattr("qmanifest.converting.ahead.BLOCK", 4 * 128 * 5)
    unpack_checkpoint(folder, tmp_path / "blocks")
    whole, blocks = load(tmp_path / "whole"), load(tmp_path / "blocks")
    assert same(whole["m.weight"], blocks["m.weight"])
