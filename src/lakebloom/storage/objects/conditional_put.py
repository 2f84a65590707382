"""Creates an object that must not exist yet, even if answers get lost.

The PUT has If-None-Match: *, so the store lets one writer through. But the answer may get lost: the connection may
break after the store has created the object, and a retry (obstore's, or ours) is then told "exists" about the writer's
own object. If that counted as a lost race, the same work would be committed twice. So each PUT has a mark that only
its writer knows, and the writer reads the object back after an unclear answer:

    answer                    object read back     outcome
    created                   -                    ours
    exists, or no answer      our mark             ours
    exists, or no answer      another mark         AlreadyExistsError
    exists, or no answer      none                 once more: the PUT did not arrive, or collided with a delete

If the store drops metadata, the bytes are compared instead.
"""

from __future__ import annotations

import enum
import uuid
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError as TakenError
from obstore.exceptions import GenericError, PreconditionError

from lakebloom.errors import AlreadyExistsError, StorageError
from lakebloom.storage.objects.redaction import cause_of, redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore.store import ObjectStore

__all__ = ["OUTCOME_UNKNOWN", "create_object"]

OUTCOME_UNKNOWN = "the file may or may not have been stored: look for it before trying again"
_ATTEMPTS = 3
# Letters only: Azure allows no dashes in metadata names, and some proxies drop headers with underscores.
_MARK = "lakebloomwriter"


class _Owner(enum.Enum):
    """Which writer's object was read back."""

    NOBODY = enum.auto()
    OURS = enum.auto()
    ANOTHER = enum.auto()


def create_object(store: ObjectStore, key: str, data: memoryview, *, shown_as: str, options: Mapping[str, str]) -> None:
    """Store `data` under `key` unless something is there; raises AlreadyExistsError, or what obstore raises."""
    mark = uuid.uuid4().hex
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            obstore.put(store, key, data, mode="create", attributes={_MARK: mark})
            return
        except (TakenError, PreconditionError, GenericError) as error:
            owner = _owner(store, key, mark, data)
            if owner is _Owner.OURS:
                return
            if owner is _Owner.ANOTHER:
                raise AlreadyExistsError(
                    f"could not create {shown_as}",
                    found="an object that another writer created first",
                    hint="read what the other writer stored, then try the next name",
                ) from cause_of(error, options)
            if attempt == _ATTEMPTS:
                raise StorageError(
                    f"could not create {shown_as} in {_ATTEMPTS} attempts",
                    found=redacted(error, options),
                    hint=OUTCOME_UNKNOWN,
                ) from cause_of(error, options)


def _owner(store: ObjectStore, key: str, mark: str, data: memoryview) -> _Owner:
    try:
        stored = obstore.get(store, key)
    except FileNotFoundError:
        return _Owner.NOBODY
    found = stored.attributes.get(_MARK)
    is_ours = found == mark if found is not None else memoryview(stored.bytes()) == data
    return _Owner.OURS if is_ours else _Owner.ANOTHER
