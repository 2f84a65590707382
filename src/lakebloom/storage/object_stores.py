"""From a URI and options to an obstore client.

Only the bucket goes into the URL that obstore parses; paths are joined to it by hand, because a URL parser would decode
a '%20' that is part of a file's name.

Options are obstore's own configuration keys (``endpoint``, ``region``, ``access_key_id`` …, with or without their
``aws_`` / ``azure_`` / ``google_`` prefix), its client options (``allow_http``, ``timeout`` …) and ``max_retries``.
What is not given is taken from the environment, as the vendors' tools do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import obstore.store
from obstore.exceptions import BaseError

from lakebloom.errors import InvalidArgumentError
from lakebloom.storage.redaction import cause_of, redacted
from lakebloom.storage.uri import split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore.store import ObjectStore

__all__ = ["connect"]

# obstore takes these in another argument than the store's own keys.
_CLIENT_KEYS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)

# Memory belongs to the process, so every storage opened on the same authority has to find the same store.
_MEMORY_STORES: dict[str, obstore.store.MemoryStore] = {}


def connect(uri: str, options: Mapping[str, str]) -> ObjectStore:
    """The client for the bucket (S3, GCS), container (Azure) or process memory that a canonical URI names."""
    scheme, authority, _ = split(uri)
    if scheme == "memory":
        _refuse_options(uri, options)
        return _MEMORY_STORES.setdefault(authority, obstore.store.MemoryStore())
    if not authority:
        raise InvalidArgumentError("this URI names no bucket", found=uri, hint=f"write {scheme}://bucket/path")
    try:
        return obstore.store.from_url(f"{scheme}://{authority}", **_arguments(options))
    except (BaseError, ValueError) as error:
        raise InvalidArgumentError(
            f"could not set up access to {scheme}://{authority}",
            found=redacted(error, options),
            hint="check the storage options against obstore's configuration keys for this kind of store",
        ) from cause_of(error, options)


def _arguments(options: Mapping[str, str]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"config": {}, "client_options": {}}
    for key, value in options.items():
        if key.lower() in _CLIENT_KEYS:
            arguments["client_options"][key.lower()] = value
        elif key.lower() == "max_retries":
            arguments["retry_config"] = {"max_retries": int(value)}
        else:
            arguments["config"][key] = value
    return arguments


def _refuse_options(uri: str, options: Mapping[str, str]) -> None:
    if options:
        raise InvalidArgumentError(
            f"{uri} takes no storage options", found=", ".join(sorted(options)), hint="leave the options out"
        )
