"""Translates what pyiceberg, and the libraries below it, raise about catalogs to errors of lakebloom.

Each kind of catalog has a library of its own (requests, boto3, Thrift, SQLAlchemy), which may not be installed: their
errors are told by names and bases.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from lakebloom.errors import (
    AccessDeniedError,
    InvalidArgumentError,
    LakebloomError,
    NotFoundError,
    StorageError,
    UnsupportedSourceError,
)
from lakebloom.storage.objects.redaction import cause_of, redacted
from lakebloom.tables.formats.iceberg.catalog_clients import CannotOpenError, config_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["translated"]

_CONFIGURED = "pyiceberg finds catalogs in ~/.pyiceberg.yaml and in variables such as PYICEBERG_CATALOG__{}__URI"
_MISSING = frozenset({"NoSuchTableError", "NoSuchNamespaceError"})
_NOT_ICEBERG = frozenset({"NoSuchIcebergTableError", "NoSuchPropertyException"})
_REFUSED = frozenset(
    {
        "AuthorizationExpiredError",
        "CredentialRetrievalError",
        "ForbiddenError",
        "NoCredentialsError",
        "OAuthError",
        "PartialCredentialsError",
        "PermissionError",
        "TokenRetrievalError",
        "UnauthorizedError",
        "UnauthorizedSSOTokenError",
    }
)
_UNANSWERED = frozenset({"OperationalError", "ValidationError"})
"""A database that cannot be reached; a server that answers with something else, such as a page for people."""
_REFUSED_BY_AWS = re.compile("AccessDenied|UnrecognizedClient|Signature|Expired|InvalidClientTokenId|InvalidAccessKey")
_PIP = re.compile(r"pip install '[^']+'")


@contextmanager
def translated(catalog: str, identifier: str) -> Iterator[None]:
    """Translate all errors in this block, in which a catalog is asked for a table."""
    try:
        yield
    except LakebloomError:
        raise
    except Exception as raised:
        opening = isinstance(raised, CannotOpenError)
        error = (raised.__cause__ or raised) if opening else raised
        raise _translation(error, catalog, identifier, opening=opening) from cause_of(error, {})


def _translation(error: BaseException, catalog: str, identifier: str, *, opening: bool) -> LakebloomError:
    found, kinds = redacted(error, {}), {each.__name__ for each in type(error).__mro__}
    if pip := _missing_package(error):
        return UnsupportedSourceError(
            f"the Iceberg catalog {catalog} needs a package that is not installed", found=found, hint=pip
        )
    if kinds & _NOT_ICEBERG:
        return UnsupportedSourceError(
            f"the table {identifier} in the catalog {catalog} is not an Iceberg table",
            found=found,
            hint="give its path, or its name in a Spark session",
        )
    if kinds & _MISSING:
        return NotFoundError(
            f"there is no Iceberg table {identifier} in the catalog {catalog}",
            found=found,
            hint=f"check the name; pyiceberg --catalog {catalog} list {identifier.rpartition('.')[0]} shows the tables",
        )
    configured = _CONFIGURED.format(catalog.upper().replace("-", "_"))
    if kinds & _REFUSED or _is_refused_by_aws(error):
        return AccessDeniedError(
            f"the catalog {catalog}{_where(catalog)} refused to tell about the table {identifier}",
            found=found,
            hint=f"check the token or the credentials of the catalog, and what they may do; {configured}",
        )
    if opening and not _is_unanswered(error, kinds):
        return InvalidArgumentError(f"the Iceberg catalog {catalog} cannot be opened", found=found, hint=configured)
    return StorageError(
        f"the catalog {catalog}{_where(catalog)} did not answer for the table {identifier}",
        found=found,
        hint=f"check that it can be reached, then try again; {configured}",
    )


def _missing_package(error: BaseException) -> str:
    """Return how to install what is missing; nothing if that is not what an error is about."""
    if type(error).__name__ == "NotInstalledError":
        named = _PIP.search(str(error))
        return named[0] if named is not None else "install the package that is named"
    if isinstance(error, ImportError):
        return f"pip install {error.name}" if error.name else "install the package that is named"
    return ""


def _is_refused_by_aws(error: BaseException) -> bool:
    response = getattr(error, "response", None)
    told = response.get("Error") if isinstance(response, dict) else None
    return isinstance(told, dict) and _REFUSED_BY_AWS.search(str(told.get("Code"))) is not None


def _is_unanswered(error: BaseException, kinds: set[str]) -> bool:
    # requests raises what is both for a URL that makes no sense.
    is_network = isinstance(error, OSError) and not isinstance(error, ValueError)
    return is_network or "RESTError" in kinds or bool(kinds & _UNANSWERED)


def _where(catalog: str) -> str:
    """Return what was asked, for people. Passwords in the URI are removed from all texts of errors."""
    config: Any = {}
    with suppress(Exception):
        config = config_of(catalog)
    told = [config[key] for key in ("type", "uri") if isinstance(config.get(key), str)]
    return f" ({', '.join(told)})" if told else ""
