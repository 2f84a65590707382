"""Loads pyiceberg when it is needed. It reads manifests, and knows catalogs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakebloom.errors import DataFileError, LakebloomError, UnsupportedSourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["reading_metadata", "require_pyiceberg"]


def require_pyiceberg() -> None:
    """Raise UnsupportedSourceError if pyiceberg is not installed."""
    try:
        import pyiceberg  # noqa: F401
    except ImportError as error:
        raise UnsupportedSourceError(
            "Iceberg tables need the package pyiceberg",
            found=str(error),
            hint="pip install 'lakebloom[iceberg]'",
        ) from error


@contextmanager
def reading_metadata(uri: str) -> Iterator[None]:
    """Raise what a damaged file of a table's metadata makes its reader raise as DataFileError."""
    try:
        yield
    except LakebloomError:
        raise
    except Exception as error:  # pyiceberg has no errors of its own for damaged Avro
        found = (str(error) or type(error).__name__).partition("\n")[0]
        raise DataFileError(
            f"could not read {uri}, a file of an Iceberg table's metadata",
            found=found,
            hint="check that the file is complete; query the table with its engine to see whether it can read it",
        ) from error
