"""Run the benchmarks: `make bench`, or `make bench ROWS=matmul` for some.

Rows of one file that want the same number of threads share a process, which is
started with its thread pools pinned, before anything is imported that has one. What
idle threads of one library do then disturbs no other file's rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from benchmarks.harness import Line, Row, measure
from benchmarks.machine import machine
from benchmarks.tables import aligned, counted, page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = ROOT / "build" / "bench.json"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
FILES: Final = (
    *("rows_quantize", "rows_dequantize", "rows_microscales", "rows_matmul"),
    *("rows_headers", "rows_patterns", "rows_deep", "rows_pack", "rows_scale"),
)
POOLS: Final = ("OMP", "MKL", "OPENBLAS", "NUMBA", "NUMEXPR", "VECLIB")
"""Whose `..._NUM_THREADS` say how many threads a library may have."""


def rows_of(file: str, text: str) -> list[Row]:
    """List the rows of a file whose name contains `text`."""
    rows: Sequence[Row] = import_module(f"benchmarks.{file}").ROWS
    return [row for row in rows if text in row.name]


def groups(text: str) -> Iterator[tuple[str, int, list[int]]]:
    """Cut the chosen rows into those that one process runs."""
    for file in FILES:
        found: dict[int, list[int]] = {}
        for number, row in enumerate(rows_of(file, text)):
            found.setdefault(row.threads, []).append(number)
        for threads, numbers in found.items():
            yield file, threads, numbers


def run_group(file: str, threads: int, text: str, numbers: list[int]) -> list[Line]:
    """Run some rows in a process of their own."""
    pinned = {f"{pool}_NUM_THREADS": str(threads) for pool in POOLS}
    pinned["QMANIFEST_THREADS"] = str(threads)
    passive = {"OMP_WAIT_POLICY": "passive"}  # idle threads must not spin
    with TemporaryDirectory(prefix="bench-") as folder:
        out = Path(folder) / "lines.json"
        command = [sys.executable, "-m", "benchmarks", "--rows", text]
        command += ["--file", file, "--json", str(out), "--only"]
        command += [str(number) for number in numbers]
        ended = subprocess.call(command, env={**os.environ, **pinned, **passive})
        if ended:
            return [Line(file, 0, threads, "", "", "fail", note=f"ended with {ended}")]
        return [Line(**each) for each in json.loads(out.read_text(encoding="utf-8"))]


def pin(threads: int) -> None:
    """Keep this process, and those it starts, on so many processors.

    Then no contender gains from a thread that its library started all the same.
    """
    if hasattr(os, "sched_setaffinity"):
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, usable[-threads:])


def work(file: str, text: str, numbers: list[int], out: Path) -> None:
    """Run rows that want as many threads in this process, and write their lines."""
    lines: list[Line] = []
    rows = rows_of(file, text)
    pin(max(rows[number].threads for number in numbers))
    for number in numbers:
        row = rows[number]
        began = time.perf_counter()
        lines += attempt(row)
        spent = time.perf_counter() - began
        print(f"{row.name}: {spent:.1f} s", file=sys.stderr, flush=True)
    text_out = json.dumps([asdict(line) for line in lines])
    out.write_text(text_out, encoding="utf-8")


def attempt(row: Row) -> list[Line]:
    """Run a row; one that breaks fails, and the others still run."""
    try:
        return measure(row)
    except Exception as error:  # noqa: BLE001 - whatever it is, the table says it
        traceback.print_exc()
        note = f"{type(error).__name__}, see above"
        return [Line(row.name, row.bar, row.threads, "", "", "fail", note=note)]


def main() -> int:
    """Run what was asked for; 1 where a bar is not reached."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--rows", default="", help="only rows whose name contains it")
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, default=RESULTS, help="where figures go")
    parser.add_argument("--only", type=int, nargs="*", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.file:
        work(asked.file, asked.rows, asked.only, asked.json)
        return 0
    lines: list[Line] = []
    for file, threads, numbers in groups(asked.rows):
        lines += run_group(file, threads, asked.rows, numbers)
    if not lines:
        parser.error(f"no row's name contains {asked.rows!r}")
    report(lines, asked.json, everything=not asked.rows)
    return int(any(line.verdict == "fail" for line in lines))


def report(lines: list[Line], path: Path, *, everything: bool) -> None:
    """Print the table, and write the figures; the page only of a whole run."""
    about = machine()
    date = time.strftime("%Y-%m-%d", time.gmtime())
    print(aligned(lines))
    print(counted(lines))
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"date": date, "machine": about, "lines": [asdict(x) for x in lines]}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}")
    if everything:
        PAGE.write_text(page(lines, about, date), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
