"""The lines of the page: each a Spark, with the tests that run on it, by areas."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ALL", "AREAS", "HOME", "LEFT_OUT", "PAGE", "PYTHON", "ROOT", "TARGETS", "Target", "chosen", "test_files"]

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".compat"
PAGE = ROOT / "docs" / "COMPATIBILITY.md"
PYTHON = "3.11"
"""The one that pyspark 3.5 and 4.3 have in common."""
CLIENT_TESTS = ("tests/spark/test_connect.py",)
AREAS = {
    "queries": ("tests/spark/skipping", "tests/spark/test_skipping_smoke.py", "tests/spark/test_old_plans.py"),
    "Delta tables, contract tests": ("tests/spark/test_delta_contract.py",),
    "Delta tables, with Delta's jar": ("tests/spark/test_delta_jar.py",),
    "Iceberg tables": (
        "tests/spark/test_iceberg_catalog.py",
        "tests/spark/test_iceberg_metadata.py",
        "tests/spark/test_iceberg_random.py",
    ),
    "predicates and settings": (
        "tests/spark/test_comparisons.py",
        "tests/spark/test_conf.py",
        "tests/hints/test_reasons.py",
    ),
    "joins": (
        "tests/spark/test_join_equality.py",
        "tests/spark/test_joins.py",
        "tests/spark/test_partners.py",
        "tests/spark/rule",
    ),
    "explain": ("tests/spark/test_explain.py", "tests/spark/test_claims.py"),
    "building, formats": ("tests/spark/build", "tests/spark/test_lake.py", "tests/spark/test_operations.py"),
    "types": (
        "tests/tables/parquet/test_types.py",
        "tests/tables/parquet/test_calendars.py",
        "tests/tables/parquet/test_columns.py",
        "tests/tables/parquet/test_inferred_schema.py",
        "tests/tables/parquet/test_pages.py",
        "tests/tables/parquet/test_spark.py",
        "tests/tables/test_columns.py",
    ),
    "tables and catalogs": (
        "tests/spark/sources",
        "tests/spark/test_versions.py",
        "tests/tables/listing/test_glob.py",
        "tests/tables/listing/test_listing.py",
        "tests/tables/listing/test_partitions.py",
        "tests/tables/test_file_identity.py",
    ),
    "SQL": ("tests/spark/test_sql.py", "tests/spark/test_table_functions.py"),
    "filters in files": (
        "tests/spark/test_embed.py",
        "tests/parquet/test_embed_judges.py",
        "tests/parquet/test_might_contain_spark.py",
        "tests/parquet/test_encrypted_spark.py",
    ),
    "Lance, other engines": ("tests/spark/test_lance.py", "tests/spark/test_engines.py"),
    "upkeep": (
        "tests/spark/test_auto_refresh.py",
        "tests/spark/test_close.py",
        "tests/spark/test_repair.py",
        "tests/spark/test_column_sampling.py",
        "tests/spark/test_error_cause.py",
        "tests/spark/test_interruptible.py",
        "tests/spark/test_merge.py",
        "tests/spark/test_session_state.py",
    ),
    "storage, command line": (
        "tests/storage/hadoop",
        "tests/storage/test_uri.py",
        "tests/index/laws/test_permissions.py",
        "tests/cli/test_logged_tables.py",
        "tests/cli/test_spark_verbs.py",
    ),
    "cluster": ("tests/spark/test_cluster.py",),
    "data source": ("tests/spark/data_source",),
    "Spark Connect": CLIENT_TESTS,
}
ALL = tuple(path for paths in AREAS.values() for path in paths)
LEFT_OUT = ("tests/spark/test_docs.py",)
"""Tests with Spark that run on the newest one only: the documentation shows what that has."""


@dataclass(frozen=True)
class Target:
    """One line of the page."""

    package: str
    version: str
    tests: tuple[str, ...] = ALL
    server: str | None = None
    """The version whose Connect server a client asks."""
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the line is called, and the folder of its environment."""
        return self.version if self.package == "pyspark" else f"{self.package}-{self.version}"


SOCKETS = ("-W", "ignore:unclosed <socket:ResourceWarning")
"""Up to 4.1 pyspark leaves the sockets of collect() to the garbage collector."""
DISTUTILS = ("-W", "ignore:The distutils package is deprecated:DeprecationWarning")
"""pyspark 3.5 imports them, of which Python 3.11 warns."""
TARGETS = (
    Target("pyspark", "3.5.9", settings=(*SOCKETS, *DISTUTILS)),
    Target("pyspark", "4.0.5", settings=SOCKETS),
    Target("pyspark", "4.1.4", settings=SOCKETS),
    Target("pyspark", "4.2.1"),
    Target("pyspark", "4.3.0"),
    Target("pyspark-client", "4.0.4", CLIENT_TESTS, server="4.0.5"),
    Target("pyspark-client", "4.2.0", CLIENT_TESTS, server="4.2.1"),
)


def test_files(paths: tuple[str, ...]) -> list[str]:
    """Return the files of tests below some paths, in order."""
    found = []
    for path in paths:
        below = sorted((ROOT / path).rglob("test_*.py")) if (ROOT / path).is_dir() else [ROOT / path]
        found += [str(file.relative_to(ROOT)) for file in below]
    return found


def chosen(names: list[str]) -> list[Target]:
    """Return the lines with these names, or all whose version begins so."""
    found = [each for each in TARGETS if any(name in (each.name, each.version) for name in names)]
    found = found or [each for each in TARGETS if any(each.version.startswith(name) for name in names)]
    if names and not found:
        sys.exit(f"{' '.join(names)}: there are {', '.join(each.name for each in TARGETS)}")
    return found or list(TARGETS)
