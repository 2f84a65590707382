"""Arrow C++'s BlockSplitBloomFilter as a child process, compiled against the library that pyarrow ships."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from lakebloom import Sbbf

SOURCE = Path(__file__).with_name("arrow_sbbf.cpp")


@dataclass(frozen=True, slots=True)
class ArrowTimes:
    """Nanoseconds a value for insert and check, through each of Arrow's two interfaces."""

    single: dict[str, float]
    batch: dict[str, float]
    hits: int
    filter: Sbbf


def compile_program(work: Path) -> Path:
    """Compile with g++ -O3 -march=native, once for each version of pyarrow."""
    program = work / f"arrow_sbbf-{pa.__version__}"
    if program.exists() and program.stat().st_mtime > SOURCE.stat().st_mtime:
        return program
    home = Path(pa.get_library_dirs()[0])
    libraries = [f"-l:{next(home.glob(f'{name}.so.*')).name}" for name in ("libparquet", "libarrow")]
    command = ["g++", "-std=c++20", "-O3", "-march=native", f"-I{pa.get_include()}", str(SOURCE), "-o", str(program)]
    subprocess.run([*command, f"-L{home}", *libraries, f"-Wl,-rpath,{home}"], check=True)
    return program


def write_values(work: Path, kind: str, values: pa.Array) -> Path:
    path = work / f"{kind}.values"
    data = values.buffers()[1] if kind == "int64" else values.buffers()[2]
    np.frombuffer(data, dtype=np.uint8).tofile(path)
    return path


def run(program: Path, kind: str, data: Path, filter_bytes: int) -> ArrowTimes:
    stored = data.with_suffix(".filter")
    command = [str(program.resolve()), kind, str(data), str(filter_bytes), "1", str(stored)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    times: dict[str, dict[str, float]] = {"single": {}, "batch": {}}
    hits = -1
    for line in output.splitlines():
        operation, api, ns, extra = line.split()
        times[api][operation] = float(ns)
        hits = int(extra) if operation == "check" else hits
    return ArrowTimes(times["single"], times["batch"], hits, Sbbf.from_parquet(stored.read_bytes()))
