"""An S3 server on loopback, as the storage tests have it, and a user to whom something can be forbidden."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.storage.conftest import s3_endpoint, s3_options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["s3_endpoint", "s3_options", "unprivileged"]

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
