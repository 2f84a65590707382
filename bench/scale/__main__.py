"""A million units, growth with files and columns, and requests to an object store: `make bench-scale`.

What the figures mean for ten million files is worked out in docs/SCALE.md.
"""

from __future__ import annotations

from rich.console import Console

from bench.results import Outcome, main
from bench.scale.growth import growth_results
from bench.scale.opening import opening_results
from bench.scale.probe import probe_results
from bench.scale.requests import request_results
from bench.session import session


def run(console: Console) -> Outcome:
    """Measure everything."""
    results = [*probe_results(console), *opening_results(console), *request_results(console)]
    spark = session("scale")
    results += growth_results(console, spark)
    spark.stop()
    return Outcome(results)


if __name__ == "__main__":
    main("how costs grow", run)
