"""Every verb that opens Parquet files, run in a process of its own: Arrow may end the process."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lakebloom.parquet
from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.errors import LakebloomError
from lakebloom.index.build.create import create_index
from lakebloom.index.build.refresh import refresh_index
from lakebloom.index.catalog import Catalog
from lakebloom.parquet.inspection import inspect_file
from tests.index.local_builder import source_of, workshop

TYPES = {"id": "bigint", "open": "bigint"}


class Verbs:
    """A plain file and a sealed one, in tables of their own."""

    def __init__(self, sealed: Path, home: Path) -> None:
        self.sealed, self.home = sealed, home
        self._count = 0

    def table(self, *, plain: bool) -> tuple[Path, str]:
        self._count += 1
        table = self.home / f"t{self._count}"
        table.mkdir()
        if plain:
            pq.write_table(pa.table({"id": range(10), "open": range(10)}), table / "a.parquet")
        return table, str(self.home / f"ix{self._count}")

    def create(self, column: str, *, from_embedded: bool = False) -> object:
        table, location = self.table(plain=True)
        shutil.copy(self.sealed, table)
        config = BloomIndexConfig("i", [column], granularity="row_group")
        shop = workshop(Catalog(location))
        report = create_index(shop, source_of(table, TYPES), config, from_embedded=from_embedded)
        return report.files, sorted(skipped.code for skipped in report.skipped)

    def create_over_sealed_only(self, column: str) -> object:
        table, location = self.table(plain=False)
        shutil.copy(self.sealed, table)
        return create_index(workshop(Catalog(location)), source_of(table, TYPES), BloomIndexConfig("i", [column])).files

    def refreshed(self) -> tuple[Lakebloom, object]:
        table, location = self.table(plain=True)
        shop = workshop(Catalog(location))
        create_index(shop, source_of(table, TYPES), BloomIndexConfig("i", ["open"]))
        shutil.copy(self.sealed, table)
        report = refresh_index(shop, "i")
        return Lakebloom(location=location), (report.files, [skipped.code for skipped in report.skipped])

    def lookup(self, columns: list[str], *, refreshed: bool) -> object:
        if refreshed:
            lake = self.refreshed()[0]
        else:
            table, location = self.table(plain=True)
            create_index(workshop(Catalog(location)), source_of(table, TYPES), BloomIndexConfig("i", ["open"]))
            shutil.copy(self.sealed, table)
            lake = Lakebloom(location=location)
        first = lake.lookup("i", col("open") == 500, columns=columns).to_pylist()
        assert lake.lookup("i", col("open") == 500, columns=columns).to_pylist() == first
        return first


def main(sealed: Path, home: Path) -> None:
    verbs = Verbs(sealed, home)
    everything: dict[str, Callable[[], object]] = {
        "create id": lambda: verbs.create("id"),
        "create open": lambda: verbs.create("open"),
        "create id from embedded": lambda: verbs.create("id", from_embedded=True),
        "create open from embedded": lambda: verbs.create("open", from_embedded=True),
        "create id alone": lambda: verbs.create_over_sealed_only("id"),
        "refresh": lambda: verbs.refreshed()[1],
        "lookup open": lambda: verbs.lookup(["open"], refreshed=False),
        "lookup open, refreshed": lambda: verbs.lookup(["open"], refreshed=True),
        "lookup all": lambda: verbs.lookup(["id", "open"], refreshed=False),
        "lookup all, refreshed": lambda: verbs.lookup(["id", "open"], refreshed=True),
        "inspect": lambda: len(inspect_file(sealed).filters),
        "filters": lambda: len(lakebloom.parquet.filters(sealed)),
        "might contain": lambda: lakebloom.parquet.might_contain(sealed, "open", [5]).tolist(),
        "embed open": lambda: lakebloom.parquet.embed(sealed, home / "e.parquet", columns=["open"]).filters,
        "embed id": lambda: lakebloom.parquet.embed(sealed, home / "e.parquet", columns=["id"]).filters,
        "advise": lambda: [advice.column for advice in _advised(verbs)],
    }
    for name, verb in everything.items():
        try:
            sys.stdout.write(f"{name}: {verb()}\n")
        except LakebloomError as error:
            sys.stdout.write(f"{name}: {error.code} {error.message}\n")


def _advised(verbs: Verbs) -> object:
    table, location = verbs.table(plain=True)
    shutil.copy(verbs.sealed, table)
    return Lakebloom(location=location).advise(str(table))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
