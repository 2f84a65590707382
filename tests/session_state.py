"""What a test can leave behind in the Spark session that all share, and how it is taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakebloom import Lakebloom
from lakebloom.index import threads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SessionState"]


class SessionState:
    """The session as it was at one moment: settings, rules, listeners, views, database, caches."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._session = self._spark._jsparkSession
        self._activate()
        self._settings = self._conf().getAllConfs()  # an immutable map of Scala, as all below
        self._enabled = _enabled_lakes()
        self._rules = self._session.experimental().extraOptimizations()
        self._listeners = self._listening()
        self._views = self._temporary_views()
        self._database = self._session.catalog().currentDatabase()
        self._nothing_cached = self._session.sharedState().cacheManager().isEmpty()

    def restore(self) -> None:
        """Make the session what it was. Most tests leave it so, and then this only compares."""
        self._activate()
        for lake in _enabled_lakes() - self._enabled:
            lake.close()
        self._restore_settings()
        if not self._session.experimental().extraOptimizations().equals(self._rules):
            getattr(self._session.experimental(), "extraOptimizations_$eq")(self._rules)
        for listener in self._listening():
            if listener not in self._listeners and not _is_spark_own(listener):
                self._session.listenerManager().unregister(listener)
        if self._session.catalog().currentDatabase() != self._database:
            self._session.catalog().setCurrentDatabase(self._database)
        for view in self._temporary_views() - self._views:
            self._session.catalog().dropTempView(view)
        if self._nothing_cached and not self._session.sharedState().cacheManager().isEmpty():
            self._session.catalog().clearCache()
        self._spark.sparkContext._jsc.sc().clearJobGroup()

    def _activate(self) -> None:
        """Make the session the one that Spark and Python mean when they say "the active session"."""
        self._session.setActiveSession(self._session)  # static, in a class that is not the same in all versions
        self._session.setDefaultSession(self._session)
        type(self._spark)._activeSession = self._spark

    def _conf(self) -> Any:
        return self._session.sessionState().conf()

    def _listening(self) -> list[Any]:
        return list(self._session.listenerManager().listListeners())

    def _restore_settings(self) -> None:
        now = self._conf().getAllConfs()
        if now.equals(self._settings):
            return
        before, after = _python(self._settings), _python(now)
        for key in after.keys() - before.keys():
            self._conf().unsetConf(key)
        for key, value in before.items():
            if after.get(key) != value:
                self._conf().setConfString(key, value)

    def _temporary_views(self) -> frozenset[str]:
        names = self._session.sessionState().catalog().listLocalTempViews("*").mkString("\n")
        return frozenset(name.strip("`") for name in names.split("\n") if name)


def _enabled_lakes() -> frozenset[Lakebloom]:
    return frozenset(user for user in list(threads._users) if isinstance(user, Lakebloom) and user.enabled)


def _is_spark_own(listener: Any) -> bool:
    """Whether Spark itself listens. From 4.0 on it registers one listener for all observations, and only once."""
    return str(listener.getClass().getName()).startswith("org.apache.spark.")


def _python(settings: Any) -> dict[str, str]:
    lines = settings.mkString("\0").split("\0")
    return dict(line.split(" -> ", 1) for line in lines if line)
