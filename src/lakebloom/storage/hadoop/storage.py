"""Any file system that the running Spark session can reach, through Hadoop's FileSystem.

For file systems without another backend here, above all HDFS. Every call crosses from Python to the JVM of a classic
session, and bytes cross in blocks; bulk reads are ten times slower than those of the other backends.
``publish.py`` decides which file systems can be written to.
"""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn

from lakebloom.errors import InvalidArgumentError, StorageError
from lakebloom.storage.buffers import as_views
from lakebloom.storage.checks import check_length, check_new_path, check_path, check_prefix, check_ranges
from lakebloom.storage.hadoop.errors import MISSING, java_class_of, translated
from lakebloom.storage.hadoop.publish import publisher_for
from lakebloom.storage.local.temporary import is_temporary, temporary_name
from lakebloom.storage.protocol import StoredFile
from lakebloom.storage.uri import split
from lakebloom.tuning import COPIED_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lakebloom.storage.buffers import Buffer, Buffers, Views
    from lakebloom.storage.hadoop.publish import Publisher

__all__ = ["HadoopStorage"]

# py4j sends bytes as text; larger blocks only cost memory.


class HadoopStorage:
    """The files below a canonical URI, through a classic Spark session. Only for the driver."""

    __slots__ = ("_file_system", "_gateway", "_path_class", "_uri")

    def __init__(self, uri: str, spark: Any) -> None:
        if getattr(spark, "_jvm", None) is None:
            raise InvalidArgumentError(
                f"{uri} can only be reached through the JVM of a classic Spark session",
                found=type(spark).__name__,
                hint="pass a session that was not made for Spark Connect and is not stopped",
            )
        self._uri = uri
        self._gateway = spark.sparkContext._gateway
        with translated(f"could not open {uri}"):
            hadoop = self._gateway.jvm.org.apache.hadoop.fs
            self._path_class = hadoop.Path  # kept: for each part of such a name, Java searches all jars
            self._file_system = self._open(hadoop.FileSystem, spark._jsparkSession.sessionState().newHadoopConf())

    def _open(self, file_system: Any, configuration: Any) -> Any:
        if split(self._uri)[0] == "file":
            # Without the layer that adds .crc files: they would be wrong after another program's write.
            return file_system.getLocal(configuration).getRawFileSystem()
        return file_system.get(self._path("").toUri(), configuration)

    @property
    def uri(self) -> str:
        """See Storage.uri."""
        return self._uri

    def __repr__(self) -> str:
        return f"HadoopStorage({self._uri!r})"

    def __reduce__(self) -> NoReturn:
        raise StorageError(
            f"{self._uri} cannot be sent to another process",
            found="a storage in the driver's JVM",
            hint="keep the index on an object store if Spark tasks are to read or write it",
        )

    def read(self, path: str) -> memoryview:
        """See Storage.read."""
        file = self._path(check_path(path))
        with translated(f"could not read {self._uri}/{path}"), closing(self._file_system.open(file)) as stream:
            return _read(stream, sys.maxsize)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Views:
        """See Storage.read_ranges."""
        file = self._path(check_path(path))
        check_ranges(ranges)
        if not ranges:
            return []
        with translated(f"could not read {self._uri}/{path}"), closing(self._file_system.open(file)) as stream:
            views = [_read_at(stream, offset, length) for offset, length in ranges]
        for (offset, length), view in zip(ranges, views, strict=True):
            check_length(f"{self._uri}/{path}", offset, length, len(view))
        return views

    def write(self, path: str, data: Buffers) -> None:
        """See Storage.write."""
        file = self._path(check_new_path(path))
        views = as_views(data)
        with translated(f"could not write {self._uri}/{path}"):
            self._publish(file, views, self._publisher().replace)

    def put_if_absent(self, path: str, data: Buffer) -> None:
        """See Storage.put_if_absent."""
        file = self._path(check_new_path(path))
        views = as_views(data)
        with translated(f"could not create {self._uri}/{path}"):
            self._publish(file, views, self._publisher().create)

    def prove_writable(self) -> None:
        """Raise StorageError if no file can be put, or if two writers could put the same one."""
        with translated(f"could not write to {self._uri}"):
            self._publisher()
            probe = self._path(temporary_name())
            try:
                self._fill(probe, as_views(b"lakebloom"))
            finally:
                self._file_system.delete(probe, False)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        """See Storage.list."""
        return (file for file in self._below(check_prefix(prefix)) if not is_temporary(file.path))

    def temporaries(self, prefix: str) -> Iterator[StoredFile]:
        """See Storage.temporaries."""
        return (file for file in self._below(check_prefix(prefix)) if is_temporary(file.path))

    def delete(self, path: str) -> None:
        """See Storage.delete. Empty directories stay."""
        file = self._path(check_path(path))
        with translated(f"could not delete {self._uri}/{path}"):
            status = _unless_missing(self._file_system.getFileStatus, file)
            if status is not None and status.isFile():
                self._file_system.delete(file, False)

    def _path(self, path: str) -> Any:
        # One string: Path(parent, child) would read a colon in the child as a scheme.
        return self._path_class(f"{self._uri}/{path}")

    def _publisher(self) -> Publisher:
        return publisher_for(self._uri, self._gateway, self._file_system)

    def _publish(self, file: Any, views: Views, publish: Callable[[Any, Any], None]) -> None:
        temporary = self._path_class(file.getParent(), temporary_name())
        try:
            self._fill(temporary, views)
            publish(temporary, file)
        except BaseException:
            self._file_system.delete(temporary, False)
            raise

    def _fill(self, temporary: Any, views: Views) -> None:
        with closing(self._file_system.create(temporary, False)) as stream:
            for view in views:
                for start in range(0, len(view), COPIED_BYTES):
                    stream.write(bytes(view[start : start + COPIED_BYTES]))
            if stream.hasCapability("hsync"):
                stream.hsync()

    def _below(self, prefix: str) -> Iterator[StoredFile]:
        with translated(f"could not list {self._uri}/{prefix}"):
            status = _unless_missing(self._file_system.getFileStatus, self._path(prefix))
            if status is not None and status.isDirectory():
                yield from self._walk(status.getPath(), f"{prefix}/" if prefix else "")

    def _walk(self, directory: Any, prefix: str) -> Iterator[StoredFile]:
        for status in _unless_missing(self._file_system.listStatus, directory) or ():
            path = prefix + status.getPath().getName()
            if status.isDirectory():
                yield from self._walk(status.getPath(), f"{path}/")
            elif not self._is_checksum(path):
                yield StoredFile(path, status.getLen(), status.getModificationTime())

    def _is_checksum(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        return self._uri.startswith("file:") and name.startswith(".") and name.endswith(".crc")


def _unless_missing(call: Callable[[Any], Any], path: Any) -> Any:
    """Return the result, or None if the file does not exist, or no longer does."""
    try:
        return call(path)
    except Exception as error:
        if java_class_of(error) in MISSING:
            return None
        raise


def _read_at(stream: Any, offset: int, length: int) -> memoryview:
    if length == 0:
        return memoryview(b"")
    stream.seek(offset)
    return _read(stream, length)


def _read(stream: Any, most: int) -> memoryview:
    content = bytearray()
    # readNBytes returns less only at the end of the file, and byte arrays arrive here as bytes.
    while len(content) < most and (block := stream.readNBytes(min(COPIED_BYTES, most - len(content)))):
        content += block
    return memoryview(content).toreadonly()
