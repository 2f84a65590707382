"""Each hint of docs/ERRORS.md is followed: into the state, along the hint, and out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakebloom import errors
from tests.hints import errors_of_indexes, errors_of_tables, errors_of_values
from tests.hints.registry import Met, error_case
from tests.index.lake import Lake

CASES = (errors_of_values, errors_of_tables, errors_of_indexes)
"""They register themselves."""


@pytest.mark.slow
@pytest.mark.parametrize("code", sorted(error_case.cases))
def test_the_hint_leads_out(code: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"k": "bigint", "s": "string", "n": "int"})
    lake.fill(range(3))
    met = Met(code)
    error_case.cases[code](lake, met)
    assert met.times, "the case never met the state that it is about"


def test_every_code_has_a_case() -> None:
    codes = {getattr(errors, name).code for name in errors.__all__} - {errors.LakebloomError.code}
    error_case.require_complete(codes, "docs/ERRORS.md")
