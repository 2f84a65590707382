"""Exit codes of the command line, one for each kind of error. docs/CLI.md lists them."""

from __future__ import annotations

import enum

from lakebloom import errors

__all__ = ["ExitCode", "code_of"]


class ExitCode(enum.IntEnum):
    """The exit code of a process; ``meaning`` is its line in the documentation."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        """Make a member out of its line in the list below."""
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member

    OK = 0, "done"
    UNEXPECTED = 1, "unexpected error: a bug in lakebloom or in one of its libraries"
    USAGE = 2, "invalid arguments or an invalid condition"
    NOT_FOUND = 3, "no such index, table, file or column"
    STATE = 4, "the index exists, is deleted, too large or stale, was changed meanwhile, or `--check` found keys"
    DAMAGED = 5, "an index or a filter is damaged, or `verify` found a value missing"
    STORAGE = 6, "files could not be read or written"
    UNSUPPORTED = 7, "an unsupported type, table or session, or Spark or Java is missing"
    BUILD_FAILED = 8, "the Spark job failed"
    INTERRUPTED = 130, "stopped by Ctrl-C; no partial changes remain"


# The first match decides: subclasses come before their base classes.
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
    """Return the exit code for an error."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), ExitCode.UNEXPECTED)
