"""One build task over one large file, run by test_memory in a process of its own: what does it need?"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from lakebloom.index.build.plan import BuildPlan, Shard
from lakebloom.index.build.task import build_segment
from lakebloom.sbbf.sizing import auto_fpp
from lakebloom.storage import normalise
from lakebloom.tables.listing.listing import list_files
from lakebloom.tables.parquet.columns import ColumnSpec


def peak_mb() -> float:
    """The largest resident size of this process. ``ru_maxrss`` would start from that of the process that began it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main(table: Path, target: Path, granularity: str) -> dict[str, float]:
    (file,) = list_files([normalise(table)])
    units = "file" if granularity == "file" else int(granularity)
    plan = BuildPlan(
        index_uri=normalise(target),
        columns=(ColumnSpec(("k",), "bigint"),),
        granularity=units,
        fpp=auto_fpp(1 if units == "file" else 20_000_000 // int(granularity)),
        global_blocks=(32 << 20) // 32 // 5040 * 5040,
    )
    started = time.perf_counter()
    result, _ = build_segment(plan, Shard(0, (file,)))
    assert result.segment is not None
    return {
        "peak_mb": peak_mb(),
        "rows": result.segment.num_rows,
        "units": result.segment.num_units,
        "size_bytes": result.segment.size_bytes,
        "fpp": plan.fpp,
        "elapsed_s": time.perf_counter() - started,
    }


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])))  # noqa: T201
