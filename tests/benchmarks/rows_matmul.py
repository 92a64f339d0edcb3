"""Bars 4 and 5: `y = x @ W.T` of packed weights, few rows and many.

Errors are against float64: of the weights that the contender was given, as it
rebuilds them. ONNX Runtime has weights of its own, since its fast path is symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from benchmarks import ours
from benchmarks.harness import Contender, Contest, Limit, Row, faster, within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness import Bar, Setup

    from qmanifest.packings.arrays import AnyArray, Float32

SHAPE: Final = (4096, 4096)
MOST_ERROR: Final = 2e-6


@dataclass(frozen=True, slots=True)
class Task:
    """What is multiplied."""

    rows: int
    """Rows of `x`: M."""
    bits: int
    group_size: int
    dtype: str = "F32"
    """Of `x`, and of the scales."""
    threads: int = 1

    @property
    def packed(self) -> ours.Packed:
        """The weight, packed."""
        weight = ours.random_matrix(SHAPE, self.dtype)
        return ours.quantize(weight, self.bits, self.group_size)

    @property
    def x(self) -> Float32:
        """The input, which both dtypes hold exactly."""
        made = ours.random_matrix((self.rows, SHAPE[1]), "BF16", seed=1)
        return ours.as_float32(made)


def _judged(
    run: Callable[[], object], read: Callable[[Any], AnyArray], exact: AnyArray
) -> Contender:
    """Make a contender with the error of its result."""
    return Contender(run, error=ours.relative_error(read(run()), exact))


def _from_torch(product: Any) -> AnyArray:  # noqa: ANN401 - torch is imported later
    return np.asarray(product.float().numpy())


def _torch_x(task: Task) -> Any:  # noqa: ANN401 - likewise
    import torch

    x = torch.from_numpy(task.x)
    return x.bfloat16() if task.dtype == "BF16" else x


def _ours(task: Task, packed: ours.Packed, exact: AnyArray) -> Contender:
    import torch

    from qmanifest.backends.pytorch import quantized_matmul, weight_from_parts

    weight = weight_from_parts(packed.scheme, packed.shape, packed.parts)
    x = _torch_x(task)

    def run() -> object:
        with torch.inference_mode():
            return quantized_matmul(x, weight)

    return _judged(run, _from_torch, exact)


def _dense(task: Task, packed: ours.Packed, exact: AnyArray, dtype: str) -> Contender:
    """Multiply by the rebuilt weight in float32 or bfloat16."""
    import torch
    from torch.nn.functional import linear

    weight = torch.from_numpy(packed.rebuilt).to(getattr(torch, dtype))
    x = _torch_x(task).to(weight.dtype)
    return _judged(lambda: linear(x, weight), _from_torch, exact)


def _int4pack(task: Task, packed: ours.Packed, exact: AnyArray) -> Contender | str:
    """Torch's own kernel for 4 bits: `w = scale * (code - 8) + zero`, in bfloat16."""
    import torch

    from qmanifest.packings import u32_lsb

    if task.bits != 4 or not hasattr(torch.ops.aten, "_weight_int4pack_mm_for_cpu"):
        return "this torch has no such kernel"
    codes = torch.from_numpy(u32_lsb.unpack(packed.words, task.bits).astype(np.int32))
    scales = torch.from_numpy(ours.as_float32(packed.scales).copy())
    zeros = torch.from_numpy(ours.as_float32(packed.biases).copy()) + 8 * scales
    both = torch.stack((scales, zeros), dim=-1).transpose(0, 1).contiguous().bfloat16()
    words = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 2)  # noqa: SLF001 - torch has no other name for it
    x = _torch_x(task).bfloat16()
    kernel = torch.ops.aten._weight_int4pack_mm_for_cpu  # noqa: SLF001 - likewise
    return _judged(lambda: kernel(x, words, task.group_size, both), _from_torch, exact)


def _mlx(task: Task, packed: ours.Packed, exact: AnyArray) -> Contender:
    from benchmarks import peer_mlx

    x, parts = peer_mlx.from_float32(task.x), peer_mlx.parts_of(packed)
    sizes = (task.bits, task.group_size)
    return _judged(lambda: peer_mlx.matmul(x, parts, *sizes), np.array, exact)


def _onnx(task: Task, accuracy: int) -> Contender:
    from benchmarks import peer_onnx

    weight = ours.as_float32(ours.random_matrix(SHAPE, "F32"))
    codes, scales = peer_onnx.symmetric(weight, task.bits, task.group_size)
    exact = ours.exact_product(task.x, peer_onnx.rebuilt(codes, scales, task.bits))
    multiply = peer_onnx.multiplier(
        codes, scales, task.rows, task.bits, threads=task.threads, accuracy=accuracy
    )
    x = task.x
    return _judged(lambda: multiply(x), np.asarray, exact)


def _reading(packed: ours.Packed) -> Contender:
    """Read every packed byte once, and combine them with xor."""
    words = np.ascontiguousarray(packed.words).view("<u8").ravel()
    return Contender(lambda: np.bitwise_xor.reduce(words))


def _setup(task: Task, bars: tuple[Bar, ...], most_error: float | None) -> Setup:
    """Set up the peers that the bars name."""

    def setup(_: Path) -> Contest:
        import torch

        torch.set_num_threads(task.threads)
        packed = task.packed
        exact = ours.exact_product(task.x, packed.rebuilt)
        made: dict[str, Callable[[], Contender | str]] = {
            "mlx": lambda: _mlx(task, packed, exact),
            "torch dense F32": lambda: _dense(task, packed, exact, "float32"),
            "torch dense BF16": lambda: _dense(task, packed, exact, "bfloat16"),
            "torch int4pack BF16": lambda: _int4pack(task, packed, exact),
            "onnxruntime F32": lambda: _onnx(task, 1),
            "onnxruntime int8 x": lambda: _onnx(task, 4),
            "read packed bytes": lambda: _reading(packed),
        }
        mine = _ours(task, packed, exact)

        def limits() -> Iterator[Limit]:
            if most_error is not None:
                yield Limit("error against float64", mine.error or 0.0, most_error)

        return Contest(mine, {bar.peer: made[bar.peer]() for bar in bars}, limits)

    return setup


def _row(
    task: Task, bar: int, *bars: Bar, most_error: float | None = MOST_ERROR
) -> Row:
    name = f"matmul {task.bits}-bit/{task.group_size} {task.dtype} M={task.rows}"
    if task.threads > 1:
        name += f" {task.threads}t"
    setup = _setup(task, bars, most_error)
    return Row(name, bar, bars, setup, task.threads, rounds=15)


ROWS: Final = (
    _row(
        Task(1, 4, 64),
        4,
        faster("mlx", 6),
        faster("onnxruntime F32", 1.2),
        faster("torch dense F32", 1.7),
        within("read packed bytes", 2),
        faster("onnxruntime int8 x"),
        faster("torch int4pack BF16"),
    ),
    _row(
        Task(1, 8, 32),
        4,
        faster("mlx", 6),
        faster("torch dense F32", 1.25),
        within("read packed bytes", 2),
    ),
    _row(Task(4, 4, 64), 5, faster("mlx", 12), faster("torch dense F32", 1.4)),
    _row(Task(4, 8, 32), 5, faster("mlx", 12), faster("torch dense F32", 1.4)),
    _row(Task(8, 4, 64), 5, faster("torch dense F32", 1.4), faster("onnxruntime F32")),
    *(
        _row(
            Task(rows, 4, 64, "BF16", 2),
            5,
            faster("torch int4pack BF16", 1.3),
            faster("onnxruntime F32", 1.5),
            within("torch dense BF16", 3),
            most_error=None,
        )
        for rows in (64, 256)
    ),
)
