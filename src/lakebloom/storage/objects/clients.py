"""Makes an obstore client from a URI and options.

Only the bucket is part of the URL that obstore parses; paths are joined by hand, because a URL parser would decode a
'%20' in the name of a file.

Options are obstore's own configuration keys (``endpoint``, ``region``, ``access_key_id`` …, with or without their
``aws_`` / ``azure_`` / ``google_`` prefix), its client options (``allow_http``, ``timeout`` …), ``max_retries`` and
``retry_timeout``. Missing options come from the environment, as in the vendors' tools.

A request that gets no answer fails: each attempt after ``timeout``, and no attempt starts later than
``retry_timeout`` after the first. obstore's default is to retry for three and a half minutes.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import obstore.store
from obstore.exceptions import BaseError

from lakebloom.errors import InvalidArgumentError
from lakebloom.storage.objects.redaction import cause_of, redacted, remember_secrets
from lakebloom.storage.uri import split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore.store import ObjectStore

__all__ = ["connect"]

_ALLOW_HTTP_VARIABLE = "AWS_ALLOW_HTTP"
# obstore takes these in another argument than the keys of the store.
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

_LIMITS = {"connect_timeout": "5s", "timeout": "30s"}
_MOST_RETRIES, _RETRY_TIMEOUT = 5, timedelta(seconds=25)
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|min)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, None: 1.0}

# All storages in this process that are opened on the same authority share one store in memory.
_MEMORY_STORES: dict[str, obstore.store.MemoryStore] = {}


def connect(uri: str, options: Mapping[str, str]) -> ObjectStore:
    """Return the client for the bucket (S3, GCS), container (Azure) or process memory of a canonical URI."""
    scheme, authority, _ = split(uri)
    if scheme == "memory":
        _refuse_options(uri, options)
        return _MEMORY_STORES.setdefault(authority, obstore.store.MemoryStore())
    if not authority:
        raise InvalidArgumentError("this URI does not name a bucket", found=uri, hint=f"write {scheme}://bucket/path")
    remember_secrets(options)
    try:
        return obstore.store.from_url(f"{scheme}://{authority}", **_arguments(options))
    except (BaseError, ValueError) as error:
        raise InvalidArgumentError(
            f"could not set up access to {scheme}://{authority}",
            found=redacted(error, options),
            hint="check the storage options against obstore's configuration keys for this kind of store",
        ) from cause_of(error, options)


def _arguments(options: Mapping[str, str]) -> dict[str, Any]:
    retries: dict[str, Any] = {"max_retries": _MOST_RETRIES, "retry_timeout": _RETRY_TIMEOUT}
    arguments: dict[str, Any] = {"config": {}, "client_options": dict(_LIMITS), "retry_config": retries}
    if allow_http := os.environ.get(_ALLOW_HTTP_VARIABLE):
        arguments["client_options"]["allow_http"] = allow_http  # otherwise obstore ignores it
    for key, value in options.items():
        name = key.lower()
        if name in _CLIENT_KEYS:
            arguments["client_options"][name] = value
        elif name == "max_retries":
            retries[name] = int(value)
        elif name == "retry_timeout":
            retries[name] = _duration(value)
        else:
            arguments["config"][key] = value
    return arguments


def _duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"retry_timeout must be a time such as 25s, not {text!r}")
    return timedelta(seconds=float(match[1]) * _UNITS[match[2]])


def _refuse_options(uri: str, options: Mapping[str, str]) -> None:
    if options:
        raise InvalidArgumentError(
            f"{uri} takes no storage options", found=", ".join(sorted(options)), hint="leave the options out"
        )
