"""``Lakebloom``, the facade: hands work to Spark, or does without it.

With a Spark session it creates and maintains indexes. With only a location it reads them: candidates and lookups need
no Spark, no JVM and no pyspark. What only some methods need loads with the first call, because commands of a few
milliseconds go through here.
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
    """Bloom-filter indexes below one location.

    ``location`` is a directory or an object-store URI; with a session it may be left out, and is then
    ``spark.lakebloom.location``, or the directory beside Spark's warehouse. ``options`` configure an object
    store, such as ``{"region": "eu-west-1"}``.
    """

    def sql(self, text: str) -> DataFrame:
        """Run ``CREATE BLOOM INDEX …``, ``SHOW BLOOM INDEXES`` and the like (docs/SQL.md); all else is Spark's SQL."""
        from lakebloom.spark.sql import run

        return run(self._session(), self, text)

    def __enter__(self) -> Lakebloom:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
