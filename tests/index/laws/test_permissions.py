"""Nobody may read an index who may not read its table: modes and groups on local disk."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom import BloomIndexConfig, Lakebloom
from lakebloom.storage.permissions import Permissions, match_table
from tests.examples import most
from tests.index.lake import NAME, Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

PROJECT = Path(__file__).parents[3]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become others")


@pytest.fixture(params=[0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(location: Path) -> tuple[set[int], set[int]]:
    """The modes of an index's directories and files."""
    found = [*location.rglob("*")]
    return (
        {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()},
        {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_file()},
    )


def make(tmp_path: Path, directory_mode: int, file_mode: int) -> Lake:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(2))
    for file in lake.table.iterdir():
        file.chmod(file_mode)
    lake.table.chmod(directory_mode)
    return lake


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "files", "expected"),
    [
        (0o700, 0o600, (0o700, 0o600)),
        (0o750, 0o640, (0o750, 0o640)),
        (0o755, 0o644, (0o755, 0o644)),
        (0o775, 0o664, (0o775, 0o644)),
        (0o777, 0o666, (0o775, 0o644)),
        (0o755, 0o600, (0o700, 0o600)),
        (0o755, 0o640, (0o750, 0o640)),
        (0o700, 0o644, (0o700, 0o600)),
        (0o711, 0o644, (0o711, 0o644)),
        (0o744, 0o644, (0o700, 0o600)),
    ],
)
def test_an_index_has_the_permissions_of_its_table(
    tmp_path: Path, umask: int, table: int, files: int, expected: tuple[int, int]
) -> None:
    lake = make(tmp_path, table, files)
    lake.create(BloomIndexConfig(NAME, ["k"], global_filter=True))
    assert modes(Path(lake.location)) == ({expected[0]}, {expected[1]})
    lake.fill(range(2, 3))
    for file in lake.table.iterdir():
        file.chmod(files)
    lake.refresh()
    lake.open().optimize_index(NAME)
    lake.open().delete_index(NAME)
    assert modes(Path(lake.location)) == ({expected[0]}, {expected[1]})


def test_one_private_file_makes_the_index_private(tmp_path: Path) -> None:
    lake = make(tmp_path, 0o755, 0o644)
    lake.create()
    base = Path(lake.location) / NAME
    assert stat.S_IMODE(base.stat().st_mode) == 0o755
    lake.fill(range(2, 3))
    (lake.table / "f2.parquet").chmod(0o600)
    lake.refresh()
    assert stat.S_IMODE(base.stat().st_mode) == 0o700, "a refresh narrows the directory, through which all else is"


def test_a_refresh_never_widens_what_somebody_closed(tmp_path: Path) -> None:
    lake = make(tmp_path, 0o755, 0o644)
    lake.create()
    base = Path(lake.location) / NAME
    base.chmod(0o700)
    lake.fill(range(2, 3))
    lake.refresh()
    assert stat.S_IMODE(base.stat().st_mode) == 0o700
    assert stat.S_IMODE((base / "log/00000000000000000002.json").stat().st_mode) == 0o600


def test_a_private_directory_above_the_table_counts_unless_it_is_above_the_index_too(tmp_path: Path) -> None:
    private, public = tmp_path / "private", tmp_path / "public"
    lake = Lake(private, {"k": "bigint", "s": "string", "n": "int"}, location=str(public / "indexes"))
    lake.fill(range(1))
    lake.table.chmod(0o755)
    (lake.table / "f0.parquet").chmod(0o644)
    private.chmod(0o700)
    lake.create()
    assert modes(public / "indexes") == ({0o700}, {0o600})
    inside = Lake(private, {"k": "bigint", "s": "string", "n": "int"})
    inside.create()
    assert modes(private / "indexes") == ({0o755}, {0o644})


@needs_root
def test_the_group_is_the_tables(tmp_path: Path) -> None:
    lake = make(tmp_path, 0o750, 0o640)
    for path in (lake.table, *lake.table.iterdir()):
        os.chown(path, -1, 4242)
    lake.create()
    assert {path.stat().st_gid for path in Path(lake.location).rglob("*")} == {4242}
    # A file of another group: its group's members are others to it, who may not read it.
    os.chown(lake.table / "f0.parquet", -1, 4343)
    lake.fill(range(2, 3))
    match_table(lake.catalog().storage_uri(NAME), lake.uris(), [f"file://{lake.table}"])
    assert stat.S_IMODE((Path(lake.location) / NAME).stat().st_mode) == 0o700


ASK = """
    import os, sys
    from lakebloom import Lakebloom, LakebloomError, col

    def ask():
        lake = Lakebloom(location=sys.argv[1])
        for question in (lake.candidates, lake.lookup):
            try:
                yield str(question("i", col("k") == 5).num_rows)
            except LakebloomError as error:
                yield error.code

    assert list(ask()) == ["1", "1"]  # and all modules are loaded, which others may not read
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(4711)
    print(*ask())
"""


@pytest.mark.slow
@needs_root
def test_who_may_not_read_the_table_learns_nothing_of_it() -> None:
    with tempfile.TemporaryDirectory() as home:  # pytest's own directories are closed to others
        Path(home).chmod(0o755)
        _ask_as_others(make(Path(home), 0o750, 0o640))


def _ask_as_others(lake: Lake) -> None:
    for path in (lake.table, *lake.table.iterdir()):
        os.chown(path, -1, 4242)
    lake.create()
    command = [sys.executable, "-c", textwrap.dedent(ASK), lake.location]
    for group, answers in (("4242", "1 1"), ("4243", "ACCESS_DENIED ACCESS_DENIED")):
        asked = subprocess.run([*command, group], capture_output=True, text=True, cwd=PROJECT)
        assert (asked.stdout.strip(), asked.returncode) == (answers, 0), asked.stderr


BITS = st.integers(0, 0o777)


@settings(max_examples=most(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=BITS, inner=BITS, file=BITS, umask=st.sampled_from([0o022, 0o000, 0o077]))
def test_no_mode_of_a_table_gives_others_more_of_its_index(
    tmp_path_factory: pytest.TempPathFactory, table: int, inner: int, file: int, umask: int
) -> None:
    home = tmp_path_factory.mktemp("lake")
    part = home / "table" / "p=1"
    part.mkdir(parents=True)
    data = part / "a.parquet"
    data.write_bytes(b"")
    data.chmod(file)
    part.chmod(inner | 0o700)
    part.parent.chmod(table | 0o700)
    before = os.umask(umask)
    try:
        match_table(f"file://{home}/indexes/i", [f"file://{data}"], [f"file://{home}/table"])
    finally:
        os.umask(before)
    made = Permissions.of(f"{home}/indexes/i")
    assert made is not None
    for shift in (3, 0):
        directory, stored = made.mode >> shift & 7, made.file_mode >> shift & 7
        may_read = table >> shift & 1 and inner >> shift & 1 and file >> shift & 4
        assert bool(may_read) == bool(directory & 1)
        assert directory & ~(table >> shift) == 0
        assert stored & ~(file >> shift & 6) == 0


def test_tasks_of_spark_give_the_same_permissions(spark: SparkSession, tmp_path: Path) -> None:
    lake = make(tmp_path, 0o750, 0o640)
    text = tmp_path / "json"
    spark.read.parquet(str(lake.table)).select("k").coalesce(1).write.json(str(text))
    for path in text.iterdir():
        path.chmod(0o600)
    text.chmod(0o755)
    built = Lakebloom(spark, location=lake.location)
    built.create_index(str(lake.table), BloomIndexConfig("columns", ["k"], global_filter=True))
    built.create_index(spark.read.schema("k bigint").json(str(text)), BloomIndexConfig("rows", ["k"]))
    assert modes(Path(lake.location) / "columns") == ({0o750}, {0o640})
    assert modes(Path(lake.location) / "rows") == ({0o700}, {0o600})
