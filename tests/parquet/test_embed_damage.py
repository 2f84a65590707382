"""Files that are damaged or encrypted: a typed error or a good file, never anything between."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom.errors import EncryptedFileError, LakebloomError
from lakebloom.parquet import embed
from lakebloom.parquet.footer import read_footer
from tests.examples import most

if TYPE_CHECKING:
    from pathlib import Path

TABLE = pa.table({"k": range(200), "t": [f"user-{i}" for i in range(200)], "l": [[i, i + 1] for i in range(200)]})


class PlainKms(pe.KmsClient):  # type: ignore[misc]
    """Keys that are wrapped in nothing."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_files(tmp_path: Path, plaintext_footer: bool) -> None:
    configuration = pe.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["k"]}, plaintext_footer=plaintext_footer
    )
    factory = pe.CryptoFactory(lambda _: PlainKms())
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), configuration)
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, TABLE.schema, encryption_properties=properties) as writer:
        writer.write_table(TABLE)
    before = path.read_bytes()
    for column in ("k", "t"):
        with pytest.raises(EncryptedFileError):
            embed(path, columns=[column])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def whole() -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=100, compression="snappy", bloom_filter_options={"t": True})
    return sink.getvalue()


@pytest.mark.slow
@settings(max_examples=most(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutation=st.data())
def test_mutated_files(whole: bytes, tmp_path: Path, mutation: st.DataObject) -> None:
    spoilt = bytearray(whole)
    start = mutation.draw(st.sampled_from([0, read_footer(io.BytesIO(whole)).start]))
    for _ in range(mutation.draw(st.integers(1, 3))):
        spoilt[mutation.draw(st.integers(start, len(spoilt) - 1))] = mutation.draw(st.integers(0, 255))
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    source.write_bytes(spoilt)
    target.unlink(missing_ok=True)
    try:
        report = embed(source, target, ["k", "t", "l.list.element"])
    except LakebloomError:
        assert not target.exists()
    else:
        assert report.filters == 3 * len(read_footer(target).row_groups)
    assert source.read_bytes() == spoilt
    assert {file.name for file in tmp_path.iterdir()} <= {"a.parquet", "b.parquet"}
