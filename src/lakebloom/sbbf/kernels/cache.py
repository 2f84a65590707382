"""Machine code that outlives the process: numba's cache on disk, keyed by all of our sources.

numba keeps machine code next to the file of a kernel and drops it when *that file* changes. But constants and
intrinsics of other files are compiled into it, too. So a digest of all of them is part of each kernel's name, which
numba puts into the name of its cache file: code compiled from other sources is never found.
"""

from __future__ import annotations

import hashlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numba

from lakebloom import __version__

__all__ = ["Kernel", "kernel", "source_digest"]

_SOURCES = (
    ("lakebloom", "tuning.py"),
    ("lakebloom.sbbf", "blocks.py"),
    ("lakebloom.sbbf.kernels", "xxh64.py"),
    ("lakebloom.sbbf.kernels", "cache.py"),
    ("lakebloom.sbbf.kernels", "compiled.py"),
    ("lakebloom.sbbf.kernels", "intrinsics.py"),
)
"""Everything that is compiled into a kernel."""


def source_digest() -> str:
    """Return a short name for the sources of the kernels, or the package's version where they cannot be read."""
    digest = hashlib.sha256()
    for package, file in _SOURCES:
        try:
            source = pkgutil.get_data(package, file)  # asks the loader, so that a zip file works
        except OSError:
            source = None
        if source is None:  # only byte code is installed
            return "v" + __version__.replace(".", "_")
        digest.update(source)
    return digest.hexdigest()[:12]


_DIGEST = source_digest()


def kernel(*types: Any) -> Callable[[Callable[..., None]], Kernel]:
    """Make a function of these numba types a kernel."""
    return lambda function: Kernel(function, types)


class Kernel:
    """A function that is compiled, or loaded from disk, when it is first called."""

    __slots__ = ("_code", "_function", "_types")

    def __init__(self, function: Callable[..., None], types: tuple[Any, ...]) -> None:
        function.__qualname__ = f"{function.__qualname__}_{_DIGEST}"
        self._function, self._types = function, types
        self._code: Callable[..., None] | None = None

    def __call__(self, *arguments: Any) -> None:
        """Run the machine code."""
        if self._code is None:
            self._code = self._load()
        self._code(*arguments)

    def _load(self) -> Callable[..., None]:
        try:
            return self._compile({"cache": True})
        except Exception:
            # There is no directory to write to, the disk is full, or a file in the cache is damaged, which surfaces as
            # anything that unpickling can raise. A cache is a convenience: compile for this process alone. An error
            # of the compiler itself comes again.
            return self._compile({})

    def _compile(self, options: dict[str, bool]) -> Callable[..., None]:
        dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(self._function)
        dispatcher.compile(self._types)
        dispatcher.disable_compile()  # another type of argument is a mistake of ours, and would cost seconds
        code: Callable[..., None] = dispatcher
        return code
