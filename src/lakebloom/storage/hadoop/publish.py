"""Gives a finished file its name through Hadoop, with the guarantees of each file system.

    scheme    replace                             create only if absent
    hdfs      FileContext.rename, OVERWRITE       FileContext.rename, NONE: the NameNode checks and renames in one
                                                  transaction, and remembers answers to repeated calls
    file      rename(2) and fsync                 link(2) and fsync, as in `durable`
    others    refused                             refused

``FileSystem.rename`` is no alternative: on local disk it replaces silently, and on HDFS it moves the file *into* a
directory of that name. ``FileContext`` on local disk checks first and renames later. ``create(overwrite=false)``
reserves the name at once but shows the content later. Other file systems depend on their connectors, so an index
cannot be kept there; tables can.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lakebloom.errors import AlreadyExistsError, StorageError
from lakebloom.storage.hadoop.errors import java_class_of
from lakebloom.storage.local.durable import publish_new, publish_over
from lakebloom.storage.local.errors import translated

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Publisher", "publisher_for"]

_TAKEN = "org.apache.hadoop.fs.FileAlreadyExistsException"


class Publisher(Protocol):
    """Two ways to rename a finished file. Arguments are Hadoop paths in the same directory."""

    def replace(self, temporary: Any, target: Any) -> None:
        """Rename, and replace a file of that name."""
        ...

    def create(self, temporary: Any, target: Any) -> None:
        """Rename if the name is free. Raises AlreadyExistsError."""
        ...


class LocalPublisher:
    """Local disk. py4j's gateway is on loopback, so this process sees the files that the JVM writes."""

    def __init__(self, gateway: Any, file_system: Any) -> None:
        pass

    def replace(self, temporary: Any, target: Any) -> None:
        """See Publisher.replace."""
        with translated(f"could not write {target.toString()}"):
            publish_over(_local_path(temporary), _local_path(target))

    def create(self, temporary: Any, target: Any) -> None:
        """See Publisher.create."""
        with translated(f"could not create {target.toString()}"):
            publish_new(_local_path(temporary), _local_path(target))


class RenamePublisher:
    """File systems whose rename checks the target in the same step."""

    def __init__(self, gateway: Any, file_system: Any) -> None:
        hadoop = gateway.jvm.org.apache.hadoop.fs
        self._file_system = file_system
        self._context = hadoop.FileContext.getFileContext(file_system.getUri(), file_system.getConf())
        self._none = _array_of(gateway, hadoop.Options.Rename, hadoop.Options.Rename.NONE)
        self._overwrite = _array_of(gateway, hadoop.Options.Rename, hadoop.Options.Rename.OVERWRITE)

    def replace(self, temporary: Any, target: Any) -> None:
        """See Publisher.replace."""
        self._context.rename(temporary, target, self._overwrite)

    def create(self, temporary: Any, target: Any) -> None:
        """See Publisher.create."""
        try:
            self._context.rename(temporary, target, self._none)
        except Exception as error:
            # If the answer was lost, the temporary file is gone: only our own rename moves it.
            if java_class_of(error) and not self._file_system.exists(temporary):
                return
            if java_class_of(error) != _TAKEN:
                raise
            raise AlreadyExistsError(
                f"could not create {target.toString()}",
                found="a file that another writer created first",
                hint="read what the other writer stored, then try the next name",
            ) from error


_PUBLISHERS: dict[str, Callable[[Any, Any], Publisher]] = {"file": LocalPublisher, "hdfs": RenamePublisher}


def publisher_for(uri: str, gateway: Any, file_system: Any) -> Publisher:
    """Return the publisher for a canonical URI. Raises StorageError if no guarantee is known."""
    scheme = uri.partition(":")[0]
    if scheme not in _PUBLISHERS:
        raise StorageError(
            f"an index cannot be kept at {uri}",
            found=f"a {scheme}: file system, where a rename may let two writers win",
            hint="keep the index on hdfs:, s3:, gs:, abfs: or local disk; the table may stay where it is",
        )
    return _PUBLISHERS[scheme](gateway, file_system)


def _local_path(path: Any) -> Path:
    return Path(path.toUri().getPath())


def _array_of(gateway: Any, java_class: Any, element: Any) -> Any:
    array = gateway.new_array(java_class, 1)
    array[0] = element
    return array
