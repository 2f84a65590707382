"""Settings that change what is read: compared where they matter, and nowhere else."""

from __future__ import annotations

import json

import pytest

from lakebloom.index.query.scans import Reading, why_not
from lakebloom.predicate.reasons import Reason
from lakebloom.store.records import TableRecord
from lakebloom.tables.reader_settings import ALL, CHANGES, HARMLESS, Matters, keys, recorded, unusual

PLAIN = {"type": "struct", "fields": [{"name": "k", "type": "string", "nullable": True, "metadata": {}}]}
WITH_IDS = {"fields": [{**PLAIN["fields"][0], "metadata": {"parquet.field.id": 1}}]}  # type: ignore[dict-item]
WITH_DEFAULTS = {"fields": [{**PLAIN["fields"][0], "metadata": {"EXISTS_DEFAULT": "'x'"}}]}  # type: ignore[dict-item]
SCHEMAS = {Matters.FIELD_IDS: WITH_IDS, Matters.DEFAULTS: WITH_DEFAULTS}


Session = dict[str, str | None]


def reason(file_format: str, built: Session, read: Session, schema: object) -> Reason | None:
    settings = recorded(file_format, built)
    source = TableRecord(file_format, ("file:///t",), schema_json=json.dumps(schema), settings=settings)
    return why_not(source, Reading(file_format, json.dumps(schema), {}, read))


@pytest.mark.parametrize("setting", CHANGES, ids=lambda setting: setting.key)
def test_a_setting_counts_for_its_formats_only(setting: object) -> None:
    for known in CHANGES:
        if known is not setting:
            continue
        other: dict[str, str | None] = {known.key: "something else"}
        for file_format in sorted(ALL):
            schema = SCHEMAS.get(known.matters, PLAIN)
            concerned = file_format in known.formats and known.matters is not Matters.TEMPORAL
            expected = Reason.READ_DIFFERS if concerned else None
            assert reason(file_format, {}, other, schema) is expected
            assert reason(file_format, other, {}, schema) is (expected if known.built else None)
            assert reason(file_format, other, other, schema) is (None if known.built else expected)
            default: dict[str, str | None] = {known.key: known.standard}
            if known.absent is None:
                assert reason(file_format, {}, default, schema) is None
            if known.matters in SCHEMAS:  # a schema without ids, or without defaults
                assert reason(file_format, {}, other, PLAIN) is None


def test_a_setting_that_is_not_known_counts() -> None:
    new: dict[str, str | None] = {"spark.sql.json.isNew": "1"}
    assert reason("json", {}, new, PLAIN) is Reason.READ_DIFFERS
    assert reason("json", new, {}, PLAIN) is Reason.READ_DIFFERS
    assert reason("json", new, new, PLAIN) is None
    assert reason("csv", {}, new, PLAIN) is None


def test_options_win_over_the_session() -> None:
    source = TableRecord("parquet", ("file:///t",), schema_json=json.dumps(WITH_IDS))
    key = "spark.sql.parquet.fieldId.read.enabled"
    for option, expected in (("true", Reason.READ_DIFFERS), ("false", None)):
        other = "false" if option == "true" else "true"
        reading = Reading("parquet", json.dumps(WITH_IDS), {key: option}, {key: other})
        assert why_not(source, reading) is expected


def test_an_older_spark_behaves_as_it_did() -> None:
    key = "spark.sql.legacy.useLegacyXMLParser"
    assert unusual("xml", {}) == {key: "true"}  # Spark 4.0 has one parser, the legacy one
    assert unusual("xml", {key: "false"}) == {}


def test_lists_are_disjoint_and_harmless_settings_do_not_count() -> None:
    known = [setting.key for setting in CHANGES]
    assert len(known) == len(set(known))
    assert not HARMLESS.keys() & set(known)
    for file_format in ALL:
        usual: dict[str, str | None] = dict.fromkeys(HARMLESS, "something else")
        defaults = {setting.key: setting.standard for setting in CHANGES}
        assert unusual(file_format, usual | defaults) == {}
        assert keys(file_format)
