"""A directory of Parquet files as a table, without Spark: for advice on its columns and the price of an index."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lakebloom.errors import InvalidArgumentError, NoFilesError, UnsupportedSourceError
from lakebloom.index.current_table import delta_record, iceberg_record, logged_table
from lakebloom.storage.uri import normalise
from lakebloom.store.records import TableRecord
from lakebloom.tables.file_identity import is_reachable
from lakebloom.tables.formats.iceberg.named import iceberg_source
from lakebloom.tables.formats.logs import has_delta_log
from lakebloom.tables.listing.glob import escape
from lakebloom.tables.listing.listing import list_files
from lakebloom.tables.listing.partitions import partition_names
from lakebloom.tables.parquet.footer import read_arrow_footer
from lakebloom.tables.parquet.inferred_schema import inferred_schema
from lakebloom.tables.parquet.open import open_source, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakebloom.display.progress import Progress
    from lakebloom.index.build.plan import BuildPlan, BuildResult, Shard
    from lakebloom.index.current_table import CurrentTable
    from lakebloom.tables.file_identity import TableFile

__all__ = ["ParquetDirectory", "parquet_source"]


def parquet_source(source: object, options: Mapping[str, str]) -> TableRecord:
    """Return the record of a directory of Parquet files, or of one file, whose schema is that of its first file.

    A Delta table is what its log says, an Iceberg table what its metadata says.

    Raises NoFilesError, DataFileError, InvalidArgumentError or UnsupportedSourceError.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidArgumentError(
            "without Spark, the table must be a path to Parquet files",
            found=type(source).__name__,
            hint="pass a path, or use Lakebloom(spark, ...) for DataFrames and tables of a catalog",
        )
    text = os.fspath(source)
    iceberg = iceberg_source(source, options)
    if iceberg is not None:
        return iceberg_record(iceberg, options)
    location = normalise(escape(text) if os.path.exists(text) else text)  # noqa: PTH110
    if not is_reachable(location):
        raise UnsupportedSourceError(
            f"{location} can only be reached through Spark", hint="use Lakebloom(spark, ...) instead"
        )
    literal = normalise(text)
    if is_reachable(literal) and has_delta_log(literal, options):
        return delta_record(literal, options)
    files = list_files([location], options)
    if not files:
        raise NoFilesError("there is nothing to sample", found=f"no files in {location}", hint="check the path")
    names = partition_names(files[0].uri, [location])
    with reading(files[0].uri), open_source(files[0].uri, options) as opened:
        schema = inferred_schema(read_arrow_footer(files[0].uri, opened).metadata, names)
    return TableRecord(format="parquet", locations=(location,), schema_json=schema.json, partition_columns=names)


class ParquetDirectory:
    """A builder without Spark, for planning only: it lists the table's files and builds nothing."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def table(self, record: TableRecord) -> CurrentTable:
        """Return the table, which is a path; one with a log in its newest version."""
        return logged_table(record, self._options)

    def list_files(self, table: CurrentTable) -> Sequence[TableFile]:
        """Return the table's files as they are now."""
        return table.list_files(self._options)

    def parallelism(self) -> int:
        """Return how many tasks run at once."""
        return os.cpu_count() or 1

    def build(
        self,
        plan: BuildPlan,
        table: TableRecord,
        shards: Sequence[Shard],
        progress: Callable[[Progress], None] | None,
    ) -> BuildResult:
        """Raise UnsupportedSourceError."""
        raise UnsupportedSourceError(
            "building an index needs Spark",
            found="a Lakebloom without a session",
            hint="use Lakebloom(spark, location=...) to create and refresh",
        )
