"""Every size, seed, number of rounds and bar of the benches, in one place.

A bar is for the ratio of ours to theirs unless it says otherwise. Sizes are such that `make bench` ends within forty
minutes on two cores, all data made (decision 77).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from bench.tiny import TINY

IS_TINY = os.environ.get("LAKEBLOOM_BENCH") == "tiny"
WORK = Path(".bench/tiny" if IS_TINY else ".bench").resolve()
"""Where data is kept between runs."""
PROCESSES = 2
LONGEST_S = 900.0
"""A bench that takes so long is stopped, so that the others run."""


class Kernels:
    """Hashing and filtering."""

    seed = 6
    count = 10_000_000
    string_bytes = 36
    rounds = 3
    sizes: ClassVar = {"16 KiB": 16 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
    bars: ClassVar = {
        ("int64", "insert"): 0.55,
        ("int64", "check"): 0.85,
        ("string", "insert"): 0.80,
        ("string", "check"): 0.80,
    }
    rbloom_count = 1_000_000
    first_result_bar_s = 1.0
    transposed_units = (20, 100, 1000, 4000)
    transposed_bytes = 64 << 20
    transposed_bar_mb_s = 1000.0
    """How many bytes of filters become planes in a second, and come back."""


class Start:
    """From nothing to a first result."""

    rounds = 7
    import_bar_ms, verb_bar_ms = 100.0, 1000.0
    spark_rounds = 3
    small_files, small_rows = 20, 1000
    create_bar = 1.5
    explain_bar = 2.0
    """How much of the time of a session that does nothing. Explaining also compiles the rule and plans a query."""


class Build:
    """Building and refreshing an index."""

    seed = 3
    files, rows_per_file, warm_up_files = 1000, 25_000, 20
    rounds, slow_rounds, refresh_rounds = 7, 2, 12
    race_s = 60.0
    """When a race has taken so long, no further round begins."""
    scan_bar, lance_bar, rewrite_bar = 0.95, 0.80, 0.25
    few, many, refresh_bar = 1000, 10_000, 1.2
    new_files = 10


class Needle:
    """Keys in Spark."""

    seed = 4
    sizes = (100, 1000, 4000)
    rows_per_file = 25_000
    embedded_fpp = 0.01
    most_wasted = 0.05
    """The share of files that filters may keep in vain; where it is more, they are not used."""
    rounds: ClassVar = {100: 9, 1000: 6, 4000: 4}
    plain_bars: ClassVar = {1000: 10, 4000: 30}
    embedded_bars: ClassVar = {1000: 4, 4000: 8}
    """How many times faster than Spark, without and with embedded filters."""
    growth_bar = 2.5
    tiny_files, planning_rounds, planning_bar_s = 10_000, 15, 0.150
    first_rounds, first_bar_s = 5, 0.060
    case_s = 5.0
    """A method that has taken so long for one kind of question is asked no more of it."""


class Large:
    """Keys in files of real size."""

    seed = 16
    files, rows_per_file, rows_per_group = 16, 2_000_000, 1_000_000
    rounds, threads = 5, 2


class Embed:
    """Embedding filters into files."""

    seed = 5
    files, rows_per_file = 10, 1_330_000
    warm_up_files, warm_up_rows = 2, 20_000
    rounds, slow_rounds = 7, 1
    limit_bar, rewrite_bar = 1.5, 1 / 3


class Join:
    """A join whose rows have mostly no partner."""

    rows, keys, rounds = 20_000_000, 1_000_000, 4
    runtime_bar, plain_bar = 1.0, 0.4


class Lookup:
    """Rows by key without Spark."""

    seed = 7
    sizes = Needle.sizes
    questions = 40
    """How many different keys a quick method is asked."""
    case_s = 1.5
    """A method that has taken so long for one kind of question is asked no more of that kind."""
    slow_s = 10.0
    """A method that would take so long for one question is not asked."""
    cold_rounds = 3
    cold_s = 1.0
    """A method that takes so long in a process that runs already is not asked in a new one."""
    keys = 100
    growth_bar = 2.0
    very_many: ClassVar = {10_000: 0.015, 1_000_000: 2.0}
    """How many keys of a join's small side are asked of the largest table's files, and how long that may take."""
    very_many_rounds = 9
    """The first ones work without numba, and then load it: it takes longer to load than one list takes without."""
    warm_bars: ClassVar = {1000: (15, 40, 5), 4000: (40, 150, 8)}
    """How many times faster than the fastest engine on the same files: present key, absent key, many keys."""
    lance_bars = (1.5, 0.5, 2.0)
    """How much of the time of Lance's Bloom filter index."""
    cold_bars: ClassVar = {1000: 1.0, 4000: 0.6}
    """How much of the time of the fastest engine on the same files, for a whole process."""


class LargeLookup:
    """Rows by key without Spark in files of real size. They take 11 GB with all copies."""

    files = 16
    questions = 30
    sampled_rows = 60
    """Rows of each file that are asked for."""
    peers_bars: ClassVar = {"DuckDB": 10, "DataFusion": 15, "Polars": 50}
    """How many times faster than each engine on the same files, with embedded filters where it reads them: a present
    key."""
    told_bar = 20
    """The same for PyArrow, told the row group."""
    lance_bars: ClassVar = {"BLOOMFILTER": 2.0, "BTREE": 4.0}
    """How much of the time of Lance's indexes on its own format: a present key."""
    absent_bar = 0.5
    many_bar = 5.0
    cold_bar = 1.3
    """How much of the time of loading PyArrow, for a whole process."""
    build_bar = 1.1
    """How much of the time of building one filter for each file."""
    bytes_bar = 0.025
    """How much of its row group is read for one row."""


class Board:
    """All peers side by side, in a lake of small files and in one of files of real size."""

    small_files = (1000, 4000)
    questions, long_lists = 30, 7
    """How many questions of each kind a quick method is asked, and how many with very many keys."""
    case_s = 0.4
    """A method that has taken so long for one kind of question is asked no more of that kind."""
    cold_rounds = 2
    form_s = 40.0
    """What would take so long to make, judging by the lake before, is not made."""
    many, there = 10_000, 100
    """So many keys are asked for at once, of which so many are there."""
    batch_rows = 1 << 20
    fpp = 0.001
    """Of ClickHouse's skip index."""
    space_gb = 48
    """What is kept takes so much, with the lakes of the lookups."""
    duckdb_bar, lance_bar = 10, 2.0
    """A present key in files of real size: times faster than DuckDB, share of the time of Lance's Bloom filter."""


class Wide:
    """A table of very many columns."""

    seed = 12
    files, rows_per_file, columns = 8, 100_000, 200


class Distant:
    """Some of the large files in an object store that is not near."""

    files = 2
    latency_s = 0.020
    questions = 5
    slow_s = 4.0
    """After a question that took so long, no other is asked."""


class Units:
    """Very many units, of which there are only filters."""

    seed = 8
    segments = 50
    units_per_segment = 20_000
    num_blocks = 4
    probe_bar_s = 0.0005
    questions = 40
    wide_blocks = 2
    requests_bar, bytes_bar_mb = 20, 3.0
    """Of one more key over a million units in one segment on an object store."""


class Opening:
    """Very many units in one segment."""

    units = 1_000_000
    few_units = 1_000
    open_bar_s = 0.1
    memory_bar_mb = 60.0
    compare_bar_s = 1.1


class Scale:
    """How costs grow."""

    seed = 9
    files = (100, 1000, 10_000)
    columns = (1, 5, 20)
    files_of_columns = 200
    rows_per_file = 20
    rounds = 5
    files_bar, columns_bar = 1.1, 1.1
    """The exponent of the number of files or columns: 1 is growth in proportion."""


class Size:
    """Bytes for each distinct value."""

    seed = 10
    files, rows_per_file = 400, 25_000
    tiny_files, tiny_rows = 400, 50
    few_distinct, users, skew = 1000, 1_000_000, 1.3
    fpp = 0.01
    probes = 640_000
    """Values that are nowhere, over all units."""
    bar = 1.0
    asked_fpps = (0.01, 1e-5)
    exact_bar, rate_bar = 1.15, 1.1
    """How much more than exact filters an index of unique keys may take, and how far off its rate may be."""
    fewest_hits = 1000
    """With fewer a rate is not known well enough."""


class Tables:
    """Delta and Iceberg tables beside the same rows as plain files, and erasure."""

    seed = 11
    files, rows_per_file = 1000, 10_000
    erased_files, erased_rows_per_file = 4000, 2_500
    questions = 60
    slow_questions = 5
    """How many keys a scan is asked for."""
    plain_bar = 1.3
    """How much of the time of a lookup in the plain directory."""
    scan_bar, many_bar = 30, 50
    """How many times faster than deltalake's and pyiceberg's scans: for one key, and the files for many keys."""
    spark_bar = 10
    """How many times faster Spark finds one key of an Iceberg table with an index than without."""
    many, many_rounds = 10_000, 9
    pyiceberg_keys = 1_000
    """So many of them are given to pyiceberg, which translates the list again for each file."""
    erased_keys: ClassVar = {10_000: 5.0}
    """How many keys are planned to be erased, and how long that may take beside reading the files that hold them."""
    very_many_keys = 1_000_000
    refresh_few, refresh_many, refresh_rounds, refresh_bar = 100, 10_000, 12, 1.2
    """Files of two tables to which some are added, and how much of the time of the small one the large one may take."""


if IS_TINY:
    for _owner, _values in TINY.items():
        for _name, _value in _values.items():
            assert hasattr(globals()[_owner], _name), f"{_owner} has no {_name}"
            setattr(globals()[_owner], _name, _value)
