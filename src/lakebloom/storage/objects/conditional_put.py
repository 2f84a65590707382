"""Creating an object that must not exist yet, when answers get lost.

The PUT carries If-None-Match: *, so the store lets one writer through. What the writer hears is another matter: the
connection may break after the store has acted, and a retry (obstore's own, or ours) is then told "exists" about the
writer's own object. Taking that for a lost race would commit the same work twice. So each PUT carries a mark that only
its writer knows, and an unclear answer is settled by reading the object back:

    answer                    object read back     outcome
    created                   -                    ours
    exists, or no answer      our mark             ours
    exists, or no answer      another mark         AlreadyExistsError
    exists, or no answer      none                 once more: the PUT did not arrive, or collided with a delete

A store that drops metadata leaves no mark; then the bytes are compared.
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

OUTCOME_UNKNOWN = "it is not known whether the file was stored, or still will be: look for it before trying again"
_ATTEMPTS = 3
# Letters only: Azure allows no dashes in names of metadata, and some proxies drop headers with underscores.
_MARK = "lakebloomwriter"


class _Owner(enum.Enum):
    """Whose object a read-back found."""

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
                    found="an object that another writer put there first",
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
