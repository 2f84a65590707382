"""Delta tables that are refused, and logs that are damaged: a typed error that says what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebloom.errors import DataFileError, InvalidArgumentError, NotFoundError, UnsupportedSourceError
from tests.tables.formats.delta.hand_table import HandTable
from tests.tables.formats.delta.test_log import FIELDS, log_of, rows


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"readerFeatures": ["deletionVectors", "shinyNewThing"]}, "shinyNewThing"),
        ({"readerFeatures": ["catalogManaged"]}, "catalog takes part"),
        ({"readerFeatures": ["catalogOwned-preview"]}, "catalog takes part"),
        ({"minReaderVersion": 4}, "minReaderVersion 4"),
        ({"readerFeatures": None}, "no readerFeatures"),
    ],
)
def test_what_a_reader_must_know_and_does_not_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    table.commit({"protocol": {**table.protocol["protocol"], **change}})
    with pytest.raises(UnsupportedSourceError, match=reason):
        log_of(tmp_path).newest()


@pytest.mark.parametrize(
    ("key", "value"),
    [("delta.columnMapping.mode", "shape"), ("delta.coordinatedCommits.commitCoordinator-preview", "dynamodb")],
)
def test_properties_that_change_the_meaning_of_files_are_refused(tmp_path: Path, key: str, value: str) -> None:
    HandTable(tmp_path, FIELDS[:1], configuration={key: value})
    with pytest.raises(UnsupportedSourceError, match=key.split(".")[1]):
        log_of(tmp_path).newest()


def test_files_of_another_format_are_refused(tmp_path: Path) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    meta = {**table.meta["metaData"], "format": {"provider": "orc", "options": {}}}
    table.commit({"metaData": meta})
    with pytest.raises(UnsupportedSourceError, match="files of orc"):
        log_of(tmp_path).newest()


def test_versions_that_are_not_there(tmp_path: Path) -> None:
    HandTable(tmp_path, FIELDS[:1])
    log = log_of(tmp_path)
    with pytest.raises(NotFoundError, match="versions 0 to 0"):
        log.at(1)
    with pytest.raises(InvalidArgumentError, match="negative"):
        log.at(-1)
    with pytest.raises(NotFoundError, match="no Delta log"):
        log_of(tmp_path / "nothing").newest()


HOSTILE: list[bytes] = [
    b"",
    b"{",
    b"[]\n",
    b'{"add": 1}\n',
    b'{"add": {"path": "x", "size": -1, "modificationTime": 0}}\n',
    b'{"add": {"path": "x", "size": 99999999999999999999999999, "modificationTime": 0}}\n',
    b'{"add": {"path": "", "size": 1, "modificationTime": 0}}\n',
    b'{"add": {"path": "x%00y", "size": 1, "modificationTime": 0}}\n',
    b'{"add": {"path": "s3://key:secret@bucket/x", "size": 1, "modificationTime": 0}}\n',
    b'{"add": {"path": "file://elsewhere/x", "size": 1, "modificationTime": 0}}\n',
    b'{"protocol": {"minReaderVersion": "x"}}\n',
    b'{"metaData": {"id": "x"}}\n',
    b"\xff\xfe\n",
    b"[" * 100_000,
    b'{"add": {"path": "x", "size": 1, "modificationTime": 0, "deletionVector": {"storageType": "q",'
    b'"pathOrInlineDv": "", "sizeInBytes": 1, "cardinality": 1}}}\n',
    b'{"add": {"path": "x", "size": 1, "modificationTime": 0, "deletionVector": {"storageType": "i",'
    b'"pathOrInlineDv": "ab", "sizeInBytes": 100, "cardinality": 1}}}\n',
    b'{"add": {"path": "x", "size": 1, "modificationTime": 0, "deletionVector": {"storageType": "u",'
    b'"pathOrInlineDv": "../../etc/passwd", "sizeInBytes": 1, "cardinality": 1}}}\n',
]


@pytest.mark.parametrize("content", HOSTILE)
def test_a_hostile_commit_is_a_typed_error_or_ignored(tmp_path: Path, content: bytes) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    (table.log / f"{1:020}.json").write_bytes(content)
    log = log_of(tmp_path)
    if content == b"":
        assert log.newest().version == 1
        return
    with pytest.raises(DataFileError) as caught:
        log.newest()
    assert "secret" not in str(caught.value)


def test_half_a_table_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text('{"commitInfo": {}}\n')
    with pytest.raises(DataFileError, match="no action metaData"):
        log_of(tmp_path).newest()


@pytest.mark.parametrize("cut", [0, 10, 200, 2000])
def test_a_damaged_checkpoint_is_an_error(tmp_path: Path, cut: int) -> None:
    table = HandTable(tmp_path, FIELDS[:1])
    table.commit(table.add("a.parquet", rows(1)))
    table.checkpoint()
    target = table.log / f"{1:020}.checkpoint.parquet"
    target.write_bytes(target.read_bytes()[:cut])
    with pytest.raises(DataFileError):
        log_of(tmp_path).newest()


def test_a_checkpoint_of_other_columns_is_an_error(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    table = HandTable(tmp_path, FIELDS[:1])
    table.forget(0)
    for content in ({"add": [1]}, {"add": [{"path": 1.5, "size": "x", "modificationTime": None}]}, {"x": [1]}):
        pq.write_table(pa.table(content), table.log / f"{0:020}.checkpoint.parquet")
        with pytest.raises(DataFileError):
            log_of(tmp_path).newest()
