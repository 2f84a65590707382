"""Nothing in a name or a value steers the terminal: every verb, as text and as JSON, errors and notebooks too."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebloom import BloomIndexConfig, Lakebloom, col
from lakebloom.cli.error_message import ErrorMessage
from lakebloom.cli.output import JsonOutput, TextOutput
from lakebloom.display.tables import Printable, RecordTable
from lakebloom.display.visible import visible, visible_json, visible_lines
from lakebloom.errors import LakebloomError, PredicateSyntaxError
from lakebloom.parquet import embed
from lakebloom.parquet.inspection import inspect_file
from lakebloom.tables.columns import format_name
from tests.cli.running import Cli
from tests.index.lake import Lake

EVIL = "k\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\N{RIGHT-TO-LEFT OVERRIDE}\N{LEFT-TO-RIGHT ISOLATE}\r\n\u2028"
BIDI = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}


def steers(character: str) -> bool:
    """What a terminal acts on, by Unicode's own tables."""
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or unicodedata.bidirectional(character) in BIDI


def assert_harmless(text: str) -> None:
    assert not {character for character in text if steers(character)} - {"\n"}


@given(st.text(st.characters()))
def test_visible_text_steers_nothing_and_keeps_the_rest(text: str) -> None:
    shown = visible(text)
    assert not any(map(steers, shown))
    assert shown == visible(shown)
    assert_harmless(visible_lines(text))
    if text.isascii() and text.isprintable():
        assert shown == text


@given(st.recursive(st.text(st.characters(exclude_categories=["Cs"])), st.lists))
def test_visible_json_means_the_same(data: object) -> None:
    text = json.dumps(data, ensure_ascii=False)
    assert json.loads(visible_json(text)) == data
    assert_harmless(visible_json(text))


@pytest.mark.slow
def test_every_steering_character_is_written_out() -> None:
    for character in filter(steers, map(chr, range(0x110000))):
        assert visible(f"a{character}b").isprintable()


@dataclass(frozen=True)
class Named(Printable):
    name: str
    others: tuple[str, ...]
    more: dict[str, str]


TEXTS = st.text(st.characters(), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=TEXTS, other=TEXTS)
def test_every_form_of_output_is_harmless(name: str, other: str, capsys: pytest.CaptureFixture[str]) -> None:
    record = Named(name, (other, name), {name: other})
    error = LakebloomError(name, found=other, hint=name)
    syntax = PredicateSyntaxError(name, found=other, hint=name, text=f"{name}{other}", position=len(name))
    for output in (TextOutput(), JsonOutput()):
        output.record(record)
        output.table((f"~{name}", other), [(name, other)], [name, other])
        output.text(name, {name: other})
        output.note(other)
        output.error(ErrorMessage.of(error))
        output.error(ErrorMessage.of(syntax))
        output.error(ErrorMessage.unexpected(ValueError(name)))
        with output.status(name), output.progress(other):
            pass
    printed = capsys.readouterr()
    assert_harmless(printed.out + printed.err)
    for text in (str(record), repr(record), str(RecordTable([record])), str(error), str(syntax), repr(error)):
        assert_harmless(text)
    assert_harmless(record._repr_html_())
    assert_harmless(RecordTable([record])._repr_html_())


@pytest.fixture
def evil_lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, {EVIL: "bigint", "s": "string"})
    lake.table.mkdir(exist_ok=True)
    table = pa.table({EVIL: pa.array(range(20), pa.int64()), "s": [f"{EVIL}{i}" for i in range(20)]})
    pq.write_table(table, lake.table / f"a{EVIL}.parquet")
    lake.create(BloomIndexConfig("i", [format_name((EVIL,)), "s"]))
    return lake


@pytest.mark.slow
def test_no_verb_lets_a_name_steer_the_terminal(
    evil_lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = Cli(evil_lake.location, capsys)
    [file] = (str(path) for path in evil_lake.table.iterdir())
    quoted = "`" + EVIL.replace("`", "``") + "`"
    verbs = [
        ["list"],
        ["show", "i"],
        ["history", "i"],
        ["candidates", "i", f"{quoted} = 3"],
        ["lookup", "i", f"{quoted} = 3"],
        ["lookup", "i", f"{quoted} = 'x'"],
        ["lookup", "i", f"{quoted}x = 3"],
        ["lookup", f"i{EVIL}", "s = 'a'"],
        ["embed", file, "-c", quoted],
        ["embed", file, "-c", f"{EVIL}x"],
        ["inspect", file],
        ["inspect", f"{file}x"],
        ["verify", "i"],
        ["report", "i", "--to", str(tmp_path / "page.html")],
        ["optimize", "i"],
        ["vacuum", "i"],
        ["delete", "i"],
        ["show", f"i{EVIL}"],
        [f"no{EVIL}verb"],
    ]
    for arguments in verbs:
        for form in ([], ["--output", "json"], ["--debug"]):
            done = cli(*arguments, *form)
            assert_harmless(done.out + done.err)
            assert done.out or done.err
    page = (tmp_path / "page.html").read_text()
    assert_harmless(page.replace("\t", " "))
    assert "\\x1b" in page


@pytest.mark.slow
def test_what_python_prints_is_harmless(evil_lake: Lake) -> None:
    lake = Lakebloom(location=str(evil_lake.location))
    [file] = evil_lake.table.iterdir()
    for shown in (
        lake,
        lake.indexes(),
        lake.index("i"),
        lake.history("i"),
        inspect_file(file),
        embed(file, columns=["s"]),
    ):
        assert_harmless(str(shown) + repr(shown))
        if hasattr(shown, "_repr_html_"):
            assert_harmless(shown._repr_html_())
    with pytest.raises(LakebloomError) as caught:
        lake.lookup("i", col("s\x1b") == 3)
    assert_harmless(str(caught.value))
