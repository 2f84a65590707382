"""Loads pylance when it is needed, and translates its errors to errors of lakebloom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakebloom.errors import AccessDeniedError, LakebloomError, NotFoundError, StorageError, UnsupportedSourceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lance import LanceDataset

__all__ = ["lance_failures", "open_dataset", "require_lance"]

_NOT_FOUND = re.compile(r"not found|no such file|does not exist", re.IGNORECASE)
_DENIED = re.compile(r"permission denied|unauthorized|unauthenticated|forbidden|accessdenied", re.IGNORECASE)
_STORE = re.compile(r"generic \w+ error|error sending request|timed? ?out|connection", re.IGNORECASE)
_SOURCE_LINE = re.compile(r",? /\S+\.rs:\d+:\d+")
"""The place in Lance's source code in an error's text."""


def require_lance() -> None:
    """Raise UnsupportedSourceError if pylance is not installed."""
    try:
        import lance  # noqa: F401
    except ImportError as error:
        raise UnsupportedSourceError(
            "Lance datasets and indexes need the package pylance",
            found=str(error),
            hint="pip install 'lakebloom[lance]'",
        ) from error


@contextmanager
def lance_failures(doing: str, otherwise: type[LakebloomError], hint: str) -> Iterator[None]:
    """Translate errors of Lance to errors of lakebloom: those of storage, and ``otherwise`` for all others."""
    try:
        yield
    except LakebloomError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # Rust's, in damaged files
            raise
        found = _SOURCE_LINE.sub("", str(error)).strip().split("\n")[0] or type(error).__name__
        if _NOT_FOUND.search(found) or isinstance(error, FileNotFoundError):
            raise NotFoundError(doing, found=found, hint="check the path") from error
        if _DENIED.search(found):
            raise AccessDeniedError(doing, found=found, hint="check the credentials, or storage_options") from error
        if _STORE.search(found):
            raise StorageError(doing, found=found, hint="try again") from error
        raise otherwise(doing, found=found, hint=hint) from error


def open_dataset(
    dataset: LanceDataset | object, storage_options: Mapping[str, str] | None = None, version: int | None = None
) -> LanceDataset:
    """Return an open dataset, or open the one at a path or URI.

    Raises NotFoundError, AccessDeniedError or StorageError, and UnsupportedSourceError if it is not a dataset.
    """
    require_lance()
    import lance

    if isinstance(dataset, lance.LanceDataset):
        return dataset
    options = None if storage_options is None else dict(storage_options)
    with lance_failures(
        f"cannot open the Lance dataset {dataset}", UnsupportedSourceError, "give the path of a Lance dataset"
    ):
        return lance.dataset(str(dataset), version=version, storage_options=options)
