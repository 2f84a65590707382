"""Compiles our Java sources in the driver with Janino, which is part of Spark. No jar is needed."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lakebloom.spark.versions import java_source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

PACKAGE = "io.lakebloom.spark"
_LOADERS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""One for each JVM: several Lakebloom objects and sessions share the classes."""


def new_object(spark: SparkSession, name: str, *arguments: Any) -> Any:
    """Return a new instance of one of our Java classes, which has one constructor. Arguments may be Python objects."""
    # py4j can put a Python proxy into a list, but not into a gateway array
    given = java_list(spark, arguments).toArray()
    return java_class(spark, name).getConstructors()[0].newInstance(given)


def java_list(spark: SparkSession, items: Iterable[Any]) -> Any:
    """Return Java's list of these objects. Asking for ``jvm.java.util.ArrayList`` would look for three classes."""
    from py4j.java_collections import ListConverter

    gateway: Any = spark.sparkContext._gateway
    return ListConverter().convert(items, gateway._gateway_client)


def java_class(spark: SparkSession, name: str) -> Any:
    """Return one of our Java classes, compiled."""
    return _class_loader(spark).loadClass(f"{PACKAGE}.{name}")


def is_stopped(spark: SparkSession) -> bool:
    """Return whether a session has ended; errors because of that are ignored."""
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except Exception:
        return True


def _class_loader(spark: Any) -> Any:
    gateway = spark.sparkContext._gateway
    if gateway not in _LOADERS:
        jvm = gateway.jvm
        scala = str(jvm.scala.util.Properties.versionNumberString())
        session = str(spark._jsparkSession.getClass().getName())
        sources = jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder()
        for file in files("lakebloom.spark.rule").joinpath("java").iterdir():
            text = java_source(file.read_text(encoding="utf-8"), scala, session)
            sources.addResource(f"{PACKAGE.replace('.', '/')}/{file.name}", text)
        context = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        _LOADERS[gateway] = jvm.org.codehaus.janino.JavaSourceClassLoader(context, sources, "UTF-8")
    return _LOADERS[gateway]
