"""``Lakebloom``, the public class: with a Spark session it creates and maintains indexes, without one it reads them.

Candidates and lookups need no Spark, no JVM and no pyspark. Modules that only some methods need are imported in these
methods: a lookup on the command line takes a few milliseconds, and imports would take longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebloom.index.arguments import typed_arguments
from lakebloom.lake.queries import Queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Lakebloom"]


@typed_arguments
class Lakebloom(Queries):
    """The Bloom-filter indexes at one location.

    ``location`` is a directory or an object-store URI. With a session it may be left out; the default is
    ``spark.lakebloom.location``, or a directory next to Spark's warehouse. ``options`` configure an object
    store, such as ``{"region": "eu-west-1"}``.
    """

    def sql(self, text: str) -> DataFrame:
        """Run ``CREATE BLOOM INDEX …``, ``SHOW BLOOM INDEXES`` and so on (docs/SQL.md); Spark runs any other SQL."""
        from lakebloom.spark.sql import run

        return run(self._session(), self, text)

    def __enter__(self) -> Lakebloom:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
