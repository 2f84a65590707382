"""Machine code on disk: never stale, never fatal."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

import lakebloom
from lakebloom.sbbf.blocks import SALTS
from lakebloom.sbbf.kernels import cache

BITS = """
import sys
import lakebloom
from lakebloom import Sbbf
from lakebloom.sbbf.kernels.choose import load_compiled
assert lakebloom.__file__.startswith(sys.argv[1]), lakebloom.__file__
load_compiled()
f = Sbbf(4)
f.insert([1, 2, 3])
print(f.to_bytes().hex(), f.might_contain([1, 2, 3, 4]).tolist())
"""

pytestmark = pytest.mark.slow  # most start a process that compiles


def run(package_parent: Path, cache_dir: Path) -> str:
    """Return what compiled kernels of the package in this directory print, with machine code cached in another."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(package_parent),
        "NUMBA_CACHE_DIR": str(cache_dir),
        "PYTHONDONTWRITEBYTECODE": "1",  # byte code, too, is stale when a file changes within a second
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BITS, str(package_parent)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


class Installed(NamedTuple):
    """A copy of the package, the machine code that one process left behind, and what that process printed."""

    package_parent: Path
    cache_dir: Path
    output: str


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    home = tmp_path_factory.mktemp("installed")
    source = Path(lakebloom.__file__).parent
    shutil.copytree(source, home / "src" / "lakebloom", ignore=shutil.ignore_patterns("__pycache__"))
    output = run(home / "src", home / "cache")
    assert list((home / "cache").rglob("*.nbi"))
    return Installed(home / "src", home / "cache", output)


@pytest.fixture
def cache_dir(installed: Installed, tmp_path: Path) -> Path:
    """A cache of this test's own, filled."""
    return Path(shutil.copytree(installed.cache_dir, tmp_path / "cache"))


def test_the_next_process_compiles_nothing(installed: Installed, cache_dir: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in cache_dir.rglob("*.nb?")}
    assert run(installed.package_parent, cache_dir) == installed.output
    assert {path: path.stat().st_mtime_ns for path in cache_dir.rglob("*.nb?")} == before


def test_a_changed_constant_is_compiled_anew(installed: Installed, cache_dir: Path) -> None:
    blocks = installed.package_parent / "lakebloom" / "sbbf" / "blocks.py"
    text = blocks.read_text()
    changed = text.replace(f"0x{SALTS[0]:X}", f"0x{SALTS[0] ^ 0x10:X}")
    assert changed != text
    blocks.write_text(changed)
    try:
        assert run(installed.package_parent, cache_dir) != installed.output
    finally:
        blocks.write_text(text)


@pytest.mark.parametrize(("suffix", "kept_bytes"), [(".nbi", 0), (".nbc", 100)])
def test_a_damaged_cache_is_passed_over(installed: Installed, cache_dir: Path, suffix: str, kept_bytes: int) -> None:
    damaged = list(cache_dir.rglob(f"*{suffix}"))
    assert damaged
    for path in damaged:
        path.write_bytes(path.read_bytes()[:kept_bytes])
    assert run(installed.package_parent, cache_dir) == installed.output


def test_a_cache_that_cannot_be_written_is_passed_over(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a directory should be")
    assert run(installed.package_parent, tmp_path / "cache") == installed.output


def test_a_full_disk_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def set_first(numbers: np.ndarray) -> None:
        numbers[0] = 7

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    numbers = np.zeros(2, dtype=np.int64)
    cache.kernel(numba.int64[::1])(set_first)(numbers)
    assert numbers.tolist() == [7, 0]


def test_a_package_in_a_zip_file_is_named_by_its_sources(installed: Installed, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "package"), "zip", installed.package_parent)
    name = "from lakebloom.sbbf.kernels.cache import source_digest; print(source_digest())"
    done = subprocess.run(
        [sys.executable, "-c", name], env={**os.environ, "PYTHONPATH": archive},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == cache.source_digest()


def test_without_sources_the_version_is_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.source_digest() in cache.Kernel(lambda: None, ())._function.__qualname__
    monkeypatch.setattr(cache, "_SOURCES", (("lakebloom.sbbf", "no_such_file.py"),))
    assert cache.source_digest() == "v" + lakebloom.__version__.replace(".", "_")
