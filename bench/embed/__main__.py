"""Embedding filters into a lake, side by side with the limit and with writing it anew: `make bench-embed`.

Every method has had a small run before, to load what it needs. The lake is written once and kept in .bench/embed.
"""

from __future__ import annotations

from rich.console import Console

from bench.embed import methods
from bench.embed.source import KEYS, lake
from bench.parameters import WORK, Embed
from bench.race import Race, print_races
from bench.results import Outcome, main
from bench.session import session

FOLDER = WORK / "embed"


def run(console: Console) -> Outcome:
    """Measure everything."""
    warm_up = lake(FOLDER / "warm-up", Embed.warm_up_files, Embed.warm_up_rows)
    table = lake(FOLDER / "lake", Embed.files, Embed.rows_per_file)
    spark = session("embed")
    limits = [methods.copy_and_read(Embed.limit_bar), methods.synced_copy_and_read()]
    rewrites = [methods.duckdb_rewrites(Embed.rewrite_bar), methods.spark_rewrites(spark, Embed.rewrite_bar)]
    held = [Race([methods.ours()], limits, Embed.rounds), Race([methods.ours()], rewrites, Embed.slow_rounds)]
    for race in held:
        race.warm_up(warm_up, FOLDER / "out")
    for race in held:
        race.run(console, table, FOLDER / "out")
    size_bytes = sum(path.stat().st_size for path in table.paths)
    title = f"filters for {' and '.join(KEYS)}: {table.files} files, {size_bytes / 1e6:,.0f} MB, {table.rows:,} rows"
    print_races(console, title, held)
    spark.stop()
    return Outcome([result for race in held for result in race.results()])


if __name__ == "__main__":
    main("embedding filters", run)
