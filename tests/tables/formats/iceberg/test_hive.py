"""Iceberg tables in a Hive metastore: the real one, of the jars that Spark brings."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")
pytest.importorskip("pyspark", reason="needs Spark's jars")

import pyspark
from hive_metastore.ttypes import DataOperationType, FieldSchema, LockRequest, SerDeInfo, StorageDescriptor
from hive_metastore.ttypes import Table as HiveTable
from pyiceberg.catalog.hive import HiveCatalog

from lakebloom.errors import NotFoundError, StorageError, UnsupportedSourceError
from lakebloom.storage.uri import from_decoded
from lakebloom.tables.formats.iceberg import catalogs
from lakebloom.tables.formats.iceberg.catalogs import metadata_of
from tests.spark.processes import daemon, free_port, wait_for
from tests.tables.formats.iceberg.named_lake import SCHEMA, NamedLake, configure, follow

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not list((Path(pyspark.__file__).parent / "jars").glob("hive-metastore-*.jar")), reason="needs Hive's jars"
    ),
]
SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.in.test": "true",  # makes the tables of locks, too
    "hive.async.log.enabled": "false",  # needs otherwise a jar that Spark does not bring
    "datanucleus.connectionPoolingType": "HikariCP",  # so does the default
}


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What HiveCatalog needs to know of a metastore whose database is in its memory."""
    home, port = tmp_path_factory.mktemp("hive"), free_port()
    settings = {**SETTINGS, "hive.metastore.warehouse.dir": f"file://{home}/w", "hive.log.dir": f"{home}/server"}
    arguments = [part for key, value in settings.items() for part in ("--hiveconf", f"{key}={value}")]
    with daemon(
        "org.apache.hadoop.hive.metastore.HiveMetaStore", home / "server", "-p", str(port), *arguments
    ) as process:
        wait_for(port, process)
        yield {
            "uri": f"thrift://127.0.0.1:{port}",
            "warehouse": f"file://{home}/w",
            "hive.hive2-compatible": "true",
        }


class Writer(HiveCatalog):
    """Says what its locks are for, which a metastore insists on in tests. Readers take no locks."""

    def _create_lock_request(self, database_name: str, table_name: str) -> LockRequest:
        request = super()._create_lock_request(database_name, table_name)
        for component in request.component:
            component.operationType = DataOperationType.NO_TXN
        return request


@pytest.fixture
def hive(metastore: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> HiveCatalog:
    configure(monkeypatch, "hive", metastore)
    catalog = Writer("hive", **metastore)
    catalog.create_namespace_if_not_exists("db")
    return catalog


def test_an_index_follows_the_catalog(hive: HiveCatalog, tmp_path: Path) -> None:
    follow(NamedLake("hive.db.t", str(tmp_path / "indexes")), hive.create_table("db.t", SCHEMA))


def test_many_ask_at_the_same_time(hive: HiveCatalog) -> None:
    """pyiceberg's client has one connection, which threads must not share."""
    tables = [hive.create_table(f"db.many_{number}", SCHEMA) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(metadata_of, [f"hive.db.many_{number % 4}" for number in range(40)]))
    assert found == [from_decoded(tables[number % 4].metadata_location) for number in range(40)]


def test_what_is_no_iceberg_table(hive: HiveCatalog, tmp_path: Path) -> None:
    columns = StorageDescriptor(
        cols=[FieldSchema("k", "int", "")],
        location=f"file://{tmp_path}/plain",
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    )
    with hive._client as client:
        client.create_table(HiveTable(tableName="plain", dbName="db", owner="", sd=columns, parameters={}))
    with pytest.raises(UnsupportedSourceError, match=r"db\.plain in the catalog hive is not an Iceberg table"):
        metadata_of("hive.db.plain")
    for missing in ("db.no", "no.t"):
        with pytest.raises(NotFoundError, match=f"there is no Iceberg table {missing} in the catalog hive"):
            metadata_of(f"hive.{missing}")


def test_a_metastore_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        configure(monkeypatch, "hive", {"uri": f"thrift://127.0.0.1:{silent.getsockname()[1]}"})
        monkeypatch.setattr(catalogs, "_LIMIT_S", 0.05)
        with pytest.raises(StorageError, match=r"hive \(thrift://127.* did not answer .*no answer within"):
            metadata_of("hive.db.t")
    monkeypatch.undo()
    configure(monkeypatch, "hive", {"uri": "thrift://127.0.0.1:1"})
    with pytest.raises(StorageError, match=r"did not answer .*TTransportException"):
        metadata_of("hive.db.t")
