"""Position deletes: Parquet files of (file_path, pos).

One file may be about many data files, so what was read of it is kept for the others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lakebloom.errors import DataFileError
from lakebloom.storage.uri import from_decoded
from lakebloom.tables.column_mapping import field_id
from lakebloom.tables.file_identity import is_object
from lakebloom.tables.parquet.footer import read_arrow_footer
from lakebloom.tables.parquet.open import open_source, parquet_file, reading
from lakebloom.tuning import KEPT_DELETE_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["deleted_positions"]

_FILE_PATH, _POS = 2147483546, 2147483545
_NAMES = {_FILE_PATH: "file_path", _POS: "pos"}
_BATCH_ROWS = 1 << 16


def deleted_positions(uri: str, data_uri: str, options: Mapping[str, str]) -> Numbers:
    """Return the numbers of the rows of a data file that a file of position deletes names. Raises DataFileError."""
    given = options if is_object(uri) else {}
    return _by_file(uri, tuple(sorted(given.items()))).get(data_uri, np.zeros(0, dtype=np.int64))


@lru_cache(maxsize=KEPT_DELETE_FILES)
def _by_file(uri: str, options: tuple[tuple[str, str], ...]) -> dict[str, Numbers]:
    parts: dict[str, list[Numbers]] = {}
    with open_source(uri, dict(options)) as source, reading(uri):
        file = parquet_file(uri, source, read_arrow_footer(uri, source))
        path_name, pos_name = (_column(uri, file.schema_arrow, number) for number in (_FILE_PATH, _POS))
        for batch in file.iter_batches(_BATCH_ROWS, columns=[path_name, pos_name], use_threads=False):
            paths = batch.column(batch.schema.get_field_index(path_name)).dictionary_encode()
            positions = batch.column(batch.schema.get_field_index(pos_name)).cast(pa.int64())
            if paths.null_count or positions.null_count:
                raise DataFileError(f"{uri} deletes rows and does not say which", found="NULL")
            codes, numbers = paths.indices.to_numpy(), positions.to_numpy()
            for code, path in enumerate(paths.dictionary.to_pylist()):
                parts.setdefault(from_decoded(path), []).append(numbers[codes == code])
    return {path: np.unique(np.concatenate(found)) for path, found in parts.items()}


def _column(uri: str, schema: pa.Schema, number: int) -> str:
    for field in schema:
        if field_id(field) == number or (field_id(field) is None and field.name == _NAMES[number]):
            return str(field.name)
    raise DataFileError(
        f"{uri} is no file of position deletes", found=f"columns {', '.join(schema.names)}", hint="check the table"
    )
