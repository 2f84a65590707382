"""Small indexes are built in the process itself; and where the time of an operation went."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.errors import BuildFailedError, StorageError
from lakebloom.index.build import in_process
from lakebloom.index.build.create import create_index
from lakebloom.index.build.in_process import is_small
from lakebloom.index.catalog import Catalog
from lakebloom.index.config import BloomIndexConfig
from lakebloom.index.operation import Phases
from lakebloom.tables.file_identity import TableFile
from tests.index.local_builder import source_of, workshop, write_parquet

if TYPE_CHECKING:
    from pathlib import Path

SIZES = st.lists(st.integers(0, 1 << 24), max_size=40)


@given(SIZES, st.sampled_from(["file:///t/", "s3://b/t/"]), st.integers(0, 1 << 26))
def test_small_is_what_one_process_reads_sooner(sizes: list[int], folder: str, max_bytes: int) -> None:
    files = [TableFile(f"{folder}{i}", size, 0) for i, size in enumerate(sizes)]
    opening = 1 << 20 if folder.startswith("s3") else 64 << 10
    assert is_small(files, max_bytes) == (sum(size + opening for size in sizes) <= max_bytes)
    assert not sizes or not is_small(files, 0)  # 0 always runs a job


@pytest.mark.slow
def test_building_a_small_index_loads_no_compiler(tmp_path: Path) -> None:
    for number in range(4):
        write_parquet(tmp_path / f"t/{number}.parquet", {"k": [f"{number}-{i}" for i in range(1000)]})
    script = (
        "import sys; from pathlib import Path; from lakebloom import BloomIndexConfig as C\n"
        "from lakebloom.index.catalog import Catalog; from lakebloom.index.build.create import create_index\n"
        "from tests.index.local_builder import source_of, workshop\n"
        f"home = Path({str(tmp_path)!r}); source = source_of(home / 't', {{'k': 'string'}})\n"
        "print(create_index(workshop(Catalog(home / 'indexes')), source, C('x', ['k'], global_filter=True)).rows)\n"
        "print(*sorted({'numba', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4000"]


def test_what_a_build_does_not_expect_is_an_error_of_lakebloom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(tmp_path / "t/0.parquet", {"k": [1]})
    catalog, source = Catalog(tmp_path / "indexes"), source_of(tmp_path / "t", {"k": "bigint"})
    for raised, expected in ((MemoryError("too much"), BuildFailedError), (StorageError("full"), StorageError)):

        def failing(*_: object, error: Exception = raised) -> None:
            raise error

        monkeypatch.setattr(in_process, "build_segment", failing)
        with pytest.raises(expected, match=str(raised.args[0])):
            create_index(workshop(catalog), source, BloomIndexConfig("x", ["k"]))
    assert catalog.names() == []


def test_phases_are_all_of_the_time() -> None:
    ticks = itertools.count(100.0)  # each look at the clock takes a second
    phases = Phases(clock=lambda: next(ticks))
    next(ticks)  # something before the first phase
    with phases.timed("check"):
        next(ticks)
    next(ticks)  # something between two
    with phases.timed("build"):
        next(ticks)
    with phases.timed("check"):
        pass
    assert phases.seconds == {"check": 4.0, "build": 3.0}
    assert sum(phases.seconds.values()) == next(ticks) - 100 - 1


def test_a_phase_counts_when_it_fails() -> None:
    ticks = itertools.count()
    phases = Phases(clock=lambda: next(ticks))
    with pytest.raises(ValueError, match="no"), phases.timed("check"):
        raise ValueError("no")
    assert phases.seconds == {"check": 1}
