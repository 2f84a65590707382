"""A writer that does one thing after the other to an index until it is killed. Each line it prints is a success.

python -m tests.fuzz.stress HOME SEED
"""

from __future__ import annotations

import itertools
import os
import random
import sys
from pathlib import Path

from lakebloom.errors import LakebloomError
from tests.index.lake import DAY_MS, NAME, Lake, columns_of

TYPES = {"k": "bigint", "s": "string", "n": "int"}

ACTIONS = {"append": 4, "refresh": 6, "full": 1, "optimize": 2, "vacuum": 2, "delete": 1, "lookup": 2}
"""With how often each is done."""


def append(lake: Lake, number: int, rng: random.Random) -> None:
    """Add a file to the table, whole or not at all."""
    hidden = lake.write(f".{number}", columns_of(range(number * 20, number * 20 + 20)))
    hidden.replace(lake.table / f"w{number}.parquet")


def main(home: Path, seed: int) -> None:
    lake = Lake(home, TYPES)
    rng = random.Random(seed)
    for step in itertools.count():
        action = rng.choices(
            ["append", "refresh", "full", "optimize", "vacuum", "delete", "lookup"], [4, 6, 1, 2, 2, 1, 2]
        )
        said = action[0]
        try:
            if said == "append":
                append(lake, 1000 + seed * 1000 + step, rng)
            elif said == "refresh":
                lake.refresh(tasks=1)
            elif said == "full":
                lake.refresh("full", tasks=1)
            elif said == "optimize":
                lake.open().optimize_index(NAME)
            elif said == "vacuum":
                lake.vacuum(0, DAY_MS)  # what others are writing is young
            elif said == "delete":
                lake.open().delete_index(NAME)
                lake.open().restore_index(NAME)
            else:
                lake.open().lookup(NAME, rng.choice(_predicates(rng)))
        except LakebloomError as error:
            said = f"{said}: {error.code}"
        os.write(1, f"{said}\n".encode())


def _predicates(rng: random.Random) -> list[object]:
    from lakebloom import col

    return [col("k") == rng.randrange(100), col("s") == f"s{rng.randrange(100)}"]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
