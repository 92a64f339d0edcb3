"""Compiled code kept on disk: what is taken of it, and that it needs no numba."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from ctypes import c_ssize_t
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import qmanifest
from qmanifest import kernels as package
from qmanifest.packings.arrays import from_float32

native = pytest.importorskip("qmanifest.kernels.native", exc_type=ImportError)
from qmanifest.kernels import compiled, native_files, native_quantize  # noqa: E402 - they import llvmlite too

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODULE = """
define i32 @qmanifest_entry(ptr %answer, ptr %error, i64 %given) {
  %whole = zext i1 1 to i64
  %rest = and i64 %given, %whole
  store i64 %rest, ptr %answer
  %bad = icmp eq i64 %given, 13
  %status = zext i1 %bad to i32
  ret i32 %status
}
"""
"""Answers whether a number is odd, and fails at 13."""
CALLING = """
declare i64 @numba_unpickle(i64)
define i32 @qmanifest_entry(ptr %answer, ptr %error) {
  %found = call i64 @numba_unpickle(i64 1)
  store i64 %found, ptr %answer
  ret i32 0
}
"""

TAKING_ITS_PLACE = """
declare void @numba_do_raise(ptr)
define i32 @qmanifest_entry(ptr %answer, ptr %error) {
  store ptr @numba_do_raise, ptr %error
  ret i32 0
}
"""
READING = """
@PyExc_RuntimeError = external global ptr
define i32 @qmanifest_entry(ptr %answer, ptr %error) {
  %found = load ptr, ptr @PyExc_RuntimeError
  store ptr %found, ptr %error
  ret i32 0
}
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Keep nothing in the package, and nothing for other tests."""
    places = [tmp_path / "one", tmp_path / "two"]
    monkeypatch.setattr(native_files, "folders", lambda: iter(places))
    monkeypatch.setattr(native, "_ENTRIES", {})
    return places


def odd(times: list[str] | None = None) -> Callable[..., bool]:
    """Give the kernel of `MODULE`, noting when it is made."""

    def build() -> str:
        if times is not None:
            times.append("made")
        return MODULE

    found: Callable[..., bool] = native.entry("odd", (c_ssize_t,), build)
    return found


def again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what is loaded, as a new process does."""
    monkeypatch.setattr(native, "_ENTRIES", {})


def test_a_kernel_is_made_once_and_kept(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[str] = []
    assert not native_files.any_kept()
    assert [odd(times)(each) for each in (2, 3)] == [False, True]
    assert odd(times) is odd(times)
    again(monkeypatch)
    assert odd(times)(5)
    assert times == ["made"]
    assert native_files.any_kept()
    (file,) = folders[0].iterdir()
    assert file.name.startswith("odd.")


@pytest.mark.usefixtures("folders")
def test_a_kernel_that_fails_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="a kernel failed"):
        odd()(13)


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "folder"])
def test_damaged_code_is_made_anew(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    odd()
    (file,) = folders[0].iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    changed = {"cut": bytes(content[:-1]), "changed": bytes(content), "empty": b""}
    file.unlink()
    if damage == "folder":
        file.mkdir()
    else:
        file.write_bytes(changed[damage])
    again(monkeypatch)
    times: list[str] = []
    for _ in range(2):
        assert odd(times)(3)
        again(monkeypatch)
    assert times == ["made"]  # and kept, in this folder or the next


def test_other_sources_or_processors_have_code_of_their_own(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    odd()
    before = {each.name for each in folders[0].iterdir()}
    monkeypatch.setattr(native_files, "fingerprint", lambda: "f" * 16)
    again(monkeypatch)
    assert not native_files.any_kept()
    times: list[str] = []
    odd(times)
    assert times == ["made"]
    assert {each.name for each in folders[0].iterdir()} == {f"odd.{'f' * 16}.o"}
    assert before.isdisjoint({f"odd.{'f' * 16}.o"})


def test_where_the_package_cannot_be_written_the_users_cache_is(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders[0].write_bytes(b"no folder")
    assert odd()(3)
    assert len(list(folders[1].iterdir())) == 1
    again(monkeypatch)
    times: list[str] = []
    assert odd(times)(3)
    assert not times


def test_where_nothing_can_be_written_it_runs_all_the_same(folders: list[Path]) -> None:
    for folder in folders:
        folder.write_bytes(b"no folder")
    assert odd()(3)


def test_the_users_cache_may_be_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("could not determine home directory")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert [each.name for each in native_files.folders()] == ["__pycache__"]
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert list(native_files.folders())[1:] == [Path("/cache/qmanifest")]


def test_versions_and_features_may_be_unknown(
    folders: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> None:
        raise RuntimeError("failed to get host cpu features")

    assert folders
    assert native_files._version("no-such-package") == ""  # noqa: SLF001 - part of the key
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", unknown)
    assert native_files.processor()[1] == ""
    assert odd()(3)


@pytest.mark.parametrize(
    "module",
    [
        CALLING,
        CALLING.replace("@qmanifest_entry(", "@qmanifest_entry(i64 %extra, "),
        TAKING_ITS_PLACE,
        READING,
    ],
)
def test_code_that_cannot_stand_alone_is_not_made(
    folders: list[Path], module: str
) -> None:
    """LLVM would end the process where it is loaded."""
    assert native.machine_code(module, 0) is None
    assert native.entry("not-alone", (), lambda: module) is None
    assert not any(folder.exists() for folder in folders)


def test_what_is_only_declared_is_not_needed() -> None:
    assert native.machine_code(MODULE + "declare i64 @numba_unpickle(i64)\n", 1)


@pytest.mark.parametrize("dtype", ["F16", "F32"])
def test_numba_runs_what_cannot_stand_alone(
    monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    weight = from_float32(np.linspace(-2, 1, 2048, dtype="<f4").reshape(4, 512), dtype)
    alone = compiled.KERNELS.quantize(weight, 3, 32)
    monkeypatch.setattr(native_quantize, "entry", lambda *_: None)
    by_numba = compiled.KERNELS.quantize(weight, 3, 32)
    assert (alone.words == by_numba.words).all()
    assert (alone.scales.array == by_numba.scales.array).all()
    assert (alone.biases.array == by_numba.biases.array).all()


@pytest.mark.parametrize("kept", [True, False])
def test_numba_is_not_asked_where_code_is_kept(
    monkeypatch: pytest.MonkeyPatch, *, kept: bool
) -> None:
    monkeypatch.setattr(native_files, "any_kept", lambda: kept)
    monkeypatch.setitem(sys.modules, "numba", None)  # an import of it fails
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    assert package._compiled_runs() is kept  # noqa: SLF001 - the choice behind `active`


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Copy the package, so that its compiled code is not there."""
    folder = tmp_path_factory.mktemp("site")
    source = Path(qmanifest.__file__).parent
    nothing_compiled = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, folder / "qmanifest", ignore=nothing_compiled)
    yield folder
    shutil.rmtree(folder)


def test_the_second_process_needs_no_numba(site: Path) -> None:
    script = (
        "import sys, numpy as np\n"
        "from qmanifest.kernels import active, reference\n"
        "from qmanifest.packings.arrays import Stored\n"
        "values = np.linspace(-1, 1, 4096, dtype=np.float32).reshape(8, 512)\n"
        "made = active().quantize(Stored('F32', values), 3, 32)\n"
        "sound = reference.KERNELS.quantize(Stored('F32', values), 3, 32)\n"
        "assert (made.words == sound.words).all()\n"
        "assert (made.scales.array == sound.scales.array).all()\n"
        "print(active().name, 'numba' in sys.modules)\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=site,
            env={**os.environ, "PYTHONPATH": str(site), "QMANIFEST_KERNELS": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert said == ["compiled True\n", "compiled False\n"]
