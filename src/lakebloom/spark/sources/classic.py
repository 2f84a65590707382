"""Finds what a DataFrame of a classic session reads, from its analysed plan in the JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom.errors import UnsupportedSourceError
from lakebloom.spark.sources.file_scan import FileScan, located, not_files
from lakebloom.storage import from_decoded
from lakebloom.tables.formats.recognise import TABLE_FORMATS, owned_by
from lakebloom.tables.listing.glob import escape, is_glob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TRANSPARENT = frozenset({"SubqueryAlias", "View", "Project"})
# Others, such as those of Delta or of a streaming sink, read the list of files from a log.
_DIRECTORY_LISTINGS = frozenset({"InMemoryFileIndex", "CatalogFileIndex"})
_PADDING = "readSidePadding"
_SEPARATOR = "\0"
"""A separator that no path or column name contains: one call to the JVM returns a whole sequence."""


def classic_scan(frame: DataFrame) -> FileScan:
    """Return the scan of a DataFrame that only reads files. Raises UnsupportedSourceError for any other."""
    plan = innermost_plan(frame)
    if _class_name(plan) != "LogicalRelation":
        _require_no_table_format(plan.table() if _class_name(plan) == "DataSourceV2Relation" else plan)
        raise not_files(plan.nodeName())
    relation = plan.relation()
    if _class_name(relation) != "HadoopFsRelation":
        _require_no_table_format(relation)
        raise not_files(_class_name(relation))
    listing = _class_name(relation.location())
    if listing not in _DIRECTORY_LISTINGS:
        _require_no_table_format(relation.location())
        raise UnsupportedSourceError(
            "this table has its own list of files, and cannot be indexed yet",
            found=f"{listing}, which lists them",
            hint="tables that keep a log of their files cannot be indexed yet",
        )
    options = _options(relation)
    roots = [from_decoded(path) for path in _texts(relation.location().rootPaths())]
    locations = tuple(escape(root) for root in roots)
    table = catalog_name = None
    if plan.catalogTable().isDefined():
        identifier = plan.catalogTable().get().identifier()
        table = identifier.unquotedString()
        catalog_name = str(identifier.database().get()), str(identifier.table())
    elif roots and is_glob(path := next((value for key, value in options.items() if key.lower() == "path"), "")):
        # Spark expanded the pattern when it listed. The index keeps the pattern: files that match later belong to it.
        locations = (located(path, roots[0]),)
    return FileScan(
        format=str(relation.fileFormat().shortName()).lower(),
        locations=locations,
        options=options,
        partition_columns=tuple(relation.partitionSchema().fieldNames()),
        table=table,
        catalog_name=catalog_name,
    )


def innermost_plan(frame: DataFrame) -> Any:
    """Return the analysed plan of a DataFrame below all that returns its columns unchanged."""
    java_frame: Any = frame._jdf
    return _innermost(java_frame.queryExecution().analyzed())


def _require_no_table_format(java_object: Any) -> None:
    """Raise UnsupportedSourceError if a class belongs to a table format; the error names the format."""
    name = str(java_object.getClass().getName())
    for word, table_format in TABLE_FORMATS.items():
        if word in name.lower().split("."):
            raise owned_by(table_format, "this source", name)


def _class_name(java_object: Any) -> str:
    # In Java, an object of Scala is a class `Name$`.
    return str(java_object.getClass().getSimpleName()).rstrip("$")


def _innermost(plan: Any) -> Any:
    """Skip the nodes that return all columns of their child unchanged."""
    while _class_name(plan) in _TRANSPARENT and _shows_everything(plan):
        plan = plan.child()
    return plan


def _shows_everything(plan: Any) -> bool:
    shown = _texts(plan.projectList() if _class_name(plan) == "Project" else plan.output())
    given = _texts(plan.child().output())
    return len(shown) == len(given) and all(map(_is_same_column, shown, given))


def _is_same_column(shown: str, given: str) -> bool:
    """Compare columns as Spark prints them: name#id. Spark wraps CHAR columns of tables to pad their values."""
    if _PADDING in shown:
        return shown.rpartition(" AS ")[2].rpartition("#")[0] == given.rpartition("#")[0]
    return shown == given


def _texts(sequence: Any) -> list[str]:
    text = str(sequence.mkString(_SEPARATOR))
    return text.split(_SEPARATOR) if text else []


def _options(relation: Any) -> dict[str, str]:
    entries = relation.options().iterator()
    found = {}
    while entries.hasNext():
        entry = entries.next()
        found[str(entry._1())] = str(entry._2())
    return found
