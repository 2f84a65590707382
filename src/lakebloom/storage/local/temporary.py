"""Names of unfinished files.

A file is written under such a name and then renamed or linked to its final one, so that no reader sees half of it. A
crash leaves the temporary file. Listings omit these names; ``Storage.temporaries`` finds them for vacuum.

The name does not contain the target's name, which may be as long as the file system allows.
"""

from __future__ import annotations

import re
import uuid

__all__ = ["is_temporary", "temporary_name"]

_NAME = r"\.lakebloom-[0-9a-f]{32}\.tmp"


def temporary_name(digits: str = "") -> str:
    """Return a new name, or the one with these 32 hexadecimal digits. The dot hides it from Spark, too."""
    return f".lakebloom-{digits or uuid.uuid4().hex}.tmp"


def is_temporary(path: str) -> bool:
    """Tell whether the last segment of `path` is a name made by `temporary_name`."""
    return re.fullmatch(_NAME, path.rpartition("/")[2]) is not None
