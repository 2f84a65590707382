"""Numbers that were chosen, not given: thresholds, sizes of batches and caches, and how much is done at a time.

Rows of a result never depend on them: only time, memory, requests, the size of an index and what is recommended do.
Each says what it weighs and the bench that shows it (`make bench-kernels`, docs/BENCHMARKS.md): change it with that
bench's figures. Where no bench is named, the number bounds memory or says when something is worth mentioning.

Limits of formats and protocols are not here, nor waits and timeouts: they stay with what they limit.
"""

from __future__ import annotations

# ---------------------------------------------------------------- hashing and filters

BULK_VALUES = 100_000
"""From so many values on, compiled kernels pay for their own loading (half a second). bench-kernels, bench-start."""
BULK_BYTES = 2 << 20
"""The same for values that may be long. bench-kernels."""
BULK_PROBES = 4_000_000
"""From so much work on, at once or so far, compiled kernels pay for their loading when values are probed: a list of
10,000 values takes as much in 4,000 files, a fifth of a second in numpy; loading takes half a second. bench-lookup."""
BULK_VALUES_SO_FAR = 1_000_000
"""After so many values in small calls a process is one that works in bulk, and loads the compiled kernels."""
FEW_VALUES = 4
"""Up to so many values are hashed one by one with Python's own numbers; arrays cost more. bench-lookup."""
SHORT_BYTES = 256
"""A value longer than this is quicker to hash with numpy, even alone. bench-lookup."""
GATHERED_BYTES = 1 << 20
"""Without a compiler, values of one length are hashed side by side, at most so many bytes of them at a time."""
SLICE_VALUES = 8192
"""64 KiB of hashes: the filter kernel reads them back before they leave the processor's cache. bench-kernels."""
PREFETCHED_VALUES = 64
"""Values whose blocks are fetched before they are touched. A constant, so that LLVM unrolls. bench-kernels."""
BLOCKS_AT_ONCE = 1 << 16
"""Blocks whose bits are counted at a time: 2 MiB of a filter."""
FOLDABLE_BITS = 5
"""Sizes that fold well have so many significant bits: 2 to 3 % larger than the exact size as a rule. bench-embed."""
CACHED_ANSWERS = 4096
"""How many results of a small calculation are remembered: sizes, types, the bits of a value."""
CACHED_SCHEMAS = 64
"""How many tables' schemas stay parsed."""

# ---------------------------------------------------------------- probing an index

SINGLE_HASHES = 2
"""Up to so many values are probed one by one, which takes few calls; more go together. bench-lookup."""
FEW_HASHES = 64
"""Up to so many values numpy is as quick as compiled code that has to be loaded first. bench-lookup."""
PROBED_BYTES = 32 << 20
"""How much of a tile, and of the answers about it, is held at once while many values are probed. bench-lookup."""
PROBED_HASHES = 1 << 15
"""How many values are probed at once: after them it is known whether some unit is left to be hit. bench-lookup."""
KEPT_BYTES = 512 << 20
"""Memory for pieces of tiles that stay after they were read: all that a long list needs of 4,000 files. A key adds
eight bits for each unit. bench-lookup, bench-scale."""
MANY_PLANES = 16
"""Of a row of which so many of its 256 planes are read at once, all are kept. bench-lookup, 10,000 keys."""
LONG_PIECE_BYTES = 4096
"""Longer pieces are checked by zlib, which is quicker; of shorter ones, its many calls take longer. bench-lookup."""
READ_GAP_BYTES = 16 << 10
"""Pieces of a tile that are no further apart are read at once, with what lies between them. bench-lookup."""
READ_BYTES = 16 << 20
"""How much of a tile is read at a time. Bounds memory."""
WIDE_UNITS = 1 << 16
"""In a segment with more units, filters are probed for a few values before bounds: planes are U bytes, bounds and null
counts 28 U, and then only those of units that passed are read. bench-scale."""
KEPT_BATCH_BYTES = 32 << 20
"""Memory for batches of unit tables that stay after they were read: some dozen. bench-scale."""
SMALL_TABLE_BYTES = 1 << 20
"""A unit table up to this size is read with one request; of a larger one first the head, then batches."""
SCANNED_BYTES = 8 << 20
"""How much of a unit table is read at a time when all of it is needed. bench-scale."""
SIDE_BY_SIDE_UNITS = 1 << 14
"""Segments with more units in all are probed one by one: putting longer rows together costs more. bench-lookup."""
THREADED_PAIRS = 200_000
"""Probe in threads above this many (value, unit) pairs; below, threads cost more than they save. bench-lookup."""
BOUNDS_BLOCK = 1024
"""Units whose bounds are summed up in one pair of bounds. bench-scale."""
SORTED_BOUNDS = 1 << 17
"""Up to so many units a list of values is compared with the bounds of each; of more, with those of blocks only.
bench-scale."""
LONG_LIST = 8
"""A list of so many values is probed in threads and shortened for each file; fewer are quicker as they are.
bench-lookup, 100 keys."""
SHORTENED_PAIRS = 1 << 24
"""A list is shortened for the units of a tile if they may hold at most so many values together. Bounds memory."""
MANY_VALUES = 1000
"""Of so many values some are compared with the bounds of units first. bench-lookup, 10,000 keys."""
SAMPLED_VALUES = 64
"""How many those are. If every unit encloses all of them, the others are not compared."""
MAX_WHOLE_NUMBERS = 100
"""A range of more whole numbers is not probed value by value: min and max alone answer it."""
HOPELESS = 0.9
"""A list of values is not probed where chance alone would keep this share of the files."""
MOST_KEYS = 1_000_000
"""Keys of one erasure. Each takes some hundred bytes while it is planned. bench-tables."""
EMBEDDED_FILE_BYTES = 4 << 20
"""Smaller files are read as quickly as their own filters. bench-lookup."""
EMBEDDED_VALUES = 1000
"""Longer lists are not probed in the filters of files: nearly every row group holds one of the values."""

# ---------------------------------------------------------------- listing and reading files

REQUESTS = 64
"""Requests to an object store that are under way at the same time; docs/SCALE.md counts with them. bench-scale."""
LISTINGS = 8
"""Tables on object stores that are listed at the same time, while the newest versions of their indexes are read."""
SHARED_GAP_BYTES = 256 << 10
"""Ranges of an object that are no further apart share a request. Requests run side by side, so what lies between two
ranges soon takes longer than another request. bench-scale, requests."""
LISTED_AT_ONCE = 1_000
"""Objects of one page of a listing: S3 gives no more."""
LISTED_PLACES = 16
"""Up to so many directories are listed each by itself; of more, what is above them."""
FEW_DIRECTORIES = 64
"""Up to so many directories are looked at by name in each query; of more, those above are watched. bench-needle."""
WATCHES = 32
"""Watched tables of a process. A user has 128 in all, for every program; the table not used for longest gives way, and
is listed again by its next query."""
FEW_PARTITIONS = 32
"""Up to so many partitions a catalog is asked one by one, and not for all of them at once."""
TAIL_BYTES = 64 << 10
"""What is read of the end of a Parquet file first: it holds all but the widest footers. Arrow reads as much.
bench-scale, requests."""
LOCAL_BUFFER_BYTES = 1 << 20
"""Read at a time from a column chunk on disk. bench-build."""
REMOTE_BUFFER_BYTES = 8 << 20
"""Read at a time from a column chunk of an object, where each read is a request. bench-scale."""
BATCH_ROWS = 1 << 16
"""Rows that a lookup or a scan reads at a time. bench-lookup."""
BATCH_BYTES = 16 << 20
"""Bytes that a lookup or a scan reads at a time. bench-lookup."""
BUILD_BATCH_ROWS = 1 << 18
"""Rows that a build reads at a time. bench-build."""
BUILD_BATCH_BYTES = 32 << 20
"""Bytes that a build reads at a time. bench-build."""
EXPANSION = 16
"""What a column chunk stores once for many rows may unfold to this many times its bytes. Bounds memory."""
REPEATS_LOG2 = 4
"""A dictionary is read as such where each of its values comes 2^4 times or more in a batch. bench-build."""
OPEN_LOCAL_BYTES = 64 << 10
"""Opening a local file takes as long as reading so many bytes of it. bench-build, small builds."""
OPEN_OBJECT_BYTES = 1 << 20
"""Opening an object, or a file in a task of its own, takes as long as reading so many bytes of it. bench-scale."""
KEPT_FOOTER_BYTES = 16 << 20
"""Footers that stay parsed, in bytes as stored; parsed they take about ten times as much. bench-lookup."""
PAGED_ROWS = 1 << 15
"""Smaller row groups are read as a whole: finding their pages takes as long as decoding all. bench-lookup."""
PAGED_BYTES = 4 << 20
"""The same for row groups of few long rows, uncompressed. bench-lookup."""
PAGED_AT_ONCE = 1 << 20
"""Rows of a file whose pages are in memory at a time. Bounds memory."""
GAP_BYTES = 16 << 10
"""Ranges of an object that are closer to each other are fetched by one request. bench-scale."""
FETCHED_BYTES = 64 << 20
"""Column chunks of an object that are no larger together are fetched at once; Arrow reads one after the other.
Bounds memory. bench-board."""
MAX_CHUNK_PAGES = 1 << 14
"""A column chunk with more pages is read as a whole: finding one of them would take longer. Bounds memory."""
MAX_PAGE_INDEX_BYTES = 1 << 19
"""The same for a page index of more bytes. That of a chunk of 10,000 pages has 150,000."""
MAX_RECORDED_BYTES = 1 << 20
"""Locations of a file's pages that an index records take no more: seven bytes a page, some kilobytes for most files."""
MAX_RECORDED_PAGES = 1 << 13
"""Of a file of an object store with more pages in all, an index records none: finding each takes a request."""
RECORDED_PART_BYTES = 8 << 20
"""Recorded locations in one file of an index. Bounds memory of merging."""
KEPT_SCHEMAS = 100
"""Different schemas of a table's files whose way of being read is remembered. Bounds memory."""
KEPT_VIEWS = 8
"""Sets of columns remembered for each footer. Bounds memory."""
KEPT_VECTORS = 256
"""Deletion vectors that stay read. Bounds memory."""
KEPT_DELETE_FILES = 64
"""Delete files of Iceberg tables that stay read: one may be about many data files. Bounds memory."""
KEPT_MANIFESTS = 1024
"""Manifests of an Iceberg table that are kept beside those of the last snapshot. Bounds memory."""
KEPT_LOGS = 16
"""Tables with a log whose last state is kept, so that a newer version costs only its own commits. Bounds memory."""
KEPT_VERSIONS = 2
"""Older versions of such a table that are kept: lookups in one, or in two in turn, read it once. Bounds memory."""

# ---------------------------------------------------------------- building

TASKS_PER_CORE = 2
"""Segments of a build for each core: more even out, fewer are quicker to probe. bench-build."""
SHARD_BYTES = 8 << 30
"""The largest shard of files that one task indexes. docs/SCALE.md."""
SHARD_FILES = 5000
"""The most files of a shard. docs/SCALE.md."""
REFRESHED_BYTES = 8 << 20
"""New files of a refresh that get a segment of their own: a lookup reads each segment, and a table that grows by a few
files at a time has few of them so. bench-build."""
PENDING_HASHES = 8 << 20
"""64 MiB of hashes that a task keeps until it knows how large filters must be. bench-build, bench-size."""
PAGE_UNIT_ROWS = 1 << 14
"""A unit of pages has at least so many rows: fewer would take more bits a key than they save reading. bench-lookup."""
PENDING_FILTER_BYTES = 128 << 20
"""Filters that a task keeps so that they become few tiles: a probe reads a row of each. bench-lookup, absent key."""
TILE_BYTES = 64 << 20
"""A tile and its copies stay well below a task's memory."""
TILE_WASTE = 0.10
"""How much larger than the sum of its units' own sizes a tile may be. bench-size."""
SIZE_GRID_BITS = 7
"""Sizes are rounded up to so many significant bits, by less than 2 %, so that many units share one. bench-size."""
COUNTING_FACTOR = 8
"""Cells for each hash when distinct hashes are counted. bench-build."""
UNIQUE_ENOUGH = 0.98
"""Above this share of distinct values all are taken for distinct: unique keys get the exact size. bench-size."""
GLOBAL_BLOCK_STEP = 5040
"""Global filters have a multiple of this many blocks: it has many divisors, so folding can stop close to any size."""
GLOBAL_FPP = 0.01
"""The rate of a global filter where none is asked for: one row in a hundred passes without a partner. bench-join."""
MOST_GLOBAL_FPP = 0.5
"""A global filter that lets through more is not worth its bytes, and is left out. bench-join."""
GLOBAL_RANGE_BLOCKS = 1 << 14
"""Blocks of a global filter that are merged at a time: 512 KiB."""
GROWING_UNIT_ROWS = 4
"""A unit too large for its hashes is sized for this many times the rows seen so far: how many come is unknown."""
FEW_TASKS = 8
"""Tasks in which Spark looks at the files it is told to read, at least: left alone, it starts one for each file."""
WORST_UNION = 0.1
"""Filters of row groups are imported as one for the file up to this rate; beyond, they say too little about it."""
MERGED_BYTES = 512 << 20
"""Memory that merging takes: an eighth of it holds a range of rows as blocks, another one the same as planes. Smaller
segments are always merged. docs/SCALE.md."""
MERGED_HERE_BYTES = 256 << 20
"""Smaller merges run in the driver: starting the tasks of a Spark job takes longer."""
MOST_WIDE_UNITS = 1 << 22
"""Units of a merged segment: one row of it takes an eighth of a gigabyte as blocks. docs/SCALE.md."""
LARGE_SEGMENT = 8
"""A segment so many times as large as all smaller ones together is not written again for their sake."""
VERIFIED_BYTES = 256 << 20
"""Filters that `verify_index` holds at a time: a tile is read once for so many bytes of them."""
ALWAYS_ALLOWED_BYTES = 16 << 20
"""An index up to this size is never refused as too large for its table."""
LANCE_TASK_ROWS = 1 << 26
"""Rows of a task that builds Lance's filters and keeps them until it writes: 256 MiB of Lance's own."""

# ---------------------------------------------------------------- writing and copying

PUT_BYTES = 16 << 20
"""Up to this size an object is put by one request; beyond it, in parts of at least this size."""
COPIED_BYTES = 4 << 20
"""Bytes that pass through memory at a time when a file is copied or written through Hadoop. bench-embed."""
KERNEL_COPIED_BYTES = 32 << 20
"""Bytes that the kernel copies between two looks at whether to stop. bench-embed."""

# ---------------------------------------------------------------- samples, advice and progress

SAMPLED_FILES = 16
"""Files whose footers are read to estimate rows, row groups and sizes of columns."""
SAMPLED_BLOCKS = 16
"""Blocks of each tile that estimate its rate when it is opened."""
HEALTH_BLOCKS = 256
"""The same where the health of filters is reported."""
HEALTH_BYTES = 16 << 20
"""What is read of one tile for that."""
ADVISED_KEYS = 64
"""About how many values of the file with the most different ones `advise` compares with other files."""
ADVISED_HASHES = 1024
"""How many of the smallest hashes of a file are held until it is known how many files have in all."""
ADVISED_FILES = 24
"""Files that `advise` reads."""
ADVISED_BYTES = 256 << 20
"""What `advise` reads of a table where no cluster reads it."""
ADVISED_BYTES_OF_CLUSTER = 2 << 30
"""What `advise` reads of a table with Spark."""
ADVISED_COLUMNS = 32
"""Columns that one Spark job of `advise` samples."""
ADVISED_ERROR = 0.02
"""The error of counts of different values in `advise`."""
FEW_FILES = 8
"""With fewer files, filters for files skip little: `advise` weighs row groups."""
LITTLE_SKIP = 0.3
"""A filter that skips a smaller share of files is not recommended."""
GOOD_SKIP = 0.7
"""A filter that skips a larger share of files is recommended."""
LITTLE_GAIN = 0.1
"""A filter that skips no more than this beyond minimum and maximum is not recommended."""
LARGE_INDEX = 0.25
"""An index larger than this share of its table is recommended with a warning."""
MANY_SEGMENTS = 16
"""More segments are merged at the end of a build, and the report proposes to optimize: a key reads each of them.
bench-scale, requests."""
MANY_VERSIONS = 50
"""From so many versions on the report proposes to vacuum."""
WORSE_FPP = 2.0
"""A column whose rate is this many times what was asked for is mentioned in the report."""
EXPECTED_FALSE_POSITIVES = 1.0
"""From so many units that a lookup reads unnecessarily on, on average, the report proposes a lower rate."""
REMEMBERED_READS = 32
"""Reads through an index that `last_query` knows on Spark Connect."""
PARTITION_BYTES = 64 << 20
"""What a task of the data source reads, unless the option `partitionBytes` says otherwise."""
PROGRESS_INTERVAL_S = 0.5
"""How often the progress of a Spark job is asked for."""
