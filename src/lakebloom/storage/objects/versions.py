"""Replaces an object only if it is still the version that was read (If-Match).

    GET  object                        its bytes, ETag and attributes (content type, the owner's own metadata)
    PUT  object, If-Match: ETag        refused if anybody has written it since

The PUT repeats the attributes, because it would drop them otherwise. A store that ignores If-Match is detected before,
with a key that nobody else uses, once for each bucket and process:

    PUT  probe "first"                 must be stored, with an ETag
    PUT  probe "second"                must be stored
    PUT  probe, If-Match: first's      must be refused
    DELETE probe
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import NotSupportedError, PreconditionError

from lakebloom.errors import StorageError
from lakebloom.storage.local.temporary import temporary_name
from lakebloom.storage.objects.errors import translated
from lakebloom.storage.objects.redaction import cause_of, redacted

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["ObjectVersion", "read_version", "replace_version"]

_PROVEN: set[tuple[str, frozenset[tuple[str, str]]]] = set()
_MOST_BYTES = 5 << 30
"""The limit of S3 for one request. An upload in parts cannot be conditional on every store."""
_ELSEWHERE = "embed into another target, and replace the object while nobody writes to it"


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """The version of an object that was read."""

    e_tag: str | None
    version: str | None
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def condition(self) -> Any:
        """The condition of an update."""
        return {key: value for key, value in (("e_tag", self.e_tag), ("version", self.version)) if value is not None}


def read_version(store: ObjectStore, key: str) -> tuple[memoryview, ObjectVersion]:
    """Read a whole object and its version with one request."""
    got = obstore.get(store, key)
    attributes = {str(name): str(value) for name, value in dict(got.attributes).items()}
    seen = ObjectVersion(got.meta["e_tag"], got.meta["version"], attributes)
    return memoryview(got.bytes()), seen


def replace_version(
    store: ObjectStore,
    bucket_uri: str,
    key: str,
    views: Sequence[memoryview],
    seen: ObjectVersion,
    options: Mapping[str, str],
) -> None:
    """Replace a version of an object, with its attributes.

    Raises StorageError if another writer has replaced it since, or if the store cannot tell.
    """
    shown = f"{bucket_uri}/{key}"
    size = sum(view.nbytes for view in views)
    if seen.e_tag is None or size > _MOST_BYTES:
        found = "no ETag" if seen.e_tag is None else f"{size} bytes, and at most {_MOST_BYTES} in one request"
        raise StorageError(f"{shown} cannot be replaced safely", found=found, hint=_ELSEWHERE)
    _prove(store, bucket_uri, key.rpartition("/")[0], options)
    with translated(f"could not write {shown}", options):
        try:
            obstore.put(
                store, key, list(views), mode=seen.condition, attributes=dict(seen.attributes), use_multipart=False
            )
        except PreconditionError as error:
            if _is_stored(store, key, views):
                return  # the answer to our own PUT was lost
            raise StorageError(
                f"{shown} was changed while filters were made for it",
                found="another version than the one that was read",
                hint="nothing was overwritten; try again",
            ) from cause_of(error, options)


def _is_stored(store: ObjectStore, key: str, views: Sequence[memoryview]) -> bool:
    try:
        got = obstore.get(store, key)
    except FileNotFoundError:
        return False
    if got.meta["size"] != sum(view.nbytes for view in views):
        return False
    stored = memoryview(got.bytes())
    at = 0
    for view in views:
        if stored[at : at + view.nbytes] != view:
            return False
        at += view.nbytes
    return True


def _prove(store: ObjectStore, bucket_uri: str, folder: str, options: Mapping[str, str]) -> None:
    known = bucket_uri, frozenset(options.items())
    if known in _PROVEN or bucket_uri.startswith("memory:"):
        return
    probe = f"{folder}/{temporary_name()}" if folder else temporary_name()
    with translated(f"could not find out whether {bucket_uri} honours If-Match", options):
        try:
            first = obstore.put(store, probe, b"lakebloom: first")
            obstore.put(store, probe, b"lakebloom: second")
            _require_refusal(store, bucket_uri, probe, first["e_tag"], options)
        finally:
            with suppress(Exception):
                obstore.delete(store, probe)
    _PROVEN.add(known)


def _require_refusal(
    store: ObjectStore, bucket_uri: str, probe: str, e_tag: str | None, options: Mapping[str, str]
) -> None:
    attempt = f"objects of {bucket_uri} cannot be replaced safely"
    if e_tag is None:
        raise StorageError(attempt, found="a store that gives no ETag", hint=_ELSEWHERE)
    try:
        obstore.put(store, probe, b"lakebloom: third", mode={"e_tag": e_tag}, use_multipart=False)
    except PreconditionError:
        return
    except (NotSupportedError, NotImplementedError) as error:
        found = f"a store without conditional writes ({redacted(error, options)})"
        raise StorageError(attempt, found=found, hint=_ELSEWHERE) from cause_of(error, options)
    raise StorageError(attempt, found="a store that ignores If-Match", hint=_ELSEWHERE)
