"""Every error that lakebloom raises on purpose, in one tree.

    LakebloomError
    ├── InvalidArgumentError      an argument that is never valid (also a ValueError)
    │   ├── PredicateSyntaxError      a condition that cannot be parsed
    │   └── WrongCallError            a misspelt, missing or extra argument (also a TypeError)
    ├── UnsupportedTypeError      a data type that has no filter (also a TypeError)
    ├── ValueConversionError      a value that its type cannot hold (also a ValueError)
    ├── FilterMismatchError       filters of sizes that do not fit (also a ValueError)
    ├── FilterFormatError         bytes that are not a filter
    │   ├── CorruptFilterError        truncated, or of an impossible size
    │   └── UnsupportedFilterError    a valid filter of another algorithm, hash or compression
    ├── StorageError              reading, writing, listing or deleting failed
    │   ├── NotFoundError             nothing is stored there (also a FileNotFoundError)
    │   ├── AlreadyExistsError        another writer was first (also a FileExistsError)
    │   ├── AccessDeniedError         the store refused (also a PermissionError)
    │   └── LocationNotWritableError  no index can be written there
    ├── SourceError               a table that cannot be indexed
    │   ├── NoFilesError              it has no files
    │   ├── ColumnNotFoundError       it has no such column
    │   ├── DataFileError             one of its files cannot be read
    │   │   ├── NotParquetError           it is not a Parquet file, or truncated
    │   │   ├── CorruptFooterError        its footer is damaged
    │   │   └── EncryptedFileError        it needs a key
    │   └── UnsupportedSourceError    it does not read files, or in a way that an index cannot follow
    ├── UnsupportedSessionError   a Spark session that does not support the call
    └── BloomIndexError           an index that cannot do what was asked
        ├── IndexNotFoundError        there is none of this name
        ├── IndexExistsError          there is one already
        ├── IndexStateError           it is deleted, or is not deleted
        ├── IndexTooLargeError        it would be larger than allowed
        ├── StaleIndexError           it lacks unindexed files that the query needs
        ├── TableShrunkError          its table lost most of its files
        ├── BuildFailedError          the job that builds it failed
        ├── CommitConflictError       another writer changed it at the same time
        └── IndexFormatError          its files are damaged or unknown
            ├── CorruptIndexError         truncated, altered or missing
            └── UnknownFormatError        written by another version of lakebloom

Each class has a stable ``code``. Each error says what was tried (``message``), what was found (``found``) and what
to do (``hint``); its text consists of these three. Errors can be pickled, because Spark tasks send them to the driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

from lakebloom.display.secrets import without_secrets
from lakebloom.display.shortened import cut, some
from lakebloom.display.visible import visible

__all__ = [
    "AccessDeniedError",
    "AlreadyExistsError",
    "BloomIndexError",
    "BuildFailedError",
    "ColumnNotFoundError",
    "CommitConflictError",
    "CorruptFilterError",
    "CorruptFooterError",
    "CorruptIndexError",
    "DataFileError",
    "EncryptedFileError",
    "FilterFormatError",
    "FilterMismatchError",
    "IndexExistsError",
    "IndexFormatError",
    "IndexNotFoundError",
    "IndexStateError",
    "IndexTooLargeError",
    "InvalidArgumentError",
    "LakebloomError",
    "LocationNotWritableError",
    "NoFilesError",
    "NotFoundError",
    "NotParquetError",
    "PredicateSyntaxError",
    "SourceError",
    "StaleIndexError",
    "StorageError",
    "TableShrunkError",
    "UnknownFormatError",
    "UnsupportedFilterError",
    "UnsupportedSessionError",
    "UnsupportedSourceError",
    "UnsupportedTypeError",
    "ValueConversionError",
    "WrongCallError",
]


_MOST_CHARACTERS = 1000
"""Longer texts are cut: a list of files, a value of a megabyte, an HTML page from a proxy."""


class LakebloomError(Exception):
    """Base of all errors raised by lakebloom.

    >>> str(InvalidArgumentError("fpp must lie between 0 and 1", found=2.0, hint="pass fpp=0.01"))
    '[INVALID_ARGUMENT] fpp must lie between 0 and 1; found 2.0. Hint: pass fpp=0.01'
    """

    code: ClassVar[str] = "LAKEBLOOM"

    def __init__(self, message: str, *, found: object = "", hint: str = "") -> None:
        self.message = _told(message)
        self.found = _told(found if isinstance(found, str) else repr(found))
        self.hint = _told(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        found = f"; found {self._found}" if self._found else ""
        hint = f". Hint: {self.hint}" if self.hint else ""
        return visible(f"[{self.code}] {self.message}{found}{hint}")

    @property
    def _found(self) -> str:
        return self.found

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.found, self.hint))


def _told(text: str) -> str:
    """Return a text without secrets, and cut. Secrets are removed first: half of one would not be recognised."""
    return cut(without_secrets(text), _MOST_CHARACTERS)


def _rebuild(cls: type[LakebloomError], message: str, found: str, hint: str) -> LakebloomError:
    return cls(message, found=found, hint=hint)


class InvalidArgumentError(LakebloomError, ValueError):
    """An argument that is never valid, whatever the data."""

    code = "INVALID_ARGUMENT"


_AROUND = 200


class PredicateSyntaxError(InvalidArgumentError):
    """A condition that cannot be parsed; ``position`` is the character of ``text`` where the error is.

    For a long condition, ``text`` is the part around the error, and ``skipped`` the number of characters before it.
    """

    code = "PREDICATE_SYNTAX"

    def __init__(self, message: str, *, found: object = "", hint: str = "", text: str = "", position: int = 0) -> None:
        super().__init__(message, found=found, hint=hint)
        self.skipped = 0 if len(text) <= _MOST_CHARACTERS else max(0, position - _AROUND)
        self.text = text if len(text) <= _MOST_CHARACTERS else text[self.skipped : position + _AROUND]
        self.position = position - self.skipped

    @property
    def _found(self) -> str:
        before = f"the part after {self.skipped:,} characters, " if self.skipped else ""
        place = f" at character {self.position + 1} of {before}{self.text!r}" if self.text else ""
        return self.found and f"{self.found}{place}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild_syntax, (self.message, self.found, self.hint, self.text, self.position, self.skipped))


def _rebuild_syntax(
    message: str, found: str, hint: str, text: str, position: int, skipped: int = 0
) -> PredicateSyntaxError:
    error = PredicateSyntaxError(message, found=found, hint=hint, text=text, position=position)
    error.skipped = skipped
    return error


class WrongCallError(InvalidArgumentError, TypeError):
    """A call with a misspelt, missing or extra argument."""

    code = "WRONG_CALL"


class UnsupportedTypeError(LakebloomError, TypeError):
    """A data type that has no filter."""

    code = "UNSUPPORTED_TYPE"


class ValueConversionError(LakebloomError, ValueError):
    """A value that its type cannot hold without loss."""

    code = "VALUE_NOT_CONVERTIBLE"


class FilterMismatchError(LakebloomError, ValueError):
    """Filters of sizes that do not fit together."""

    code = "FILTER_MISMATCH"


class FilterFormatError(LakebloomError):
    """Bytes that are not a filter lakebloom can read."""

    code = "FILTER_FORMAT"


class CorruptFilterError(FilterFormatError):
    """A filter that is truncated, or has an impossible size."""

    code = "CORRUPT_FILTER"


class UnsupportedFilterError(FilterFormatError):
    """A valid filter of another algorithm, hash or compression."""

    code = "UNSUPPORTED_FILTER"


class StorageError(LakebloomError):
    """Reading, writing, listing or deleting failed."""

    code = "STORAGE_FAILED"


class NotFoundError(StorageError, FileNotFoundError):
    """Nothing is stored at this path."""

    code = "NOT_FOUND"


class AlreadyExistsError(StorageError, FileExistsError):
    """A put-if-absent failed: another writer was first."""

    code = "ALREADY_EXISTS"


class AccessDeniedError(StorageError, PermissionError):
    """The store refused the operation."""

    code = "ACCESS_DENIED"


class LocationNotWritableError(StorageError):
    """No index can be written to this location; checked before a build begins."""

    code = "LOCATION_NOT_WRITABLE"


class SourceError(LakebloomError):
    """A table that cannot be indexed."""

    code = "SOURCE"


class NoFilesError(SourceError):
    """The table has no files."""

    code = "NO_FILES"


class ColumnNotFoundError(SourceError):
    """The table has no such column, or several."""

    code = "UNKNOWN_COLUMN"

    @classmethod
    def among(
        cls, wanted: str, names: Sequence[str], *, where: str = "the table", below: Sequence[str] = ()
    ) -> ColumnNotFoundError:
        """Return the error for a name that is not among these. ``below`` are those inside a struct of this name.

        >>> print(ColumnNotFoundError.among("user", ["user_id", "day"]))
        [UNKNOWN_COLUMN] the table has no column user; found columns user_id, day. Hint: did you mean user_id?
        """
        import difflib

        close = difflib.get_close_matches(wanted[:_MOST_CHARACTERS], names, n=1, cutoff=0.5)
        return cls(
            f"{where} has no column {wanted}",
            found=f"columns {some(names)}" if names else "no columns",
            hint=f"did you mean {some(below or close)}?" if below or close else "name one of these" if names else "",
        )

    @classmethod
    def ambiguous(cls, wanted: str, names: Sequence[str], *, where: str = "the table") -> ColumnNotFoundError:
        """Return the error for a name that matches several columns."""
        return cls(
            f"{where} has several columns {wanted}",
            found=some(names),
            hint="give them different names; or set spark.sql.caseSensitive=true, create the index again, and use the "
            "exact name",
        )


class DataFileError(SourceError):
    """A file of the table cannot be read."""

    code = "DATA_FILE"


class NotParquetError(DataFileError):
    """The file is not a Parquet file, or it is truncated."""

    code = "NOT_PARQUET"


class CorruptFooterError(DataFileError):
    """The footer of a Parquet file is damaged."""

    code = "CORRUPT_FOOTER"


class EncryptedFileError(DataFileError):
    """The Parquet file, or a needed part of it, is encrypted, and the key is missing or wrong."""

    code = "ENCRYPTED_FILE"


class UnsupportedSourceError(SourceError):
    """The source does not read files, or reads them in a way that an index cannot follow."""

    code = "UNSUPPORTED_SOURCE"


class UnsupportedSessionError(LakebloomError):
    """The Spark session does not support the call, or there is no session."""

    code = "UNSUPPORTED_SESSION"


class BloomIndexError(LakebloomError):
    """An index that cannot do what was asked."""

    code = "INDEX"


class IndexNotFoundError(BloomIndexError):
    """There is no index of this name."""

    code = "INDEX_NOT_FOUND"


class IndexExistsError(BloomIndexError):
    """There is already an index of this name."""

    code = "INDEX_EXISTS"


class IndexStateError(BloomIndexError):
    """The index is deleted and must not be for this call, or the other way round."""

    code = "INDEX_STATE"


class IndexTooLargeError(BloomIndexError):
    """The index would be larger than allowed."""

    code = "INDEX_TOO_LARGE"


class StaleIndexError(BloomIndexError):
    """The index lacks unindexed files, and the result would be wrong without them."""

    code = "STALE_INDEX"


class TableShrunkError(BloomIndexError):
    """The table has no files any more, or lost more than half of the indexed files."""

    code = "TABLE_SHRUNK"


class BuildFailedError(BloomIndexError):
    """The job that builds an index failed."""

    code = "BUILD_FAILED"


class CommitConflictError(BloomIndexError):
    """Another writer changed the index at the same time, and the changes cannot be combined."""

    code = "COMMIT_CONFLICT"


class IndexFormatError(BloomIndexError):
    """The files of the index are damaged or unknown."""

    code = "INDEX_FORMAT"


class CorruptIndexError(IndexFormatError):
    """A file of the index is truncated, altered or missing."""

    code = "CORRUPT_INDEX"


class UnknownFormatError(IndexFormatError):
    """The index was written by another version of lakebloom, in another format."""

    code = "UNKNOWN_FORMAT_VERSION"
