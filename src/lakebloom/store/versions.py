"""What is said of an index in another version of the format."""

from __future__ import annotations

from lakebloom.errors import UnknownFormatError
from lakebloom.store.records import FORMAT_VERSION

__all__ = ["unknown_format"]


def unknown_format(path: str, found: str) -> UnknownFormatError:
    """Return the error for a file of another version.

    >>> unknown_format("log/1.json", "1").hint
    'it was written by an earlier version: create it again; until then queries read all files'
    """
    is_earlier = found.isdigit() and int(found) < FORMAT_VERSION
    remedy = "it was written by an earlier version: create it again" if is_earlier else "upgrade lakebloom"
    return UnknownFormatError(
        f"cannot read {path}: this version of lakebloom reads format {FORMAT_VERSION}",
        found=f"format {found}",
        hint=f"{remedy}; until then queries read all files",
    )
