"""What people pass: arguments, conditions, values and filters that are wrong."""

from __future__ import annotations

import pyarrow as pa

from lakebloom import BloomIndexConfig, Sbbf
from tests.hints.registry import Met, error_case
from tests.index.lake import NAME, Lake


@error_case("INVALID_ARGUMENT")
def _(lake: Lake, met: Met) -> None:
    with met("fpp=0.1"):
        BloomIndexConfig(NAME, ["k"], fpp=10)
    lake.create(BloomIndexConfig(NAME, ["k"], fpp=0.1))


@error_case("WRONG_CALL")
def _(lake: Lake, met: Met) -> None:
    with met("did you mean granularity?"):
        BloomIndexConfig(NAME, ["k"], granularty="row_group")
    lake.create(BloomIndexConfig(NAME, ["k"], granularity="row_group"))


@error_case("PREDICATE_SYNTAX")
def _(lake: Lake, met: Met) -> None:
    lake.create()
    with met():
        lake.open().lookup(NAME, "k = 5 AND AND s = 's5'")
    assert lake.open().lookup(NAME, "k = 5 AND s = 's5'").num_rows == 1


@error_case("UNSUPPORTED_TYPE")
def _(lake: Lake, met: Met) -> None:
    lake.write("f0", {"k": pa.array([1]), "flag": pa.array([True])})
    lake.types = {"k": "bigint", "flag": "boolean"}
    with met():
        lake.create(BloomIndexConfig(NAME, ["flag"]))
    lake.create(BloomIndexConfig(NAME, ["k"]))  # another column


@error_case("VALUE_NOT_CONVERTIBLE")
def _(lake: Lake, met: Met) -> None:
    with met():
        Sbbf(8).insert([1, "one"])
    f = Sbbf(8)
    f.insert([1, 2])
    assert 1 in f


@error_case("FILTER_MISMATCH")
def _(lake: Lake, met: Met) -> None:
    large, small = Sbbf(8), Sbbf(4)
    large.insert([1])
    with met("fold"):
        large | small
    assert 1 in large.fold(4) | small


@error_case("CORRUPT_FILTER")
def _(lake: Lake, met: Met) -> None:
    f = Sbbf(8)
    f.insert([1])
    whole = f.to_parquet()
    with met():
        Sbbf.from_parquet(whole[:-7])
    assert 1 in Sbbf.from_parquet(whole)


@error_case("UNSUPPORTED_FILTER")
def _(lake: Lake, met: Met) -> None:
    """A filter of another hash is left alone: everything is read, and nothing fails."""
    from thrift.protocol.TCompactProtocol import TCompactProtocol
    from thrift.transport.TTransport import TMemoryBuffer

    header = TCompactProtocol(TMemoryBuffer())
    header.writeStructBegin("")
    other_hash = 2
    for number, choice in ((1, None), (2, 1), (3, other_hash), (4, 1)):
        if choice is None:
            header.writeFieldBegin("numBytes", 8, number)
            header.writeI32(32)
        else:
            header.writeFieldBegin("", 12, number)
            header.writeStructBegin("")
            header.writeFieldBegin("", 12, choice)
            header.writeStructBegin("")
            header.writeFieldStop()
            header.writeStructEnd()
            header.writeFieldEnd()
            header.writeFieldStop()
            header.writeStructEnd()
        header.writeFieldEnd()
    header.writeFieldStop()
    with met():
        Sbbf.from_parquet(header.trans.getvalue() + bytes(32))
