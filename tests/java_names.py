"""Java's packages, classes and methods, each looked up once.

For every part of ``jvm.org.apache.spark`` Py4J asks Java, which searches all jars of Spark for a class of that name,
and does so again the next time: a sixth of what a test with many small queries costs. What a name means does not
change while a Java process runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["remember_java_names"]


def remember_java_names() -> None:
    """Let this process keep what it has found. Fields, and names that were not found, are sought anew each time."""
    from py4j.java_gateway import JavaClass, JavaPackage, JVMView

    for kind in (JVMView, JavaPackage, JavaClass):
        if kind.__getattr__.__module__ != __name__:
            kind.__getattr__ = _remembering(kind.__getattr__)


def _remembering(seek: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    from py4j.java_gateway import JavaClass, JavaMember, JavaPackage

    def remembered(self: Any, name: str) -> Any:
        found = seek(self, name)
        # Py4J takes any name that is no class for a package: a class of that name may come later.
        if isinstance(found, (JavaClass, JavaMember)) or (isinstance(found, JavaPackage) and name.islower()):
            self.__dict__[name] = found  # where Python looks first
        return found

    return remembered
