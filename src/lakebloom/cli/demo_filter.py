"""The first part of the demo: one filter over a million keys."""

from __future__ import annotations

import io
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from lakebloom import Sbbf, sizing
from lakebloom.cli.demo_keys import uuids

_KEYS = 1_000_000
_FPP = 0.01
_PROBES = 5_000_000


def show_filter(console: Console) -> None:
    """Build a filter over a million keys and measure what it promises."""
    console.rule("[bold]one filter over a million keys")
    rng = np.random.default_rng(20)
    keys = uuids(rng, _KEYS)
    with console.status("loading compiled kernels (the first run on a machine compiles them)"):
        Sbbf(1).insert(keys.slice(0, 200_000))
        Sbbf(1).might_contain(keys.slice(0, 200_000))

    started = time.perf_counter()
    f = Sbbf.for_items(_KEYS, fpp=_FPP)
    f.insert(keys)
    build_s = time.perf_counter() - started

    absent = uuids(rng, _PROBES)
    started = time.perf_counter()
    hits = int(np.sum(f.might_contain(absent)))
    check_s = time.perf_counter() - started

    console.print(_figures(f, keys, build_s, hits, check_s))
    _probe(console, f, keys[0].as_py())


def _stored_bytes(keys: pa.Array) -> int:
    """Return the compressed size of the column that Parquet would keep for these keys, dictionary and all."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"key": keys}), sink, compression="zstd", dictionary_pagesize_limit=10 * keys.nbytes)
    size: int = pq.read_metadata(io.BytesIO(sink.getvalue())).row_group(0).column(0).total_compressed_size
    return size


def _figures(f: Sbbf, keys: pa.Array, build_s: float, hits: int, check_s: float) -> Table:
    stored = _stored_bytes(keys)
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_row("keys", f"{len(keys):,} uuids")
    table.add_row("filter", f"{f.num_bytes:,} bytes, {8 * f.num_bytes / len(keys):.2f} bits a key")
    table.add_row("dictionary-encoded column", f"{stored:,} bytes (zstd): {stored / f.num_bytes:.0f} x the filter")
    table.add_row("built in", f"{build_s * 1e3:.0f} ms, {build_s * 1e9 / len(keys):.0f} ns a key")
    table.add_row(
        "false positives promised", f"{_FPP:.3%} (exactly {sizing.fpp(f.num_blocks, _KEYS):.4%} at this size)"
    )
    table.add_row("false positives measured", f"{hits / _PROBES:.3%}: {hits:,} of {_PROBES:,} absent keys")
    table.add_row("probed in", f"{check_s * 1e3:.0f} ms, {check_s * 1e9 / _PROBES:.0f} ns a key")
    table.add_row("estimated from the bits", f"{f.ndv:,.0f} distinct keys, {f.fpp:.3%} false positives")
    return table


def _probe(console: Console, f: Sbbf, present: str) -> None:
    for key, kind in ((present, "present"), ("00000000-0000-0000-0000-000000000000", "absent")):
        answer = "perhaps there: read the file" if key in f else "certainly not there: skip the file"
        console.print(f"[bold]{key}[/] ({kind}): {answer}", highlight=False)
