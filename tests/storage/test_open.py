"""Which backend a location gets, and what opening it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lakebloom.errors import InvalidArgumentError
from lakebloom.storage import open_storage
from lakebloom.storage.local.storage import LocalStorage


def test_paths_and_file_uris_are_local(tmp_path: object) -> None:
    assert open_storage(f"{tmp_path}/x/") == open_storage(f"file:{tmp_path}//x") == LocalStorage(f"file://{tmp_path}/x")


def test_what_nobody_knows_needs_spark() -> None:
    with pytest.raises(InvalidArgumentError, match="pass a classic Spark session"):
        open_storage("hdfs://namenode/index")


def test_something_that_is_no_classic_session_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="found str"):
        open_storage("hdfs://namenode/index", spark="spark")


@pytest.mark.parametrize(
    ("location", "hint"), [("/data", "leave them out"), ("hdfs://x/y", r"spark\.hadoop"), ("memory://x", "leave")]
)
def test_options_that_would_be_ignored_are_refused(location: str, hint: str) -> None:
    with pytest.raises(InvalidArgumentError, match=hint):
        open_storage(location, {"region": "eu"})


def test_local_storage_loads_no_other_backend() -> None:
    code = (
        "import sys; from lakebloom.storage import open_storage; open_storage('/nowhere').list('')\n"
        "print([name for name in ('obstore', 'pyspark', 'py4j', 'pyarrow', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
