"""Catalogs of pyiceberg that are open, each used by one call at a time.

pyiceberg's client of Hive has one connection, which two threads would mix up. A catalog that failed is not used again:
the next call opens it with what is configured by then, such as a new token.
"""

from __future__ import annotations

import os
import re
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lakebloom.display.secrets import remember
from lakebloom.storage.objects.redaction import StorageOptions, secrets_in_url
from lakebloom.tuning import KEPT_LOGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.catalog import Catalog

__all__ = ["CannotOpenError", "config_of", "forget_catalogs", "load_location"]

_MOST_IDLE = 8
_SECRET_KEY = re.compile(
    r"(?i)key|secret|token|passw|sas\b|signature|credential|authorization|cookie|^header\.|^auth\.(?!type$)"
)
_NO_SECRETS = frozenset({"true", "false", "none"})


class CannotOpenError(Exception):
    """A catalog could not be opened; its cause says why."""


def config_of(name: str) -> Mapping[str, Any]:
    """Return the configuration of a catalog as it is now; empty if there is none. pyiceberg reads it once.

    From now on, its secrets are in no text of lakebloom.
    """
    from pyiceberg.utils.config import Config

    found: Mapping[str, Any] = Config().get_catalog_config(name) or {}
    remember(_secrets(found))
    return StorageOptions(found)


def load_location(name: str, identifier: str) -> str | None:
    """Return where a catalog says that the newest metadata of a table is.

    Raises CannotOpenError, and whatever pyiceberg and the libraries below it raise.
    """
    idle = _idle(os.getpid(), name)
    try:
        catalog = idle.pop()
    except IndexError:
        catalog = _opened(name)
    location: str | None = catalog.load_table(identifier).metadata_location
    idle.append(catalog)
    return location


def forget_catalogs() -> None:
    """Open every catalog anew with what is configured by then."""
    _idle.cache_clear()


@lru_cache(maxsize=KEPT_LOGS)
def _idle(process: int, name: str) -> deque[Catalog]:
    """Return the open catalogs of a name that nobody uses. Connections belong to the process that opened them."""
    return deque(maxlen=_MOST_IDLE)


def _opened(name: str) -> Catalog:
    from pyiceberg.catalog import load_catalog

    try:
        catalog = load_catalog(name, **config_of(name))
    except Exception as error:
        raise CannotOpenError from error
    remember(_secrets(catalog.properties))  # the server of a REST catalog may add some
    return catalog


def _secrets(config: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in config.items():
        path = f"{above}{key}"
        if isinstance(value, dict):
            yield from _secrets(value, f"{path}.")
        if not isinstance(value, str) or value.lower() in _NO_SECRETS:
            continue
        if _SECRET_KEY.search(path):
            yield value
            yield from (part for part in value.split(":") if len(part) >= 8)  # credential = client:secret
        if "://" in value:
            yield from secrets_in_url(value)
