"""Exit codes of the command line, one for each kind of trouble. docs/CLI.md lists them."""

from __future__ import annotations

import enum

from lakebloom import errors

__all__ = ["ExitCode", "code_of"]


class ExitCode(enum.IntEnum):
    """What a process ends with; ``meaning`` is its line in the documentation."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        """Make a member out of its line in the list below."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member

    OK = 0, "done"
    UNEXPECTED = 1, "an error that lakebloom does not know: a defect, of lakebloom or below it"
    USAGE = 2, "arguments, or a condition, that can never be right"
    NOT_FOUND = 3, "no such index, table, file or column"
    STATE = 4, "the index exists already, is deleted, too large, out of date, or was changed by another writer"
    DAMAGED = 5, "an index or a filter is damaged, or `verify` found a value missing"
    STORAGE = 6, "files could not be read or written"
    UNSUPPORTED = 7, "a type, a table or a session that cannot be used, or no Spark or Java"
    BUILD_FAILED = 8, "the Spark job failed"
    INTERRUPTED = 130, "stopped by Ctrl-C; no partial changes remain"


# The first that fits: narrower classes come first.
_CODES: dict[type[errors.LakebloomError], ExitCode] = {
    errors.IndexNotFoundError: ExitCode.NOT_FOUND,
    errors.NotFoundError: ExitCode.NOT_FOUND,
    errors.ColumnNotFoundError: ExitCode.NOT_FOUND,
    errors.NoFilesError: ExitCode.NOT_FOUND,
    errors.IndexFormatError: ExitCode.DAMAGED,
    errors.FilterFormatError: ExitCode.DAMAGED,
    errors.CorruptFooterError: ExitCode.DAMAGED,
    errors.BuildFailedError: ExitCode.BUILD_FAILED,
    errors.BloomIndexError: ExitCode.STATE,
    errors.UnsupportedSourceError: ExitCode.UNSUPPORTED,
    errors.UnsupportedSessionError: ExitCode.UNSUPPORTED,
    errors.UnsupportedTypeError: ExitCode.UNSUPPORTED,
    errors.StorageError: ExitCode.STORAGE,
    errors.SourceError: ExitCode.STORAGE,
    errors.InvalidArgumentError: ExitCode.USAGE,
    errors.ValueConversionError: ExitCode.USAGE,
    errors.FilterMismatchError: ExitCode.USAGE,
}


def code_of(error: errors.LakebloomError) -> ExitCode:
    """Return what the process ends with after this error."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), ExitCode.UNEXPECTED)
