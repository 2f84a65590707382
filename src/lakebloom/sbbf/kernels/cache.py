"""numba's cache of machine code on disk, keyed by the sources of all kernels.

numba caches machine code next to the file of a kernel and drops it when *that file* changes. But constants and
intrinsics of other files are compiled into it, too. So a digest of all sources is part of each kernel's name, which
is part of the name of the cache file: code compiled from other sources is never found.
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
    ("lakebloom.sbbf.kernels", "extremes.py"),
    ("lakebloom.sbbf.kernels", "intrinsics.py"),
    ("lakebloom.sbbf.kernels", "planes_compiled.py"),
    ("lakebloom.sbbf.kernels", "crc32_compiled.py"),
)
"""All files that are compiled into a kernel."""


def source_digest() -> str:
    """Return a short digest of the kernels' sources, or the package's version if they cannot be read."""
    digest = hashlib.sha256()
    for package, file in _SOURCES:
        try:
            source = pkgutil.get_data(package, file)  # also works in a zip file
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
            # No writable directory, a full disk, or a damaged cache file, which can raise any error of unpickling.
            # Compile for this process alone. An error of the compiler is raised again.
            return self._compile({})

    def _compile(self, options: dict[str, bool]) -> Callable[..., None]:
        dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(self._function)
        dispatcher.compile(self._types)
        dispatcher.disable_compile()  # another argument type would be a bug, and cost seconds
        code: Callable[..., None] = dispatcher
        return code
