"""The canonical form of a location.

The canonical form is ``scheme://authority/path`` with the path **decoded**: a percent sign in it is a percent sign.
File identities are compared as strings, so every lister must produce the same form:

    given                                       function         canonical form
    /data/a b, file:/data/a b                   from_decoded     file:///data/a b
    file:///data/a%20b (input_file_name())      from_encoded     file:///data/a b
    /data/a%20b (a name with a percent sign)    from_decoded     file:///data/a%20b
    s3a://lake/x/, s3n://lake/x                 either           s3://lake/x

The text does not show whether a URI is encoded, so the caller must know. Hadoop's ``Path`` prints
decoded, Spark's ``input_file_name()`` and ``_metadata.file_path`` print encoded. Spark reads what users type as
Hadoop does, so `normalise` reads it as decoded, and normalising twice changes nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from lakebloom.errors import InvalidArgumentError

__all__ = ["from_decoded", "from_encoded", "normalise", "split", "to_local_path"]

# At least two letters, so that C: in C:/data is not a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
# Other names of the same schemes. Encryption in transit (abfss) does not change the identity of a file.
_ALIASES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}


_WITHOUT_PORTS = frozenset({"s3", "gs", "az", "abfs"})
# Signatures and tokens in the presigned URLs of S3, GCS, Azure and others.
_SIGNATURE = (  # compiled where it is needed first, which it rarely is
    r"[?&](?:sig|signature|x-amz-\w[\w-]*|x-goog-\w[\w-]*|awsaccesskeyid|googleaccessid|[\w-]*(?:token|secret|password))="
)


def normalise(location: str | os.PathLike[str]) -> str:
    """Return the canonical form of a user's URI or local path, which may be relative to the working directory.

    >>> normalise("s3a://lake/index/")
    's3://lake/index'
    """
    if isinstance(location, os.PathLike):
        return _local(str(Path.cwd() / location))
    if _SCHEME.match(location):
        return from_decoded(location)
    if not location:
        raise InvalidArgumentError("a location cannot be empty", found="''", hint="give a directory or a URI")
    return _local(f"{Path.cwd()}/{location}" if location[0] != "/" else location)


def from_decoded(uri_or_path: str) -> str:
    """Return the canonical form of an absolute path, or of a URI as Hadoop prints it.

    >>> from_decoded("file:/data/100%20sure#1")
    'file:///data/100%20sure#1'
    """
    if uri_or_path.startswith("/"):
        return _local(uri_or_path)
    return _join(*_parse(uri_or_path))


def from_encoded(uri: str) -> str:
    """Return the canonical form of a percent-encoded URI, as Spark's input_file_name() prints it.

    >>> from_encoded("file:///data/100%2520sure%231")
    'file:///data/100%20sure#1'
    """
    scheme, authority, path = _parse(uri)
    if _BAD_ESCAPE.search(path) or "?" in path or "#" in path:
        raise InvalidArgumentError(
            "this URI is not percent-encoded",
            found=_shown(uri),
            hint="use from_decoded for URIs that Hadoop prints",
        )
    # Python uses surrogateescape for file names that are not UTF-8.
    return _join(scheme, authority, unquote(path, errors="surrogateescape"))


def to_local_path(uri: str) -> str:
    """Return the local path of a canonical ``file:`` URI.

    >>> to_local_path("file:///data/100%20sure")
    '/data/100%20sure'
    """
    if uri.startswith("file:///"):  # nearly all, and many at a time
        return uri[len("file://") :]
    scheme, _, path = split(uri)
    if scheme != "file":
        raise InvalidArgumentError("only file: URIs have a local path", found=uri, hint="open it with open_storage")
    return path


def split(uri: str) -> tuple[str, str, str]:
    """Return scheme, authority and path of a canonical URI; the path is empty or starts with a slash.

    >>> split("s3://lake/a b")
    ('s3', 'lake', '/a b')
    """
    scheme, _, rest = uri.partition("://")
    authority, slash, path = rest.partition("/")
    return scheme, authority, slash + path


def _refuse_secrets(scheme: str, authority: str, path: str) -> None:
    """Raise for a location that contains a secret, because locations are stored and shown. Does not show it."""
    user_info, _, host = authority.rpartition("@")
    # A slash in a password ends the authority too early: s3://KEY:pass/word@bucket. Buckets have no ports.
    port = host.partition(":")[2]
    is_odd = [not port.isdigit(), "@" in path]
    is_cut_password = bool(port) and (any(is_odd) if scheme in _WITHOUT_PORTS else all(is_odd))
    if ":" in user_info or is_cut_password:
        raise InvalidArgumentError(
            f"a {scheme}: URI must not contain a password",
            hint="pass credentials as options or in the environment",
        )
    if "?" in path and re.search(_SIGNATURE, path, re.IGNORECASE):
        raise InvalidArgumentError(
            f"a {scheme}: URI must not contain a signature or a token",
            hint="pass it as an option, such as sas_key, or in the environment",
        )


def _parse(uri: str) -> tuple[str, str, str]:
    match = _SCHEME.match(uri)
    rest = uri[match.end() :] if match else ""
    if match is None or not rest.startswith("/"):
        raise InvalidArgumentError(
            "neither an absolute path nor a URI",
            found=_shown(uri) or "''",
            hint="write scheme://authority/path, or ./name for a local name with a colon",
        )
    authority, path = "", rest
    if rest.startswith("//"):
        authority, slash, tail = rest[2:].partition("/")
        path = slash + tail
    return match[1].lower(), authority, path


def _join(scheme: str, authority: str, path: str) -> str:
    scheme = _ALIASES.get(scheme, scheme)
    _refuse_secrets(scheme, authority, path)
    if scheme == "file":
        if authority not in {"", "localhost"}:
            raise InvalidArgumentError(
                "a file: URI must not name another host",
                found=authority,
                hint="write file:///path with three slashes",
            )
        return _local(path)
    _check_characters(path)
    return f"{scheme}://{authority}{path.rstrip('/')}"


def _local(path: str) -> str:
    """Remove what POSIX ignores. '..' is resolved in the text, as Hadoop does, not through symbolic links."""
    _check_characters(path)
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in {"", "."}:
            segments.append(segment)
    return f"file:///{'/'.join(segments)}"


def _check_characters(path: str) -> None:
    if "\x00" in path:
        raise InvalidArgumentError(
            "a path must not contain a NUL character", found=repr(path), hint="check where it comes from"
        )


def _shown(uri: str) -> str:
    # Secrets are after the question mark of a presigned URL, or before the last at sign.
    before = uri.partition("?")[0]
    user_info, at, rest = before.rpartition("@")
    return f"***@{rest}" if at and ":" in user_info else before
