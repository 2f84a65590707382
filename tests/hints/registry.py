"""Cases that get into a state, follow its hint, and are out of it: one for each code of an error, and each reason.

A case is a function that is registered for a code. It must meet the state, with ``met``, and do what the hint says;
where the state is still there afterwards it fails. To add a code: add it to docs/ERRORS.md or docs/REASONS.md, and a
case here. What no test can get into is explained.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom.errors import LakebloomError
from tests.index.lake import Lake, assert_answers, questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Case = Any
ASKED = questions([3, 25])


class Registry:
    """Cases by code."""

    def __init__(self, explained: dict[str, str]) -> None:
        self.cases: dict[str, Case] = {}
        self.explained = explained

    def __call__(self, code: str) -> Callable[[Case], Case]:
        """Register a case."""

        def register(case: Case) -> Case:
            assert code not in self.cases, f"{code} has a case already"
            self.cases[code] = case
            return case

        return register

    def require_complete(self, codes: set[str], page: str) -> None:
        """Fail where a code has neither a case nor an explanation, or a case has no code."""
        missing = sorted(codes - self.cases.keys() - self.explained.keys())
        assert not missing, f"add a case that follows the hint of {missing} (see {page}), or explain why there is none"
        assert not (self.cases.keys() | self.explained.keys()) - codes, "a case of a code that is gone"
        assert not self.cases.keys() & self.explained.keys(), "a case and an explanation"


class Met:
    """What was met of the state that a case is about."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.times = 0

    @contextmanager
    def __call__(self, hint: str = "") -> Iterator[None]:
        """Expect the error in a block; its hint has these words."""
        with pytest.raises(LakebloomError) as caught:
            yield
        assert caught.value.code == self.code, caught.value
        assert caught.value.hint, f"an error without a hint: {caught.value}"
        assert hint in caught.value.hint, caught.value
        self.times += 1


error_case = Registry(
    {
        "FILTER_FORMAT": "the base of CORRUPT_FILTER and UNSUPPORTED_FILTER: to be caught, and never raised by itself",
        "SOURCE": "the base of what is wrong with a table: to be caught, and never raised by itself",
        "INDEX": "the base of what is wrong with an index: to be caught, and never raised by itself",
        "INDEX_FORMAT": "the base of CORRUPT_INDEX and UNKNOWN_FORMAT_VERSION; by itself only for a bug of lakebloom",
    }
)
"""The cases of all codes of errors."""


def assert_well(lake: Lake) -> None:
    """The index of a case answers as the table does."""
    assert_answers(lake, ASKED)
