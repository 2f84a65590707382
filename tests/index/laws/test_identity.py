"""A file that is replaced is another file, however alike the two look, and whoever asks."""

from __future__ import annotations

import io
import os
import shutil
from typing import TYPE_CHECKING, Any

import msgspec
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.build.run import Workshop
from lakebloom.index.catalog import Catalog
from lakebloom.index.lookup.lookup import Lookups
from lakebloom.index.maintain.freshness import freshness
from lakebloom.index.maintain.verify_files import FileCheck
from lakebloom.index.query.reader import Reader
from lakebloom.index.settings import Settings
from lakebloom.storage.objects.clients import connect
from lakebloom.tables.file_identity import TableFile, local_changed_ns, local_file
from lakebloom.tables.listing import settled
from lakebloom.tables.listing.listing import list_files
from tests.index.lake import NAME, Lake
from tests.index.local_builder import LocalBuilder, source_of
from tests.storage.conftest import BUCKET, s3_endpoint, s3_options
from tests.tables.listing.test_settled import Clock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


__all__ = ["s3_endpoint", "s3_options"]

OLD, NEW = range(1000, 1100), range(5000, 5100)
PLAIN = {"compression": "none", "use_dictionary": False}
"""Files of these have the same length, whatever the values are."""


def data_of(keys: range) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"k": pa.array(keys, pa.int64())}), sink, **PLAIN)
    return sink.getvalue()


def fresh_file(path: Path, mtime_ns: int) -> Path:
    fresh = path.parent.parent / "fresh"
    fresh.write_bytes(data_of(NEW))
    os.utime(fresh, ns=(mtime_ns, mtime_ns))
    return fresh


def moved_over(path: Path, mtime_ns: int) -> None:
    fresh_file(path, mtime_ns).replace(path)


def copied_over(path: Path, mtime_ns: int) -> None:
    shutil.copy2(fresh_file(path, mtime_ns), path)


def written_in_place(path: Path, mtime_ns: int) -> None:
    with path.open("r+b") as stream:
        stream.write(data_of(NEW))
    os.utime(path, ns=(mtime_ns, mtime_ns))


def moved_over_in_the_same_millisecond(path: Path, mtime_ns: int) -> None:
    moved_over(path, mtime_ns // 1_000_000 * 1_000_000 + (mtime_ns + 1) % 1_000_000)


def removed_first(path: Path, mtime_ns: int) -> None:
    fresh = fresh_file(path, mtime_ns)
    path.unlink()
    shutil.copy2(fresh, path)


def linked(path: Path, mtime_ns: int) -> None:
    fresh = fresh_file(path, mtime_ns)
    path.unlink()
    path.symlink_to(fresh)


def exchanged_with_its_neighbour(path: Path, mtime_ns: int) -> None:
    """Both files were indexed, each under the other's name."""
    other, aside = path.with_name("g.parquet"), path.with_name("aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)


WAYS = [
    moved_over,
    copied_over,
    written_in_place,
    moved_over_in_the_same_millisecond,
    removed_first,
    linked,
    exchanged_with_its_neighbour,
]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, {"k": "bigint"})
    made.table.mkdir()
    for name, keys in (("f", OLD), ("h", range(100))):
        (made.table / f"{name}.parquet").write_bytes(data_of(keys))
        os.utime(made.table / f"{name}.parquet", ns=(10**18 + 123,) * 2)
    made.create(BloomIndexConfig(NAME, ["k"], fpp=1e-6))
    return made


def found(lake: Lakebloom, key: int) -> int:
    return int(lake.lookup(NAME, col("k") == key).num_rows)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_whoever_asks_sees_another_file(lake: Lake, way: Callable[[Path, int], None]) -> None:
    path = lake.table / "f.parquet"
    if way is exchanged_with_its_neighbour:
        _add_neighbour(lake)
    before = path.stat()
    open_before = lake.open()
    assert (found(open_before, OLD[7]), found(open_before, NEW[7])) == (1, int(way is exchanged_with_its_neighbour))
    way(path, before.st_mtime_ns)
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns // 1_000_000) == (before.st_size, before.st_mtime_ns // 1_000_000)
    expected = {key: sum(row["k"] == key for _, _, row in lake.rows()) for key in (OLD[7], NEW[7], 7)}
    assert expected[NEW[7]] == 1
    for asker in (open_before, lake.open()):
        assert {key: found(asker, key) for key in expected} == expected
    uri = f"file://{path}"
    assert uri in freshness(lake.snapshot(), {}).stale
    assert uri in lake.open().verify_index(NAME).stale
    assert lake.open().verify_index(NAME).false_negatives == 0
    assert lake.refresh().files >= 1
    assert lake.indexed() == lake.uris()
    for asker in (open_before, lake.open()):
        assert {key: found(asker, key) for key in expected} == expected


def _add_neighbour(lake: Lake) -> None:
    other = lake.table / "g.parquet"
    other.write_bytes(data_of(NEW))
    os.utime(other, ns=(10**18 + 123,) * 2)
    lake.refresh()


def test_the_build_looks_at_all_of_the_identity(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is exchanged while it is read, and looks the same otherwise, is not indexed."""
    from lakebloom.index.build import task
    from lakebloom.tables.parquet.columns import ParquetColumns

    path = lake.table / "new.parquet"
    path.write_bytes(data_of(range(7000, 7100)))

    class Meddling(ParquetColumns):
        def batches(self, row_group: int) -> Any:
            yield from super().batches(row_group)
            copied_over(path, path.stat().st_mtime_ns)

    monkeypatch.setattr(task, "ParquetColumns", Meddling)
    report = lake.refresh()
    assert [(skipped.uri, skipped.code) for skipped in report.skipped] == [(f"file://{path}", "FILE_CHANGED")]
    assert found(lake.open(), NEW[7]) == 1


def test_a_lister_that_knows_less_is_believed_as_far_as_it_goes(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tags are written down by whoever reads the file, and a listing without them is compared by the rest."""
    (lake.table / "f.parquet").chmod(0o600)
    files = [TableFile(*file[:3]) for file in list_files([str(lake.table)])]
    monkeypatch.setattr(LocalBuilder, "list_files", lambda self, source: files)
    assert lake.refresh().files == 0, "nothing shows that a file changed"
    (lake.table / "i.parquet").write_bytes(data_of(range(7000, 7100)))
    files = [TableFile(*file[:3]) for file in list_files([str(lake.table)])]
    assert lake.refresh().files == 1
    stored = {file.uri: file for file in lake.snapshot().files}
    assert stored[files[-1].uri] == local_file(files[-1].uri, (lake.table / "i.parquet").stat())


def test_a_file_that_changes_while_it_is_verified(lake: Lake) -> None:
    """It is named, and not taken for a filter that lost values."""
    snapshot = lake.snapshot()
    copied_over(lake.table / "f.parquet", (lake.table / "f.parquet").stat().st_mtime_ns)
    check = FileCheck(snapshot, {})
    check.files(list(snapshot.files))
    assert check.false_negatives == 0
    assert [line.partition(": ")[0] for line in check.unreadable] == [f"file://{lake.table}/f.parquet"]
    assert check.files_checked == 1


@pytest.mark.slow
@pytest.mark.parametrize("same_size", [True, False])
def test_objects_that_are_overwritten_in_the_same_second(
    s3_options: dict[str, str], tmp_path: Path, *, same_size: bool
) -> None:
    """The ETag tells, also where size and second do not: at each of many moments after the build."""
    store = connect(f"s3://{BUCKET}", s3_options)
    for number in range(10):
        key, location = f"identity-{same_size}/{number}/f.parquet", f"s3://{BUCKET}/identity-ix-{same_size}/{number}"
        obstore.put(store, key, data_of(OLD))
        record = source_of(tmp_path, {"k": "bigint"})
        record = msgspec.structs.replace(record, locations=(f"s3://{BUCKET}/{key.rpartition('/')[0]}",))
        catalog = Catalog(location, s3_options)
        shop = Workshop(catalog, LocalBuilder(catalog, 1, s3_options), Settings())
        create_index(shop, record, BloomIndexConfig(NAME, ["k"], fpp=1e-6))
        lake = Lakebloom(location=location, options=s3_options)
        assert (found(lake, OLD[7]), found(lake, NEW[7])) == (1, 0)
        obstore.put(store, key, data_of(NEW if same_size else range(5000, 5200)))
        assert (found(lake, OLD[7]), found(lake, NEW[7])) == (0, 1)
        assert lake.verify_index(NAME).stale == (f"s3://{BUCKET}/{key}",)
        assert refresh_index(shop, NAME).files == 1
        assert (found(lake, OLD[7]), found(lake, NEW[7])) == (0, 1)


def test_a_file_that_is_too_new_waits_for_the_next_refresh(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """By this clock the new file was changed in a minute: a change then would look the same."""
    path = lake.table / "new.parquet"
    path.write_bytes(data_of(NEW))
    with monkeypatch.context() as patch:
        patch.setattr(settled, "time", Clock(path.stat().st_ctime_ns - 60 * 10**9))
        (skipped,) = lake.refresh().skipped
    assert (skipped.uri, skipped.code) == (f"file://{path}", "FILE_TOO_NEW")
    assert "next refresh" in skipped.reason
    assert found(lake.open(), NEW[7]) == 1
    assert lake.refresh().skipped == ()
    assert lake.indexed() == lake.uris()


def test_the_footer_of_a_file_that_is_too_new_is_not_kept(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is rewritten within the same tick has other rows below the same identity."""
    (file,) = (file for file in list_files([str(lake.table)]) if file.uri.endswith("/f.parquet"))
    lookups = Lookups(Reader(lake.catalog().index(NAME)))
    rows = lookups._table_of(lookups._current(lake.snapshot())).rows
    schema = rows.schema_of(["k"])
    for age_s, kept in ((0, False), (1, True)):
        monkeypatch.setattr(settled, "time", Clock(local_changed_ns(file.tag) + age_s * 10**9))
        with rows.opened(file, schema) as opened:
            rows.keep_footer(opened)
        assert (rows._footers.get(file) is not None) == kept
