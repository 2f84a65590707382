"""Bytes: the only layer that touches a disk, an object store or Hadoop.

``open_storage`` chooses the backend by the scheme of a location. Whatever it returns keeps the contract of
``Storage``; one test suite holds all backends to it.

    file                    LocalStorage      hard links decide which writer is first
    s3, gs, az, abfs        ObjectStorage     obstore; conditional PUTs decide
    memory                  ObjectStorage     this process only, for tests and demonstrations
    anything else           HadoopStorage     needs a classic Spark session
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.errors import InvalidArgumentError
from lakebloom.storage.buffers import Buffer, Buffers, Views
from lakebloom.storage.protocol import Storage, StoredFile
from lakebloom.storage.uri import from_decoded, from_encoded, normalise, to_local_path
from lakebloom.storage.writable import require_writable

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

__all__ = [
    "Buffer",
    "Buffers",
    "Storage",
    "StoredFile",
    "Views",
    "from_decoded",
    "from_encoded",
    "normalise",
    "open_index_storage",
    "open_storage",
    "require_single_winner",
    "require_writable",
    "to_local_path",
]

_OBJECT_SCHEMES = frozenset({"s3", "gs", "az", "abfs", "memory"})


def open_storage(
    location: str | os.PathLike[str], options: Mapping[str, str] | None = None, spark: Any = None
) -> Storage:
    """Open the storage at a local path or URI. Nothing is read or created yet.

    `options` configure an object store (see ``objects/clients.py``). `spark` is a classic session, only for schemes
    that have no other backend. Raises InvalidArgumentError for a location that cannot be opened like this.

    >>> storage = open_storage("memory://example/index")
    >>> storage.write("greeting", b"hello")
    >>> bytes(storage.read("greeting"))
    b'hello'
    """
    uri = normalise(location)
    scheme = uri.partition(":")[0]
    if scheme in _OBJECT_SCHEMES:
        # Imported here: local indexes do not need obstore.
        from lakebloom.storage.objects.storage import ObjectStorage

        return ObjectStorage(uri, options)
    if options:
        raise InvalidArgumentError(
            f"{uri} takes no storage options",
            found=", ".join(sorted(options)),
            hint="leave them out" if scheme == "file" else "set spark.hadoop.* on the session instead",
        )
    if scheme == "file":
        from lakebloom.storage.local.storage import LocalStorage

        return LocalStorage(uri)
    if spark is None:
        raise InvalidArgumentError(
            f"{uri} can only be reached through Spark",
            found=f"the scheme {scheme!r} and no session",
            hint="pass a classic Spark session, or use a local path, s3://, gs://, az:// or abfs://",
        )
    from lakebloom.storage.hadoop.storage import HadoopStorage

    return HadoopStorage(uri, spark)


def open_index_storage(uri: str, options: Mapping[str, str] | None = None, spark: Any = None) -> Storage:
    """Open the storage of one index. On local disk all its files get the permissions of its directory."""
    storage = open_storage(uri, options, spark)
    if not uri.startswith("file:"):
        return storage
    from lakebloom.storage.local.storage import LocalStorage

    return LocalStorage(storage.uri, like_base=True)


def require_single_winner(storage: Storage) -> None:
    """Raise StorageError if two writers could both commit, before a long build starts."""
    prove = getattr(storage, "prove_single_winner", None)
    if prove is not None:
        prove()
