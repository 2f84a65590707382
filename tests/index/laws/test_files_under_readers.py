"""What happens to files of an index while a process has it open: it never ends the process, and never lies.

The questions are asked in a process of their own, because the defect to be excluded is a signal that no test survives.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from bench.scale.units import Shape, planted, write_units

import lakebloom
from lakebloom.index.build import create
from lakebloom.index.catalog import Catalog
from tests.index.lake import NAME, Lake

PROJECT = Path(__file__).parents[3]

DAMAGE = """
    import os, shutil, sys
    from pathlib import Path
    from lakebloom import Lakebloom, LakebloomError, col

    location, kept = Path(sys.argv[1]), Path(sys.argv[2])
    questions = [(col("k") == 25, 1), (col("k").isin([5, 6, 25, 9999]), 3), (col("k").is_null(), 0)]

    def ask(lake):
        for predicate, expected in questions:
            try:
                found = lake.lookup("i", predicate).num_rows
                assert found == expected, (found, expected)
            except LakebloomError as error:
                assert error.code, error

    def half(path): os.truncate(path, path.stat().st_size // 2)
    def empty(path): os.truncate(path, 0)
    def holes(path): os.truncate(path, 1 << 40 if path.parent.name != "log" else 1 << 20)
    def zeros(path): path.write_bytes(bytes(path.stat().st_size))
    def folder(path): path.unlink(); path.mkdir()
    def pipe(path): path.unlink(); os.mkfifo(path)

    for name in sorted(str(p.relative_to(location)) for p in location.rglob("*") if p.is_file()):
        for damage in (half, empty, holes, zeros, folder, pipe):
            lake = Lakebloom(location=location)
            ask(lake)
            damage(location / name)
            ask(lake)
            ask(Lakebloom(location=location))
            shutil.rmtree(location)
            shutil.copytree(kept, location)
            ask(lake)
    print("done")
"""


@pytest.mark.slow
def test_damage_to_any_file_of_an_open_index_is_survived(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(2))
    lake.create(lakebloom.BloomIndexConfig(NAME, ["k"], fpp=0.01, global_filter=True), tasks=1)
    location = Path(lake.location)
    kept = tmp_path / "kept"
    subprocess.run(["cp", "-r", str(location), str(kept)], check=True)
    asked = _python(DAMAGE, location, kept)
    assert (asked.returncode, asked.stdout.strip()) == (0, "done"), asked.stderr


DESCRIPTORS = """
    import os, resource, sys
    resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
    from lakebloom import Lakebloom, col

    lake = Lakebloom(location=sys.argv[1])
    assert lake.lookup("i", col("k") == 5).num_rows == 1
    assert lake.lookup("i", col("k").isin(list(range(40)))).num_rows == 40
    open_files = len(os.listdir("/proc/self/fd"))
    assert lake.verify_index("i").ok
    assert lake.optimize_index("i").committed
    assert lake.lookup("i", col("k") == 5).num_rows == 1
    assert len(os.listdir("/proc/self/fd")) <= open_files, os.listdir("/proc/self/fd")
    print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors through /proc")
def test_an_index_may_have_more_segments_than_the_process_may_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create, "MANY_SEGMENTS", 1000)
    lake = Lake(tmp_path, {"k": "bigint"})
    for number in range(60):
        lake.write(f"f{number}", {"k": [number]})
    lake.create(lakebloom.BloomIndexConfig(NAME, ["k"]), tasks=60)
    assert len(lake.entry().segments) == 60
    asked = _python(DESCRIPTORS, lake.location)
    assert (asked.returncode, asked.stdout.strip()) == (0, "done"), asked.stderr


THOUSAND = """
    import os, resource, sys
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    from lakebloom import Lakebloom, col

    lake = Lakebloom(location=sys.argv[1])
    open_files = len(os.listdir("/proc/self/fd"))
    maps = len(open("/proc/self/maps").readlines())
    for keys in ([int(sys.argv[2])], list(range(1000))):
        paths = lake.candidates("units", col("k").isin(keys))["path"].to_pylist()
        assert any(sys.argv[3] in path for path in paths), paths[:5]
    assert lake.optimize_index("units").segments == 1
    paths = lake.candidates("units", col("k") == int(sys.argv[2]))["path"].to_pylist()
    assert any(sys.argv[3] in path for path in paths), paths[:5]
    assert len(os.listdir("/proc/self/fd")) <= open_files + 8, os.listdir("/proc/self/fd")
    assert len(open("/proc/self/maps").readlines()) < maps + 500
    print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors through /proc")
def test_a_thousand_segments_under_a_limit_of_1024_descriptors(tmp_path: Path) -> None:
    shape = Shape(segments=1000, units=2, blocks=2)
    homes = {key: home for key, home in planted(1000).items() if home[1] < 2}
    write_units(Catalog(tmp_path), shape, homes)
    key, (segment, unit) = next(iter(homes.items()))
    asked = _python(THOUSAND, tmp_path, key, f"part-{segment * 2 + unit:07d}")
    assert (asked.returncode, asked.stdout.strip()) == (0, "done"), asked.stderr


def test_no_file_is_ever_mapped_into_memory() -> None:
    """A map of a file that somebody cuts short ends the process, whatever is checked before."""
    maps = re.compile(r"import mmap|mmap\.mmap|memory_map\s*\(|memory_map\s*=\s*True|np\.memmap")
    sources = Path(lakebloom.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if maps.search(path.read_text())] == []


def _python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=PROJECT)
