"""Encrypted columns never end the process: they are refused by name, and what is plain beside them is read."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thrift.Thrift import TType

from lakebloom.errors import EncryptedFileError
from lakebloom.parquet.footer import MAGIC, read_footer, serialise
from lakebloom.parquet.thrift_tree import Struct
from lakebloom.tables.parquet.footer import read_arrow_footer
from tests.examples import most


class Keys(pe.KmsClient):
    """Keys that are their own wrapping."""

    def __init__(self, _: object) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, wrapped: bytes, _: str) -> bytes:
        return base64.b64decode(wrapped)


def write_sealed(path: Path, *, plain_footer: bool) -> None:
    factory = pe.CryptoFactory(lambda config: Keys(config))
    chosen = pe.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["id"]}, plaintext_footer=plain_footer, double_wrapping=False
    )
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), chosen)
    table = pa.table({"id": range(1000), "open": range(1000)})
    pq.write_table(table, path, encryption_properties=properties, row_group_size=400)


def said(path: Path, home: Path) -> dict[str, str]:
    home.mkdir()
    command = [sys.executable, "-m", "tests.index.encrypted_verbs", str(path), str(home)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


@pytest.mark.slow
def test_a_plain_footer_with_an_encrypted_column(tmp_path: Path) -> None:
    path = tmp_path / "sealed.parquet"
    write_sealed(path, plain_footer=True)
    answers = said(path, tmp_path / "home")
    refusal = "ENCRYPTED_FILE column id of file://"
    for name in ("create id", "create id from embedded"):
        assert answers[name] == "(1, ['ENCRYPTED_FILE'])", name
    for name in ("create open", "create open from embedded"):
        assert answers[name] == "(2, [])", name
    assert answers["create id alone"].startswith(refusal)
    assert answers["refresh"] == "(1, [])"
    for name in ("lookup open", "lookup open, refreshed"):
        assert answers[name] == "[{'open': 500}]", name
    for name in ("lookup all", "lookup all, refreshed"):
        assert answers[name].startswith(refusal), name
    assert answers["embed open"].startswith("ENCRYPTED_FILE")
    assert answers["embed id"].startswith("ENCRYPTED_FILE")
    assert answers["might contain"] == "[[True], [True], [True]]"
    assert {"inspect", "filters", "advise"} <= answers.keys()


@pytest.mark.slow
def test_an_encrypted_footer(tmp_path: Path) -> None:
    path = tmp_path / "sealed.parquet"
    write_sealed(path, plain_footer=False)
    answers = said(path, tmp_path / "home")
    assert answers.pop("refresh") == "(0, ['ENCRYPTED_FILE'])"
    assert answers.pop("advise")
    for name, answer in answers.items():
        expected = "(1, ['ENCRYPTED_FILE'])" if name.startswith("create") and "alone" not in name else "ENCRYPTED_FILE "
        assert answer.startswith(expected), name


@settings(max_examples=most(30), deadline=None)
@given(
    st.sets(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=4),
    st.booleans(),
)
def test_whatever_a_chunk_says_of_encryption_is_found(marked: set[tuple[int, int]], metadata_stays: bool) -> None:
    """Also in a footer that names no algorithm and has no signature, which no writer makes."""
    file = io.BytesIO()
    pq.write_table(pa.table({f"c{i}": range(30) for i in range(5)}), file, row_group_size=10)
    footer = read_footer(file)
    for group, column in marked:
        chunk = footer.row_groups[group].columns[column].tree
        key = Struct([])
        key.put(1, TType.LIST, footer.row_groups[group].columns[column].metadata.get(3, TType.LIST))  # type: ignore[union-attr]
        crypto = Struct([])
        crypto.put(2, TType.STRUCT, key)
        chunk.put(8, TType.STRUCT, crypto)
        if not metadata_stays:
            chunk.put(9, TType.STRING, b"sealed")
    data = serialise(footer.tree)
    changed = file.getvalue()[: footer.start] + data + len(data).to_bytes(4, "little") + MAGIC
    found = read_arrow_footer("x", pa.BufferReader(changed))
    assert found.encrypted == {column for _, column in marked}
    with patch.dict(sys.modules, {"thrift.protocol.fastbinary": None}):  # thrift without its C decoder
        assert read_arrow_footer("x", pa.BufferReader(changed)).encrypted == found.encrypted
    for column in range(5):
        if column in found.encrypted:
            with pytest.raises(EncryptedFileError, match=f"column c{column} of x is encrypted"):
                found.require_plain("x", [column])
        else:
            found.require_plain("x", [column])
            found.metadata.row_group(0).column(column)
