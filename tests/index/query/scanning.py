"""Scans as Spark's rule describes them, without Spark: a schema, settings and a predicate, sent as Java sends them."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from lakebloom.index.query.reader import Reader
from lakebloom.index.query.scans import PrunedFiles, Reading, ScanPruner
from lakebloom.spark.rule.wire import dump, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakebloom.index.catalog import Catalog
    from lakebloom.index.query.scans import Unanswered
    from lakebloom.predicate.tree import Predicate

LONG_S = 600.0
_JSON_NAMES = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}


def schema_json(types: Mapping[str, Any], defaults: Mapping[str, str] | None = None) -> str:
    """Return a schema as Spark writes it. A struct is a mapping of its fields."""
    return json.dumps(_struct(types, defaults or {}))


def _struct(types: Mapping[str, Any], defaults: Mapping[str, str]) -> dict[str, Any]:
    fields = [
        {
            "name": name,
            "type": _JSON_NAMES.get(kind, kind) if isinstance(kind, str) else _struct(kind, {}),
            "nullable": True,
            "metadata": {"EXISTS_DEFAULT": defaults[name]} if name in defaults else {},
        }
        for name, kind in types.items()
    ]
    return {"type": "struct", "fields": fields}


def reading(
    types: Mapping[str, Any],
    predicate: Predicate | None,
    *,
    defaults: Mapping[str, str] | None = None,
    session: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Reading:
    """Return how a query reads Parquet files."""
    made = Reading("parquet", schema_json(types, defaults), dict(options or {}), dict(session or {}), predicate)
    return parse(dump(made), Reading)


def scan_pruner(catalog: Catalog) -> ScanPruner:
    """Return a pruner with one reader for each index."""
    return ScanPruner(cache(lambda name: Reader(catalog.index(name))))


def skipped(answers: Iterable[PrunedFiles | Unanswered]) -> set[str]:
    """The names of the files that one of the answers lets a query skip."""
    return {name for answer in answers if isinstance(answer, PrunedFiles) for name in names_of(answer, kept=False)}


def names_of(answer: PrunedFiles, *, kept: bool) -> set[str]:
    """The names of the files that an answer keeps, or skips."""
    pairs = zip(answer.files, answer.kept[answer.files.current].tolist(), strict=True)
    return {short_name(file.uri) for file, is_kept in pairs if is_kept is kept}


def short_name(uri: str) -> str:
    return uri.rpartition("/")[2].removesuffix(".parquet")


def told(answers: Sequence[PrunedFiles | Unanswered]) -> dict[str, str]:
    """Which index answered nothing, and the reason."""
    return {answer.name: answer.reason.value for answer in answers if not isinstance(answer, PrunedFiles)}
