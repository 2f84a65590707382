"""Which settings Spark's reader classes look at, from their bytecode: what a new version reads shows here.

A class file names every method it calls in its constant pool. Readers call accessors of SQLConf, or fetch entries of
its companion by name; SQLConf's own code says which entries an accessor looks at.
"""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_CONF, _ENTRIES = "org/apache/spark/sql/internal/SQLConf", "org/apache/spark/sql/internal/SQLConf$"
_READERS = re.compile(
    r"org/apache/spark/sql/(execution/datasources/(parquet|orc|json|csv|xml|text)/"
    r"|execution/datasources/(FileScanRDD|FileFormat|DataSourceUtils|Hadoop|RecordReader|CodecStreams|TextBased|Partition)"
    r"|catalyst/(json|csv|xml)/|catalyst/FileSourceOptions|avro/"
    r"|catalyst/util/(Date|Time|FailureSafe|CharVarchar|ResolveDefault|Rebase|Legacy|Iso8601|DefaultT|BadRecord))"
)
_ENTRY = re.compile(r"[A-Z][A-Z0-9_]+")
_JARS = re.compile(r"spark-(catalyst|sql|sql-api|avro)_.*\.jar")


def entries_of_readers(jars: Path) -> set[str]:
    """Return the names of the entries, as fields of SQLConf, that Spark's readers look at."""
    called: set[str] = set()
    accessors: dict[str, set[str]] = {}
    for jar in (path for path in jars.iterdir() if _JARS.fullmatch(path.name)):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name == f"{_CONF}.class":
                    accessors = dict(_ClassFile(archive.read(name)).calls_of_methods())
                elif name.endswith(".class") and _READERS.match(name):
                    called |= _ClassFile(archive.read(name)).calls()
    return {entry for name in called for entry in _entries(name, accessors, set())}


def _entries(name: str, accessors: dict[str, set[str]], seen: set[str]) -> Iterator[str]:
    if _ENTRY.fullmatch(name):
        yield name
    elif name not in seen:
        seen.add(name)
        for called in accessors.get(name, ()):
            yield from _entries(called, accessors, seen)


class _ClassFile:
    """A class file, as far as it names methods of SQLConf."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 8
        self._pool: list[Any] = [None] * self._short()
        number = 1
        while number < len(self._pool):
            number += self._constant(number)

    def _short(self) -> int:
        (value,) = struct.unpack_from(">H", self._data, self._at)
        self._at += 2
        return int(value)

    def _constant(self, number: int) -> int:
        tag, at = self._data[self._at], self._at + 1
        if tag == 1:
            (length,) = struct.unpack_from(">H", self._data, at)
            self._pool[number] = self._data[at + 2 : at + 2 + length].decode(errors="replace")
            self._at = at + 2 + length
        elif tag in (7, 8, 16, 19, 20):
            (self._pool[number],) = struct.unpack_from(">H", self._data, at)
            self._at = at + 2
        elif tag in (5, 6):
            self._at = at + 8
            return 2
        else:
            if tag in (9, 10, 11, 12):
                self._pool[number] = (tag, *struct.unpack_from(">HH", self._data, at))
            self._at = at + (3 if tag == 15 else 4)
        return 1

    def _method(self, number: int) -> str | None:
        """Return the name of a method of SQLConf, or of its companion; None for anything else."""
        found = self._pool[number] if number < len(self._pool) else None
        if not isinstance(found, tuple) or found[0] not in (10, 11):
            return None
        owner = self._pool[self._pool[found[1]]]
        return str(self._pool[self._pool[found[2]][1]]) if owner in (_CONF, _ENTRIES) else None

    def calls(self) -> set[str]:
        """Return the methods that the class calls."""
        return {name for number in range(1, len(self._pool)) if (name := self._method(number)) is not None}

    def calls_of_methods(self) -> Iterator[tuple[str, set[str]]]:
        """Yield each method of the class with those that it may call.

        Every two bytes of its code are taken for the number of a constant: what is found too much is looked at in vain.
        """
        self._at += 6
        interfaces = self._short()
        self._at += 2 * interfaces
        for kind in ("field", "method"):
            for _ in range(self._short()):
                name = str(self._pool[struct.unpack_from(">H", self._data, self._at + 2)[0]])
                self._at += 6
                calls: set[str] = set()
                for _ in range(self._short()):
                    attribute, length = struct.unpack_from(">HI", self._data, self._at)
                    self._at += 6
                    if self._pool[attribute] == "Code":
                        calls |= self._in_code(self._data[self._at + 8 : self._at + length])
                    self._at += length
                if kind == "method":
                    yield name, calls

    def _in_code(self, code: bytes) -> set[str]:
        # 182 to 185 are the instructions that call a method; the two bytes behind them say which.
        places = (at for at, byte in enumerate(code[:-2]) if 182 <= byte <= 185)
        numbers = (int.from_bytes(code[at + 1 : at + 3]) for at in places)
        return {name for number in numbers if (name := self._method(number)) is not None and name != "getConf"}
