"""Filters that lakebloom embeds are those that every writer makes itself, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import lakebloom.parquet
from lakebloom.parquet.footer import read_footer
from tests.parquet.files import assert_same_values, embedded
from tests.parquet.writers import PRESENT, UNSUPPORTED, WRITERS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_bits(writer: str, tmp_path: Path) -> None:
    path = WRITERS[writer](tmp_path)
    leaves = read_footer(path).leaves
    refused = {leaf.path[0] for leaf in leaves if leaf.physical_type == "INT96"} | {"float16"}
    columns = [name for name in PRESENT if name not in UNSUPPORTED[writer] | refused]
    target = tmp_path / "target.parquet"
    lakebloom.parquet.embed(path, target, columns, fpp=0.001, force=True)
    for leaf in leaves:
        ours, theirs = embedded(target, leaf.number), embedded(path, leaf.number)
        if leaf.path[0] not in columns:
            assert ours == theirs
            continue
        assert_same_values(ours, theirs)
        found = lakebloom.parquet.might_contain(target, leaf.path[0], PRESENT[leaf.path[0]])
        assert found.all()
