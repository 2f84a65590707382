"""An S3 server on loopback, as the storage tests have it."""

from __future__ import annotations

from tests.storage.conftest import s3_endpoint, s3_options

__all__ = ["s3_endpoint", "s3_options"]
