"""Writes Iceberg tables file by file: every kind of delete, partition spec and schema change.

Metadata lies in a directory as Hadoop's catalog writes it, so that pyiceberg and the connector for Spark read it too.
Manifests are written with pyiceberg's Avro writer.
"""

from __future__ import annotations

import copy
import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from tests.tables.formats.delta.roaring_writer import roaring64

EXISTING, ADDED, REMOVED = 0, 1, 2
DATA, POSITIONS, EQUALITY = 0, 1, 2
START_MS = 1_700_000_000_000
_RESULTS: dict[str, IcebergType] = {
    "string": StringType(), "int": IntegerType(), "long": LongType(), "date": DateType(),
    "float": FloatType(), "double": DoubleType(), "timestamp": TimestampType(), "timestamptz": TimestamptzType(),
    "uuid": UUIDType(), "fixed[16]": FixedType(16), "fixed[4]": FixedType(4), "decimal(9, 2)": DecimalType(9, 2),
    "decimal(20, 2)": DecimalType(20, 2),
}  # fmt: skip


@dataclass
class Entry:
    """A file of the table, as manifests describe it."""

    path: str
    size: int
    rows: int
    spec_id: int
    partition: tuple[Any, ...] = ()
    content: int = DATA
    format: str = "PARQUET"
    equality_ids: list[int] | None = None
    referenced: str | None = None
    offset: int | None = None
    length: int | None = None
    sequence: int | None = None
    snapshot_id: int | None = None


@dataclass
class Manifest:
    path: str
    size: int
    spec_id: int
    deletes: bool
    sequence: int
    snapshot_id: int
    entries: list[Entry] = field(default_factory=list)


class HandTable:
    """A table in a directory. ``metadata`` is what the next metadata file says."""

    def __init__(
        self,
        root: Path,
        fields: list[dict[str, Any]],
        *,
        version: int = 2,
        spec: list[dict[str, Any]] | None = None,
        properties: dict[str, str] | None = None,
    ) -> None:
        """A field of a spec has its name, transform, source-id, field-id and the type of its result."""
        self.root, self.count, self.number = root, 0, 0
        self.manifests: list[Manifest] = []
        self._kept: dict[int, list[Manifest]] = {}
        self.specs: dict[int, list[dict[str, Any]]] = {0: spec or []}
        (root / "metadata").mkdir(parents=True)
        (root / "data").mkdir()
        self.metadata: dict[str, Any] = {
            "format-version": version,
            "table-uuid": "00000000-0000-4000-8000-000000000001",
            "location": str(root),
            "last-sequence-number": 0,
            "last-updated-ms": START_MS,
            "last-column-id": 100,
            "schemas": [],
            "current-schema-id": 0,
            "partition-specs": [],
            "default-spec-id": 0,
            "last-partition-id": 1100,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": properties or {},
            "current-snapshot-id": -1,
            "refs": {},
            "snapshots": [],
            "snapshot-log": [],
            "metadata-log": [],
        }
        if version == 3:
            self.metadata["next-row-id"] = 0
        self.schema(fields)

    def uri(self, path: str) -> str:
        return f"file://{path}"

    @property
    def metadata_file(self) -> Path:
        return self.root / "metadata" / f"v{self.number}.metadata.json"

    @property
    def current(self) -> int:
        return int(self.metadata["current-snapshot-id"])

    def write_metadata(self) -> None:
        self.number += 1
        self.metadata["last-updated-ms"] = START_MS + 1000 * self.number
        self.metadata["partition-specs"] = [
            {"spec-id": number, "fields": [{k: v for k, v in each.items() if k != "result"} for each in fields]}
            for number, fields in self.specs.items()
        ]
        self.metadata_file.write_text(json.dumps(self.metadata))
        (self.root / "metadata" / "version-hint.text").write_text(str(self.number))

    def schema(self, fields: list[dict[str, Any]]) -> None:
        """Give the table another schema."""
        number = len(self.metadata["schemas"])
        self.metadata["schemas"].append({"type": "struct", "schema-id": number, "fields": copy.deepcopy(fields)})
        self.metadata["current-schema-id"] = number
        self.write_metadata()

    def partitioned(self, spec: list[dict[str, Any]]) -> int:
        """Give the table another partition spec, and return its id."""
        number = max(self.specs) + 1
        self.specs[number] = spec
        self.metadata["default-spec-id"] = number
        self.write_metadata()
        return number

    def next_path(self, ending: str = "parquet") -> str:
        self.count += 1
        return str(self.root / "data" / f"f {self.count}%20.{ending}")

    def data(self, table: pa.Table, spec_id: int = 0, partition: tuple[Any, ...] = (), **options: Any) -> Entry:
        """Write a data file. The ids of fields are in the metadata of the table's schema."""
        path = self.next_path()
        pq.write_table(table, path, **options)
        return Entry(path, Path(path).stat().st_size, table.num_rows, spec_id, partition)

    def positions(self, deleted: dict[str, list[int]], like: Entry, *, alone: bool = False) -> Entry:
        """Write position deletes for files, in the partition of one of them; ``alone``: name the only file."""
        path = self.next_path()
        pairs = sorted((file, number) for file, numbers in deleted.items() for number in numbers)
        schema = pa.schema([with_id("file_path", pa.string(), 2147483546), with_id("pos", pa.int64(), 2147483545)])
        columns = [pa.array([file for file, _ in pairs], pa.string()), pa.array([at for _, at in pairs], pa.int64())]
        pq.write_table(pa.table(columns, schema=schema), path)
        only = next(iter(deleted)) if alone else None
        size = Path(path).stat().st_size
        return Entry(path, size, len(pairs), like.spec_id, like.partition, POSITIONS, referenced=only)

    def equality(self, table: pa.Table, ids: list[int], spec_id: int = 0, partition: tuple[Any, ...] = ()) -> Entry:
        """Write equality deletes."""
        path = self.next_path()
        pq.write_table(table, path)
        size = Path(path).stat().st_size
        return Entry(path, size, table.num_rows, spec_id, partition, EQUALITY, equality_ids=ids)

    def vector(self, deleted: list[int], of: Entry) -> Entry:
        """Write a Puffin file with a deletion vector."""
        path = self.next_path("puffin")
        bitmap = struct.pack("<I", 1681511377) + roaring64(deleted)
        blob = struct.pack(">I", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
        properties = {"referenced-data-file": of.path, "cardinality": str(len(set(deleted)))}
        blobs = [{
            "type": "deletion-vector-v1", "fields": [2147483546], "snapshot-id": -1, "sequence-number": -1,
            "offset": 4, "length": len(blob), "properties": properties,
        }]  # fmt: skip
        footer = json.dumps({"blobs": blobs, "properties": {}}).encode()
        tail = b"PFA1" + footer + struct.pack("<I", len(footer)) + b"\0\0\0\0" + b"PFA1"
        Path(path).write_bytes(b"PFA1" + blob + tail)
        return Entry(
            path, Path(path).stat().st_size, len(set(deleted)), of.spec_id, of.partition, POSITIONS, "PUFFIN",
            referenced=of.path, offset=4, length=len(blob),
        )  # fmt: skip

    def commit(self, *added: Entry, removed: tuple[Entry, ...] | list[Entry] = (), new_id: int | None = None) -> int:
        """Commit a snapshot, and return its id. Manifests without removed files stay as they are."""
        sequence = self.metadata["last-sequence-number"] + 1
        snapshot_id = new_id or 4_000_000_000_000_000_000 + 1000 * self.number + sequence
        gone = {entry.path for entry in removed}
        manifests = []
        for manifest in self.manifests:
            if not gone & {entry.path for entry in manifest.entries}:
                manifests.append(manifest)
                continue
            statuses = [(REMOVED if entry.path in gone else EXISTING, entry) for entry in manifest.entries]
            written = self._manifest(statuses, manifest.spec_id, manifest.deletes, sequence, snapshot_id)
            if written.entries:
                manifests.append(written)
        for spec_id, deletes in sorted({(entry.spec_id, entry.content != DATA) for entry in added}):
            chosen = [e for e in added if (e.spec_id, e.content != DATA) == (spec_id, deletes)]
            manifests.append(self._manifest([(ADDED, e) for e in chosen], spec_id, deletes, sequence, snapshot_id))
        self.manifests = manifests
        self._kept[snapshot_id] = list(manifests)
        self._finish(snapshot_id, sequence)
        return snapshot_id

    def refer(self, name: str, kind: str, snapshot_id: int | None = None) -> None:
        """Make a branch or a tag of a snapshot, by default of the current one."""
        self.metadata["refs"][name] = {"snapshot-id": snapshot_id or self.current, "type": kind}
        self.write_metadata()

    def roll_back(self, snapshot_id: int) -> None:
        """Make an earlier snapshot the current one."""
        self.manifests = list(self._kept[snapshot_id])
        self._set_current(snapshot_id)
        self.write_metadata()

    def expire(self, kept: set[int]) -> None:
        """Forget all snapshots but these and the current one."""
        kept = kept | {self.current}
        for name in ("snapshots", "snapshot-log"):
            self.metadata[name] = [each for each in self.metadata[name] if each["snapshot-id"] in kept]
        self.write_metadata()

    def _finish(self, snapshot_id: int, sequence: int) -> None:
        list_path = str(self.root / "metadata" / f"snap-{snapshot_id}.avro")
        self._write_list(list_path)
        self.metadata["last-sequence-number"] = sequence
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": sequence,
            "timestamp-ms": START_MS + 1000 * (self.number + 1),
            "manifest-list": list_path,
            "summary": {"operation": "overwrite"},
            "schema-id": self.metadata["current-schema-id"],
        }
        if self.metadata["format-version"] == 3:
            snapshot |= {"first-row-id": 0, "added-rows": 0}
        if self.current != -1:
            snapshot["parent-snapshot-id"] = self.current
        self.metadata["snapshots"].append(snapshot)
        self._set_current(snapshot_id)
        self.write_metadata()

    def _set_current(self, snapshot_id: int) -> None:
        self.metadata["current-snapshot-id"] = snapshot_id
        self.metadata["refs"]["main"] = {"snapshot-id": snapshot_id, "type": "branch"}
        now = START_MS + 1000 * (self.number + 1)
        self.metadata["snapshot-log"].append({"snapshot-id": snapshot_id, "timestamp-ms": now})

    def _manifest(
        self, statuses: list[tuple[int, Entry]], spec_id: int, deletes: bool, sequence: int, snapshot_id: int
    ) -> Manifest:
        self.count += 1
        path = str(self.root / "metadata" / f"m{self.count}.avro")
        spec = self.specs[spec_id]
        partition = StructType(
            *[NestedField(each["field-id"], each["name"], _RESULTS[each["result"]], required=False) for each in spec]
        )
        version = 3 if self.metadata["format-version"] == 3 else 2
        # Fields of version 3 do no harm in a manifest of version 2, and position deletes may name their file there.
        schema = manifest_entry_schema_with_data_file(3, _with_int_ids(data_file_with_partition(partition, 3)))
        meta = {
            "schema": json.dumps(self.metadata["schemas"][-1]),
            "partition-spec": json.dumps([{k: v for k, v in each.items() if k != "result"} for each in spec]),
            "partition-spec-id": str(spec_id),
            "format-version": str(version),
            "content": "deletes" if deletes else "data",
        }
        records = [self._record(status, entry, sequence, snapshot_id) for status, entry in statuses]
        self._avro(path, schema, "manifest_entry", meta, records)
        live = [entry for status, entry in statuses if status != REMOVED]
        return Manifest(path, Path(path).stat().st_size, spec_id, deletes, sequence, snapshot_id, live)

    def _record(self, status: int, entry: Entry, sequence: int, snapshot_id: int) -> Record:
        file = Record(
            entry.content, entry.path, entry.format, Record(*entry.partition), entry.rows, entry.size,
            None, None, None, None, None, None, None, None, entry.equality_ids, None, None,
            entry.referenced, entry.offset, entry.length,
        )  # fmt: skip
        if status == ADDED:  # inherited, as writers do it
            entry.sequence, entry.snapshot_id = sequence, snapshot_id
            return Record(status, None, None, None, file)
        return Record(status, entry.snapshot_id, entry.sequence, entry.sequence, file)

    def _write_list(self, path: str) -> None:
        records = [self._listed(each) for each in self.manifests]
        self._avro(path, MANIFEST_LIST_FILE_SCHEMAS[2], "manifest_file", {"format-version": "2"}, records)

    def _listed(self, each: Manifest) -> Record:
        files, rows = len(each.entries), sum(entry.rows for entry in each.entries)
        about = (each.path, each.size, each.spec_id, int(each.deletes), each.sequence, 1, each.snapshot_id)
        return Record(*about, files, files, 0, rows, rows, 0, None, None)

    def _avro(self, path: str, schema: Any, name: str, meta: dict[str, str], records: list[Record]) -> None:
        output = PyArrowFileIO().new_output(path)
        with AvroOutputFile(output, file_schema=schema, schema_name=name, metadata=meta) as writer:
            writer.write_block(records)


def _with_int_ids(file: StructType) -> StructType:
    """Return the type of files with ids of columns as int, as the specification has them; pyiceberg writes long."""
    ids = ListType(element_id=136, element_type=IntegerType(), element_required=True)
    return StructType(
        *[
            NestedField(135, "equality_ids", ids, required=False) if field.field_id == 135 else field
            for field in file.fields
        ]
    )


def with_id(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


def column(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """A field of a schema."""
    return {"id": number, "name": name, "type": kind, "required": False, **more}


__all__ = ["MANIFEST_ENTRY_SCHEMAS", "Entry", "HandTable", "column", "with_id"]
