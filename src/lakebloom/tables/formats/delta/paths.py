"""Paths in a Delta log: percent-encoded once, relative to the table or absolute."""

from __future__ import annotations

import re
from urllib.parse import unquote

from lakebloom.storage.uri import from_decoded, split

__all__ = ["absolute_uri", "file_uri"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")


def file_uri(path: str, table_uri: str) -> str:
    """Return the canonical URI of a path. Two ways to encode one path give the same URI.

    >>> file_uri("k=a%2520b/part%200.parquet", "s3://lake/t"), file_uri("s3a://other/x%20y", "s3://lake/t")
    ('s3://lake/t/k=a%20b/part 0.parquet', 's3://other/x y')
    """
    if not path:
        raise ValueError("an empty path")
    if path[0] == "/" or _SCHEME.match(path):
        return absolute_uri(path, table_uri)
    # Python uses surrogateescape for file names that are not UTF-8.
    return from_decoded(f"{table_uri}/{unquote(path, errors='surrogateescape')}")


def absolute_uri(path: str, table_uri: str) -> str:
    """Return the canonical URI of an absolute path, which may lack scheme and authority: then they are the table's."""
    decoded = unquote(path, errors="surrogateescape")
    if not decoded.startswith("/"):
        return from_decoded(decoded)
    scheme, authority, _ = split(table_uri)
    return from_decoded(f"{scheme}://{authority}{decoded}")
