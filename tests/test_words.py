"""One word an idea: words that had several meanings, or another word for the same, do not come back into src/."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src" / "lakebloom"

# What must not come back, the word to use instead, and the parts of src/lakebloom where it is right.
WORDS: dict[str, tuple[str, tuple[str, ...]]] = {
    r"asks?|asked|asking|askers?": (
        "probe (a filter), prune (units), query (an index), call",
        ("tables/", "errors.py", "tuning.py", "cli/commands/demo.py", "spark/", "index/query/explain.py"),
    ),
    r"questions?": (
        "query, predicate, condition",
        ("tables/", "storage/uri.py", "spark/", "index/query/explain.py"),  # a question mark; what Java writes
    ),
    r"advisors?|Advisor|Advice": ("pruner, PrunedFiles; advice is about columns", ("index/build/advise.py",)),
    r"in vain|for nothing": ("expected false positives, unnecessary", ()),
    r"log entry|log entries|Entry|\w*_entry|entry_\w+": (
        "commit",
        ("store/", "index/maintain/", "spark/connect_reads.py"),  # entry_path; protobuf's map_entry
    ),
    r"FileGroup|GroupResult|groups? of files": ("shard; a group is a row group", ()),
    r"SkippedFile": ("rejected: queries skip files, builds reject them", ()),
    r"TakenFilter|filters_taken|takeable": ("imported", ()),
    r"SourceRecord": ("TableRecord", ()),
    r"unknown files?|not covered|files? that the index does not know": ("unindexed", ("cli/", "spark/", "tables/")),
}


@pytest.mark.parametrize("pattern", WORDS)
def test_old_words_do_not_come_back(pattern: str) -> None:
    instead, allowed = WORDS[pattern]
    word = re.compile(rf"(?<!\w)(?:{pattern})(?!\w)")
    found = [
        f"{path.relative_to(SOURCES)}:{number}: {line.strip()}"
        for path in sorted(SOURCES.rglob("*.py"))
        if not path.relative_to(SOURCES).as_posix().startswith(allowed or ("-",))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if word.search(line)
    ]
    assert not found, f"say {instead}:\n" + "\n".join(found)
