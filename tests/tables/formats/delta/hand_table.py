"""A Delta table written by hand: what deltalake cannot write, such as deletion vectors, mapping and sidecars."""

from __future__ import annotations

import base64
import json
import struct
import uuid
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from tests.tables.formats.delta.roaring_writer import roaring64

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
MAGIC = 1681511377
_MAP = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
CHECKPOINT_SCHEMA = pa.schema(
    {
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64()}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _MAP,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
                "deletionVector": _VECTOR,
            }
        ),
        "remove": pa.struct({"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _MAP}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _MAP,
                "createdTime": pa.int64(),
            }
        ),
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": pa.list_(pa.string()),
                "writerFeatures": pa.list_(pa.string()),
            }
        ),
        "sidecar": pa.struct({"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()}),
        "checkpointMetadata": pa.struct({"version": pa.int64()}),
    }
)


def z85(data: bytes) -> str:
    return base64.b85encode(data + bytes(-len(data) % 4)).decode().translate(str.maketrans(_B85, _Z85))


def field(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def mapped(name: str, kind: Any, physical: str, number: int) -> dict[str, Any]:
    keys = {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": number}
    return {"name": name, "type": kind, "nullable": True, "metadata": keys}


class HandTable:
    """A table at a local path, commit by commit."""

    def __init__(
        self,
        root: Path,
        fields: Sequence[dict[str, Any]],
        *,
        partitions: Sequence[str] = (),
        features: Sequence[str] = ("deletionVectors",),
        configuration: dict[str, str] | None = None,
    ) -> None:
        self.root, self.version = root, -1
        self.log = root / "_delta_log"
        self.log.mkdir(parents=True, exist_ok=True)
        self.id, self._partitions, self._configuration = str(uuid.uuid4()), list(partitions), configuration or {}
        self.protocol: dict[str, Any] = {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": list(features),
                "writerFeatures": list(features),
            }
        }
        self.meta: dict[str, Any] = {}
        self.active: dict[tuple[str, str], dict[str, Any]] = {}
        self.commit(self.protocol, self.schema(fields))

    def schema(self, fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the action that gives the table these columns."""
        self.meta = {
            "metaData": {
                "id": self.id,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
                "partitionColumns": self._partitions,
                "configuration": self._configuration,
                "createdTime": 0,
            }
        }
        return self.meta

    def add(
        self,
        name: str,
        rows: pa.Table,
        values: dict[str, str | None] | None = None,
        vector: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write a file of Parquet, and return its action. The time in the log is not that of the disk."""
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, target, row_group_size=max(1, rows.num_rows // 2))
        stats = json.dumps({"numRecords": rows.num_rows})
        entry = {
            "path": quote(name),
            "size": target.stat().st_size,
            "modificationTime": 1_700_000_000_123 + len(self.active),
            "partitionValues": values or {},
            "dataChange": True,
            "stats": stats,
        }
        return {"add": entry if vector is None else {**entry, "deletionVector": vector}}

    def again(self, added: dict[str, Any], vector: dict[str, Any] | None) -> dict[str, Any]:
        """Return the action that adds a file with another vector."""
        entry = {key: value for key, value in added["add"].items() if key != "deletionVector"}
        return {"add": entry if vector is None else {**entry, "deletionVector": vector}}

    def remove(self, added: dict[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in added["add"].items() if key in ("path", "deletionVector")}
        return {"remove": {**kept, "deletionTimestamp": 1_700_000_000_000, "dataChange": True}}

    def commit(self, *actions: dict[str, Any], info: dict[str, Any] | None = None) -> int:
        """Write the next commit."""
        self.version += 1
        lines = [{"commitInfo": {"timestamp": 0, "operation": "WRITE", **(info or {})}}, *actions]
        (self.log / f"{self.version:020}.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        for action in actions:
            for kind in ("remove", "add"):
                if kind in action:
                    entry = action[kind]
                    key = (entry["path"], json.dumps(entry.get("deletionVector")))
                    self.active.pop(key, None)
                    if kind == "add":
                        self.active[key] = entry
        return self.version

    def inline(self, rows: Iterable[int]) -> dict[str, Any]:
        """Return a vector in the log."""
        deleted = set(rows)
        data = struct.pack("<I", MAGIC) + roaring64(deleted)
        return {
            "storageType": "i",
            "pathOrInlineDv": z85(data),
            "sizeInBytes": len(data),
            "cardinality": len(deleted),
        }

    def stored(self, *vectors: Iterable[int], prefix: str = "", absolute: bool = False) -> list[dict[str, Any]]:
        """Return vectors that are in one file."""
        number = uuid.uuid4()
        target = self.root / prefix / f"deletion_vector_{number}.bin"
        target.parent.mkdir(parents=True, exist_ok=True)
        content, found = b"\x01", []
        for rows in vectors:
            deleted = set(rows)
            data = struct.pack("<I", MAGIC) + roaring64(deleted)
            place = {"offset": len(content), "sizeInBytes": len(data), "cardinality": len(deleted)}
            content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
            if absolute:
                found.append({"storageType": "p", "pathOrInlineDv": f"file://{quote(str(target))}", **place})
            else:
                found.append({"storageType": "u", "pathOrInlineDv": prefix + z85(number.bytes), **place})
        target.write_bytes(content)
        return found

    def state(self) -> list[dict[str, Any]]:
        """Return the actions of a checkpoint."""
        return [self.protocol, self.meta, *({"add": entry} for entry in self.active.values())]

    def checkpoint(self, parts: int = 0) -> None:
        """Write a classic checkpoint of the newest version, whole or in parts."""
        if not parts:
            self.parquet(self.state(), f"{self.version:020}.checkpoint.parquet")
            return
        for number in range(parts):
            name = f"{self.version:020}.checkpoint.{number + 1:010}.{parts:010}.parquet"
            self.parquet(self.state()[number::parts], name)

    def checkpoint_v2(self, suffix: str) -> None:
        """Write a checkpoint of version 2, with half of the files in each of two sidecars."""
        files = [action for action in self.state() if "add" in action]
        top: list[dict[str, Any]] = [{"checkpointMetadata": {"version": self.version}}, self.protocol, self.meta]
        for half in (files[::2], files[1::2]):
            name = f"{uuid.uuid4()}.parquet"
            self.parquet(half, f"_sidecars/{name}")
            size = (self.log / "_sidecars" / name).stat().st_size
            top.append({"sidecar": {"path": name, "sizeInBytes": size, "modificationTime": 0}})
        target = f"{self.version:020}.checkpoint.{uuid.uuid4()}.{suffix}"
        if suffix == "json":
            (self.log / target).write_text("".join(f"{json.dumps(action)}\n" for action in top))
        else:
            self.parquet(top, target)

    def parquet(self, actions: Sequence[dict[str, Any]], name: str) -> None:
        target = self.log / name
        target.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist([_plain(action) for action in actions], CHECKPOINT_SCHEMA), target)

    def forget(self, *versions: int) -> None:
        """Remove commits, as a clean-up of the log does."""
        for version in versions:
            (self.log / f"{version:020}.json").unlink()


def _plain(action: dict[str, Any]) -> dict[str, Any]:
    """Return an action with maps as Arrow takes them."""
    found = json.loads(json.dumps(action))
    if "add" in found:
        found["add"]["partitionValues"] = list(found["add"]["partitionValues"].items())
    if "metaData" in found:
        found["metaData"]["configuration"] = list(found["metaData"]["configuration"].items())
        found["metaData"]["format"]["options"] = []
    return found
