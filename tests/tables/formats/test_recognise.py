"""Files of a table that has a log of its own are never taken for plain files, wherever one looks from."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
import pytest

from lakebloom.errors import UnsupportedSourceError
from lakebloom.tables.formats.recognise import Owners, folders_above
from lakebloom.tables.listing import objects
from lakebloom.tables.listing.inventory import Inventory
from lakebloom.tables.listing.listing import list_files, require_plain_locations
from tests.storage.conftest import BUCKET

if TYPE_CHECKING:
    from collections.abc import Callable

MARKERS = {
    "_delta_log/00000000000000000000.json": "Delta Lake",
    "_delta_log/_commits/0.json": "Delta Lake",
    "metadata/v1.metadata.json": "Iceberg",
    "metadata/00001-5f.gz.metadata.json": "Iceberg",
    "metadata/v3.metadata.json.gz": "Iceberg",
    ".hoodie/hoodie.properties": "Hudi",
}
INSIDE = ["t", "t/p=1", "t/p=1/a.parquet", "t/*", "t/p=*/*.parquet", "t/{p=1,p=2}", "*", "*/p=1", "", "t/p=2/q=x"]
OUTSIDE = ["plain", "plain/a.parquet", "pl*", "{plain,plain}", "plain/*.parquet"]


class Bucket:
    """A place for files, on a disk or in an object store."""

    def __init__(self, uri: str, options: dict[str, str]) -> None:
        self.uri, self.options = uri, options

    def put(self, *paths: str) -> None:
        for path in paths:
            if self.uri.startswith("file:"):
                target = Path(self.uri.removeprefix("file://")) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(b"x")
            else:
                client, key = objects.client_and_key(f"{self.uri}/{path}", self.options)
                obstore.put(client, key, b"x")

    def list(self, *locations: str) -> list[str]:
        found = list_files([f"{self.uri}/{location}" for location in locations], self.options)
        return [file.uri.removeprefix(f"{self.uri}/") for file in found]


@pytest.fixture(params=["file", "memory", "s3"])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Bucket:
    if request.param == "file":
        return Bucket(f"file://{tmp_path}", {})
    name = uuid.uuid4().hex
    if request.param == "memory":
        return Bucket(f"memory://{name}/a/b", {})
    return Bucket(f"s3://{BUCKET}/{name}/a/b", request.getfixturevalue("s3_options"))


@pytest.mark.slow
@pytest.mark.parametrize("marker", MARKERS)
def test_a_table_is_refused_by_name_from_wherever_it_is_seen(bucket: Bucket, marker: str) -> None:
    bucket.put("t/p=1/a.parquet", "t/p=2/q=x/a.parquet", f"t/{marker}", "plain/a.parquet", "plain/metadata/notes.json")
    for location in INSIDE:
        with pytest.raises(UnsupportedSourceError, match=rf"/t is a table of {MARKERS[marker]}, .*; found .*/t/"):
            bucket.list(location)
    for location in OUTSIDE:
        assert bucket.list(location) == ["plain/a.parquet"]
    with pytest.raises(UnsupportedSourceError):
        bucket.list("plain", "t")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "metadata/notes.json",
        "metadata/a.parquet",
        "x.metadata.json",
        "a.metadata.json/b",
        "_delta_log_old/0.json",
        "hoodie/x",
        "sub/_delta_log/0.json",
        "sub/metadata/v1.metadata.json",
        "../other/_delta_log/0.json",
        "../metadata/notes.json",
    ],
)
def test_what_only_looks_like_a_marker(bucket: Bucket, path: str) -> None:
    """Tables in directories that are no part of the table do not concern it."""
    place = "lake" if path.startswith("../") else "lake/t"
    bucket.put("lake/t/a.parquet", f"{place}/{path.removeprefix('../')}")
    assert "lake/t/a.parquet" in bucket.list("lake/t")
    require_plain_locations([f"{bucket.uri}/lake/t"], bucket.options)


def test_a_parent_of_tables_only_is_refused_by_name(bucket: Bucket) -> None:
    bucket.put("lake/t/a.parquet", "lake/t/_delta_log/0.json", "lake/u/a.parquet", "lake/u/.hoodie/hoodie.properties")
    with pytest.raises(UnsupportedSourceError, match=r"lake/[tu] is a table of (Delta Lake|Hudi)"):
        bucket.list("lake")


def test_a_streams_sink_claims_its_own_directory_only(bucket: Bucket) -> None:
    bucket.put("t/k=1/a.parquet", "t/_spark_metadata/0")
    with pytest.raises(UnsupportedSourceError, match="Spark's streaming sink"):
        bucket.list("t")
    assert bucket.list("t/k=1") == ["t/k=1/a.parquet"]


@pytest.mark.parametrize("marker", MARKERS)
def test_only_markers_are_looked_for(bucket: Bucket, marker: str) -> None:
    bucket.put("t/k=1/a.parquet", "u/a.parquet")
    require_plain_locations([f"{bucket.uri}/t", f"{bucket.uri}/u/*.parquet", f"{bucket.uri}/none"], bucket.options)
    bucket.put(f"u/{marker}")
    require_plain_locations([f"{bucket.uri}/t"], bucket.options)
    with pytest.raises(UnsupportedSourceError, match=MARKERS[marker]):
        require_plain_locations([f"{bucket.uri}/t", f"{bucket.uri}/u/*.parquet"], bucket.options)


def test_links_do_not_hide_a_table(tmp_path: Path) -> None:
    bucket = Bucket(f"file://{tmp_path}", {})
    bucket.put("t/p=1/a.parquet", "t/_delta_log/0.json")
    (tmp_path / "link").symlink_to(tmp_path / "t/p=1")
    with pytest.raises(UnsupportedSourceError, match="Delta Lake"):
        bucket.list("link")


def test_above_a_table_may_be_what_one_may_not_see(tmp_path: Path, unprivileged: None) -> None:
    bucket = Bucket(f"file://{tmp_path}", {})
    bucket.put("above/t/a.parquet", "above/metadata/v1.metadata.json")
    (tmp_path / "above/metadata").chmod(0)
    try:
        assert bucket.list("above/t") == ["above/t/a.parquet"]
    finally:
        (tmp_path / "above/metadata").chmod(0o700)


def _renamed(bucket: Bucket, marker: str) -> None:
    bucket.put(f"elsewhere/{marker}")
    name = marker.partition("/")[0]
    home = Path(bucket.uri.removeprefix("file://"))
    (home / "elsewhere" / name).rename(home / "above/t" / name)


CONVERSIONS: dict[str, Callable[[Bucket, str], object]] = {
    "in the table": lambda bucket, marker: bucket.put(f"above/t/{marker}"),
    "above": lambda bucket, marker: bucket.put(f"above/{marker}"),
    "far above": lambda bucket, marker: bucket.put(marker),
    "moved there": _renamed,
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells about changes")
@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("place", CONVERSIONS)
@pytest.mark.parametrize("has_metadata", [False, True])
def test_a_table_that_is_converted_while_it_is_watched(
    tmp_path: Path, marker: str, place: str, has_metadata: bool
) -> None:
    bucket = Bucket(f"file://{tmp_path}", {})
    bucket.put("above/t/k=1/a.parquet", "above/t/k=2/a.parquet")
    if has_metadata and place != "moved there":
        for directory in ("metadata", "above/metadata", "above/t/metadata"):
            (tmp_path / directory).mkdir()
    inventory = Inventory([f"{bucket.uri}/above/t"], {})
    before = inventory.files()
    assert inventory.files() is before
    bucket.put("noise", "above/noise")
    assert inventory.files() is before, "what happens above a table is no reason to list it"
    (tmp_path / "above/metadata").mkdir(exist_ok=True)
    assert inventory.files() == before
    CONVERSIONS[place](bucket, marker)
    for _ in range(2):
        with pytest.raises(UnsupportedSourceError, match=MARKERS[marker]):
            inventory.files()


@pytest.mark.parametrize("marker", MARKERS)
def test_an_object_store_shows_a_conversion_in_its_listing(bucket: Bucket, marker: str) -> None:
    bucket.put("t/k=1/a.parquet")
    inventory = Inventory([f"{bucket.uri}/t"], bucket.options)
    assert len(inventory.files()) == 1
    bucket.put(f"t/{marker}")
    with pytest.raises(UnsupportedSourceError, match=MARKERS[marker]):
        inventory.files()


def test_markers_in_odd_places() -> None:
    assert list(folders_above("file:///a/b")) == ["file:///a", "file://"]
    assert list(folders_above("s3://lake")) == []
    for uri in ("file:///_delta_log/", "file:///_delta_log/0.json"):
        owners = Owners()
        owners.note(uri)
        with pytest.raises(UnsupportedSourceError, match="found file:///_delta_log"):
            owners.require_none()
