"""Names of unfinished files.

A file is written under such a name and then renamed or linked to its own, so that no reader sees half of it. A crash
leaves it behind. Listings leave these names out; ``Storage.temporaries`` finds them for a vacuum.

The name does not contain the target's: a target whose name is as long as the file system allows still has room.
"""

from __future__ import annotations

import re
import uuid

__all__ = ["is_temporary", "temporary_name"]

_NAME = re.compile(r"\.lakebloom-[0-9a-f]{32}\.tmp")


def temporary_name(digits: str = "") -> str:
    """A name that nobody has used, or the one with these 32 hexadecimal digits. Its dot hides it from Spark as well."""
    return f".lakebloom-{digits or uuid.uuid4().hex}.tmp"


def is_temporary(path: str) -> bool:
    """Whether the last segment of `path` is a name that `temporary_name` gives."""
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None
