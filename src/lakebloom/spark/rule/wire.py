"""Files as text for ``KnownFiles.java``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakebloom.tables.file_identity import TableFile

__all__ = ["file_lines"]


def file_lines(files: Sequence[TableFile]) -> str:
    """Return URI, size, time of change and ETag of each file, separated by tabs and ended by a zero character."""
    text = "".join(_line(file.uri, file) for file in files)
    if not _is_unicode(text):  # file names that are not UTF-8 cannot be sent: those files are never known
        text = "".join(_line(file.uri if _is_unicode(file.uri) else "", file) for file in files)
    return text


def _line(uri: str, file: TableFile) -> str:
    etag = "" if file.uri.startswith("file:") else file.tag  # Hadoop knows no inodes
    return f"{uri}\t{file.size_bytes}\t{file.mtime_ms}\t{etag}\0"


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
