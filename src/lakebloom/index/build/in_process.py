"""Builds a small index in this process, because starting a Spark job would take longer.

Segments are byte for byte the same as those of tasks: both run ``build_segment`` for the same shards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.errors import BuildFailedError, LakebloomError
from lakebloom.index.build.plan import BuildPlan, BuildResult, Shard, ShardResult
from lakebloom.index.build.task import build_segment
from lakebloom.tables.file_identity import is_object
from lakebloom.tuning import OPEN_LOCAL_BYTES, OPEN_OBJECT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lakebloom.sbbf.filter import Sbbf
    from lakebloom.storage import Storage
    from lakebloom.tables.file_identity import TableFile

__all__ = ["build_here", "is_small"]


def is_small(files: Iterable[TableFile], max_bytes: int) -> bool:
    """Tell whether reading these files one after the other costs less than reading ``max_bytes``."""
    work = 0
    for file in files:
        work += file.size_bytes + (OPEN_OBJECT_BYTES if is_object(file.uri) else OPEN_LOCAL_BYTES)
        if work > max_bytes:
            return False
    return True


def build_here(
    plan: BuildPlan,
    shards: Sequence[Shard],
    storage: Storage,
    done: Callable[[Sequence[ShardResult]], None] = lambda results: None,
) -> BuildResult:
    """Write the segments one after the other. Calls ``done`` at the start and after each, with all results so far.

    Raises what ``build_segment`` raises, and BuildFailedError for unexpected errors.
    """
    results: list[ShardResult] = []
    merged: list[Sbbf] = []
    done(results)
    for shard in shards:
        try:
            result, partial = build_segment(plan, shard, storage)
        except LakebloomError:
            raise
        except Exception as error:
            raise BuildFailedError(
                "building the index failed", found=f"{type(error).__name__}: {error}", hint="report this"
            ) from error
        for i, f in enumerate(merged):
            f |= partial[i]  # in place, because the filter may be large
        merged = merged or list(partial)
        results.append(result)
        done(results)
    return BuildResult(results, merged)
