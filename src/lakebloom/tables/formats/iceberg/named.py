"""Which sources are Iceberg tables: a directory with metadata, a metadata file, iceberg.`path`, a name in a catalog."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from lakebloom.errors import InvalidArgumentError, UnsupportedSourceError
from lakebloom.storage.uri import normalise
from lakebloom.tables.file_identity import is_reachable
from lakebloom.tables.formats.iceberg.locate import is_metadata_file
from lakebloom.tables.formats.logs import has_delta_log, has_iceberg_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakebloom.tables.formats.iceberg.table import Source

__all__ = ["iceberg_source"]

_QUOTED = re.compile(r"iceberg\.`(?P<path>(?:[^`]|``)+)`", re.IGNORECASE)
_NAME = re.compile(r"[^./\\`]+(?:\.[^./\\`]+){2,}")


def iceberg_source(
    source: object, options: Mapping[str, str], is_table: Callable[[str], bool] = lambda name: False
) -> Source | None:
    """Return how a source names an Iceberg table; None for anything else.

    ``is_table`` tells whether a session has a table of a name, which then is meant. Raises UnsupportedSourceError for a
    path that Python cannot reach.
    """
    if not isinstance(source, (str, os.PathLike)):
        return None
    # Here and not above: most sources are no Iceberg tables.
    from lakebloom.tables.formats.iceberg.catalogs import has_catalog
    from lakebloom.tables.formats.iceberg.table import Source

    text = os.fspath(source)
    quoted = _QUOTED.fullmatch(text) if isinstance(source, str) else None
    if quoted is not None:
        text = quoted["path"].replace("``", "`")
    is_path = quoted is not None or not isinstance(source, str) or "/" in text
    if not is_path and _NAME.fullmatch(text) and not is_table(text) and has_catalog(text):
        return Source(catalog=text)
    if not is_path and (not os.path.isdir(f"{text}/metadata") or is_table(text)):  # noqa: PTH112
        return None
    try:
        uri = normalise(text)
    except InvalidArgumentError:
        return None  # whoever reads it next says what is wrong
    if not is_reachable(uri):
        if quoted is None:
            return None
        raise UnsupportedSourceError(
            f"{uri} can only be reached through Spark, and Iceberg's metadata is read without it",
            hint="use a local path, s3://, gs://, az:// or abfs://",
        )
    if is_metadata_file(uri):
        return Source(metadata=uri)
    if quoted is not None or (has_iceberg_metadata(uri, options) and not has_delta_log(uri, options)):
        return Source(directory=uri)
    return None
