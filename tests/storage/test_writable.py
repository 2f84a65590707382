"""A place where no index can be kept is refused before a build, in its own words, and nothing stays behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakebloom.errors import LocationNotWritableError
from lakebloom.storage import open_storage, require_writable
from tests.storage.conftest import BUCKET

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakebloom.storage import Storage


def test_a_good_place_stays_as_it_was(reopen: Callable[[], Storage], tmp_path: Path) -> None:
    storage = reopen()
    for _ in range(2):
        require_writable(storage)
        assert list(storage.list("")) == []
        assert list(storage.temporaries("")) == []
    storage.write("log/1", b"1")
    require_writable(storage)
    assert [file.path for file in storage.list("")] == ["log/1"]


def file_in_the_way(home: Path) -> Path:
    (home / "file").write_bytes(b"mine")
    return home / "file"


def dangling_link(home: Path) -> Path:
    (home / "link").symlink_to(home / "nowhere")
    return home / "link"


PLACES: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "a file": (file_in_the_way, "a file where a directory should be", "move that file"),
    "below a file": (lambda home: file_in_the_way(home) / "a/b", "a file where a directory should be", "another loc"),
    "a link to nowhere": (dangling_link, "", "another location"),
    "no real file system": (lambda home: type(home)("/proc/self/lakebloom/a"), "cannot be made", "another location"),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_place_that_is_none(case: str, tmp_path: Path) -> None:
    place, found, hint = PLACES[case]
    location = place(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(LocationNotWritableError) as refusal:
        require_writable(open_storage(location / "by_user"))
    assert found in refusal.value.found
    assert hint in refusal.value.hint
    assert "vacuum" not in str(refusal.value)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.usefixtures("unprivileged")
@pytest.mark.parametrize("inner", [".", "log"])
def test_a_directory_of_somebody_else(tmp_path: Path, inner: str) -> None:
    locked = tmp_path / "indexes" / inner
    locked.mkdir(parents=True)
    locked.chmod(0o500)
    with pytest.raises(LocationNotWritableError, match=r"Permission denied.*let this user write"):
        require_writable(open_storage(tmp_path / "indexes"))
    locked.chmod(0o700)
    require_writable(open_storage(tmp_path / "indexes"))


def test_a_bucket_that_is_not_there(s3_options: dict[str, str]) -> None:
    with pytest.raises(LocationNotWritableError, match="create the bucket, or choose another location") as refusal:
        require_writable(open_storage("s3://lakebloom-nowhere/indexes/by_user", s3_options))
    assert "vacuum" not in str(refusal.value)
    require_writable(open_storage(f"s3://{BUCKET}/indexes/by_user", s3_options))


def test_no_credentials(s3_options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.delenv(variable, raising=False)
    options = {key: value for key, value in s3_options.items() if "access_key" not in key} | {
        "metadata_endpoint": "http://127.0.0.1:9",
        "max_retries": "0",
    }
    with pytest.raises(LocationNotWritableError, match=r"no credentials.*AWS_ACCESS_KEY_ID"):
        require_writable(open_storage(f"s3://{BUCKET}/indexes/by_user", options))
