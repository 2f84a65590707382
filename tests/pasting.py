"""Paste the code of pages into a fresh shell, as a reader does, and tell what it printed.

    python tests/pasting.py docs/QUICKSTART.md docs/SQL.md

A process of its own, started in an empty directory, which knows nothing of the tests and prints one JSON value. Each
page gets a shell of its own: nothing is defined in it but what the page defines. Lines go in one by one, so that a loop
without an empty line behind it fails here, too. The Spark session that a page started is stopped after it: pages share
no more than Java's process, which saves its start.
"""

from __future__ import annotations

import code
import io
import json
import os
import re
import subprocess
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

__all__ = ["blocks", "main", "paste"]

ELSEWHERE = re.compile(r"(pip install|make|git clone) ")
"""Commands that change this environment, or run all tests: `make newcomer` does what they say, from a wheel."""


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """Return the blocks of code of a page in these languages, in order, each with its language."""
    found: list[tuple[str, str]] = []
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
            if inside:
                found.append((line[3:].strip(), ""))
        elif inside:
            found[-1] = (found[-1][0], found[-1][1] + line + "\n")
    return [block for block in found if block[0] in languages]


class _Shell(code.InteractiveConsole):
    """An interactive interpreter that keeps the first error."""

    def __init__(self) -> None:
        super().__init__({"__name__": "__main__", "__doc__": None})
        self.error: str | None = None

    def showtraceback(self, *_: Any, **__: Any) -> None:
        self.error = self.error or traceback.format_exc()

    def showsyntaxerror(self, *_: Any, **__: Any) -> None:
        self.showtraceback()


def paste(texts: list[tuple[str, str]]) -> dict[str, str | None]:
    """Paste blocks into new shells, and return what they printed and the first error. Nothing follows an error."""
    shell, printed, said = _Shell(), io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(said):
        for language, text in texts:
            lines = [*text.splitlines(), ""] if language == "python" else []
            if language == "sh":
                shell.error = _typed(text)
            for line in lines:
                shell.push(line)
                if shell.error is not None:
                    shell.error += f"at: {line}"
                    break
            if shell.error is not None:
                break
    return {"printed": printed.getvalue(), "said": said.getvalue(), "error": shell.error}


def _typed(text: str) -> str | None:
    """Type commands into a shell; return what is wrong with them."""
    script = "\n".join(line for line in text.splitlines() if not ELSEWHERE.match(line))
    done = subprocess.run(["sh", "-eu"], input=script, capture_output=True, text=True)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return f"exit code {done.returncode}: {done.stderr}\n" if done.returncode else None


def _stop_spark() -> None:
    if "pyspark.sql" not in sys.modules:
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None and SparkContext._active_spark_context is not None:  # a page may have stopped it
        session.stop()


def _written() -> dict[Path, tuple[int, int]]:
    """Every file of the current directory, and what tells that it was written again."""
    found = ((path, path.lstat()) for path in Path().rglob("*") if not path.is_dir())
    return {path: (status.st_mtime_ns, status.st_ino) for path, status in found}


def main(pages: list[str]) -> dict[str, dict[str, Any]]:
    """Paste the code of each page into shells of its own: one for Python, one for each block of commands.

    ``wrote`` says in which folders, or files, of the current directory the page wrote or removed something.
    """
    outcomes: dict[str, dict[str, Any]] = {}
    for page in pages:
        before = _written()
        outcomes[page] = {**paste(blocks(Path(page), "python", "sh"))}
        _stop_spark()
        changed = {path for path, _ in before.items() ^ _written().items()}
        outcomes[page]["wrote"] = sorted({path.parts[0] for path in changed})
    return outcomes


if __name__ == "__main__":
    sys.path[0] = ""  # as in a shell: the directory of this file is not searched
    # Spark's Java process writes where it likes; the answer goes out by itself.
    answer = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(answer, "w") as out:
        json.dump(main(sys.argv[1:]), out)
