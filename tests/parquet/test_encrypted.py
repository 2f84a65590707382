"""Filters in encrypted files: with the right keys they answer, without them there is a typed error."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lakebloom.parquet
from lakebloom.errors import CorruptFilterError, EncryptedFileError, LakebloomError
from lakebloom.parquet.encryption import FRAME_BYTES
from tests.parquet.sealing import KEYS, PADDED_HEADER_BYTES, Sealing
from tests.parquet.test_filters import CountedFile, conformance, write

if TYPE_CHECKING:
    from pathlib import Path

IDS = range(2000)
PLAIN = write(pa.table({"id": IDS, "name": [f"user-{i}" for i in IDS], "open": IDS}), "id", "name", "open")
SEALINGS = {
    "encrypted footer": Sealing(),
    "plain footer": Sealing(plain_footer=True),
    "one key for all": Sealing(footer_key_for=("id", "name")),
    "one key for all, plain footer": Sealing(footer_key_for=("id", "name"), plain_footer=True),
    "pages by counter": Sealing(algorithm=2),
    "with a prefix": Sealing(prefix=b"lake/part-7"),
    "one column only": Sealing(columns=("name",)),
}


@pytest.mark.parametrize("name", SEALINGS)
def test_with_the_keys(name: str) -> None:
    file = CountedFile(SEALINGS[name].seal(PLAIN))
    found = lakebloom.parquet.filters(file, key_retriever=KEYS.__getitem__)
    assert len(file.reads) == 1
    plain = lakebloom.parquet.filters(io.BytesIO(PLAIN))
    assert [(each.row_group, each.column, each.filter) for each in found] == [
        (each.row_group, each.column, each.filter) for each in plain
    ]
    assert len(file.reads) == 1 + len(found)
    answer = lakebloom.parquet.might_contain(file, "id", [5, 1005, -1], key_retriever=KEYS.__getitem__)
    assert answer.tolist() == [[True, False, False], [False, True, False]]


@pytest.mark.parametrize("plain_footer", [True, False])
def test_without_lengths(plain_footer: bool) -> None:
    """As Spark 3.5 writes them. An encrypted filter is authenticated, so that its header is believed."""
    sealed = Sealing(with_length=False, plain_footer=plain_footer).seal(PLAIN)
    file = io.BytesIO(sealed)
    answer = lakebloom.parquet.might_contain(file, "id", [5, 1005, -1], key_retriever=KEYS.__getitem__)
    assert answer.tolist() == [[True, False, False], [False, True, False]]


@pytest.mark.parametrize("plain_footer", [True, False])
def test_altered_filters_without_lengths_are_not_believed(plain_footer: bool) -> None:
    sealed = Sealing(with_length=False, plain_footer=plain_footer).seal(PLAIN)
    first = lakebloom.parquet.filters(io.BytesIO(sealed), ["id"], key_retriever=KEYS.__getitem__)[0]
    end = first.offset + 2 * FRAME_BYTES + first.filter.num_bytes
    for position in (0, 4, FRAME_BYTES, FRAME_BYTES + 20, end - first.offset - 1):
        altered = bytearray(sealed)
        altered[first.offset + position] ^= 1
        found = lakebloom.parquet.filters(io.BytesIO(altered), ["id"], key_retriever=KEYS.__getitem__)[0]
        with pytest.raises((EncryptedFileError, CorruptFilterError)):
            found.filter  # noqa: B018


def test_each_key_is_asked_for_once() -> None:
    asked = []

    def retrieve(metadata: bytes) -> bytes:
        asked.append(metadata)
        return KEYS[metadata]

    for found in lakebloom.parquet.filters(io.BytesIO(Sealing().seal(PLAIN)), key_retriever=retrieve):
        assert found.filter.num_bytes
    assert sorted(asked) == [b"footer", b"id", b"name"]


def test_a_missing_key() -> None:
    sealed = Sealing().seal(PLAIN)
    with pytest.raises(EncryptedFileError, match="no key 'footer'; found no key_retriever"):
        lakebloom.parquet.filters(io.BytesIO(sealed))
    some = {b"footer": KEYS[b"footer"], b"id": KEYS[b"id"]}
    with pytest.raises(EncryptedFileError, match="no key 'name'"):
        lakebloom.parquet.filters(io.BytesIO(sealed), key_retriever=some.__getitem__)
    with pytest.raises(EncryptedFileError, match="no key 'name'"):
        lakebloom.parquet.might_contain(io.BytesIO(sealed), "name", ["x"], key_retriever=some.__getitem__)
    assert len(lakebloom.parquet.filters(io.BytesIO(sealed), ["id", "open"], key_retriever=some.__getitem__)) == 4


@pytest.mark.parametrize("returned", [None, "0123456789012345", b"short", b""])
def test_what_is_no_key(returned: object) -> None:
    with pytest.raises(EncryptedFileError, match="16, 24 or 32 bytes"):
        lakebloom.parquet.filters(io.BytesIO(Sealing().seal(PLAIN)), key_retriever=lambda _: returned)  # type: ignore[arg-type,return-value]


def test_a_wrong_key() -> None:
    for sealing in (Sealing(), Sealing(plain_footer=True)):
        file = io.BytesIO(sealing.seal(PLAIN))
        with pytest.raises(EncryptedFileError, match="wrong"):
            lakebloom.parquet.might_contain(file, "id", [5], key_retriever=lambda _: bytes(16))


def test_a_plain_footer_tells_where_filters_are_and_open_columns_need_no_key() -> None:
    file = io.BytesIO(Sealing(plain_footer=True).seal(PLAIN))
    found = lakebloom.parquet.filters(file)
    assert [each.column for each in found] == ["id", "name", "open"] * 2
    assert 5 in found[2].filter
    assert lakebloom.parquet.might_contain(file, "open", [5, -1]).tolist() == [[True, False], [False, False]]
    with pytest.raises(EncryptedFileError, match="no key 'id'"):
        found[0].filter  # noqa: B018


def test_a_prefix_that_the_file_does_not_contain() -> None:
    file = io.BytesIO(Sealing(prefix=b"secret", stored_prefix=False).seal(PLAIN))
    with pytest.raises(EncryptedFileError, match="AAD prefix"):
        lakebloom.parquet.filters(file, key_retriever=KEYS.__getitem__)


def test_filters_cannot_be_exchanged() -> None:
    """The tag says which row group and column a filter belongs to."""
    sealed = Sealing(plain_footer=True).seal(PLAIN)
    first, *_, last = lakebloom.parquet.filters(io.BytesIO(sealed), "id")
    assert first.length == last.length
    assert first.length is not None
    moved = sealed[last.offset : last.offset + first.length]
    file = io.BytesIO(sealed[: first.offset] + moved + sealed[first.offset + first.length :])
    with pytest.raises(EncryptedFileError, match="altered"):
        lakebloom.parquet.might_contain(file, "id", [5], key_retriever=KEYS.__getitem__)


@given(st.sampled_from([Sealing(), Sealing(plain_footer=True)]), st.data())
def test_damaged_files(sealing: Sealing, data: st.DataObject) -> None:
    """Whatever byte behind the pages is changed, no value is lost, but for a plain footer, which nothing guards."""
    sealed = bytearray(sealing.seal(PLAIN))
    footer = len(sealed) - 8 - int.from_bytes(sealed[-8:-4], "little")
    filters = footer - 4 * (PADDED_HEADER_BYTES + 2048 + 64)
    at = data.draw(st.integers(filters, len(sealed) - 1))
    sealed[at] ^= data.draw(st.integers(1, 255))
    try:
        answer = lakebloom.parquet.might_contain(io.BytesIO(sealed), "id", [5, 1005], key_retriever=KEYS.__getitem__)
    except LakebloomError:
        return
    assert answer.any(axis=0).all() or (sealing.plain_footer and at >= footer)


@pytest.mark.slow
def test_plain_files_do_not_load_cryptography(tmp_path: Path) -> None:
    (tmp_path / "plain.parquet").write_bytes(PLAIN)
    ask = "lakebloom.parquet.might_contain(sys.argv[1], 'id', [1])"
    probe = f"import sys, lakebloom.parquet; {ask}; print('cryptography' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", probe, str(tmp_path / "plain.parquet")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_without_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = Sealing().seal(PLAIN)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(EncryptedFileError, match=r"lakebloom\[encryption\]"):
        lakebloom.parquet.filters(io.BytesIO(sealed), key_retriever=KEYS.__getitem__)


def test_a_file_by_parquet_mr() -> None:
    path = conformance("encrypt_columns_and_footer_bloom_filter.parquet.encrypted")
    keys = {b"kf": b"0123456789012345", b"kc1": b"1234567890123450", b"kc2": b"1234567890123451"}
    present = [i + 0.5 for i in range(2000)]
    answer = lakebloom.parquet.might_contain(path, "double_field", present, key_retriever=keys.__getitem__)
    assert answer.any(axis=0).all()
