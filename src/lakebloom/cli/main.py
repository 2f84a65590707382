"""``lakebloom``: the command line. Commands have the names of the API; those that need no Spark never load it.

Each module of ``commands`` has the commands of one kind. This module puts them together, and turns every error into one
paragraph on stderr and an exit code.
"""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from lakebloom import __version__
from lakebloom.cli.app import current_output, debugging, start
from lakebloom.cli.commands import build, erase, maintain, parquet, query, report
from lakebloom.cli.error_message import ErrorMessage
from lakebloom.cli.exit_codes import ExitCode, code_of
from lakebloom.display.secrets import without_secrets
from lakebloom.display.visible import visible_lines
from lakebloom.errors import LakebloomError

__all__ = ["app", "main", "run"]

# typer exports BadParameter, but not the base class of all usage errors.
_UsageError = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

app = typer.Typer(
    name="lakebloom",
    help="Bloom-filter indexes for data lakes.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)
build.add_to(app)
query.add_to(app)
erase.add_to(app)
maintain.add_to(app)
parquet.add_to(app)
report.add_to(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lakebloom {__version__}")
        raise typer.Exit


@app.callback(epilog="Exit codes, the condition language and all JSON keys: docs/CLI.md.")
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Bloom-filter indexes for data lakes: build them with Spark, query them with or without Spark."""


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code. Never raises, except SystemExit and the like."""
    start(arguments)
    try:
        command = typer.main.get_command(app)
        code = command.main(arguments, prog_name="lakebloom", standalone_mode=False)
        return int(code) if isinstance(code, int) else ExitCode.OK
    except LakebloomError as error:
        return _shown(error, ErrorMessage.of(error), code_of(error))
    except KeyboardInterrupt as error:
        return _interrupted(error)
    except Exception as error:
        if isinstance(error, _UsageError):
            return _shown(error, _usage_message(error), ExitCode.USAGE)
        if isinstance(error, typer.Abort):
            return _interrupted(error)
        return _shown(error, ErrorMessage.unexpected(error), ExitCode.UNEXPECTED)


def run() -> None:
    """The entry point."""
    code = main(sys.argv[1:])
    if code == ExitCode.INTERRUPTED:
        current_output().error(ErrorMessage("INTERRUPTED", "stopped by Ctrl-C; no partial changes remain"))
    sys.exit(code)


def _shown(error: BaseException, message: ErrorMessage, code: ExitCode) -> ExitCode:
    if debugging():
        sys.stderr.write(visible_lines(without_secrets("".join(traceback.format_exception(error)))))
    current_output().error(message)
    return code


def _interrupted(error: BaseException) -> ExitCode:
    if debugging():
        sys.stderr.write(visible_lines(without_secrets("".join(traceback.format_exception(error)))))
    return ExitCode.INTERRUPTED


def _usage_message(error: BaseException) -> ErrorMessage:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "lakebloom"
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    return ErrorMessage("USAGE", message.replace("\n", " ").rstrip("."), hint=f"see `{command} --help`")


if __name__ == "__main__":
    run()
