"""Many processes commit to one log at once: as many versions as successes, and nothing is lost."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakebloom.storage import open_storage
from lakebloom.store.log import Log
from tests.index.writers import race
from tests.storage.conftest import BUCKET, s3_endpoint, s3_options  # noqa: F401  (fixtures)
from tests.store.examples import entry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WRITERS, COMMITS, COMMITS_ON_S3 = 8, 50, 20


def assert_nothing_lost(uri: str, options: Mapping[str, str], won: list[list[int]], commits: int) -> None:
    log = Log(open_storage(uri, options), "i")
    taken = sorted(version for versions in won for version in versions)
    assert taken == list(range(2, 2 + len(won) * commits)), "each success is a version of its own"
    assert log.versions() == [1, *taken]
    assert log.newest().summary == {f"writer {writer}": commits for writer in range(len(won))}
    for writer, versions in enumerate(won):
        for count, version in enumerate(versions, start=1):
            assert log.read(version).summary[f"writer {writer}"] == count, "built on everything before it"


@pytest.mark.slow
def test_processes_on_local_disk(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/i"
    Log(open_storage(uri), "i").create(entry())
    assert_nothing_lost(uri, {}, race(uri, {}, WRITERS, COMMITS), COMMITS)


@pytest.mark.slow
def test_processes_on_s3(s3_options: dict[str, str]) -> None:  # noqa: F811
    uri = f"s3://{BUCKET}/{uuid.uuid4().hex}/i"
    Log(open_storage(uri, s3_options), "i").create(entry())
    assert_nothing_lost(uri, s3_options, race(uri, s3_options, WRITERS, COMMITS_ON_S3), COMMITS_ON_S3)
