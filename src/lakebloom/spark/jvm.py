"""The Java side: sources that Spark's own compiler, Janino, makes into classes in the driver. No jar is needed."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lakebloom.spark.versions import java_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = "io.lakebloom.spark"
_LOADERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""One for each JVM: several Lakebloom objects and sessions share the classes."""


def new_object(spark: SparkSession, name: str, *arguments: Any) -> Any:
    """Return a new instance of one of our Java classes, which has one constructor. Arguments may be Python objects."""
    gateway: Any = spark.sparkContext._gateway
    given = gateway.jvm.java.util.ArrayList()
    for argument in arguments:  # a Python proxy can enter a list, not a gateway array
        given.add(argument)
    return _class_loader(gateway).loadClass(f"{PACKAGE}.{name}").getConstructors()[0].newInstance(given.toArray())


def is_stopped(spark: SparkSession) -> bool:
    """Tell whether a session ended: what fails because of it is nobody's problem."""
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except Exception:
        return True


def _class_loader(gateway: Any) -> Any:
    if gateway not in _LOADERS:
        jvm = gateway.jvm
        scala = str(jvm.scala.util.Properties.versionNumberString())
        sources = jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder()
        for file in files("lakebloom.spark.rule").joinpath("java").iterdir():
            text = java_source(file.read_text(encoding="utf-8"), scala)
            sources.addResource(f"{PACKAGE.replace('.', '/')}/{file.name}", text)
        context = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        _LOADERS[gateway] = jvm.org.codehaus.janino.JavaSourceClassLoader(context, sources, "UTF-8")
    return _LOADERS[gateway]
