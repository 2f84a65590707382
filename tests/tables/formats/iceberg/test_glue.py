"""Iceberg tables in a Glue catalog, with all their files on S3."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

from botocore.client import BaseClient
from botocore.exceptions import ClientError
from pyiceberg.catalog.glue import GlueCatalog

from lakebloom.errors import AccessDeniedError, NotFoundError, UnsupportedSourceError
from lakebloom.tables.formats.iceberg.catalogs import metadata_of
from tests.storage.conftest import BUCKET
from tests.tables.formats.iceberg.named_lake import SCHEMA, NamedLake, configure, follow

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def glue(s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[GlueCatalog]:
    """A catalog with a namespace of its own, and known by the name ``lake``."""
    access = {"region": "region", "access-key-id": "access_key_id", "secret-access-key": "secret_access_key"}
    properties = {f"{of}.{key}": s3_options[option] for of in ("glue", "s3") for key, option in access.items()}
    properties |= {"glue.endpoint": s3_options["endpoint"], "s3.endpoint": s3_options["endpoint"]}
    properties["warehouse"] = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    configure(monkeypatch, "lake", {**properties, "type": "glue"})
    catalog = GlueCatalog("lake", **properties)
    yield catalog
    catalog.glue.close()


@pytest.fixture
def namespace(glue: GlueCatalog) -> str:
    name = f"db_{uuid.uuid4().hex}"
    glue.create_namespace(name)
    return name


def test_an_index_follows_the_catalog(glue: GlueCatalog, namespace: str, s3_options: dict[str, str]) -> None:
    table = glue.create_table(f"{namespace}.t", SCHEMA)
    follow(NamedLake(f"lake.{namespace}.t", f"s3://{BUCKET}/{uuid.uuid4().hex}", s3_options), table)


def test_what_is_no_iceberg_table(glue: GlueCatalog, namespace: str) -> None:
    client: BaseClient = glue.glue
    client.create_table(DatabaseName=namespace, TableInput={"Name": "plain", "Parameters": {}})
    client.create_table(DatabaseName=namespace, TableInput={"Name": "other", "Parameters": {"table_type": "HUDI"}})
    for table in ("plain", "other"):
        with pytest.raises(UnsupportedSourceError, match=rf"{table} in the catalog lake is not an Iceberg table"):
            metadata_of(f"lake.{namespace}.{table}")
    for missing in (f"{namespace}.no", "no.t"):
        with pytest.raises(NotFoundError, match=rf"there is no Iceberg table {missing} in the catalog lake"):
            metadata_of(f"lake.{missing}")


def test_a_refusal_is_told_as_one(glue: GlueCatalog, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    glue.create_table(f"{namespace}.t", SCHEMA)
    metadata_of(f"lake.{namespace}.t")

    def refuse(self: BaseClient, operation: str, parameters: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not for you"}}, operation)

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    with pytest.raises(AccessDeniedError, match=r"lake \(glue\) refused .*not for you"):
        metadata_of(f"lake.{namespace}.t")
