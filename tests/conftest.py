"""What all tests share: hypothesis without deadlines, one Spark session for the whole run."""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import settings

from tests.class_archive import JAVA_OPTIONS
from tests.examples import most
from tests.quick_queries import QUICK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

settings.register_profile("lakebloom", deadline=None, max_examples=most(100))  # no test depends on time
settings.load_profile("lakebloom")

# A process has one Java process, whoever starts it: the session below, or a command that needs Spark.
# What a query leaves behind is garbage: with room for many of them it is collected less often.
os.environ["PYSPARK_SUBMIT_ARGS"] = f'--driver-java-options "{JAVA_OPTIONS} -Xms1g -Xmn400m" pyspark-shell'

_BY_FILE = pytest.StashKey[dict["Path", list[pytest.Item]]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the session, so that `make fast` leaves it out; put the files that take long first.

    Processes share the files (`make test`): what is left for the end is short, so all end at about the same time.
    """
    slow_files = set()
    for item in items:
        if _uses_spark(item):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark") or item.get_closest_marker("slow"):
            slow_files.add(item.path)
    items.sort(key=lambda item: item.path not in slow_files)  # stable: otherwise as they were found


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what each file took, the longest first, for `make test DURATIONS=1`."""
    if not os.environ.get("LAKEBLOOM_DURATIONS"):
        return
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.section("seconds of each file")
    for file, taken in seconds.most_common():
        terminalreporter.line(f"{taken:8.1f}  {file}")


@pytest.fixture(scope="session")
def warm_kernels() -> None:
    """Compile every kernel once, so that no test that uses this is the one that waits for it."""
    from lakebloom import Sbbf, hash_values
    from lakebloom.sbbf.hashing.encoding import PARQUET
    from lakebloom.sbbf.kernels.choose import load_compiled

    load_compiled()
    for kind in (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(38, 0)):
        hash_values(pa.array([1], type=kind))
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        hash_values(pa.array(["one"], type=kind), encoding=PARQUET)
    f = Sbbf(1)
    f.insert(1)
    assert 1 in f


_NOBODY = 65534


@pytest.fixture
def unprivileged(tmp_path: Path) -> Iterator[None]:
    """Stop being root, to whom nothing is forbidden, and own the temporary directory."""
    if os.geteuid() != 0:
        yield
        return
    for parent in tmp_path.parents:  # they stay open: a test of another process may be among them
        if parent.stat().st_mode & 0o011 != 0o011:
            parent.chmod(0o711)
    os.chown(tmp_path, _NOBODY, -1)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A classic session on loopback. Tests that use it are marked `spark` by the hook above."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers must find lakebloom
    builder = SparkSession.builder.master("local[2]")
    for key, value in QUICK.items():
        builder = builder.config(key, value)
    session = (
        builder.appName("lakebloom-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # No test depends on time: a busy machine must not change what is skipped.
        .config("spark.lakebloom.query.timeoutMs", "600000")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        # As Spark 4 does: Spark 3.5 refuses to write dates before 1582.
        .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
        .config("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def _module_leaves_the_session(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a module sets up for all its tests goes with the module."""
    yield from _restoring(request, any(_uses_spark(item) for item in _items_of(request)))


@pytest.fixture(autouse=True)
def _test_leaves_the_session(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test finds the shared session active and set as its module wants it, whatever ran before."""
    yield from _restoring(request, _uses_spark(request.node))


def _restoring(request: pytest.FixtureRequest, used: bool) -> Iterator[None]:
    if not used:
        yield
        return
    from tests.session_state import SessionState

    state = SessionState(request.getfixturevalue("spark"))
    yield
    state.restore()


def _uses_spark(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


def _items_of(request: pytest.FixtureRequest) -> list[pytest.Item]:
    by_file = request.config.stash.setdefault(_BY_FILE, {})
    if not by_file:
        for item in request.session.items:
            by_file.setdefault(item.path, []).append(item)
    return by_file.get(request.path, [])
