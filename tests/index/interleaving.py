"""Every order in which several actors can call a storage: the code is real, only the storage is a model.

An actor is a function of a storage. It is run anew for each of its steps: what it was answered before is played back,
and at its next call it is stopped and the call is noted. So its state is what it was answered, nothing is guessed about
it, and the call that follows is looked up where the same actor was answered the same before. Together with the content
of the store that is the state of the system; states that were seen are not gone through again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lakebloom.errors import AlreadyExistsError, LakebloomError, NotFoundError
from lakebloom.storage import StoredFile

Call: TypeAlias = tuple[Any, ...]
Files: TypeAlias = frozenset[tuple[str, bytes]]
Actor: TypeAlias = Callable[["Played"], Any]


class _Stopped(BaseException):
    """An actor has come to a call that has no answer yet."""


@dataclass(frozen=True)
class Failed:
    """How an actor ended that did not succeed, and what a call raised."""

    error: type[BaseException]
    text: str


class Played:
    """The storage that one run of an actor sees."""

    uri = "model:"

    def __init__(self, answers: Sequence[Any]) -> None:
        self._answers = answers
        self._next = 0
        self.pending: Call = ()

    def _ask(self, *call: Any) -> Any:
        if self._next == len(self._answers):
            self.pending = call
            raise _Stopped
        answer = self._answers[self._next]
        self._next += 1
        if isinstance(answer, Failed):
            raise answer.error(answer.text)
        return answer

    def read(self, path: str) -> memoryview:
        return memoryview(self._ask("read", path))

    def write(self, path: str, data: bytes) -> None:
        self._ask("write", path, bytes(data))

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._ask("put_if_absent", path, bytes(data))

    def list(self, prefix: str) -> Iterator[StoredFile]:
        return iter(self._ask("list", prefix))

    def temporaries(self, prefix: str) -> Iterator[StoredFile]:
        return iter(())  # there are none, and nobody has to wait to know that

    def delete(self, path: str) -> None:
        self._ask("delete", path)


def perform(files: Files, call: Call) -> tuple[Files, Any]:
    """Return the files after a call, and its answer. Everything was stored at the same moment."""
    name, path, *rest = call
    stored = dict(files)
    if name == "read":
        return files, stored.get(path, Failed(NotFoundError, path))
    if name == "list":
        below = (StoredFile(key, len(data), 0) for key, data in stored.items() if key.startswith(f"{path}/"))
        return files, tuple(sorted(below, key=lambda file: file.path))
    if name == "put_if_absent" and path in stored:
        return files, Failed(AlreadyExistsError, path)
    if name == "delete":
        stored.pop(path, None)
    else:
        stored[path] = rest[0]
    return frozenset(stored.items()), None


@dataclass
class _Node:
    """Where an actor is: what it was answered so far. Either it has a next call, or it has ended."""

    answers: tuple[Any, ...]
    call: Call = ()
    outcome: Any = None
    after: dict[Any, _Node] = field(default_factory=dict)


@dataclass
class Explorer:
    """Goes through all interleavings of some actors, from some files."""

    actors: Sequence[Actor]
    check: Callable[[Files, list[Any]], None]
    """Called with every distinct pair of files and outcomes; None is an actor that is not done."""
    states: int = 0

    def explore(self, files: Files) -> None:
        roots = tuple(self._node(number, ()) for number in range(len(self.actors)))
        seen: set[tuple[Any, ...]] = set()
        checked: set[tuple[Any, ...]] = set()
        performed: dict[tuple[int, Call], tuple[Files, Any]] = {}
        interned: dict[Files, Files] = {}
        pending = [(interned.setdefault(files, files), roots)]
        while pending:
            files, nodes = pending.pop()
            key = (id(files), *map(id, nodes))
            if key in seen:
                continue
            seen.add(key)
            ended = tuple(id(node) if not node.call else 0 for node in nodes)
            if (id(files), ended) not in checked:
                checked.add((id(files), ended))
                self.check(files, [None if node.call else node.outcome for node in nodes])
            for number, node in enumerate(nodes):
                if node.call:
                    done = performed.get((id(files), node.call))
                    if done is None:
                        after, answer = perform(files, node.call)
                        done = performed[id(files), node.call] = interned.setdefault(after, after), answer
                    after, answer = done
                    child = node.after.get(answer)
                    if child is None:
                        child = node.after[answer] = self._node(number, (*node.answers, answer))
                    pending.append((after, (*nodes[:number], child, *nodes[number + 1 :])))
        self.states = len(seen)

    def _node(self, number: int, answers: tuple[Any, ...]) -> _Node:
        storage = Played(answers)
        try:
            return _Node(answers, outcome=self.actors[number](storage))
        except _Stopped:
            return _Node(answers, call=storage.pending)
        except LakebloomError as error:
            return _Node(answers, outcome=Failed(type(error), str(error)))
