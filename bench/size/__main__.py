"""Bytes for each distinct value, at the rate that a peer's filters really have: `make bench-size`.

Each peer writes filters as it does by itself. Then ours are made for the same units and the rate that the peer's bits
have, which must not take more bytes, nor let more values through. Bytes are those in files, with all framing.
"""

from __future__ import annotations

import math
import re
import shutil
import statistics
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from bench.parameters import WORK, Size
from bench.results import Outcome, Result, main, table
from bench.session import session
from bench.size.source import UNIQUE, IntArray, Parts, absent, all_parts
from bench.size.writers import LANCE, LANCE_ROWS, Written, writers
from lakebloom import BloomIndexConfig, Lakebloom, hash_values
from lakebloom.index.catalog import Catalog
from lakebloom.index.snapshot import Snapshot
from lakebloom.sbbf import sizing

FOLDER = WORK / "size"
_NOISE = 4.0


@dataclass(frozen=True, slots=True)
class Ours:
    """Our filters for one table."""

    size_bytes: int
    unit_table_bytes: int
    passed: int
    asked: int


def build(lake: Lakebloom, folder: Path, name: str, fpp: float, granularity: int | None, asked: IntArray) -> Ours:
    """Make an index with this rate and ask it for values that are nowhere."""
    config = BloomIndexConfig(name, ["k"], fpp=fpp, granularity=granularity or "file")
    lake.create_index(str(folder), config)
    index = Catalog(lake.location).index(name)
    snapshot = Snapshot(index.storage, index.active())
    hashes = np.asarray(hash_values(asked))
    passed = tested = 0
    for segment in snapshot.segments:
        answers = segment.which(("k",), hashes, np.arange(segment.num_units))
        passed, tested = passed + int(answers.sum()), tested + answers.size
    records = [segment.record for segment in snapshot.segments]
    tiles = sum(tile.size_bytes for record in records for tile in record.tiles)
    return Ours(tiles, sum(record.units.size_bytes for record in records), passed, tested)


def compare(console: Console, lake: Lakebloom, parts: Parts, peers: dict[str, Written]) -> list[Result]:
    """Return our bytes beside those of each peer."""
    folder = parts.write_plain(FOLDER / parts.name / "plain")
    headings = ["rate of its bits", "in vain", "bytes", "of ours in vain", "bytes of ours"]
    printed = table(f"{parts.name}: bytes for each distinct value of a unit", ["peer"], headings)
    results = []
    for peer, written in peers.items():
        units = parts.zones(LANCE_ROWS) if peer == LANCE else parts
        assert len(written.filters) == len(units.values), f"{peer}: {len(written.filters)} filters"
        values = absent(max(1000, Size.probes // len(units.values)))
        rates = [one.fpp for one in written.filters]
        rate = statistics.fmean(rates)
        passed = sum(int(np.sum(one.might_contain(values))) for one in written.filters)
        # The mean is known no better than this; what ours really let through is counted below.
        at_most = rate + 2 * statistics.stdev(rates) / len(rates) ** 0.5
        ours = build(lake, folder, _name(parts, peer), at_most, LANCE_ROWS if peer == LANCE else None, values)
        assert ours.asked == len(values) * len(units.values)
        # Chance alone moves a count by a few times its square root.
        assert ours.passed <= passed + _NOISE * (passed**0.5 + 1), f"{peer}: {ours.passed} pass, of theirs {passed}"
        mine, theirs = ours.size_bytes / units.distinct, written.size_bytes / units.distinct
        counts = [f"{count:,} of {ours.asked:,}" for count in (passed, ours.passed)]
        printed.add_row(peer, f"{rate:.2g}", counts[0], f"{theirs:.2f}", counts[1], f"{mine:.2f}")
        results.append(Result(f"{parts.name}, at a rate of {rate:.2g}", mine, "bytes", peer, theirs, Size.bar))
    per_unit = ours.unit_table_bytes / len(parts.values)
    printed.caption = f"our table of units takes {per_unit:.0f} more bytes for each unit"
    console.print(printed)
    return results


def beside_exact(lake: Lakebloom, parts: Parts) -> list[Result]:
    """Return the size of an index of unique keys beside what the rate needs, and its rate beside the asked one."""
    results = []
    for fpp in Size.asked_fpps:
        values = absent(Size.probes // len(parts.values))
        ours = build(lake, FOLDER / parts.name / "plain", f"exact_{-math.log10(fpp):.0f}", fpp, None, values)
        layers = sizing.layer_fpps(fpp)
        needed = sum(32 * sizing.num_blocks(len(part), each) for part in parts.values for each in layers)
        what = f"{parts.name}, {fpp:g} asked for"
        sizes = [size / parts.distinct for size in (ours.size_bytes, needed)]
        results.append(Result(what, sizes[0], "bytes", "exact filters", sizes[1], Size.exact_bar))
        if ours.passed >= Size.fewest_hits:
            rate = ours.passed / ours.asked
            results.append(Result(f"{what}, measured", rate, "", "asked for", fpp, Size.rate_bar))
    return results


def _name(parts: Parts, peer: str) -> str:
    return re.sub(r"\W+", "_", f"{parts.name} {peer}")


def run(console: Console) -> Outcome:
    """Measure everything."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    # What a peer writes by itself is at times more than an index may be.
    spark = session("size", spark_lakebloom_maxIndexBytes="10000000000")
    lake = Lakebloom(spark, FOLDER / "indexes")
    results = []
    for parts in all_parts():
        written = {
            name: write(parts, FOLDER / parts.name / name.replace(" ", "-")) for name, write in writers(spark).items()
        }
        results += compare(console, lake, parts, written)
        if parts.name == UNIQUE:
            results += beside_exact(lake, parts)
    spark.stop()
    shutil.rmtree(FOLDER)  # a gigabyte that the next run would write anew
    return Outcome(results)


if __name__ == "__main__":
    main("bytes for each distinct value", run)
