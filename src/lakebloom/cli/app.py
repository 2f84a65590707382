"""What all commands share: the location of the indexes, the output format, and for some a Spark session.

``@verb(app)`` turns a function into a command. The options that every command has become its first argument, a
``Session``; its other arguments become its own options.
"""

from __future__ import annotations

import functools
import inspect
import time
import typing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebloom.cli.output import JsonOutput, Output, OutputKind, TextOutput
from lakebloom.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebloom import Lakebloom

__all__ = ["Session", "current_output", "debugging", "verb"]

LOCATION_VARIABLE = "LAKEBLOOM_LOCATION"

_Location = Annotated[
    str | None,
    typer.Option(
        "--location", "-l", envvar=LOCATION_VARIABLE, help="Where the indexes are: a directory or an object-store URI."
    ),
]
_StoreOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--store-option",
        metavar="KEY=VALUE",
        help="An option of the object store, such as region=eu-west-1; repeatable.",
    ),
]
_Kind = Annotated[OutputKind, typer.Option("--output", help="Text for people, JSON for programs.")]
_Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
_Master = Annotated[str | None, typer.Option(help="The master URL of Spark.", show_default="local[*]")]
_Remote = Annotated[
    str | None, typer.Option(envvar="SPARK_REMOTE", help="The URL of a Spark Connect server: sc://host:port.")
]
_Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of the Spark session; repeatable.")
]


@dataclass(slots=True)
class Session:
    """The values of the options that every command has."""

    output: Output
    location: str | None = None
    store_options: dict[str, str] = field(default_factory=dict)
    master: str | None = None
    remote: str | None = None
    conf: dict[str, str] = field(default_factory=dict)
    started_s: float = 0.0
    """How long Spark took to start."""

    def lake(self) -> Lakebloom:
        """Return the indexes, without Spark."""
        return self._lake(None)

    @contextmanager
    def spark(self) -> Iterator[SparkSession]:
        """Start Spark for the block."""
        from lakebloom.spark.quiet_session import quiet_session

        started = quiet_session(
            "lakebloom", master=self.master, remote=self.remote, conf=self.conf, muted=not debugging()
        )
        with ExitStack() as stack:
            began_s = time.perf_counter()
            with self.output.status("starting Spark"):
                spark = stack.enter_context(started)
            self.started_s = time.perf_counter() - began_s
            yield spark

    @contextmanager
    def spark_lake(self) -> Iterator[tuple[SparkSession, Lakebloom]]:
        """Start Spark for the block, and open the indexes with it."""
        self._require_location()  # before Spark starts
        with self.spark() as spark:
            yield spark, self._lake(spark)

    def _lake(self, spark: SparkSession | None) -> Lakebloom:
        from lakebloom import Lakebloom

        return Lakebloom(spark, self._require_location(), options=self.store_options)

    def _require_location(self) -> str:
        if self.location is None:
            raise InvalidArgumentError(
                "the location of the indexes is not set",
                found=f"neither --location nor {LOCATION_VARIABLE}",
                hint="pass --location /path/to/indexes, or set the variable",
            )
        return self.location


@dataclass(slots=True)
class _Current:
    """How errors are shown."""

    output: Output = field(default_factory=TextOutput)
    debug: bool = False


_current = _Current()


def start(arguments: list[str]) -> None:
    """Decide how errors are shown before the arguments are parsed: parsing them may fail."""
    asks_json = any(
        given == "--output=json" or (given == "--output" and value == "json")
        for given, value in zip(arguments, [*arguments[1:], ""], strict=True)
    )
    _current.output = JsonOutput() if asks_json else TextOutput()
    _current.debug = "--debug" in arguments


def current_output() -> Output:
    """Return the output for errors."""
    return _current.output


def debugging() -> bool:
    """Return whether to show tracebacks."""
    return _current.debug


def verb(
    app: typer.Typer, name: str | None = None, *, spark: bool = False, examples: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function whose first argument is the session into a command."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        hints = typing.get_type_hints(function, include_extras=True)
        own = [
            parameter.replace(annotation=hints[parameter.name])
            for parameter in list(inspect.signature(function).parameters.values())[1:]
        ]
        shared = _shared_parameters(spark=spark)

        @functools.wraps(function)
        def run(**values: Any) -> None:
            given = {parameter.name: values.pop(parameter.name) for parameter in shared}
            function(_session(given), **values)

        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *shared)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        shown = "\n".join(f"    {line}" for line in examples.strip().splitlines())
        app.command(name, help=function.__doc__, epilog=f"Examples:\n\n\b\n{shown}" if shown else None)(run)
        return run

    return register


def _shared_parameters(*, spark: bool) -> list[inspect.Parameter]:
    chosen: dict[str, tuple[Any, Any]] = {"location": (_Location, None), "store_option": (_StoreOptions, None)}
    if spark:
        chosen |= {"master": (_Master, None), "remote": (_Remote, None), "conf": (_Conf, None)}
    chosen |= {"output": (_Kind, OutputKind.TEXT), "debug": (_Debug, False)}
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(name, kind, default=default, annotation=annotation)
        for name, (annotation, default) in chosen.items()
    ]


def _session(given: dict[str, Any]) -> Session:
    _current.output = JsonOutput() if given["output"] is OutputKind.JSON else TextOutput()
    _current.debug = given["debug"]
    return Session(
        output=_current.output,
        location=given["location"],
        store_options=_pairs("--store-option", given["store_option"]),
        master=given.get("master"),
        remote=given.get("remote"),
        conf=_pairs("--conf", given.get("conf")),
    )


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in given or ()]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise InvalidArgumentError(f"{option} takes KEY=VALUE", found=key)
    return {key: value for key, _, value in pairs}
