"""Table files on S3, Google Cloud Storage, Azure and in process memory, through obstore."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING

import obstore

from lakebloom.errors import AccessDeniedError, NotFoundError
from lakebloom.storage.objects.clients import connect
from lakebloom.storage.objects.errors import translated
from lakebloom.storage.protocol import StoredFile
from lakebloom.storage.uri import split
from lakebloom.tables.file_identity import TableFile, etag_tag
from lakebloom.tables.listing import glob
from lakebloom.tables.listing.membership import Found
from lakebloom.tuning import LISTED_AT_ONCE, REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from obstore import ObjectMeta
    from obstore.store import ObjectStore

    from lakebloom.tables.formats.recognise import Owners

__all__ = ["client_and_key", "expand", "find_below", "first_below", "names_after", "stat_file"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)


def client_and_key(uri: str, options: Mapping[str, str]) -> tuple[ObjectStore, str]:
    """The client for a canonical URI, and the key of its object.

    Clients are kept, because each has its own connections: a task opens hundreds of files in the same bucket.
    """
    scheme, authority, path = split(uri)
    return _client(f"{scheme}://{authority}", tuple(sorted(options.items()))), path.strip("/")


@lru_cache(maxsize=16)
def _client(bucket_uri: str, options: tuple[tuple[str, str], ...]) -> ObjectStore:
    return connect(bucket_uri, dict(options))


def find_below(uri: str, options: Mapping[str, str]) -> list[Found]:
    """The objects below a canonical URI, or the object there. Raises NotFoundError if there is neither."""
    store, key = client_and_key(uri, options)
    with translated(f"could not list {uri}", options):
        below = [_found(meta, key) for meta in _list(store, key)]
        # A store that makes directories out of empty objects lists one of them at the key itself.
        return [found for found in below if found.path] or [_found(obstore.head(store, key), key)]


def first_below(uris: Sequence[str], options: Mapping[str, str], wanted: Callable[[str], bool]) -> list[str]:
    """The first object below each of these canonical URIs that is wanted, if there is one and it may be listed.

    Asks for all of them at once: together they take as long as one.
    """
    if not uris:
        return []
    with ThreadPoolExecutor(min(len(uris), REQUESTS)) as threads:
        found = threads.map(lambda uri: _first_below(uri, options, wanted), uris)
        return [uri for uri in found if uri is not None]


def _first_below(uri: str, options: Mapping[str, str], wanted: Callable[[str], bool]) -> str | None:
    store, key = client_and_key(uri, options)
    bucket = uri.removesuffix(key)
    try:
        with translated(f"could not list {uri}", options):
            return next((found for meta in _list(store, key) if wanted(found := bucket + meta["path"])), None)
    except (AccessDeniedError, NotFoundError):
        return None  # whoever may not look above a table cannot tell what is there


def expand(pattern: str, options: Mapping[str, str], owners: Owners | None = None) -> dict[str, list[Found]]:
    """What a pattern of Hadoop's matches: URIs of objects and prefixes, each with the objects at or below it.

    Everything below the pattern's fixed part is listed. That is one request for 1,000 objects; going down level by
    level would be one for each directory. `owners` take notice of what is no match, too.
    """
    scheme, authority, path = split(pattern)
    matches: dict[str, list[Found]] = {}
    for simple in glob.expand_braces(path):
        components = [part for part in simple.split("/") if part]
        fixed = _fixed_part(components)
        wanted = [glob.compile_component(part) for part in components[len(fixed) :]]
        base = "/".join(fixed)
        store, _ = client_and_key(pattern, options)
        with translated(f"could not list {pattern}", options):
            for meta in _list(store, base):
                if owners is not None:
                    owners.note(f"{scheme}://{authority}/{meta['path']}")
                names = _found(meta, base).path.split("/")
                if len(names) < len(wanted) or not all(p.fullmatch(n) for p, n in zip(wanted, names)):  # noqa: B905
                    continue
                root = "/".join([*fixed, *names[: len(wanted)]])
                below = matches.setdefault(f"{scheme}://{authority}/{root}", [])
                below.append(_found(meta, root))
    return {uri: list(dict.fromkeys(found)) for uri, found in matches.items()}


def _fixed_part(components: list[str]) -> list[str]:
    """The leading components that match one name only; never all of them, because the last is what is looked for."""
    fixed: list[str] = []
    for component in components[:-1]:
        literal = glob.unescape(component)
        if literal is None:
            break
        fixed.append(literal)
    return fixed


def stat_file(uri: str, options: Mapping[str, str]) -> TableFile | None:
    """The object at a canonical URI as it is now, or None if there is none."""
    store, key = client_and_key(uri, options)
    with translated(f"could not look at {uri}", options):
        try:
            meta = obstore.head(store, key)
        except FileNotFoundError:
            return None
    return file_of(uri, meta)


def file_of(uri: str, meta: ObjectMeta) -> TableFile:
    """Return the identity of the object at a canonical URI, of which the store told this."""
    return TableFile(uri, meta["size"], _mtime_ms(meta), _tag(meta))


def names_after(uri: str, start: str, options: Mapping[str, str]) -> Iterator[StoredFile]:
    """Yield the objects directly below a canonical URI whose names come behind ``start`` in the order of their bytes.

    S3, GCS and stores like them begin to list there; the others list everything, and leave out what is before.
    """
    store, key = client_and_key(uri, options)
    prefix = f"{key}/" if key else ""
    with translated(f"could not list {uri}", options):
        for batch in obstore.list(store, key or None, offset=prefix + start or None, chunk_size=LISTED_AT_ONCE):
            for meta in batch:
                name = meta["path"][len(prefix) :]
                if "/" not in name:
                    yield StoredFile(name, meta["size"], _mtime_ms(meta))


def _list(store: ObjectStore, key: str) -> Iterator[ObjectMeta]:
    for batch in obstore.list(store, key or None, chunk_size=LISTED_AT_ONCE):
        yield from batch


def _found(meta: ObjectMeta, key: str) -> Found:
    path = meta["path"]
    relative = path[len(key) + 1 :] if key else path
    return Found(relative, meta["size"], _mtime_ms(meta), _tag(meta))


def _mtime_ms(meta: ObjectMeta) -> int:
    return (meta["last_modified"] - _EPOCH) // _MILLISECOND


def _tag(meta: ObjectMeta) -> str:
    return etag_tag(meta["e_tag"])
