"""One canonical form, whoever writes the location."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.errors import InvalidArgumentError
from lakebloom.storage.uri import from_decoded, from_encoded, normalise, split, to_local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Mostly what URIs give a meaning to, escapes of escapes included.
PIECES = st.one_of(
    st.sampled_from(
        ["%", "%20", "%25", "%2520", "%2F", "+", "#", "?", "[", "]", "=", " ", "&", ":", "@", "\\", "ü", "日"]
    ),
    st.characters(exclude_characters="/\x00", exclude_categories=["C", "Z"]),
)
SEGMENTS = st.lists(PIECES, min_size=1, max_size=8).map("".join).filter(lambda segment: segment not in {".", ".."})
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map(lambda segments: "/" + "/".join(segments))
STRANGE = ["a b", "a%20b", "a%2520b", "a+b", "a#b", "a?b", "[x]", "k=v", "ü", "100%", "%", "a&b;c", "日本"]


@pytest.mark.parametrize(
    ("location", "canonical"),
    [
        ("/data/a b", "file:///data/a b"),
        ("/data/a%20b", "file:///data/a%20b"),
        ("/data//x/./y/", "file:///data/x/y"),
        ("/data/x/../y", "file:///data/y"),
        ("/../x", "file:///x"),
        ("//data", "file:///data"),
        ("/", "file:///"),
        ("file:/data/x", "file:///data/x"),
        ("file:///data/x/", "file:///data/x"),
        ("file://localhost/data/x", "file:///data/x"),
        ("FILE:/data/X", "file:///data/X"),
        ("file:///data/a%20b", "file:///data/a%20b"),
        ("file:/data/a#b?c", "file:///data/a#b?c"),
        ("s3a://lake/x/", "s3://lake/x"),
        ("s3n://lake/x", "s3://lake/x"),
        ("s3://lake/x//y/./z", "s3://lake/x//y/./z"),
        ("s3://lake/", "s3://lake"),
        ("s3://lake", "s3://lake"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfs://c@a.dfs.core.windows.net/x"),
        ("hdfs://namenode:8020/x y", "hdfs://namenode:8020/x y"),
        ("hdfs:/x", "hdfs:///x"),
        ("memory://m/x", "memory://m/x"),
        (Path("/data/s3:/x"), "file:///data/s3:/x"),
    ],
)
def test_canonical_forms(location: str | Path, canonical: str) -> None:
    assert normalise(location) == canonical
    assert normalise(canonical) == canonical
    if isinstance(location, str):
        assert from_decoded(location) == canonical


@pytest.mark.parametrize("location", ["x/y", Path("x/y"), "./x//y/", "x/z/../y"], ids=str)
def test_relative_paths_start_at_the_working_directory(
    location: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalise(location) == f"file://{tmp_path}/x/y"


def test_a_name_with_a_colon_can_be_written_as_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalise("./s3:x") == f"file://{tmp_path}/s3:x"
    with pytest.raises(InvalidArgumentError, match=r"or \./name for a local name with a colon"):
        normalise("s3:x")


@pytest.mark.parametrize("location", ["", "file:x", "file://server/share", "/a\x00b", "s3://b/a\x00b", "s3:bucket"])
def test_what_is_no_location_is_refused(location: str) -> None:
    with pytest.raises(InvalidArgumentError):
        normalise(location)


@pytest.mark.parametrize("text", ["x/y", "", "./x"])
def test_identities_are_absolute(text: str) -> None:
    for read in (from_decoded, from_encoded):
        with pytest.raises(InvalidArgumentError, match="neither an absolute path nor a URI"):
            read(text)


@pytest.mark.parametrize("uri", ["file:///100%", "file:///a%2", "file:///a%zz", "s3://b/a?x", "s3://b/a#x"])
def test_what_is_not_encoded_is_not_decoded(uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match="not percent-encoded"):
        from_encoded(uri)


def test_a_presigned_url_is_not_shown() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        from_encoded("s3://bucket/a?X-Amz-Signature=secret")
    assert "secret" not in str(caught.value)


def test_decoding_happens_once() -> None:
    assert from_encoded("s3a://lake/a%2520b") == "s3://lake/a%20b" == from_decoded("s3a://lake/a%20b")
    assert from_encoded("s3a://lake/a%20b") == "s3://lake/a b" == from_decoded("s3a://lake/a b")


def test_a_plus_is_no_space() -> None:
    assert from_encoded("file:///a+b") == "file:///a+b"


def test_names_that_are_not_utf8_survive() -> None:
    path = Path("/data/\udcff")
    assert from_encoded(path.as_uri()) == normalise(path)


def test_only_files_have_a_local_path() -> None:
    assert to_local_path("file:///") == "/"
    with pytest.raises(InvalidArgumentError, match="only file: URIs"):
        to_local_path("s3://lake/x")


@given(PATHS)
def test_local_paths_round_trip(path: str) -> None:
    uri = normalise(path)
    assert to_local_path(uri) == path
    assert uri == normalise(uri) == from_decoded(uri) == from_decoded(f"file:{path}") == normalise(Path(path))


@given(PATHS)
def test_encoded_and_decoded_forms_meet(path: str) -> None:
    assert from_encoded(f"file://{quote(path)}") == from_decoded(path)
    assert from_encoded(f"s3a://lake{quote(path)}") == from_decoded(f"s3://lake{path}")
    assert from_encoded(Path(path).as_uri()) == normalise(path)


@given(PATHS, PATHS)
def test_different_paths_stay_different(one: str, other: str) -> None:
    assert (normalise(one) == normalise(other)) == (one == other)
    assert (from_encoded(f"file:{quote(one)}") == from_encoded(f"file:{quote(other)}")) == (one == other)


@given(
    st.sampled_from([("s3", "lake"), ("s3", ""), ("gs", "lake"), ("hdfs", "lake"), ("hdfs", "n:8020"), ("hdfs", "")]),
    PATHS,
)
def test_split_is_the_inverse_of_writing(place: tuple[str, str], path: str) -> None:
    scheme, authority = place
    assert split(from_decoded(f"{scheme}://{authority}{path}")) == (scheme, authority, path)


@pytest.mark.spark
def test_spark_and_hadoop_print_the_same_files(spark: SparkSession, tmp_path: Path) -> None:
    expected = set()
    for name in STRANGE:
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text("row")
        expected.add(normalise(tmp_path / name / f"{name}.txt"))
    frame = spark.read.option("recursiveFileLookup", "true").text(str(tmp_path))
    by_function = {row[0] for row in frame.selectExpr("input_file_name()").collect()}
    by_metadata = {row[0] for row in frame.selectExpr("_metadata.file_path").collect()}
    assert {from_encoded(uri) for uri in by_function} == expected
    assert {from_encoded(uri) for uri in by_metadata} == expected
    gateway: Any = spark.sparkContext._gateway
    hadoop = gateway.jvm.org.apache.hadoop.fs
    printed = {hadoop.Path(uri).toString() for uri in expected}
    assert {from_decoded(uri) for uri in printed} == expected


@pytest.mark.parametrize(
    "location",
    [
        "s3://AKIA:hunter2@lake/x",
        "s3a://AKIA:hunter2/tail@lake/x",
        "s3://AKIA:42/hunter2@lake/x",
        "s3://AKIA:hunter2/x",
        "https://user:hunter2/tail@host/x",
        "az://container/x?sv=1&sig=hunter2",
        "s3://lake/x?X-Amz-Signature=hunter2",
        "s3://lake/x?X-Amz-Security-Token=hunter2",
        "https://host/x?access_token=hunter2",
    ],
)
def test_a_location_with_a_secret_is_refused(location: str) -> None:
    for read in (normalise, from_decoded, from_encoded):
        with pytest.raises(InvalidArgumentError) as caught:
            read(location)
        assert "hunter2" not in f"{caught.value} {caught.value!r}"


@pytest.mark.parametrize(
    "location",
    ["hdfs://nn:8020/a@b", "s3://lake/a@b:c", "s3://lake/part-??.parquet", "s3://lake/q=1?2", "abfs://c@a.net/x"],
)
def test_what_only_looks_like_a_secret_is_a_location(location: str) -> None:
    assert normalise(location) == location
