"""Kernels: which set is chosen, threads, `out`, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import qmanifest
from qmanifest import kernels as package
from qmanifest import threads
from qmanifest.errors import BackendError, LayoutError, PackingError
from qmanifest.kernels import careful, reference
from qmanifest.packings.arrays import Stored
from qmanifest.schemes import Affine, ZeroPoint

if TYPE_CHECKING:
    from qmanifest.kernels.base import Kernels
    from qmanifest.packings.arrays import AnyArray

compiled = pytest.importorskip("qmanifest.kernels.compiled", exc_type=ImportError)
SETS: dict[str, Kernels] = {
    "reference": reference.KERNELS,
    "careful": careful.KERNELS,
    "compiled": compiled.KERNELS,
}
VARIABLE = "QMANIFEST_KERNELS"


@pytest.fixture(params=list(SETS.values()), ids=list(SETS))
def kernels(request: pytest.FixtureRequest) -> Kernels:
    found: Kernels = request.param
    return found


def normal(*shape: int) -> Stored:
    values = np.random.default_rng(5).normal(size=shape)
    return Stored("F32", values.astype(np.float32))


def affine(weight: Stored, kernels: Kernels) -> tuple[Affine, dict[str, Stored]]:
    made = kernels.quantize(weight, 4, 64)
    parts = {
        "codes": Stored("U32", made.words),
        "scales": made.scales,
        "biases": made.biases,
    }
    return Affine(4, 64, ("F32",), "u32-lsb"), parts


def test_choice_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert package.active() is package.active() is compiled.KERNELS
    monkeypatch.setenv(VARIABLE, "fast")
    assert package.active() is compiled.KERNELS
    monkeypatch.setenv(VARIABLE, "reference")
    assert package.active() is reference.KERNELS
    monkeypatch.setenv(VARIABLE, "quick")
    with pytest.raises(BackendError, match="'quick'; set it to reference or fast"):
        package.active()


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "_compiled_runs", lambda: False)
    package._chosen.cache_clear()  # noqa: SLF001 - a choice is made once
    try:
        monkeypatch.delenv(VARIABLE, raising=False)
        assert package.active() is careful.KERNELS
        monkeypatch.setenv(VARIABLE, "fast")
        with pytest.raises(BackendError, match=r"pip install 'qmanifest\[fast\]'"):
            package.active()
    finally:
        package._chosen.cache_clear()  # noqa: SLF001 - likewise


def test_names_differ() -> None:
    assert [each.name for each in SETS.values()] == list(SETS)


@pytest.mark.parametrize("count", ["1", "3"])
def test_threads_share_the_groups(
    kernels: Kernels, count: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QMANIFEST_THREADS", count)
    weight = normal(3, 17, 1 << 15)
    found = kernels.quantize(weight, 3, 32)
    expected = reference.KERNELS.quantize(weight, 3, 32)
    np.testing.assert_array_equal(found.words, expected.words)
    scheme = Affine(3, 32, ("F32",), "u32-lsb")
    parts = {
        "codes": Stored("U32", found.words),
        "scales": found.scales,
        "biases": found.biases,
    }
    rebuilt = kernels.dequantize(scheme, parts, weight.shape).array
    again = reference.KERNELS.dequantize(scheme, parts, weight.shape).array
    np.testing.assert_array_equal(rebuilt, again)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("5", 5), ("0", 1), ("9" * 30, None), ("x", None), ("", None)],
)
def test_thread_count(
    asked: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QMANIFEST_THREADS", asked)
    found = threads.thread_count()
    assert found == expected if expected else 1 <= found <= (os.cpu_count() or 1)


def test_one_thread_saying_no_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMANIFEST_THREADS", "4")
    seen: list[tuple[int, int]] = []

    def work(groups: tuple[int, int]) -> bool:
        seen.append(groups)
        return groups[0] != 0

    assert not threads.over_groups(work, 1 << 16, 64)
    assert [stop for _, stop in sorted(seen)][:-1] == [at for at, _ in sorted(seen)][1:]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -np.nan])
@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_values_that_are_not_finite(kernels: Kernels, bad: float, dtype: str) -> None:
    from qmanifest.packings.arrays import from_float32

    values = np.array(normal(8, 256).array)
    values[5, 200] = bad
    with pytest.raises(PackingError, match="1 of 2048 values are NaN or infinite"):
        kernels.quantize(from_float32(values, dtype), 4, 64)


def test_scales_that_overflow(kernels: Kernels) -> None:
    weight = Stored("F32", normal(4, 128).array * np.float32(1e6))
    with pytest.raises(PackingError, match="8 of 8 groups span more than a F16 scale"):
        kernels.quantize(weight, 2, 64, "F16")
    wide = np.zeros((1, 64), np.float32)
    wide[0, :2] = 3e38, -3e38
    with pytest.raises(PackingError, match="1 of 1 groups span more than a F32 scale"):
        kernels.quantize(Stored("F32", wide), 4, 64)


def test_equal_values_that_leave_no_scale(kernels: Kernels) -> None:
    made = kernels.quantize(Stored("F32", np.full((1, 64), 3e38, np.float32)), 4, 64)
    assert not made.words.any()
    assert made.scales.array[0, 0] == 0


def test_refusals_are_the_reference_s(kernels: Kernels) -> None:
    with pytest.raises(PackingError, match="not whole groups of 64"):
        kernels.quantize(normal(2, 96), 4, 64)
    with pytest.raises(PackingError, match="not 9"):
        kernels.quantize(normal(2, 64), 9, 64)
    with pytest.raises(LayoutError):
        kernels.quantize(normal(2, 4), 4, 4)
    with pytest.raises(PackingError, match="not U8"):
        kernels.quantize(Stored("U8", np.zeros((1, 64), np.uint8)), 4, 64)


def test_views_that_are_not_contiguous(kernels: Kernels) -> None:
    whole = normal(128, 64).array
    turned = Stored("F32", whole.T)
    copied = Stored("F32", np.ascontiguousarray(whole.T))
    scheme, parts = affine(turned, kernels)
    expected = affine(copied, kernels)[1]
    np.testing.assert_array_equal(parts["codes"].array, expected["codes"].array)
    scattered = {
        role: Stored(part.dtype, np.asfortranarray(part.array))
        for role, part in parts.items()
    }
    np.testing.assert_array_equal(
        kernels.dequantize(scheme, scattered, (64, 128)).array,
        kernels.dequantize(scheme, parts, (64, 128)).array,
    )


@pytest.mark.parametrize(
    "out",
    [
        np.empty((4, 64), np.float32),
        np.empty((4, 128), np.float64),
        np.empty((128, 4), np.float32).T,
        np.broadcast_to(np.float32(0), (4, 128)),
    ],
    ids=["shape", "dtype", "order", "broadcast"],
)
def test_out_that_does_not_fit(kernels: Kernels, out: AnyArray) -> None:
    scheme, parts = affine(normal(4, 128), kernels)
    with pytest.raises(BackendError, match="a F32 weight needs a contiguous array"):
        kernels.dequantize(scheme, parts, (4, 128), out)


def test_out_that_cannot_be_written(kernels: Kernels) -> None:
    scheme, parts = affine(normal(4, 128), kernels)
    out = np.empty((4, 128), np.float32)
    out.flags.writeable = False
    with pytest.raises(BackendError, match="cannot be written to"):
        kernels.dequantize(scheme, parts, (4, 128), out)


def test_parts_that_do_not_fit(kernels: Kernels) -> None:
    scheme, parts = affine(normal(4, 128), kernels)
    with pytest.raises(BackendError, match="expects U32"):
        kernels.dequantize(scheme, parts, (4, 256))
    with pytest.raises(PackingError, match="not F8_E4M3"):
        kernels.dequantize(scheme, parts, (4, 128), dtype="F8_E4M3")


def test_weights_without_elements(kernels: Kernels) -> None:
    for shape in ((0, 64), (4, 0)):
        made = kernels.quantize(Stored("F32", np.empty(shape, np.float32)), 4, 64)
        assert made.words.size == made.scales.array.size == 0
        parts = {
            "codes": Stored("U32", made.words),
            "scales": made.scales,
            "biases": made.biases,
        }
        found = kernels.dequantize(Affine(4, 64, ("F32",), "u32-lsb"), parts, shape)
        assert found.shape == shape


def test_a_thread_of_several_starts_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("QMANIFEST_THREADS", "4")
    used: set[str] = set()
    two = threading.Barrier(1)

    def work(_: tuple[int, int]) -> bool:
        used.add(threading.current_thread().name)
        two.wait(timeout=60)
        return True

    def alone() -> None:
        threads.work_alone()
        assert threads.over_groups(work, 1 << 20, 64)

    only = threading.Thread(target=alone, name="only")
    only.start()
    only.join()
    assert used == {"only"}
    used.clear()
    two = threading.Barrier(2)
    assert threads.over_groups(work, 1 << 20, 64)
    assert "only" not in used
    assert len(used) > 1


def test_nobody_works_on_after_a_failure() -> None:
    me, begun, busy = threading.current_thread(), threading.Event(), set[int]()

    def work(part: int) -> None:
        if threading.current_thread() is me:
            begun.wait(60)
            raise ValueError(part)
        busy.add(part)
        begun.set()
        time.sleep(0.05)
        busy.remove(part)

    with pytest.raises(ValueError, match=r"\d"):
        threads.shared_out(work, range(1000), 2)
    assert begun.is_set()
    assert not busy


def test_zero_points_go_to_the_reference(kernels: Kernels) -> None:
    _, parts = affine(normal(4, 128), kernels)
    zeros = Stored("U8", np.full((4, 2), 7, np.uint8))
    found = kernels.dequantize(
        ZeroPoint(4, 64, ("F32",), ("U8",), "u32-lsb"),
        {**parts, "zeros": zeros},
        (4, 128),
    )
    assert found.dtype == "F32"
    codes = (parts["codes"].array[0, 0] >> np.arange(0, 32, 4)) & 15
    expected = (codes.astype(np.float32) - 7) * parts["scales"].array[0, 0]
    np.testing.assert_array_equal(found.array[0, :8], expected)


def test_compiled_code_is_forgotten_when_any_kernel_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from qmanifest.kernels import compiled_lanes, jit

    def stamp() -> object:
        again: Any = jit.jit(compiled_lanes.squeeze.py_func)  # type: ignore[attr-defined]  # numba's
        return again._cache._cache_file._source_stamp  # noqa: SLF001 - what numba compares

    before = stamp()
    assert before == stamp()
    monkeypatch.setattr(jit, "_fingerprint", lambda: "of other sources")
    assert before != stamp()


@pytest.mark.skipif(os.name != "posix", reason="folders that nobody may write to")
def test_compiled_code_without_a_place_to_stay(tmp_path: Path) -> None:
    """Neither the package's folder nor the user's can be written, as in a container."""
    source = Path(qmanifest.__file__).parent
    copy = tmp_path / "site" / "qmanifest"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "import numba.core.caching as caching\n"
        "def refuse(self): raise OSError('read-only file system')\n"
        "caching._CacheLocator.ensure_cache_path = refuse\n"
        "import qmanifest\n"
        f"assert qmanifest.__file__.startswith({str(tmp_path)!r})\n"
        "from qmanifest.kernels import compiled_lanes, native_quantize\n"
        "import numpy as np\n"
        "lanes = np.full(16, 0x0101010101010101, np.uint64)\n"
        "compiled_lanes.squeeze(lanes, 16, native_quantize.steps_of(4))\n"
        "assert (lanes == 0x11111111).all()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(copy.parent)}
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
