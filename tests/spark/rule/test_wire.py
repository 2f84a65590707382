"""Java and Python agree: on the structs that cross, on reasons, on settings and on what filters can answer."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from lakebloom.index.settings import Settings
from lakebloom.predicate.prune.normalise import AllOf, AnyOf, Keep, Normal, normalise
from lakebloom.predicate.reasons import Reason
from lakebloom.predicate.tree import Predicate, columns, from_json, to_json
from lakebloom.spark.jvm import java_class, new_object
from lakebloom.spark.rule import install
from lakebloom.spark.rule.wire import STRUCTS
from tests.examples import most
from tests.predicate.strategies import INDEXED, leaves, trees

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebloom.tables.columns import ColumnPath

SOURCES = {
    file.name: file.read_text(encoding="utf-8")
    for file in files("lakebloom.spark.rule").joinpath("java").iterdir()
    if file.name.endswith(".java")
}
FIXTURE = Path(__file__).parents[1] / "skipping" / "trees.txt"
SCALARS = {
    "String": {str},
    "boolean": {bool},
    "Boolean": {bool},
    "int": {int},
    "Integer": {int},
    "long": {int},
    "Long": {int},
    "double": {float},
    "byte[]": {bytes},
}


def java_fields(found: Any) -> dict[str, str]:
    """The fields of a compiled class as JSON has them, with their types."""
    names = {field.getName(): field.getType().getSimpleName() for field in found.getFields()}
    return {re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name): kind for name, kind in names.items()}


def fits(java: str, python: Any) -> bool:
    """Whether what Java declares may hold what Python does."""
    kinds = [each for each in get_args(python) if each is not NoneType] if NoneType in get_args(python) else [python]
    python = kinds[0] if len(kinds) == 1 else Any
    if java == "JsonNode" or python is Any:  # a tree or a note, which has a struct of its own in Python
        return True
    if java in SCALARS:
        return python in SCALARS[java]
    if java == "Map":
        return get_origin(python) is dict
    if java.endswith("[]"):
        item = get_args(python)[0] if get_args(python) else None
        return get_origin(python) in (tuple, list) and (java == "Object[][]" or fits(java[:-2], item))
    return getattr(python, "__name__", None) == java


def test_both_sides_have_the_same_structs(spark: SparkSession) -> None:
    declared = {found.getSimpleName(): found for found in java_class(spark, "Wire").getDeclaredClasses()}
    assert set(declared) == set(STRUCTS)
    for name, struct in STRUCTS.items():
        in_java = java_fields(declared[name])
        assert set(in_java) == {field.encode_name for field in msgspec.structs.fields(struct)}, name
        hints = get_type_hints(struct)
        assert not [(name, field, kind) for field, kind in in_java.items() if not fits(kind, hints[field])]


def test_the_comparison_sees_a_field_too_many_or_of_another_type(spark: SparkSession) -> None:
    """Of either side, so that the test above says something."""
    fields = java_fields(java_class(spark, "Wire$FinishedJoin"))
    assert fields == {"mark": "String", "rows": "long", "rows_passed": "long"}
    assert not fits("long", str)
    assert not fits("String[]", tuple[int, ...])
    assert not fits("JoinFilter", int | None)


@pytest.mark.parametrize("name", [name for name, struct in STRUCTS.items() if struct.__struct_config__.frozen])
def test_an_unknown_field_is_an_error(name: str) -> None:
    assert STRUCTS[name].__struct_config__.forbid_unknown_fields


def test_reasons_of_java_are_those_of_python() -> None:
    codes = {code for text in SOURCES.values() for code in re.findall(r'"([A-Z][A-Z_]{3,})"', text)}
    assert {"KEYS_AT_RUN_TIME", "COLLATION", "BROADCAST_JOIN", "NO_MATCHING_INDEX", "DISABLED"} <= codes
    assert codes <= set(Reason.__members__)


def test_java_reads_the_settings_that_python_gives_defaults_for() -> None:
    read = {key for text in SOURCES.values() for key in re.findall(r'"(spark\.lakebloom\.[^"]+)"', text)}
    assert read == set(install.JAVA_KEYS)


def test_java_has_the_defaults_of_python(spark: SparkSession) -> None:
    told = install._settings(spark).defaults
    parsed = Settings.parse(told)
    assert len(told) == 3
    assert parsed == Settings()


def could_drop(node: Normal, indexed: set[ColumnPath]) -> bool:
    """Whether filters of these columns could drop a unit, by the normal form of a predicate."""
    match node:
        case AllOf(children):
            return any(could_drop(child, indexed) for child in children)
        case AnyOf(children):
            return all(could_drop(child, indexed) for child in children)
        case _:
            return not isinstance(node, Keep) and node.column in indexed


def agree(java: Any, predicate: Predicate, indexed: set[ColumnPath]) -> None:
    assert java.canDrop(to_json(predicate).decode()) == could_drop(normalise(predicate), indexed), predicate


def usable(spark: SparkSession, indexed: set[ColumnPath]) -> Any:
    session: Any = spark
    names = session._jvm.java.util.HashSet()
    for path in indexed:
        names.add("\0".join(path).lower())
    return new_object(spark, "Usable", names)


def test_java_calls_python_for_what_filters_can_answer(spark: SparkSession) -> None:
    """The trees that Java itself makes, and random ones; each with all, some and none of their columns indexed."""
    sent = [from_json(block.splitlines()[1]) for block in FIXTURE.read_text().split("\n\n")]
    assert len(sent) > 30
    for predicate in sent:
        named = sorted(columns(predicate))
        for indexed in (set(named), set(named[:1]), set(named[1:]), set[Any]()):
            agree(usable(spark, indexed), predicate, indexed)
    some = usable(spark, set(INDEXED))

    @settings(max_examples=most(400), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(trees(leaves(list(INDEXED))))
    def random_trees(predicate: Predicate) -> None:
        agree(some, predicate, set(INDEXED))

    random_trees()


def test_a_cache_of_java_stays_within_its_limit(spark: SparkSession) -> None:
    cache = new_object(spark, "Bounded", 10)
    for key, weight in (("a", 4), ("b", 4), ("c", 2)):
        cache.put(key, key, weight)
    assert set(cache.copy()) == {"a", "b", "c"}
    assert cache.get("a") == "a"  # used: "b" is the oldest now
    cache.put("d", "d", 1)
    assert set(cache.copy()) == {"a", "c", "d"}
    cache.put("a", "other", 1)  # what is replaced weighs no more
    cache.put("e", "e", 6)
    assert set(cache.copy()) == {"a", "c", "d", "e"}
    cache.put("f", "f", 100)  # the newest stays, whatever it weighs
    assert set(cache.copy()) == {"f"}
    cache.put("g", "g", 1)
    assert set(cache.copy()) == {"g"}


def test_every_cache_of_java_has_a_limit() -> None:
    """What outlives a query is a Bounded, or a list of what there is."""
    lasting = re.compile(r"private (?:static )?(?:volatile )?final (?:Map|Set|List) (\w+) = (?:Collections\.sync|new )")
    for name in ("LakebloomRule", "Joins", "Pruning", "FileLists"):
        assert lasting.findall(SOURCES[f"{name}.java"]) == []
    assert sum(text.count("new Bounded(") for text in SOURCES.values()) == 4
