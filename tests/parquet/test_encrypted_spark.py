"""Files that Spark encrypted, with keys from a key service of our own."""

from __future__ import annotations

import base64
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

import lakebloom.parquet
from lakebloom.errors import EncryptedFileError, InvalidArgumentError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CLASS = "io.lakebloom.tests.OpenKms"
SOURCE = """
package io.lakebloom.tests;

/** Hides nothing: a wrapped key is the key, in Base64. */
public class OpenKms implements org.apache.parquet.crypto.keytools.KmsClient {
  public void initialize(org.apache.hadoop.conf.Configuration conf, String id, String url, String token) {}
  public String wrapKey(byte[] key, String master) {
    return java.util.Base64.getEncoder().encodeToString(key);
  }
  public byte[] unwrapKey(String wrapped, String master) {
    return java.util.Base64.getDecoder().decode(wrapped);
  }
}
"""
BLOOM, CRYPTO = "parquet.bloom.filter", "parquet.encryption"
OPTIONS = {
    "parquet.enable.dictionary": "false",
    f"{BLOOM}.enabled": "true",
    **{f"{BLOOM}.expected.ndv#{name}": "1000" for name in ("id", "name", "open")},
    "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
    f"{CRYPTO}.kms.client.class": CLASS,
    f"{CRYPTO}.column.keys": "key1:id;key2:name",
    f"{CRYPTO}.footer.key": "key0",
    f"{CRYPTO}.double.wrapping": "false",
}


@pytest.fixture(scope="module")
def _key_service(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile the class in the driver, and give it to the executors as a jar, because Parquet loads it by name."""
    jvm = spark.sparkContext._gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook(SOURCE)
    jar = tmp_path_factory.mktemp("jars") / "kms.jar"
    with zipfile.ZipFile(jar, "w") as classes:
        classes.writestr(f"{CLASS.replace('.', '/')}.class", bytes(compiler.getBytecodes()[CLASS]))
    spark.sparkContext._jsc.addJar(str(jar))


def key_of(metadata: bytes) -> bytes:
    return base64.b64decode(json.loads(metadata)["wrappedDEK"])


def some_key_of(metadata: bytes) -> bytes:
    if json.loads(metadata)["masterKeyID"] == "key2":
        raise KeyError("key2")
    return key_of(metadata)


@pytest.mark.usefixtures("_key_service")
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("footer", ["plain", "encrypted"])
def test_filters_that_spark_encrypted(spark: SparkSession, tmp_path: Path, footer: str, algorithm: str) -> None:
    frame = spark.range(0, 1000, 1, 1).selectExpr("id", "concat('user-', id) AS name", "id AS open")
    options = {f"{CRYPTO}.plaintext.footer": str(footer == "plain").lower(), f"{CRYPTO}.algorithm": algorithm}
    frame.write.options(**OPTIONS, **options).parquet(str(tmp_path / "t"))
    (path,) = (tmp_path / "t").glob("*.parquet")
    assert path.read_bytes()[-4:] == (b"PAR1" if footer == "plain" else b"PARE")

    found = lakebloom.parquet.filters(path, key_retriever=key_of)
    assert [(each.column, each.filter.num_bytes) for each in found] == [("id", 2048), ("name", 2048), ("open", 2048)]
    for column in ("id", "open"):
        assert lakebloom.parquet.might_contain(path, column, range(1000), key_retriever=key_of).all()
        assert lakebloom.parquet.might_contain(path, column, range(1000, 2000), key_retriever=key_of).mean() < 0.02
    names = [f"user-{i}" for i in range(2000)]
    answer = lakebloom.parquet.might_contain(path, "name", names, key_retriever=key_of)[0]
    assert answer[:1000].all()
    assert answer[1000:].mean() < 0.02

    assert lakebloom.parquet.might_contain(path, "id", 5, key_retriever=some_key_of).all()
    with pytest.raises(EncryptedFileError, match="no key 'key2'"):
        lakebloom.parquet.might_contain(path, "name", "user-5", key_retriever=some_key_of)
    with pytest.raises(EncryptedFileError, match="wrong"):
        lakebloom.parquet.might_contain(path, "id", 5, key_retriever=lambda _: bytes(16))
    with pytest.raises(EncryptedFileError, match="no key_retriever"):
        lakebloom.parquet.might_contain(path, "id", 5)


@pytest.mark.usefixtures("_key_service")
@pytest.mark.parametrize("footer", ["plain", "encrypted"])
def test_an_index_of_encrypted_columns_has_to_be_allowed(spark: SparkSession, tmp_path: Path, footer: str) -> None:
    table = str(tmp_path / "t")
    options = {f"{CRYPTO}.plaintext.footer": str(footer == "plain").lower()}
    frame = spark.range(0, 1000, 1, 4).selectExpr("id", "concat('user-', id) AS name", "id AS open")
    frame.write.options(**OPTIONS, **options).parquet(table)
    lake = lakebloom.Lakebloom(spark, str(tmp_path / "indexes"))
    keys_found = {key: value for key, value in OPTIONS.items() if "class" in key or "wrapping" in key}
    read = spark.read.options(**keys_found).schema(frame.schema).parquet(table)
    with pytest.raises(EncryptedFileError) as caught:
        lake.create_index(read, lakebloom.BloomIndexConfig("refused", ["id"]))
    assert footer == "encrypted" or "allow_plaintext_filters=True" in str(caught.value)
    report = lake.create_index(read, lakebloom.BloomIndexConfig("i", ["id"], allow_plaintext_filters=True))
    assert report.files == 4
    assert lake.candidates("i", lakebloom.col("id") == 700).num_rows == 1
    by_group = lakebloom.BloomIndexConfig("r", ["id"], granularity="row_group", allow_plaintext_filters=True)
    with pytest.raises(InvalidArgumentError, match="granularity"):
        lake.create_index(read, by_group)
