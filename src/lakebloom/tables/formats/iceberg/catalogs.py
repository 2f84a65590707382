"""Tables by their names in catalogs that pyiceberg knows: SQL, REST, Hive, Glue and others, as it is configured."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lakebloom.errors import InvalidArgumentError, NotFoundError, StorageError, UnsupportedSourceError
from lakebloom.storage.uri import from_decoded
from lakebloom.tables.formats.iceberg.library import require_pyiceberg
from lakebloom.tuning import KEPT_LOGS

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["forget_catalogs", "has_catalog", "metadata_of", "metadata_without_session"]

_HINT = "pyiceberg finds catalogs in ~/.pyiceberg.yaml and in variables such as PYICEBERG_CATALOG__NAME__URI"


def has_catalog(name: str) -> bool:
    """Tell whether pyiceberg is installed and configured for the catalog of a table's name. Asks no catalog."""
    catalog = name.partition(".")[0]
    if name.count(".") < 2 or not catalog:
        return False
    try:
        return _config(catalog) is not None
    except Exception:  # not installed; or the configuration makes no sense, which is reported by who uses it
        return False


def metadata_of(name: str) -> str:
    """Return where the newest metadata of a table is.

    Raises NotFoundError for a table that is not there, InvalidArgumentError for a catalog that is not configured, and
    StorageError for one that does not answer.
    """
    require_pyiceberg()
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    catalog, _, identifier = name.partition(".")
    opened = _opened(catalog)
    try:
        found: Any = opened.load_table(identifier)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise NotFoundError(
            f"there is no Iceberg table {identifier} in the catalog {catalog}", found=str(error), hint="check the name"
        ) from error
    except Exception as error:
        raise StorageError(
            f"the catalog {catalog} did not answer for the table {identifier}",
            found=(str(error) or type(error).__name__).partition("\n")[0],
            hint=_HINT,
        ) from error
    return from_decoded(found.metadata_location)


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


def forget_catalogs() -> None:
    """Close nothing, and open every catalog anew with what is configured by then."""
    _opened.cache_clear()


@lru_cache(maxsize=KEPT_LOGS)
def _opened(name: str) -> Catalog:
    from pyiceberg.catalog import load_catalog

    try:
        return load_catalog(name, **(_config(name) or {}))
    except Exception as error:
        raise InvalidArgumentError(
            f"the Iceberg catalog {name} cannot be opened",
            found=(str(error) or type(error).__name__).partition("\n")[0],
            hint=_HINT,
        ) from error


def _config(name: str) -> dict[str, str] | None:
    """Return the configuration of a catalog as it is now: pyiceberg reads the environment once."""
    from pyiceberg.utils.config import Config

    found: Any = Config().get_catalog_config(name)
    return None if not found else dict(found)
