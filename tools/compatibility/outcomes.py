"""What the tests said on one line, kept so that some files can be run once more."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from compatibility.targets import HOME, Target

__all__ = ["Outcome"]


@dataclass
class Outcome:
    """What the tests said on one line."""

    target: Target
    tests: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By test: passed, failed or skipped, and why."""
    minutes: float = 0.0
    commit: str = ""
    again: dict[str, str] = field(default_factory=dict)
    """Files that were run once more, and at which commit."""

    @property
    def saved(self) -> Path:
        """The file that keeps the outcome for a later `--again`."""
        return HOME / f"{self.target.name}.json"

    def save(self) -> None:
        """Keep the outcome."""
        self.saved.write_text(
            json.dumps({"tests": self.tests, "minutes": self.minutes, "commit": self.commit, "again": self.again})
        )

    def load(self) -> Outcome:
        """Return the outcome that was kept."""
        if not self.saved.exists():
            sys.exit(f"{self.target.name}: no whole run to add to; run tools/compat first")
        kept = json.loads(self.saved.read_text())
        tests = {test: (outcome, why) for test, (outcome, why) in kept.pop("tests").items()}
        return Outcome(self.target, tests, **kept)

    def replace(self, files: list[str], newer: Outcome) -> None:
        """Take over what the tests of some files said later."""
        self.tests = {test: found for test, found in self.tests.items() if test.partition("::")[0] not in files}
        self.tests |= newer.tests
        self.again |= dict.fromkeys(files, newer.commit)

    def count(self, outcome: str, paths: tuple[str, ...] = ("",)) -> int:
        """Return how many tests below some paths ended so."""
        return sum(found == outcome and test.startswith(paths) for test, (found, _) in self.tests.items())

    @property
    def ok(self) -> bool:
        """Whether tests ran, and none failed."""
        return self.count("passed") > 0 and self.count("failed") == 0

    @property
    def summary(self) -> str:
        """The counts as words."""
        counts = {kind: self.count(kind) for kind in ("passed", "failed", "skipped")}
        return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count) or "none"
