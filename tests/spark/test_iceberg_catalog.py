"""Spark's queries of Iceberg tables with the connector as users have it: catalogs, SQL, writes, procedures.

The connector's catalogs load on Spark 3.5 only. ``test_iceberg_metadata.py`` has what runs on newer ones.
"""

from __future__ import annotations

from typing import Any

import pyspark
import pytest

pytest.importorskip("pyiceberg", reason="needs pyiceberg")

from tests.spark.iceberg_connector import connector_jar
from tests.spark.processes import run

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(connector_jar("2.12") is None, reason="needs snowpark-connect-deps-iceberg"),
    pytest.mark.skipif(not pyspark.__version__.startswith("3.5"), reason="needs the Iceberg connector's Spark 3.5"),
]
PARTS = (
    "conditions", "writes", "versions", "columns", "partitions", "maintenance", "old_format", "plans", "oddities",
    "joins", "filters", "sources", "unknown",
)  # fmt: skip


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    home = tmp_path_factory.mktemp("iceberg")
    result: dict[str, Any] = run("tests.spark.on_iceberg_catalog", str(home), timeout_s=1800)
    return result


@pytest.mark.parametrize("part", PARTS)
def test_indexes_change_no_result(found: dict[str, Any], part: str) -> None:
    assert [name for name, case in found[part].items() if not case["same"]] == []


@pytest.mark.parametrize("part", [part for part in PARTS if part != "filters"])  # which read other files as well
def test_counts_are_those_of_the_connector(found: dict[str, Any], part: str) -> None:
    """What last_query says was read is what Iceberg's readers opened; files that are read in full have one split."""
    for name, case in found[part].items():
        if "scans" in case and all(read is not None for _, _, read in case["scans"]) and case["scans"]:
            assert sum(read for _, _, read in case["scans"]) == case["splits"], (name, case)
            assert case["splits"] <= case["splits_without"], (name, case)


SKIPPED = {
    "conditions": {
        "k = 25": (4, 1), "k = 24": (4, 0), "k <=> 25": (4, 1), "n.a = 25": (4, 1), "d = 2.25": (4, 1),
        "f = 1.25": (4, 1), "k = 25 OR s = 's3'": (4, 2), "k = CAST(25 AS BIGINT)": (4, 1), "no column": (4, 1),
        "metadata columns": (4, 1), "limit": (4, 1), "grouping sets": (4, 1), "NOT k = 25": (4, 4),
    },
    "writes": {"mor 0 k IN (7, 25)": (4, 2), "cow 1 k = 1": (1, 0), "vectors 0 k IN (7, 25)": (4, 2)},
    "versions": {
        "newest k = 25": (5, 2), "then k = 25": (4, 1), "tag k = 25": (4, 1), "branch k = 1": (3, 2),
        "branch by name k = 25": (4, 1), "option": (4, 1), "by path": (5, 2), "at k = 25": (4, 1),
        "as-of-timestamp": (4, 1),
    },
    "columns": {
        "renamed: key = 25": (4, 1), "added: k = 25": (4, 4), "filled: key = 25": (4, 1), "widened: key = 25": (4, 1),
        "widened: d = 2.25": (4, 1), "widened: f = 1.25": (4, 1), "widened: n.a = 25": (4, 1),
        "again: s = 's11'": (6, 6), "leaf: n.c = 25": (4, 1), "case: key = 25": (4, 1),
    },
    "partitions": {"bucket(4, k): k = 25": (3, 1), "p: k = 25": (12, 1), "p: k = 25 AND p = 1": (4, 1)},
    "maintenance": {
        "deleted: k = 25": (6, 1), "rolled back: k = 25": (6, 1), "rewritten: k = 25": (1, 1),
        "expired: k = 25": (3, 1), "created again: k = 25": (4, 4),
    },
    "old_format": {"v1": (4, 1), "upgraded": (5, 2), "upgraded and refreshed": (5, 1), "merged manifests": (5, 4)},
    "plans": {"spark.sql.iceberg.data-planning-mode=distributed": (4, 1), "window": (4, 1), "grouped true": (12, 2)},
    "oddities": {
        "paths 3": (6, 1), "mixed k = 25": (6, 3), "taken over": (4, 1), "taken over again 72": (4, 4),
        "UTC n = TIMESTAMP_NTZ '2024-01-01 07:00:00'": (4, 1),
    },
    "joins": {
        "keys": (4, 1), "keys and a condition": (4, 1), "keys of a struct": (4, 1), "values": (4, 1), "in": (4, 1),
        "one value": (4, 1), "right": (4, 1), "anti": (4, 1), "nulls": (4, 1), "grouped": (4, 1), "all rows": (4, 4),
        "no index": (4, 4), "cached": (4, 4), "prune_join above": (4, 1), "deleted and new": (5, 2), "then": (4, 1),
        "renamed": (5, 2),
    },
    "filters": {},
    "sources": {"ice query": (3, 1), "hive query": (3, 1)},
    "unknown": {"all there": (4, 1)},
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_files_are_skipped(found: dict[str, Any], part: str) -> None:
    """The first number is what Iceberg's own planning left."""
    counts = {name: tuple(found[part][name]["scans"][0][:2]) for name in SKIPPED[part]}
    assert counts == SKIPPED[part]
    for name, (files, kept) in counts.items():
        assert found[part][name]["explained"][0] == [files, files - kept], name


def test_several_scans_of_a_query_skip_their_own_files(found: dict[str, Any]) -> None:
    plans = found["plans"]
    assert plans["with all"]["scans"] == [[4, 1, 1], [4, 4, 4]]
    assert plans["self-join"]["scans"] == [[4, 1, 1], [2, 1, 1]]
    assert plans["pruned at run time, adaptive true"]["scans"] == [[12, 3, 1], [4, 1, 1]]
    assert found["versions"]["both"]["scans"] == [[4, 1, 1], [5, 2, 2]]
    assert found["oddities"]["two lakes"]["splits"] == 1
    assert found["oddities"]["another session"]["rows"] == 1


def test_what_is_no_read_is_left_alone(found: dict[str, Any]) -> None:
    left = {
        name: case["reasons"] for name, case in found["versions"].items() if case["reasons"] == [["UNSUPPORTED_TABLE"]]
    }
    assert {"incremental", "changelog", "metadata files", "metadata files where", "metadata snapshots"} <= set(left)
    writes = {name: case["read"] for name, case in found["writes"].items() if "read" in case}
    for mode in ("mor", "vectors"):
        for number in (0, 2, 3):  # DELETE and UPDATE: Iceberg's bounds decide alone
            assert all(files == kept for files, kept in writes[f"{mode} write {number}"]), writes
            assert writes[f"{mode} write {number}"], writes


def test_joins_that_skip_nothing_say_why(found: dict[str, Any]) -> None:
    reasons = {name: case["unpruned"][0] for name, case in found["joins"].items() if "unpruned" in case}
    assert {name: reasons[name] for name in ("all rows", "full", "computed", "limited", "cached")} == {
        "all rows": ["JOIN_NOT_SAFE"],
        "full": ["JOIN_NOT_SAFE"],
        "computed": ["KEY_COMPUTED"],
        "limited": ["NEEDS_ALL_ROWS"],
        "cached": ["KEYS_AT_RUN_TIME"],
    }
    assert set(reasons["table"]) == {"KEYS_AT_RUN_TIME"}
    assert reasons["no index"] == []


def test_a_join_filter_knows_every_file_that_is_read(found: dict[str, Any]) -> None:
    cases = {name: case for name, case in found["filters"].items() if "filters" in case}
    left = {name: [reason for side, reason in case["filters"] if side == "left"] for name, case in cases.items()}
    filtered = [name for name, reasons in left.items() if reasons == ["filtered"]]
    assert filtered == [
        "inner", "text", "semi", "condition", "deleted", "new file not read", "then", "refreshed", "renamed",
        "rewritten and refreshed",
    ]  # fmt: skip
    for name in filtered:
        ((rows, passed),) = cases[name]["passed"]
        assert passed < rows / 10 or rows <= 100, name
    assert {
        name: left[name] for name in ("left", "anti", "new file", "rewritten", "old files", "another", "widened")
    } == {
        "left": ["JOIN_NOT_SAFE"],
        "anti": ["JOIN_NOT_SAFE"],
        "new file": ["STALE_FILTER"],
        "rewritten": ["STALE_FILTER"],
        "old files": ["STALE_FILTER"],
        "another": ["READ_DIFFERS"],
        "widened": [],
    }


def test_sources_are_found_again_by_who_knows_their_newest_version(found: dict[str, Any]) -> None:
    """A directory of Hadoop's catalog tells; tables of any other catalog are asked for through the session."""
    ways = ("name", "short name", "table", "format", "alias", "view")
    sources = found["sources"]
    assert all(sources[f"ice {way}"]["owner"] is None for way in (*ways, "path"))
    assert all(sources[f"ice {way}"]["place"] == "ware house/db/a table" for way in (*ways, "path"))
    assert all(sources[f"hive {way}"]["owner"] == ["hive", "db", "a_table"] for way in ways)
    assert sources["erasure"]["table"] == "`hive`.`db`.`t`"
    for owner in ("ice", "hive"):
        assert sources[f"{owner} beside"]["cached"] == 30  # what the session's own queries read does not change
        assert "NOT_FOUND" in sources[f"{owner} dropped"]["error"]
    assert sources["ice beside"]["without a session"] == "no error"
    for fact in ("without a session", "status"):
        assert "only the catalog hive of a Spark session" in sources["hive beside"][fact]


@pytest.mark.parametrize(("part", "reason"), [
    ("filter", "Filter in its plan"), ("projection", "Project in its plan"), ("renamed", "Project in its plan"),
    ("snapshot", "the snapshot "), ("tag", "the snapshot "), ("option", "the option snapshot-id"),
    ("option of a format", "the snapshot "), ("time", "the option as-of-timestamp"),
    ("appended", "the option start-snapshot-id"), ("metadata", "a table of metadata"), ("no table", "NOT_FOUND"),
])  # fmt: skip
def test_parts_of_a_table_are_no_sources(found: dict[str, Any], part: str, reason: str) -> None:
    for owner in ("ice", "hive"):
        assert reason in found["sources"][f"{owner} not {part}"]["error"]


def test_a_connector_that_lacks_something_reads_all(found: dict[str, Any]) -> None:
    """And explain says that the table cannot be handled, or what failed."""
    lacking = {name: case for name, case in found["unknown"].items() if name != "all there"}
    assert len(lacking) > 5
    for name, case in lacking.items():
        assert (case["splits"], case["splits_without"]) == (4, 4), (name, case)
        assert case["reasons"][0][0] in ("UNSUPPORTED_TABLE", "INDEX_UNREADABLE"), (name, case)


def test_what_was_collected_once_stays(found: dict[str, Any]) -> None:
    assert found["plans"]["collected twice"]["rows"] == [1, 1, 40, 1, 1, 40, 2, 2, 41]
    assert found["plans"]["shared frame"] == {"same": True, "rows": 40, "splits": 1}
