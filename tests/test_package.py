"""The package as a whole: what an import loads, who may import whom, errors, documentation that runs."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.metadata
import pickle
import pkgutil
import re
import subprocess
import sys
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

import lakebloom
from lakebloom import errors

if TYPE_CHECKING:
    from collections.abc import Iterator


ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "lakebloom"

# Each layer may import those after it. What is on one line is on one level: neither imports the other.
LAYERS = [
    ["cli"],
    ["lake"],
    ["report"],
    ["spark"],
    ["index.erasure"],
    ["index.lookup"],
    ["index.query", "index.build"],
    ["index.maintain"],
    ["index"],
    ["predicate"],
    ["store"],
    ["parquet", "lance"],
    ["tables"],
    ["storage"],
    ["sizing"],
    ["sbbf"],
    ["calls"],
    ["errors"],
    ["display"],
    ["arrow_compute", "locks", "timeout", "tuning", "_lazy"],
]
LEVEL = {layer: level for level, layers in enumerate(LAYERS) for layer in layers}
MODULES = sorted(SOURCE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = ("lakebloom", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def nodes(root: ast.AST, *, at_runtime: bool) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(root):
        if not (at_runtime and is_for_types_only(node)):
            yield node
            yield from nodes(node, at_runtime=at_runtime)


def imported_modules(path: Path, *, at_runtime: bool = False) -> set[str]:
    found: set[str] = set()
    for node in nodes(ast.parse(path.read_text()), at_runtime=at_runtime):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def layer_of(module: str) -> str | None:
    """Return the layer of a module, or of the module that a public name of the package comes from."""
    package, _, rest = module.partition(".")
    if package != "lakebloom":
        return None
    rest = lakebloom._HOME_OF.get(rest, f"lakebloom.{rest}").partition(".")[2]
    parts = rest.split(".")
    return next((layer for size in (2, 1) if (layer := ".".join(parts[:size])) in LEVEL), None)


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_point_down(path: Path) -> None:
    layer = layer_of(module_name(path))
    if layer is None:
        assert module_name(path) == "lakebloom", f"{path} belongs to no layer: add it to LAYERS"
        return
    for module in imported_modules(path):
        target = layer_of(module)
        assert target is None or target == layer or LEVEL[target] > LEVEL[layer], f"{layer} imports {module}"
    if layer != "spark":
        loaded = {module.split(".")[0] for module in imported_modules(path, at_runtime=True)}
        assert "pyspark" not in loaded, "only the Spark layer imports pyspark"


def in_child(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = in_child("-c", "import sys, lakebloom; print(*sorted(sys.modules))").stdout.split()
    assert not {"numpy", "pyarrow", "numba", "llvmlite", "pyspark", "thrift", "rich"} & set(loaded)


def test_a_single_probe_loads_no_compiler() -> None:
    probe = "import sys; from lakebloom import Sbbf; f = Sbbf(8); f.insert(['a'] * 10_000); assert 'a' in f; "
    assert in_child("-c", probe + "print('numba' in sys.modules)").stdout.strip() == "False"


def test_public_names() -> None:
    for name in lakebloom.__all__:
        assert getattr(lakebloom, name) is not None
    assert set(lakebloom.__all__) <= set(dir(lakebloom))
    with pytest.raises(AttributeError, match="no attribute 'Sbff'"):
        lakebloom.Sbff  # noqa: B018
    assert (SOURCE / "py.typed").exists()


def all_errors() -> list[type[errors.LakebloomError]]:
    named = [getattr(errors, name) for name in errors.__all__]
    return [error for error in named if issubclass(error, errors.LakebloomError)]


def test_every_error_is_listed_drawn_and_has_a_code_of_its_own() -> None:
    defined = {
        name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert defined == set(errors.__all__)
    assert errors.__doc__ is not None
    for name in errors.__all__:
        assert name in errors.__doc__
    codes = [error.code for error in all_errors()]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: error.__name__)
def test_errors_survive_pickling(error: type[errors.LakebloomError]) -> None:
    made = error("tried", found=42, hint="do this")
    copy = pickle.loads(pickle.dumps(made))
    assert type(copy) is error
    assert str(copy) == str(made) == f"[{error.code}] tried; found 42. Hint: do this"
    assert str(error("tried")) == f"[{error.code}] tried"


@pytest.mark.parametrize("module", [info.name for info in pkgutil.walk_packages([str(SOURCE)], "lakebloom.")])
def test_examples_in_docstrings(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_the_extra_for_spark_brings_what_its_tasks_import() -> None:
    # `mapInArrow` imports pandas and pyarrow in each task; `make newcomer` installs the wheel and builds with it.
    ours = [Requirement(text) for text in importlib.metadata.requires("lakebloom") or ()]
    extra = {each.name: each for each in ours if each.marker is not None and each.marker.evaluate({"extra": "spark"})}
    assert "sql" in extra["pyspark"].extras
    assert not extra["pandas"].specifier.contains("3.0.0"), "Spark warns of pandas 3 at every start"
    sparks = [Requirement(text) for text in importlib.metadata.requires("pyspark") or ()]
    brought = {each.name for each in sparks if each.marker is not None and each.marker.evaluate({"extra": "sql"})}
    assert {"pandas", "pyarrow"} <= brought


def test_every_configuration_key_is_documented() -> None:
    from lakebloom.index.settings import KEYS

    page = (ROOT / "docs" / "CONFIGURATION.md").read_text()
    assert all(f"`{key}`" in page for key in KEYS)


def test_every_error_is_documented() -> None:
    page = (ROOT / "docs" / "ERRORS.md").read_text()
    for name in set(errors.__all__) - {"LakebloomError"}:
        assert f"| `{getattr(errors, name).code}` | `{name}` |" in page


def test_every_reason_is_documented() -> None:
    from lakebloom.predicate.reasons import Reason

    page = (ROOT / "docs" / "REASONS.md").read_text()
    for reason in Reason:
        assert f"| `{reason.value}` | {reason.meaning} |" in page
        assert f"| {reason.remedy} |" in page


def test_every_tuning_number_says_what_it_weighs_and_is_used() -> None:
    body = ast.parse((SOURCE / "tuning.py").read_text()).body
    rules = (ROOT / "Makefile").read_text()
    used = {word for path in MODULES if path.name != "tuning.py" for word in re.findall(r"\w+", path.read_text())}
    numbers = [(node, after) for node, after in pairwise(body) if isinstance(node, ast.Assign)]
    assert len(numbers) > 50
    for node, after in numbers:
        name = ast.unparse(node.targets[0])
        assert name in used, f"{name} tunes nothing"
        assert isinstance(after, ast.Expr), f"{name} says nothing"
        assert isinstance(after.value, ast.Constant), f"{name} says nothing"
        for bench in re.findall(r"\bbench-[a-z]+", str(after.value.value)):
            assert f"\n{bench}:" in rules, f"{name} names {bench}"


def test_files_that_the_architecture_names_are_there() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)", page))
    assert len(named) > 30
    homes = (SOURCE, SOURCE / "sbbf", ROOT)
    assert not [name for name in named if not any((home / name).exists() for home in homes)]


def test_the_page_of_public_names_is_up_to_date() -> None:
    made = in_child(str(ROOT / "tools" / "api")).stdout
    assert made == (ROOT / "docs" / "API.md").read_text(), "run `make api`"


def test_every_file_of_tests_is_collected(pytestconfig: pytest.Config) -> None:
    """By default pytest leaves out folders of some names, such as build, without a word."""
    left_out = pytestconfig.getini("norecursedirs")
    for file in (ROOT / "tests").rglob("test_*.py"):
        folders = file.relative_to(ROOT).parts[:-1]
        assert not [name for name in folders if any(fnmatch(name, pattern) for pattern in left_out)], file
        assert (file.parent / "__init__.py").exists(), file
