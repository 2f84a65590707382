from __future__ import annotations

from types import ModuleType

import pytest

from lakebloom.sbbf import filter as filter_module
from lakebloom.sbbf.hashing import hash_values
from lakebloom.sbbf.kernels import compiled, portable


@pytest.fixture(params=[compiled, portable], ids=["compiled", "portable"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Make everything run on one form of the kernels."""
    for module in (hash_values, filter_module):
        monkeypatch.setattr(module, "choose", lambda count, size_bytes=0: request.param)
    return request.param
