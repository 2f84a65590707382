"""erase-plan: where the rows of some keys are, what to run to erase them, and the proof that they are gone."""

from __future__ import annotations

import csv
import enum
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakebloom.cli.app import Session, verb
from lakebloom.cli.exit_codes import ExitCode
from lakebloom.errors import InvalidArgumentError, NotFoundError, StorageError

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebloom.index.erasure.records import ErasureReport

__all__ = ["add_to"]

_ARROW = frozenset({".arrow", ".feather", ".ipc"})
_EXAMPLES = """
lakebloom erase-plan events_by_user user-4711 user-4712
lakebloom erase-plan events_by_user --keys-from ids.txt --write-keys keys.parquet --page erasure.html
lakebloom erase-plan events_by_user --keys-from requests.csv --keys-column user_id --check --output json
"""


class Evidence(str, enum.Enum):
    """What proves that a file holds no key."""

    DATA = "data"
    INDEX = "index"


def add_to(app: typer.Typer) -> None:
    """Add the verb."""
    verb(app, "erase-plan", examples=_EXAMPLES)(erase_plan)


def erase_plan(
    session: Session,
    name: Annotated[str, typer.Argument(help="The name of the index.")],
    keys: Annotated[list[str] | None, typer.Argument(help="The keys to erase.")] = None,
    keys_from: Annotated[
        str | None,
        typer.Option(help="A file with more keys: one a line, or .parquet, .arrow or .csv; - reads lines from stdin."),
    ] = None,
    keys_column: Annotated[
        str | None, typer.Option(help="The column of the keys in such a file (default: its only column).")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="The indexed column that holds the keys, where there are several.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Prove that the keys are gone. Exits with code 4 if they are not.")
    ] = False,
    evidence: Annotated[
        Evidence, typer.Option(help="What a check trusts: the data alone, or also filters of unchanged files.")
    ] = Evidence.DATA,
    write_keys: Annotated[
        Path | None, typer.Option(help="Write the keys to this Parquet file, which the statements then read.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Also write an HTML page to this file.")] = None,
) -> None:
    """Show which files and how many rows hold some keys, in all versions that are kept, and what to run to erase them.

    Needs no Spark.
    """
    from lakebloom.index.erasure.keys import keys_of, keys_of_texts

    given = list(keys or ())
    if keys_from is None or _is_text(keys_from):
        _require_no_keys_column(keys_column)
        make_keys = partial(keys_of_texts, [*given, *(() if keys_from is None else _lines(keys_from))])
    elif given:
        raise InvalidArgumentError(
            "give the keys as arguments or in a table, not both", found=f"{len(given)} arguments and {keys_from}"
        )
    else:
        found = _column_of(Path(keys_from), keys_column)
        make_keys = partial(keys_of_texts, found) if isinstance(found, list) else partial(keys_of, found)
    lake = session.lake()
    erasure = lake._erasure(name, make_keys, column)
    report: ErasureReport
    if check:
        checked = erasure.check(evidence.value)
        report = checked
    else:
        plan = erasure.plan()
        report = plan if write_keys is None else plan.write_keys(write_keys)
    if page is not None:
        lake.report_erasure(report, page)
        session.output.note(f"page: {page}")
    session.output.text(str(report), report.as_data())
    if check and not checked.erased:
        raise typer.Exit(ExitCode.STATE)


def _is_text(keys_from: str) -> bool:
    return Path(keys_from).suffix.lower() not in {".parquet", ".csv", *_ARROW}


def _require_no_keys_column(keys_column: str | None) -> None:
    if keys_column is not None:
        raise InvalidArgumentError(
            "--keys-column names a column of a .parquet, .arrow or .csv file", found=keys_column, hint="leave it out"
        )


def _lines(keys_from: str) -> Iterator[str]:
    """Yield the keys of a text, one a line. Empty lines are left out."""
    try:
        text = sys.stdin.read() if keys_from == "-" else Path(keys_from).read_text("utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise _unreadable(keys_from, error) from error
    yield from filter(None, (line.rstrip("\r") for line in text.split("\n")))


def _column_of(path: Path, name: str | None) -> list[str] | pa.ChunkedArray:
    """Return the keys of a file with columns. Those of a CSV file are text: 007 is not 7 until the column says so."""
    import pyarrow as pa

    try:
        if path.suffix.lower() == ".csv":
            with path.open(newline="", encoding="utf-8-sig") as lines:
                rows = csv.reader(lines, strict=True)
                place = _place(path, next(rows, []), name)
                return [row[place] for row in rows if row]
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            names = pq.read_schema(path).names
            return pq.read_table(path, columns=[names[_place(path, names, name)]]).column(0)
        with pa.OSFile(str(path)) as source, pa.ipc.open_file(source) as reader:
            return reader.read_all().column(_place(path, reader.schema.names, name))
    except (OSError, UnicodeError, csv.Error, IndexError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error


def _place(path: Path, names: list[str], wanted: str | None) -> int:
    if wanted is None and len(names) == 1:
        return 0
    if wanted is not None and names.count(wanted) == 1:
        return names.index(wanted)
    raise InvalidArgumentError(
        f"name the column of {path} that holds the keys" if wanted is None else f"{path} has no single column {wanted}",
        found=", ".join(names) or "no columns",
        hint="--keys-column NAME",
    )


def _unreadable(path: object, error: Exception) -> StorageError:
    kind = NotFoundError if isinstance(error, FileNotFoundError) else StorageError
    return kind(f"cannot read keys from {path}", found=str(error), hint="one key a line, or a .parquet, .arrow or .csv")
