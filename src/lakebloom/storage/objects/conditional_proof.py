"""Proves that only one writer can create an object, before the first commit and once for each process.

Some servers with an S3 interface, and some proxies, ignore If-None-Match and answer 200: two writers would both
believe that they committed the same version, and one commit would be lost. So two test requests go before the first
put-if-absent to a bucket, to a key that nobody else uses:

    PUT  probe "first"     must be stored
    PUT  probe "second"    must be refused
    GET  probe             must be "first"
    DELETE probe

Only writers pay for it, once for each bucket and process. The test object has the name of an unfinished file: no
listing shows it, and vacuum removes it after a crash.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError as TakenError
from obstore.exceptions import GenericError, NotSupportedError, PreconditionError

from lakebloom.errors import StorageError
from lakebloom.storage.local.temporary import temporary_name
from lakebloom.storage.objects.conditional_put import create_object
from lakebloom.storage.objects.errors import translated
from lakebloom.storage.objects.redaction import cause_of, redacted, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore.store import ObjectStore

__all__ = ["prove_single_winner", "prove_writable"]

_PROVEN: set[tuple[str, frozenset[tuple[str, str]]]] = set()
_FIRST, _SECOND = b"lakebloom: first", b"lakebloom: second"
_NOT_IMPLEMENTED = "501 Not Implemented"
_HINT = "keep the index on a store that honours If-None-Match, on HDFS or on local disk; the table may stay where it is"


def prove_single_winner(store: ObjectStore, bucket_uri: str, base: str, options: Mapping[str, str]) -> bool:
    """Raise StorageError unless the store refuses to create an object that exists.

    Tests each bucket once in a process, and tells whether this call did.
    """
    key = bucket_uri, frozenset(options.items())
    if key in _PROVEN or bucket_uri.startswith("memory:"):
        return False
    name = _name(bucket_uri, options)
    probe = f"{base}/{temporary_name()}" if base else temporary_name()
    with translated(f"could not find out whether {name} refuses to create an object twice", options):
        try:
            _probe(store, probe, name, options)
        finally:
            # A writer without permission to delete can still commit.
            with suppress(Exception):
                obstore.delete(store, probe)
    _PROVEN.add(key)
    return True


def prove_writable(store: ObjectStore, bucket_uri: str, base: str, options: Mapping[str, str]) -> None:
    """Raise StorageError unless an object can be put below ``base``, and as ``prove_single_winner`` does."""
    if prove_single_winner(store, bucket_uri, base, options) or bucket_uri.startswith("memory:"):
        return
    probe = f"{base}/{temporary_name()}" if base else temporary_name()
    with translated(f"could not write to {_name(bucket_uri, options)}", options):
        obstore.put(store, probe, _FIRST)
        # A writer without permission to delete can still commit.
        with suppress(Exception):
            obstore.delete(store, probe)


def _probe(store: ObjectStore, probe: str, name: str, options: Mapping[str, str]) -> None:
    try:
        create_object(store, probe, memoryview(_FIRST), shown_as=f"a probe in {name}", options=options)
        obstore.put(store, probe, _SECOND, mode="create")
    except (TakenError, PreconditionError) as error:
        if bytes(obstore.get(store, probe).bytes()) != _FIRST:
            raise _refusal(name, "a store that refuses to create an object twice, but replaces it") from (
                cause_of(error, options)
            )
        return
    except (NotSupportedError, NotImplementedError, GenericError, StorageError) as error:
        if isinstance(error, (GenericError, StorageError)) and _NOT_IMPLEMENTED not in str(error):
            raise  # not reached, or not allowed: no answer to the test
        found = f"a store without conditional writes ({redacted(error, options)})"
        raise _refusal(name, found) from cause_of(error, options)
    raise _refusal(name, "a store that ignores If-None-Match: it created the same object twice")


def _refusal(name: str, found: str) -> StorageError:
    return StorageError(f"an index cannot be kept in {name}", found=found, hint=_HINT)


def _name(bucket_uri: str, options: Mapping[str, str]) -> str:
    endpoints = [value for key, value in options.items() if key.lower().endswith(("endpoint", "endpoint_url"))]
    return f"{bucket_uri} at {without_userinfo(endpoints[0])}" if endpoints else bucket_uri
