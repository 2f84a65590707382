"""Progress that shows itself: on a terminal and in a notebook, never elsewhere, and nothing is left of it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakebloom.display import progress as module
from lakebloom.display.progress import Progress, shown
from tests.index.lake import NAME, Lake

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
HALF, ALL = Progress(4, 8, 4_000_000, 8_000_000, 100), Progress(8, 8, 8_000_000, 8_000_000, 200)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "lakebloom-display" in thread.name]


# A terminal: a child whose stderr is one


SCRIPT = """
import sys, threading, warnings
from lakebloom.display import progress
from lakebloom.display.progress import Progress, shown
progress.AFTER_S = {after_s}
try:
    with shown("building by_user", {option}) as tell:
        if tell is not None:
            tell(Progress(4, 8, 4_000_000, 8_000_000, 100))
            warnings.warn("another package is old", FutureWarning)
        {ending}
except (KeyboardInterrupt, ValueError) as error:
    print("caught", type(error).__name__, file=sys.stderr)
for thread in threading.enumerate()[1:]:
    thread.join(60)  # that of rich ends by itself, a moment later
assert [t.name for t in threading.enumerate()] == ["MainThread"]
print("after", file=sys.stderr)
"""


def on_a_terminal(command: list[str], stderr_only: bool = False) -> str:
    """Run a command whose stderr is a terminal, and return what the terminal got."""
    leader, follower = pty.openpty()
    stdout = subprocess.DEVNULL if stderr_only else follower
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdin=follower, stdout=stdout, stderr=follower, env=env, cwd=ROOT) as child:
        os.close(follower)
        screen = b""
        while True:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:  # the last one closed it
                break
            if not part:
                break
            screen += part
    os.close(leader)
    assert child.returncode == 0, screen.decode()
    return screen.decode()


def drawn(after_s: float = 0, option: str = "None", ending: str = "pass") -> str:
    script = SCRIPT.format(after_s=after_s, option=option, ending=ending)
    return on_a_terminal([sys.executable, "-c", script])


def left_on(screen: str) -> list[str]:
    """The lines that stay, as a terminal with nothing but these controls shows them."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", screen):
        if token == "\r":
            column = 0
        elif token == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif token.startswith("\x1b["):
            number = int(re.sub(r"\D", "", token) or 1)
            if token.endswith("A"):
                row = max(0, row - number)
            elif token.endswith("K"):
                lines[row] = "" if number == 2 else lines[row][:column]
        else:
            lines[row] = lines[row][:column].ljust(column) + token + lines[row][column + len(token) :]
            column += len(token)
    return [line.rstrip() for line in lines if line.strip()]


@pytest.mark.parametrize("ending", ["pass", "raise ValueError", "raise KeyboardInterrupt"])
def test_a_terminal_shows_a_bar_and_is_clean_afterwards(ending: str) -> None:
    screen = drawn(ending=ending)
    assert "building by_user" in screen
    assert "4 of 8 files" in screen
    kept = left_on(screen)
    assert kept[-1] == "after"
    assert not [line for line in kept if "by_user" in line or "━" in line]
    assert ("caught" in screen) == (ending != "pass")
    assert screen.rindex("by_user") < screen.rindex("after"), "nothing is printed when it is over"
    assert screen.count("\x1b[?25l") == screen.count("\x1b[?25h"), "the cursor is there again"


def test_what_ends_soon_prints_nothing() -> None:
    screen = drawn(after_s=3600)
    assert "by_user" not in screen
    assert "\x1b" not in screen


def test_false_and_functions_draw_nothing() -> None:
    assert drawn(option="False").split() == ["after"]
    screen = drawn(option="lambda done: print('mine', done.files_done, file=sys.stderr)")
    assert "mine 4" in screen
    assert "by_user" not in screen


@pytest.mark.slow
def test_the_command_line_draws_the_same(lake: Lake) -> None:
    lake.fill(range(3))
    lake.create()
    start = (
        "import sys; from lakebloom.display import progress; progress.AFTER_S = 0; "
        "from lakebloom.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    for verb in ("verify", "optimize", "vacuum"):
        command = [sys.executable, "-c", start, verb, NAME, "--location", lake.location]
        screen = on_a_terminal(command, stderr_only=True)
        assert ("of 3 files" in screen) == (verb == "verify" or verb == "optimize"), verb
        assert not [line for line in left_on(screen) if "of 3 files" in line]
        assert "ing i" not in on_a_terminal([*command, "--output", "json"], stderr_only=True)


# Elsewhere


def test_nobody_looks_at_a_pipe(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AFTER_S", 0)
    for option in (None, True, False):
        with shown("building by_user", option) as tell:
            assert tell is None
            assert threads() == []
    assert capfd.readouterr() == ("", "")


def test_work_in_the_background_draws_nothing(notebook: Notebook) -> None:
    seen: list[Any] = []

    def work() -> None:
        with shown("refreshing by_user") as tell:
            seen.append(tell)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert (seen, notebook.events) == ([None], [])


# A notebook


class Notebook:
    """The part of IPython that shows things: an output for each display, which can be replaced."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def display(self, shown: Any, *, display_id: bool) -> Notebook:
        assert display_id is True
        self.events.append(("display", shown._repr_html_()))
        return self

    def update(self, shown: Any) -> None:
        self.events.append(("update", shown._repr_html_()))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    """A kernel of a notebook, in which everything takes long enough."""
    cell = Notebook()
    shell = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    ipython_display = types.ModuleType("IPython.display")
    ipython_display.display = cell.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython_display)
    monkeypatch.setattr(module, "AFTER_S", 0)
    return cell


def test_a_notebook_has_one_line_that_goes_on(notebook: Notebook) -> None:
    with shown("building <b>by_user</b>") as tell:
        assert tell is not None
        tell(HALF)
        tell(ALL)
    (kind, _), *updates = notebook.events
    assert (kind, {kind for kind, _ in updates}) == ("display", {"update"})
    texts = [text for _, text in notebook.events]
    assert any("4 of 8 files" in text for text in texts)
    assert any("8 of 8 files" in text for text in texts)
    assert all("<b>" not in text for text in texts)
    assert texts[-1] == "", "nothing is left of it"
    assert threads() == []
    tell(ALL)
    assert [text for _, text in notebook.events] == texts, "and nothing comes after the end"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_notebook_is_clean_after_an_error(notebook: Notebook, error: type[BaseException]) -> None:
    def fail() -> None:
        with shown("building by_user") as tell:
            tell(HALF)  # type: ignore[misc]
            raise error

    with pytest.raises(error):
        fail()
    assert notebook.events[-1] == ("update", "")
    assert threads() == []


def test_one_within_another_tells_the_outer_one(notebook: Notebook) -> None:
    with shown("repairing by_user") as outer, shown("refreshing by_user") as inner:
        assert inner == outer
        inner(HALF)  # type: ignore[misc]
    assert {kind for kind, text in notebook.events if "refreshing" in text} == set()


def test_a_screen_that_fails_is_no_reason_to_fail(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no screen")

    monkeypatch.setattr(sys.modules["IPython.display"], "display", fail)
    with shown("building by_user") as tell:
        tell(HALF)  # type: ignore[misc]
    assert threads() == []


OPERATIONS: dict[str, Callable[[Any, Any], object]] = {
    "verifying": lambda lake, progress: lake.verify_index(NAME, progress=progress),
    "optimizing": lambda lake, progress: lake.optimize_index(NAME, progress=progress),
    "vacuuming": lambda lake, progress: lake.vacuum_index(NAME, progress=progress),
    "repairing": lambda lake, progress: lake.repair_index(NAME, progress=progress),
}


@pytest.mark.parametrize("title", OPERATIONS)
def test_every_operation_shows_itself(lake: Lake, notebook: Notebook, title: str) -> None:
    lake.fill(range(3))
    lake.create()
    OPERATIONS[title](lake.open(), None)
    assert notebook.events[-1:] in ([("update", "")], [("display", "")], []), "quick ones may end before the first"
    assert all(f"{title} {NAME}" in text for _, text in notebook.events if text)
    assert threads() == []
    notebook.events.clear()
    seen: list[Progress] = []
    OPERATIONS[title](lake.open(), False)
    OPERATIONS[title](lake.open(), seen.append)
    assert notebook.events == []
    if title in ("verifying",):
        assert (seen[0].files_done, seen[-1].files_done, seen[-1].files) == (0, 3, 3)


def test_what_is_used_of_ipython_is_there() -> None:
    pytest.importorskip("IPython")
    from IPython.display import DisplayHandle, display

    assert callable(display)
    assert hasattr(DisplayHandle, "update")
