"""Hadoop's patterns, with Hadoop as the judge."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebloom.errors import InvalidArgumentError
from lakebloom.tables.listing.glob import compile_component, escape, expand_braces, is_glob, unescape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ["", "a", "b", "ab", "a.b", "a-b", "a,b", "a]", "-", "^", "!", "a b", "k=1", "k=10", "x.parquet", "x_parquet",
         "ü", "(a)", "a|b", "a+b", "$", "[a]", "{a}", "*", "?", "\\", "a\nb", "]", "a}"]  # fmt: skip
PATTERNS = ["*", "?", "a*", "*b", "a?b", "[ab]", "[a-c]", "[^a]", "[!a]", "[a-]", "[-a]", "[]a]", "[a^]", "k=[0-9]",
            "k=?", "{a,b}", "{a,k=*}", "{a,{b,ab}}", "x.parquet", "*.parquet", "a,b", "a}", "a]", r"\*", r"\[a\]",
            r"\{a\}", r"a\?b", "(a)", "a|b", "a+b", "$", "{a}", "{a,}b", "[a][b]", "[a.]*", "{k,x}*", r"\\", "[$]",
            "^", "!", "[a-]*", r"[a\-c]", r"[\]]"]  # fmt: skip
BROKEN = ["[a", "[", "{a", "{a,{b}", "a\\", "[z-a]"]


@pytest.mark.spark
def test_hadoop_matches_the_same_names(spark: SparkSession) -> None:
    glob_pattern = spark._jvm.org.apache.hadoop.fs.GlobPattern
    for pattern in PATTERNS:
        judge = glob_pattern(pattern)
        ours = compile_component(pattern)
        assert [name for name in NAMES if ours.fullmatch(name)] == [n for n in NAMES if judge.matches(n)], pattern
        assert (unescape(pattern) is None) == judge.hasWildcard(), pattern


@pytest.mark.spark
def test_hadoop_expands_the_same_alternatives(spark: SparkSession) -> None:
    expander = spark._jvm.org.apache.hadoop.fs.GlobExpander
    for pattern in [
        "a",
        "{a,b}",
        "/{a/b,c}/d",
        "/{a/b,c}/{d/e,f}",
        "{a,{b/c,d}}",
        "x{a/,b}y",
        r"\{a/b\}",
        "{a,b}/{c/d}",
    ]:
        assert expand_braces(pattern) == list(expander.expand(pattern)), pattern


@pytest.mark.parametrize("pattern", BROKEN)
def test_broken_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgumentError, match="glob pattern"):
        list(itertools.chain.from_iterable(map(compile_component, part.split("/")) for part in expand_braces(pattern)))


@given(st.text(alphabet="ab{}[]*?\\,-^!.", min_size=1))
def test_an_escaped_text_matches_itself_only(text: str) -> None:
    pattern = escape(text)
    assert unescape(pattern) == text
    assert compile_component(pattern).fullmatch(text)
    assert not compile_component(pattern).fullmatch(text + "a")
    assert is_glob(pattern) == (pattern != text)
