"""``embed``: adds Bloom filters to a Parquet file without rewriting its pages.

    before   PAR1  pages, indexes, filters                 footer   length  PAR1
    after    PAR1  pages, indexes, filters  new filters    footer'  length  PAR1

The pages keep their place and their bytes, so every offset in the footer stays valid. The new footer is the old one
with two more fields for each column chunk with a new filter (bloom_filter_offset and bloom_filter_length); all other
fields are copied, also those that lakebloom does not know.

The number of blocks is a power of two, because Arrow C++ rejects others. Filters hash the physical values of the file.
"""

from __future__ import annotations

import io
import os
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow.compute as pc
from pyarrow import types as pt

from lakebloom.calls import typed_call
from lakebloom.display.tables import Printable, sized
from lakebloom.errors import (
    ColumnNotFoundError,
    DataFileError,
    EncryptedFileError,
    InvalidArgumentError,
    UnsupportedTypeError,
)
from lakebloom.parquet.footer import MAGIC, read_footer
from lakebloom.parquet.rewriting import Rewriting
from lakebloom.parquet.stored_values import StoredValues, arrow_metadata
from lakebloom.parquet.thrift_tree import serialise
from lakebloom.sbbf import sizing
from lakebloom.sbbf.filter import Sbbf
from lakebloom.sbbf.hashing.encoding import Parquet
from lakebloom.storage import normalise, open_storage, to_local_path
from lakebloom.storage.local.errors import translated
from lakebloom.tables.columns import format_name, parse_name
from lakebloom.tables.listing.listing import is_remote
from lakebloom.tables.parquet.open import open_source, reading
from lakebloom.tables.parquet.paths import find_leaf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    import pyarrow as pa

    from lakebloom.parquet.footer import Footer
    from lakebloom.parquet.schema import Leaf
    from lakebloom.storage.objects.storage import ObjectStorage
    from lakebloom.storage.objects.versions import ObjectVersion

__all__ = ["EmbedReport", "column_names", "embed"]

_MAX_BLOCKS = 1 << 22
"""128 MiB, the largest filter that Arrow C++ and arrow-rs read. With more values the rate is higher than fpp."""


@dataclass(frozen=True, slots=True)
class EmbedReport(Printable):
    """The result of ``embed``."""

    file: str
    rows: int
    row_groups: int
    columns: tuple[str, ...]
    filters: int
    filter_bytes: int
    """The filters that were written, headers included."""
    bytes_before: int
    bytes_after: int

    @property
    def bytes_added(self) -> int:
        """How much larger the file became."""
        return self.bytes_after - self.bytes_before

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        return [*Printable.shown(self), ("bytes added", sized(self.bytes_added))]


@typed_call
def embed(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    columns: Sequence[str] = (),
    fpp: float = 0.01,
    *,
    force: bool = False,
    options: Mapping[str, str] | None = None,
) -> EmbedReport:
    """Write the Parquet file ``source`` to ``target`` with a Bloom filter for each row group of ``columns``.

    Without ``target`` the file is replaced: a local file by exchange, so that a crash at any moment leaves the old file
    or the new one; an object by one upload from memory. If another writer has replaced the file since it was read, or
    if its owner, access lists or attributes cannot be kept, the file stays and an error is raised.

    Names follow Spark's convention, ``s.k`` is a leaf of a struct and ``l.list.element`` that of a list. Filters of
    other columns stay, those of the named columns are replaced. ``force`` allows FLOAT and DOUBLE, and ``options``
    configure an object store.

    Raises ColumnNotFoundError; UnsupportedTypeError for types on whose filters engines lose rows; NotParquetError,
    CorruptFooterError, EncryptedFileError or DataFileError for a file that cannot be read; StorageError, NotFoundError
    or AccessDeniedError if reading or writing fails. After any error, the source is unchanged.

    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> file = f"{tempfile.mkdtemp()}/users.parquet"
    >>> pq.write_table(pa.table({"user": ["ann", "bob"]}), file)
    >>> report = embed(file, columns=["user"])
    >>> report.rows, report.filters, report.filter_bytes
    (2, 1, 47)
    """
    names = column_names(columns)
    rate = sizing.rate_argument(fpp)
    source_uri = normalise(source)
    target_uri = source_uri if target is None else normalise(target)
    if is_remote(source_uri) or is_remote(target_uri):
        return _embed_in_memory(source_uri, target_uri, names, rate, force, options or {})
    return _embed_local(source_uri, target_uri, names, rate, force)


def _embed_local(source_uri: str, target_uri: str, names: list[str], fpp: float, force: bool) -> EmbedReport:
    source, target = Path(to_local_path(source_uri)), Path(to_local_path(target_uri))
    with translated(f"could not read {source_uri}"):
        seen = source.stat()
    job = _Job.plan(source_uri, names, fpp, force, {})
    with translated(f"could not write {target_uri}"), Rewriting(source, target, seen) as rewriting:
        # Copying waits for the disk; meanwhile the columns are decoded and hashed.
        with ThreadPoolExecutor(len(job.leaves) + 1, thread_name_prefix="lakebloom-embed") as threads:
            copying = threads.submit(rewriting.copy, job.kept_bytes)
            building = [threads.submit(job.build, leaf) for leaf in job.leaves]
            _wait_for([copying, *building], rewriting)
        end = job.end([future.result() for future in building])
        rewriting.append(end)
        size = rewriting.publish()
    return job.report(target_uri, end, size)


def _wait_for(futures: Sequence[Future[Any]], rewriting: Rewriting) -> None:
    """Wait until all are done. If one fails, stop the copy and raise its error."""
    try:
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
    except BaseException:
        rewriting.stop()
        raise


def _embed_in_memory(
    source_uri: str, target_uri: str, names: list[str], fpp: float, force: bool, options: Mapping[str, str]
) -> EmbedReport:
    # One read of the whole object: two reads could see different versions.
    data, seen = _read_whole(source_uri, options)
    job = _Job.plan(source_uri, names, fpp, force, options, data)
    end = job.end([job.build(leaf) for leaf in job.leaves])
    pages = data[: job.kept_bytes]
    folder, _, name = target_uri.rpartition("/")
    storage = open_storage(folder, options if is_remote(target_uri) else None)
    if source_uri != target_uri or seen is None:
        storage.write(name, [pages, *end])
    else:
        cast("ObjectStorage", storage).replace_version(name, [pages, *end], seen)
    return job.report(target_uri, end, len(pages) + sum(map(len, end)))


def _read_whole(uri: str, options: Mapping[str, str]) -> tuple[memoryview, ObjectVersion | None]:
    """Return the content of a file or object, and the version of an object."""
    folder, _, name = uri.rpartition("/")
    if not is_remote(uri):
        with reading(uri), open_source(uri, options) as file:
            return memoryview(file.read()), None
    return cast("ObjectStorage", open_storage(folder, options)).read_version(name)


class _Named(io.BytesIO):
    """Bytes in memory, with a name for messages."""

    def __init__(self, data: memoryview, name: str) -> None:
        super().__init__(data)
        self.name = name


@dataclass(frozen=True, slots=True)
class _Job:
    """One file, and the columns that get filters."""

    uri: str
    footer: Footer
    leaves: tuple[Leaf, ...]
    fpp: float
    options: Mapping[str, str]
    data: memoryview | None
    """The whole file, if it is in memory."""
    kept_bytes: int
    """The end of the bytes to copy: the footer, or the replaced filters if they are directly before it."""

    @classmethod
    def plan(
        cls,
        uri: str,
        names: Sequence[str],
        fpp: float,
        force: bool,
        options: Mapping[str, str],
        data: memoryview | None = None,
    ) -> _Job:
        footer = read_footer(uri, options) if data is None else read_footer(_Named(data, uri))
        if footer.is_encrypted:
            raise EncryptedFileError(
                f"{uri} has encrypted columns, and a filter would reveal their values",
                hint="have the writer of the file make encrypted filters",
            )
        leaves = tuple(dict.fromkeys(_find(footer, name, uri) for name in names))
        for leaf in leaves:
            _require_type(leaf, force=force)
        if any(chunk.file_path is not None for group in footer.row_groups for chunk in group.columns):
            raise DataFileError(
                f"{uri} has its pages in other files", hint="embed filters into the files that have the pages"
            )
        return cls(uri, footer, leaves, fpp, options, data, _kept_bytes(footer, leaves))

    def build(self, leaf: Leaf) -> list[Sbbf]:
        """Return the filters of a column, one for each row group."""
        length = leaf.element.type_length if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" else None
        encoding = Parquet(leaf.physical_type, length)
        filters = []
        with StoredValues(self.uri, self.footer, leaf, self.options, self.data) as values:
            for number, group in enumerate(self.footer.row_groups):
                f = Sbbf(_enough_blocks(group.columns[leaf.number].num_values, self.fpp))
                for array in values.of_row_group(number):
                    f.insert(array, encoding=encoding)
                    if pt.is_floating(array.type):
                        _insert_equals(f, array, encoding)
                filters.append(f.fold_to(self.fpp))
        return filters

    def end(self, filters: Sequence[list[Sbbf]]) -> list[bytes]:
        """Return the bytes after the copied ones: the filters, row group by row group, then the footer."""
        parts: list[bytes] = []
        at = self.kept_bytes
        for number, group in enumerate(self.footer.row_groups):
            for leaf, of_leaf in zip(self.leaves, filters, strict=True):
                parts.append(of_leaf[number].to_parquet())
                group.columns[leaf.number].set_bloom_filter(at, len(parts[-1]))
                at += len(parts[-1])
        footer = serialise(self.footer.tree)
        self._require_readable()
        return [*parts, footer + len(footer).to_bytes(4, "little") + MAGIC]

    def report(self, file: str, end: Sequence[bytes], size: int) -> EmbedReport:
        return EmbedReport(
            file=file,
            rows=self.footer.num_rows,
            row_groups=len(self.footer.row_groups),
            columns=tuple(format_name(leaf.path) for leaf in self.leaves),
            filters=len(end) - 1,
            filter_bytes=sum(map(len, end[:-1])),
            bytes_before=self.footer.file_bytes,
            bytes_after=size,
        )

    def _require_readable(self) -> None:
        """Let Arrow read the new footer before anything is replaced."""
        with reading(self.uri):
            metadata = arrow_metadata(self.footer.tree)
        if (metadata.num_rows, metadata.num_columns) != (self.footer.num_rows, len(self.footer.leaves)):
            raise DataFileError(
                f"the new footer of {self.uri} is wrong",
                found=f"{metadata.num_rows} rows and {metadata.num_columns} columns",
                hint="nothing was changed; please report this bug",
            )


def column_names(columns: object) -> list[str]:
    """Return the argument if it is a list of names, and raise InvalidArgumentError otherwise."""
    if isinstance(columns, str) or not isinstance(columns, (list, tuple)) or not columns:
        raise InvalidArgumentError(
            "columns must be a list of at least one name", found=columns, hint='write columns=["user_id"]'
        )
    return list(columns)


def _find(footer: Footer, name: str, uri: str) -> Leaf:
    """Return the leaf of this name; if none is spelt exactly so, upper and lower case are equal."""
    paths, wanted = [leaf.path for leaf in footer.leaves], parse_name(name)
    number = find_leaf(paths, wanted, case_sensitive=True)
    if number is None:
        number = find_leaf(paths, wanted, case_sensitive=False)
    if number is None:
        raise ColumnNotFoundError.among(name, [format_name(path) for path in paths], where=uri)
    return footer.leaves[number]


def _require_type(leaf: Leaf, *, force: bool) -> None:
    """Refuse types on whose filters engines lose rows, or which have no single form for a value."""
    element = leaf.element
    logical = element.logical_type.name if element.logical_type is not None else ""
    reason = hint = ""
    if leaf.physical_type == "BOOLEAN":
        reason = "a filter of two values skips nothing, and parquet-java's readers trust an empty one"
    elif leaf.physical_type == "INT96":
        reason = "engines hash different bytes for such a timestamp and lose rows"
        hint = "rewrite it as INT64 timestamps"
    elif logical == "FLOAT16":
        reason = "DuckDB hashes other bytes than the file has and loses rows"
    elif leaf.physical_type == "BYTE_ARRAY" and "DECIMAL" in (logical, element.converted_type):
        reason = "a number has several forms as bytes of any length, and engines probe one"
        hint = "rewrite it with another physical type"
    elif leaf.physical_type in ("FLOAT", "DOUBLE") and not force:
        reason = "Spark and DataFusion probe 0.0 only and lose the rows of -0.0, which is equal to it"
        hint = "pass force=True; lakebloom then writes both zeros where there is one"
    if reason:
        raise UnsupportedTypeError(
            f"column {format_name(leaf.path)} cannot have a filter: {reason}",
            found=" ".join(filter(None, (leaf.physical_type, logical))),
            hint=hint or "choose another column",
        )


def _insert_equals(f: Sbbf, floats: pa.Array, encoding: Parquet) -> None:
    """Insert the values that readers may probe instead: both zeros for either one, and the usual NaN for any."""
    zeros, nans = pc.equal(floats, 0.0), pc.is_nan(floats)
    equals = [0.0, -0.0] * bool(pc.any(zeros).as_py()) + [float("nan")] * bool(pc.any(nans).as_py())
    if equals:
        f.insert(equals, type=floats.type, encoding=encoding)


def _enough_blocks(values: int, fpp: float) -> int:
    """Return the smallest power of two for this many distinct values. Folding reduces it later."""
    blocks = 1
    while blocks < _MAX_BLOCKS and sizing.rate(values / blocks) > fpp:
        blocks *= 2
    return blocks


def _kept_bytes(footer: Footer, leaves: Sequence[Leaf]) -> int:
    """Return the offset of the new filters. They overwrite the old ones of these columns if nothing follows these.

    So embedding again does not make the file longer.
    """
    replaced = {leaf.number for leaf in leaves}
    starts: dict[int, int] = {}
    kept_until = len(MAGIC)
    for group in footer.row_groups:
        for number, chunk in enumerate(group.columns):
            offset, length = chunk.bloom_filter_offset, chunk.bloom_filter_length
            if offset is not None and number in replaced:
                starts[offset + (length or 0)] = offset
            elif offset is not None:  # without a length it may end at the footer
                kept_until = max(kept_until, footer.start if length is None else offset + length)
            for start, size in filter(None, (chunk.column_index, chunk.offset_index)):
                kept_until = max(kept_until, start + size)
            # Some writers have 0 if there is no dictionary.
            pages = [offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset]
            kept_until = max(kept_until, min(pages, default=0) + (chunk.total_compressed_size or 0))
    end = footer.start
    while kept_until <= starts.get(end, 0) < end:
        end = starts[end]
    return end
