"""The ten faults in what bitsandbytes, torchao and MLX make of one real model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from qmanifest import Severity, validate

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import torch
from safetensors.torch import load_file
from support import minilm, seeding
from support.seeding import KEPT, MODULE, NAME, Format, Tensors

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

pytestmark = pytest.mark.filterwarnings("ignore")  # of deprecations in others' code
FAULTS = tuple(f"b{number}" for number in range(1, 11))
ALIKE = {
    "b5": (MODULE, "which has it not"),
    "b6": ("bytes expected", "found"),
    "b7": ("which is not there", seeding.SECOND),
    "b10": (MODULE, "it is in"),
}
"""What is said of the faults that are the same in every format."""


def source() -> Tensors:
    tensors = load_file(minilm.model_folder() / "model.safetensors")
    return {name: tensor.bfloat16() for name, tensor in tensors.items()}


def model() -> dict[str, Any]:
    return {**minilm.model_config(), "architectures": ["BertModel"]}


def bitsandbytes(folder: Path) -> Format:
    pytest.importorskip("bitsandbytes")
    from support import live_bitsandbytes as live

    def made(name: str, weight: Tensor) -> Tensors:
        return live.four_bits(name, weight.float(), nested=False)[0]

    tensors = source()
    kept = tensors[f"{KEPT}.weight"]
    for name in minilm.ENCODER:
        tensors |= made(name, tensors.pop(name))
    config = live.config(bits=4, skip=(KEPT, "word_embeddings"))
    seeding.write(folder, tensors, {}, {**model(), "quantization_config": config})

    def eight(document: dict[str, Any]) -> None:
        own = document["quantization_config"]
        own |= {"load_in_4bit": False, "_load_in_4bit": False}
        own |= {"load_in_8bit": True, "_load_in_8bit": True}

    def other_blocks(_document: object, own: Tensors) -> None:
        key = f"{NAME}.quant_state.bitsandbytes__nf4"
        state = json.loads(bytes(own[key].tolist())) | {"blocksize": 128}
        own[key] = torch.tensor(list(json.dumps(state).encode()), dtype=torch.uint8)

    says = {
        "b1": ("8-bit", "4-bit"),
        "b2": (f"{NAME}.absmax", "[294912, 1]"),
        "b3": (f"{NAME}.quant_state", "blocksize 64", "128"),
        "b4": (KEPT, "U8 [73728, 1]"),
        "b8": (f"{NAME}.quant_state", "blocksize 128", "64"),
        "b9": (f"{NAME}.absmax", "1 of 9,216 scales"),
    }
    return Format(
        scales=f"{NAME}.absmax",
        codes=NAME,
        kept=lambda: made(f"{KEPT}.weight", kept),
        spoil=seeding.spoil,
        wrong_bits=eight,
        same_shapes=other_blocks,
        says=says,
    )


def torchao(folder: Path) -> Format:
    pytest.importorskip("torchao")
    from support import live_torchao as live

    config = live.named("int8")
    tensors: dict[str, Any] = dict(source())
    kept = tensors[f"{KEPT}.weight"]
    for name in minilm.ENCODER:
        tensors[name] = live.quantize(tensors[name], config)
    flat, metadata = live.flattened(tensors)
    own = live.quantization_config(config, (KEPT, "embeddings"))
    seeding.write(folder, flat, metadata, {**model(), "quantization_config": own})

    def say(document: dict[str, Any], kind: str) -> None:
        made = live.configs.config_to_dict(live.named(kind))
        document["quantization_config"]["quant_type"]["default"] = made

    codes, scales = f"{MODULE}._weight_qdata", f"{MODULE}._weight_scale"
    says = {
        "b1": ("Float8WeightOnlyConfig", "I8 [384, 384]"),
        "b2": (scales, "I8 [1536, 384]"),
        "b3": (scales, "[768, 1]", "[1536, 1]"),
        "b4": (KEPT, "I8 [384, 384]"),
        "b8": (NAME, "bits=4", "1x32", "[1536, 1]", "[1536, 12]"),
        "b9": (scales, "1 of 1,536 scales"),
    }
    return Format(
        *(scales, codes),
        lambda: live.flattened({f"{KEPT}.weight": live.quantize(kept, config)})[0],
        seeding.spoil,
        lambda document: say(document, "float8"),
        lambda document, _own: say(document, "int4-groups"),
        says,
    )


def mlx(folder: Path) -> Format:
    mx = pytest.importorskip("mlx.core")
    settings = {"group_size": 32, "bits": 4, "mode": "mxfp4"}

    def made(name: str, weight: Tensor) -> Tensors:
        words, scales = mx.quantize(mx.array(weight.float().numpy()), **settings)
        parts = {name: words, f"{name.removesuffix('.weight')}.scales": scales}
        return {key: torch.from_numpy(_array(part)) for key, part in parts.items()}

    tensors = source()
    kept = tensors[f"{KEPT}.weight"]
    for name in minilm.ENCODER:
        tensors |= made(name, tensors.pop(name))
    block = {**settings, KEPT: False}
    document = {**model(), "quantization": block, "quantization_config": block}
    seeding.write(folder, tensors, {}, document)

    def say(config: dict[str, Any], **values: object) -> None:
        for key in ("quantization", "quantization_config"):
            config[key] |= values

    def other_mode(config: dict[str, Any], _own: Tensors) -> None:
        say(config, mode="nvfp4", group_size=16)

    def spoiled(scales: Tensor) -> None:
        scales.view(-1)[7] = 255

    scales = f"{MODULE}.scales"
    says = {
        "b1": (NAME, "8-bit/32", "U32 [1536, 48]"),
        "b2": (scales, "U32 [1536, 48]"),
        "b3": (NAME, "U8 [768, 12]", "[1536] rows"),
        "b4": (KEPT, "U32 [384, 48]"),
        "b8": (NAME, "4-bit/16", "U8 [1536, 12]"),
        "b9": (scales, "1 of 18,432"),
    }
    return Format(
        *(scales, NAME, lambda: made(f"{KEPT}.weight", kept), spoiled),
        *(lambda config: say(config, mode="mxfp8", bits=8), other_mode, says),
    )


def _array(part: Any) -> Any:  # noqa: ANN401 - arrays of two libraries
    import numpy as np

    return np.array(part)


@pytest.fixture(scope="module", params=[bitsandbytes, torchao, mlx])
def clean(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Format]:
    folder = tmp_path_factory.mktemp("clean")
    return folder, request.param(folder)


def test_the_checkpoint_without_a_fault_is_clean(clean: tuple[Path, Format]) -> None:
    report = validate(clean[0], deep=True)
    assert not report.reaches(Severity.WARNING), report.findings


@pytest.mark.parametrize("key", FAULTS)
def test_the_fault_is_found_by_name_and_numbers(
    clean: tuple[Path, Format], key: str, tmp_path: Path
) -> None:
    folder, kind = clean
    copy = seeding.copied(folder, tmp_path)
    seeding.seed(key, copy, kind)
    found = validate(copy, deep=True).findings
    errors = [each.message for each in found if each.severity is Severity.ERROR]
    says = ALIKE.get(key) or kind.says[key]
    assert any(all(word in text for word in says) for text in errors), errors
