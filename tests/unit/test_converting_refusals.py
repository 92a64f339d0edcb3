"""`pack_checkpoint` refuses: all reasons at once, and nothing is lost or half done."""

from __future__ import annotations

import os
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors import safe_open
from support.models import (
    CONFIG,
    MODEL,
    Config,
    listing,
    normal,
    save,
    stored,
    write_json,
)

from qmanifest import pack_checkpoint, validate
from qmanifest.converting import pack
from qmanifest.converting.computing import quantize
from qmanifest.errors import WriteError
from qmanifest.reading.files import FileProblem

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer

    from qmanifest.kernels.base import Kernels
    from qmanifest.packings.arrays import Stored
    from qmanifest.schemes import Affine


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return save(tmp_path / "source", {n: stored(v, "BF16") for n, v in MODEL.items()})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_json(tmp_path / "any_name.json", CONFIG)


def test_a_folder_with_a_checkpoint_is_not_overwritten(
    source: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("other.safetensors", "quant_config.json"):
        (out / name).write_text("mine")
        with pytest.raises(WriteError, match=f"has a checkpoint already \\({name}"):
            pack_checkpoint(source, config, out)
        assert (out / name).read_text() == "mine"
        (out / name).unlink()


@pytest.mark.parametrize("name", ["emb.safetensors", "emb.safetensors.index.json"])
def test_shards_of_another_model_are_not_left_beside_the_new_ones(
    source: Path, config: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for file in (name, "quant_config.json"):
        (out / file).write_text("mine")
    with pytest.raises(WriteError, match="shards of another model, which would stay"):
        pack_checkpoint(source, config, out, force=True)
    assert listing(out) == sorted([name, "quant_config.json"])


@pytest.mark.parametrize("force", [False, True])
def test_the_source_is_not_overwritten(
    source: Path,
    config: Path,
    tmp_path: Path,
    force: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    link = tmp_path / "link"
    link.symlink_to(source)
    for path, out in (
        (source, source),
        (source, link),
        (source / "model.safetensors", source),
        (source, source / ".." / "source"),
    ):
        with pytest.raises(WriteError, match="is the source itself"):
            pack_checkpoint(path, config, out, force=force)
    other = save(tmp_path / "rr", {"a": stored(MODEL["a.weight"])})
    with pytest.raises(WriteError, match="is the source itself"):
        pack_checkpoint(source, config, other, components={"rr": other}, force=force)
    assert listing(source) == ["model.safetensors"]


def test_a_file_is_no_folder(source: Path, config: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(WriteError, match="is not a folder"):
        pack_checkpoint(source, config, tmp_path / "out", force=True)


def refusal(source: Path, config: Config, out: Path) -> str:
    """Give the reasons; nothing may have been written."""
    path = write_json(out.parent / "config_to_refuse.json", config)
    with pytest.raises(WriteError) as caught:
        pack_checkpoint(source, path, out)
    assert not out.exists()
    return str(caught.value)


def test_all_faults_of_a_config_at_once(source: Path, tmp_path: Path) -> None:
    said = refusal(
        source,
        CONFIG
        | {
            "kept_16bit": ["a.weight", "re:[", "nothing.weight"],
            "tensors": CONFIG["tensors"]
            | {
                "head.weight": {"bits": 7},
                "none.*": {},
                "b.weight": {"shape": [8, 100]},
            },
        },
        tmp_path / "out",
    )
    for fault in (
        "pattern 're:[' cannot be used",
        "'a.weight' is kept by /kept_16bit/0",
        "'head.weight': mode affine has bits",
        "'b.weight' has 100 input features",
        "/kept_16bit/2 'nothing.weight' matches no tensor",
        "/tensors/none.* 'none.*' matches no tensor",
    ):
        assert fault in said


def test_all_misfits_of_a_source_at_once(tmp_path: Path) -> None:
    source = save(
        tmp_path / "in",
        {
            "narrow.weight": stored(normal(4, 32)),
            "flat.weight": stored(normal(64)),
            "ints.weight": stored(np.zeros((4, 64), np.int64)),
            "wide.weight": stored(normal(4, 128)),
            "fp.weight": stored(normal(4, 64)),
        },
    )
    entries: Config = {f"{n}.weight": {} for n in ("narrow", "flat", "ints", "gone")}
    entries["wide.weight"] = {"shape": [4, 64]}
    entries["fp.weight"] = {"mode": "mxfp4", "group_size": 32}
    said = refusal(
        source, CONFIG | {"kept_16bit": [], "tensors": entries}, tmp_path / "out"
    )
    assert said.splitlines() == [
        "the source cannot be packed under this config:",
        "  'narrow.weight' has 32 input features, which group size 64 does not divide",
        "  'flat.weight' is F32 [64] in the source, not a matrix",
        "  'ints.weight' is I64 [4, 64] in the source, not F16, BF16 or F32",
        "  'gone.weight' is not in the source",
        "  'wide.weight' is declared [4, 64] and has [4, 128] in the source",
        (
            "  'fp.weight': packing as microscaling(element=e2m1, group=32, "
            "scale=e8m0, pack=u32-lsb) is not supported"
        ),
    ]


def test_many_faults_are_counted(source: Path, tmp_path: Path) -> None:
    entries: Config = {f"x{number}.weight": {} for number in range(30)}
    said = refusal(source, CONFIG | {"tensors": entries}, tmp_path / "out")
    assert said.endswith("\n  and 10 more")
    assert len(said.splitlines()) == 22


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"quant_method": "own"}, "no dialect recognises"),
        ({"bits": 4, "tensors": {}}, "key 'group_size' is missing"),
        (CONFIG | {"tensors": {}}, "names no tensor of"),
        (
            {
                "quant": "q4",
                "group": 64,
                "scheme": "",
                "protected_fp16": [],
                "emb_q4": ["x"],
            },
            "no file holds component 'emb'",
        ),
    ],
)
def test_configs_that_promise_nothing_of_the_source(
    source: Path, tmp_path: Path, config: Config, reason: str
) -> None:
    assert reason in refusal(source, config, tmp_path / "out")


def test_notes_and_warnings_do_not_stop_it(source: Path, tmp_path: Path) -> None:
    scan = {"file": "scan-8b64.json", "keep_backbone": 1, "keep_depth": 0}
    lines = {"kept_16bit": [*CONFIG["kept_16bit"], "nothing.*"], "scan": scan}
    config = write_json(tmp_path / "c.json", CONFIG | lines)
    pack_checkpoint(source, config, tmp_path / "out")
    report = validate(tmp_path / "out")
    assert {finding.code for finding in report.findings} >= {"QM109", "QM203", "QM901"}


def test_damaged_sources(source: Path, tmp_path: Path) -> None:
    file = source / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    assert "tensor" in refusal(source, CONFIG, tmp_path / "out")
    file.write_bytes(whole)
    index = {"metadata": {}, "weight_map": {"a.weight": "gone.safetensors"}}
    write_json(source / "model.safetensors.index.json", index)
    said = refusal(source, CONFIG, tmp_path / "out")
    assert "shard 'gone.safetensors' is missing" in said
    (source / "model.safetensors.index.json").unlink()
    file.rename(source / "model-00001-of-00002.safetensors")
    assert "are missing or unreadable" in refusal(source, CONFIG, tmp_path / "out")
    (source / "model-00001-of-00002.safetensors").rename(file)
    save(source, {"a.weight": stored(MODEL["a.weight"])}, "copy.safetensors")
    said = refusal(source, CONFIG, tmp_path / "out")
    assert "'a.weight' is in 'copy.safetensors' and in 'model.safetensors'" in said


def test_names_that_would_clash_are_refused_before_anything_is_removed(
    source: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pack_checkpoint(source, config, out)
    before = {name: (out / name).read_bytes() for name in listing(out)}
    save(source, {"a.scales": stored(normal(2, 2))}, "more.safetensors")
    with pytest.raises(WriteError, match=r"'a\.scales' is taken"):
        pack_checkpoint(source, config, out, force=True)
    assert {name: (out / name).read_bytes() for name in listing(out)} == before


def test_hostile_component_names_write_no_file_elsewhere(
    source: Path, tmp_path: Path
) -> None:
    for name in ("../emb", ".emb", "a/b", "x\ny"):
        config = {
            "quant": "q4",
            "group": 64,
            "scheme": "",
            "protected_fp16": [],
            f"{name}_q4": ["a.weight"],
        }
        path = write_json(tmp_path / "c.json", config)
        with pytest.raises(WriteError):
            pack_checkpoint(
                source, path, tmp_path / "x" / "out", components={name: source}
            )
    assert listing(tmp_path / "x") == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("norm.weight", 1e6, "1 values of 'norm.weight' are too large for F16"),
        ("head.weight", -7e4, "1 values of 'head.weight' are too large for F16"),
        ("a.weight", 3e5, "'a.weight' cannot be packed: 1 of 16 groups span more"),
        ("b.weight", np.nan, "'b.weight' cannot be packed: 1 of 1024 values are NaN"),
    ],
)
def test_what_does_not_fit_16_bits(
    tmp_path: Path, config: Path, name: str, value: float, said: str
) -> None:
    tensors = {key: stored(values) for key, values in MODEL.items()}
    out = tmp_path / "out"
    pack_checkpoint(save(tmp_path / "in", tensors), config, out)
    broken = MODEL[name].copy()
    broken.flat[3] = value
    source = save(tmp_path / "in", tensors | {name: stored(broken)})
    with pytest.raises(WriteError, match=said):
        pack_checkpoint(source, config, tmp_path / "new")
    assert listing(tmp_path / "new") == []
    with pytest.raises(WriteError, match=said):
        pack_checkpoint(source, config, out, force=True)
    assert listing(out) == ["model.safetensors"]


@pytest.fixture(params=[KeyboardInterrupt, MemoryError, OSError])
def killer(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> type[BaseException]:
    """Let the second weight end the run, on whichever thread it is quantized."""
    error: type[BaseException] = request.param

    def dies(
        kernels: Kernels, weight: Stored, scheme: Affine, dtype: str
    ) -> dict[str, Buffer]:
        if scheme.bits == CONFIG["tensors"]["b.weight"]["bits"]:
            raise error
        return quantize(kernels, weight, scheme, dtype)

    monkeypatch.setattr(pack, "quantize", dies)
    return error


@pytest.mark.parametrize("shard_size", [900, 10**9])
def test_a_killed_pack_leaves_no_config_and_no_half_file(
    source: Path, config: Path, killer: type[BaseException], shard_size: int
) -> None:
    out = save(source.parent / "out", {"a.weight": stored(MODEL["a.weight"])})
    write_json(out / "quant_config.json", CONFIG)
    write_json(out / "config.json", {})
    with pytest.raises(killer):
        pack_checkpoint(source, config, out, shard_size=shard_size, force=True)
    left = listing(out)
    assert len(left) == (2 if shard_size == 900 else 1)
    for name in left:
        with safe_open(out / name, "np") as whole:
            assert whole.keys()
    report = validate(out)
    assert "QM106" in {finding.code for finding in report.findings}


def test_a_source_that_is_cut_while_it_is_read(
    source: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, cut = source / "model.safetensors", Event()

    def cuts(
        kernels: Kernels, weight: Stored, scheme: Affine, dtype: str
    ) -> dict[str, Buffer]:
        if scheme.bits == CONFIG["bits"]:
            os.truncate(file, file.stat().st_size - 10)  # in one step
            cut.set()
        assert cut.wait(timeout=60)
        return quantize(kernels, weight, scheme, dtype)

    monkeypatch.setattr(pack, "quantize", cuts)
    message = r"tensor 'norm\.weight' ends at byte [\d,]+, and the file has [\d,]+"
    with pytest.raises(FileProblem, match=message) as caught:
        pack_checkpoint(source, config, tmp_path / "out")
    assert caught.value.expected == file.stat().st_size + 10
    assert listing(tmp_path / "out") == []


def test_paths_that_do_not_exist(source: Path, config: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    with pytest.raises(FileNotFoundError):
        pack_checkpoint(nothing, config, tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        pack_checkpoint(source, nothing, tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        pack_checkpoint(source, config, tmp_path / "out", components={"": nothing})


def test_a_folder_that_cannot_be_made(
    source: Path, config: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(WriteError, match="cannot write to"):
        pack_checkpoint(source, config, tmp_path / "file" / "out")
