"""Settings of sessions that run hundreds of tiny queries."""

from __future__ import annotations

QUICK = {
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.openCostInBytes": "1",
    "spark.sql.ui.explainMode": "simple",
}
"""Compiling each query would take longer than all of them, and none needs two tasks. Tests of expressions that
lakebloom adds to plans have them compiled (the fixture ``compiled``)."""
