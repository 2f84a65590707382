"""Tables by their names in catalogs that pyiceberg knows: SQL, REST, Hive, Glue and others, as it is configured."""

from __future__ import annotations

from lakebloom.errors import UnsupportedSourceError
from lakebloom.storage.uri import from_decoded
from lakebloom.tables.formats.iceberg.catalog_clients import config_of, forget_catalogs, load_location
from lakebloom.tables.formats.iceberg.catalog_errors import translated
from lakebloom.tables.formats.iceberg.library import require_pyiceberg
from lakebloom.timeout import within

__all__ = ["forget_catalogs", "has_catalog", "metadata_of", "metadata_without_session"]

_LIMIT_S = 30.0
"""How long a catalog may take, as long as a request to an object store. pyiceberg waits for ever for REST and Hive."""


def has_catalog(name: str) -> bool:
    """Tell whether pyiceberg is installed and configured for the catalog of a table's name. Asks no catalog."""
    catalog = name.partition(".")[0]
    if name.count(".") < 2 or not catalog:
        return False
    try:
        return bool(config_of(catalog))
    except Exception:  # not installed; or the configuration makes no sense, which is reported by who uses it
        return False


def metadata_of(name: str) -> str:
    """Return where the newest metadata of a table is.

    Raises NotFoundError for a table that is not there, UnsupportedSourceError for one that is not of Iceberg and for a
    catalog whose packages are not installed, InvalidArgumentError for a catalog that is not configured,
    AccessDeniedError for one that refuses, and StorageError for one that does not answer.
    """
    require_pyiceberg()
    catalog, _, identifier = name.partition(".")
    with translated(catalog, identifier):
        found = within(_LIMIT_S, lambda: load_location(catalog, identifier))
    if not found:
        raise UnsupportedSourceError(
            f"the catalog {catalog} does not tell where the metadata of the Iceberg table {identifier} is",
            found="an answer without metadata-location",
            hint="name the table by its path or its metadata file",
        )
    return from_decoded(found)


def metadata_without_session(name: tuple[str, ...]) -> str:
    """Return where the newest metadata of a table of Spark's session is, if pyiceberg has a catalog of the same name.

    Raises UnsupportedSourceError where only a session can be asked, and the errors of ``metadata_of``.
    """
    joined = ".".join(name)
    if not any("." in part for part in name) and has_catalog(joined):
        return metadata_of(joined)
    raise UnsupportedSourceError(
        f"only the catalog {name[0]} of a Spark session knows the newest version of the Iceberg table {joined}",
        found="no Spark session",
        hint=f"use Lakebloom(spark, ...) with a session that has this catalog; or configure a catalog {name[0]} for "
        "pyiceberg, which is then asked without Spark",
    )
