"""Which of Spark's settings change the values that its readers find in files.

An index is right only for a query that reads what the build read. Each setting that Spark's reader classes look at is
listed here, once: in ``CHANGES`` with what it changes, or in ``HARMLESS`` with the reason why it changes nothing that
filters know. A test reads Spark's own classes and configuration entries, and fails for one that is in neither list. A
key that is in neither and was set by a user (``spark.sql.json.somethingNew``) counts as one that changes values.

What is recorded and compared are values that differ from ``standard``, Spark's default. So a setting that one version
of Spark does not have compares equal to its default in another, unless ``absent`` says that the older version behaved
otherwise.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

__all__ = [
    "CASE_SENSITIVE",
    "CHANGES",
    "HARMLESS",
    "Matters",
    "Setting",
    "differing",
    "is_of",
    "keys",
    "recorded",
    "unusual",
    "with_options",
]

CASE_SENSITIVE = "spark.sql.caseSensitive"
"""Whether names of columns are compared with regard to case."""
TEXT = frozenset({"csv", "json", "xml"})
LINES = TEXT | {"text"}
ALL = LINES | {"parquet", "orc", "avro"}
_FIELD_ID = '"parquet.field.id"'
"""Where Spark keeps the ids of Parquet's fields, in the metadata of a column."""
_UNDEFINED = "<undefined>"


class Matters(enum.Enum):
    """For what a setting matters."""

    ALWAYS = "every value"
    TEMPORAL = "dates and timestamps"
    DEFAULTS = "tables that have columns with a default"
    FIELD_IDS = "schemas that carry ids of fields"


class Setting(NamedTuple):
    """A key of Spark's, or Hadoop's, configuration under which a reader finds other values."""

    key: str
    formats: frozenset[str]
    standard: str | None
    """Spark's default; None: not set."""
    matters: Matters = Matters.ALWAYS
    absent: str | None = None
    """How a version of Spark behaves that does not have it, where that is not its default."""
    built: bool = True
    """Whether a build follows it. One that does not reads as if it had its default."""

    def value(self, given: str | None) -> str | None:
        """Return a value in the form in which it is compared."""
        if given is None or given in (_UNDEFINED, ""):
            return self.standard if self.absent is None else self.absent
        return given if self.key == _CORRUPT_RECORD else given.lower()


def _each(formats: Iterable[str], standard: str | None, *names: str) -> Iterator[Setting]:
    return (Setting(name, frozenset(formats), standard) for name in names)


_CORRUPT_RECORD = "spark.sql.columnNameOfCorruptRecord"
CHANGES: tuple[Setting, ...] = (
    Setting(_CORRUPT_RECORD, TEXT, "_corrupt_record"),
    Setting("spark.sql.legacy.timeParserPolicy", TEXT, "corrected"),
    Setting("spark.sql.files.supportSecondOffsetFormat", TEXT, "true"),
    Setting("spark.sql.files.archive.reader.enabled", ALL, "false"),
    Setting("spark.sql.defaultColumn.enabled", ALL, "true", Matters.DEFAULTS),
    *_each({"json"}, "true", "spark.sql.json.enableExactStringParsing", "spark.sql.json.enablePartialResults"),
    Setting("spark.sql.legacy.json.allowEmptyString.enabled", frozenset({"json"}), "false"),
    Setting("spark.sql.legacy.json.enableDateTimeParsingFallback", frozenset({"json"}), None),
    Setting("spark.sql.csv.parser.columnPruning.enabled", frozenset({"csv"}), "true"),
    Setting("spark.sql.legacy.csv.enableDateTimeParsingFallback", frozenset({"csv"}), None),
    Setting("spark.sql.legacy.javaCharsets", TEXT, "false"),
    Setting("spark.sql.legacy.useLegacyXMLParser", frozenset({"xml"}), "false", absent="true"),
    Setting("spark.sql.legacy.avro.allowIncompatibleSchema", frozenset({"avro"}), "false"),
    Setting("spark.sql.avro.datetimeRebaseModeInRead", frozenset({"avro"}), "corrected", Matters.TEMPORAL),
    Setting("spark.sql.parquet.datetimeRebaseModeInRead", frozenset({"parquet"}), "corrected", Matters.TEMPORAL),
    Setting("spark.sql.parquet.int96RebaseModeInRead", frozenset({"parquet"}), "corrected", Matters.TEMPORAL),
    Setting(
        "spark.sql.parquet.int96TimestampConversion", frozenset({"parquet"}), "false", Matters.TEMPORAL, built=False
    ),
    Setting("spark.sql.parquet.fieldId.read.enabled", frozenset({"parquet"}), "false", Matters.FIELD_IDS, built=False),
    Setting(
        "spark.sql.parquet.fieldId.read.ignoreMissing", frozenset({"parquet"}), "false", Matters.FIELD_IDS, built=False
    ),
    Setting("spark.sql.orc.impl", frozenset({"orc"}), "native"),
    # Keys of Hadoop's configuration. A session's own settings and a reader's options become part of it.
    *_each({"orc"}, "false", "orc.force.positional.evolution", "orc.filter.use.selected", "orc.filter.plugin"),
    *_each({"orc"}, "false", "orc.skip.corrupt.data", "orc.proleptic.gregorian", "orc.proleptic.gregorian.default"),
    Setting("orc.force.positional.evolution.level", frozenset({"orc"}), "1"),
    Setting("orc.tolerate.missing.schema", frozenset({"orc"}), "true"),
    *_each({"orc"}, None, "hive.exec.orc.skip.corrupt.data", "hive.exec.orc.tolerate.missing.schema"),
    *_each({"orc"}, None, "orc.filter.plugin.allowlist", "orc.max.file.length", "orc.key.provider"),
    *_each(LINES, None, "mapreduce.input.linerecordreader.line.maxlength", "io.compression.codecs"),
)

_WRITING = """
    spark.sql.avro.compression.codec spark.sql.avro.datetimeRebaseModeInWrite spark.sql.avro.deflate.level
    spark.sql.avro.xz.level spark.sql.avro.zstandard.bufferPool.enabled spark.sql.avro.zstandard.level
    spark.sql.defaultColumn.allowedProviders spark.sql.execution.fastFailOnFileFormatOutput
    spark.sql.files.maxRecordsPerFile spark.sql.jsonGenerator.ignoreNullFields
    spark.sql.jsonGenerator.writeNullIfWithDefaultValue spark.sql.legacy.nullValueWrittenAsQuotedEmptyStringCsv
    spark.sql.maxConcurrentOutputFileWriters spark.sql.orc.columnarWriterBatchSize spark.sql.orc.compression.codec
    spark.sql.parquet.compression.codec spark.sql.parquet.datetimeRebaseModeInWrite
    spark.sql.parquet.fieldId.write.enabled spark.sql.parquet.int96RebaseModeInWrite
    spark.sql.parquet.output.committer.class spark.sql.parquet.outputTimestampType
    spark.sql.parquet.variant.annotateLogicalType.enabled spark.sql.parquet.writeLegacyFormat
    spark.sql.sources.outputCommitterClass spark.sql.variant.forceShreddingSchemaForTest
    spark.sql.variant.inferShreddingSchema spark.sql.variant.shredding.maxSchemaDepth
    spark.sql.variant.shredding.maxSchemaWidth spark.sql.variant.writeShredding.enabled
    orc.stripe.size orc.stripe.row.count orc.block.size orc.create.index orc.row.index.stride orc.compress.size
    orc.base.delta.ratio orc.block.padding orc.compress orc.write.format orc.buffer.size.enforce orc.encoding.strategy
    orc.compression.strategy orc.compression.zstd.level orc.compression.zstd.windowlog orc.compression.zstd.strategy
    orc.block.padding.tolerance orc.bloom.filter.fpp orc.memory.pool orc.dictionary.key.threshold
    orc.dictionary.max.size.bytes orc.dictionary.early.check orc.dictionary.implementation orc.bloom.filter.columns
    orc.bloom.filter.write.version orc.mapred.map.output.key.schema orc.mapred.map.output.value.schema
    orc.mapred.output.schema orc.rows.between.memory.checks orc.stripe.size.check.ratio orc.overwrite.output.file
    orc.write.variable.length.blocks orc.column.encoding.direct orc.encrypt orc.mask orc.row.child.limit
"""
_SPEED = """
    spark.sql.avro.filterPushdown.enabled spark.sql.columnVector.offheap.enabled spark.sql.csv.filterPushdown.enabled
    spark.sql.csv.parser.inputBufferSize spark.sql.execution.datasources.hadoopLineRecordReader.enabled
    spark.sql.hive.filesourcePartitionFileCacheSize spark.sql.hive.manageFilesourcePartitions
    spark.sql.json.filterPushdown.enabled spark.sql.json.useUnsafeRow spark.sql.maxMetadataStringLength
    spark.sql.debug.maxToStringFields spark.sql.metadataCacheTTLSeconds
    spark.sql.optimizer.nestedPredicatePushdown.supportedFileSources spark.sql.optimizer.nestedSchemaPruning.enabled
    spark.sql.orc.aggregatePushdown spark.sql.orc.columnarReaderBatchSize
    spark.sql.orc.enableNestedColumnVectorizedReader spark.sql.orc.enableVectorizedReader
    spark.sql.orc.filterPushdown spark.sql.parquet.aggregatePushdown
    spark.sql.parquet.columnarReaderBatchSize spark.sql.parquet.enableNestedColumnVectorizedReader
    spark.sql.parquet.enableNullTypeVectorizedReader spark.sql.parquet.enableVectorizedReader
    spark.sql.parquet.filterPushdown spark.sql.parquet.filterPushdown.date spark.sql.parquet.filterPushdown.decimal
    spark.sql.parquet.filterPushdown.string.startsWith spark.sql.parquet.filterPushdown.stringPredicate
    spark.sql.parquet.filterPushdown.timestamp spark.sql.parquet.pushdown.inFilterThreshold
    spark.sql.parquet.recordLevelFilter.enabled spark.sql.sources.fileCompressionFactor
    spark.sql.sources.ignoreDataLocality spark.sql.sources.parallelPartitionDiscovery.parallelism
    spark.sql.sources.parallelPartitionDiscovery.threshold spark.sql.sources.useListFilesFileSystemList
    orc.use.zerocopy orc.bloom.filter.ignore.non-utf8 orc.kryo.sarg orc.kryo.sarg.buffer orc.sarg.column.names
    orc.sarg.to.filter orc.max.disk.range.chunk.limit orc.min.disk.seek.size orc.min.disk.seek.size.tolerance
    orc.row.batch.size
"""
_SCHEMA = """
    spark.sql.charAsVarchar spark.sql.geospatial.enabled spark.sql.legacy.charVarcharAsString
    spark.sql.legacy.parquet.nanosAsLong spark.sql.orc.mergeSchema spark.sql.parquet.binaryAsString
    spark.sql.parquet.ignoreVariantAnnotation spark.sql.parquet.inferTimestampNTZ.enabled
    spark.sql.parquet.int96AsTimestamp spark.sql.parquet.mergeSchema
    spark.sql.parquet.reader.respectUnknownTypeAnnotation.enabled spark.sql.parquet.respectSummaryFiles
    spark.sql.preserveCharVarcharTypeInfo spark.sql.timeType.enabled spark.sql.timestampNanosTypes.enabled
    spark.sql.timestampType spark.sql.xml.schemaInference.incrementalTypeCasting.enabled
"""
_FILES = """
    spark.sql.files.ignoreCorruptFiles spark.sql.files.ignoreInvalidPartitionPaths spark.sql.files.ignoreMissingFiles
    spark.sql.files.ignoredPathSegmentRegex spark.sql.sources.partitionColumnTypeInference.enabled
    spark.sql.sources.validatePartitionColumns spark.sql.legacy.extraOptionsBehavior.enabled
    spark.sql.sources.binaryFile.maxLength spark.sql.avro.schemaUrlAllowedSchemes
"""
_NO_FILTERS = """
    spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing spark.sql.session.timeZone
    spark.sql.variant.allowDuplicateKeys spark.sql.variant.allowReadingShredded
    spark.sql.variant.validateUnicodeInJsonParsing spark.sql.xml.variant.respectInferSchema
"""
_ELSEWHERE = """
    spark.sql.caseSensitive orc.include.columns orc.mapred.input.schema orc.schema.evolution.case.sensitive
"""
HARMLESS: dict[str, str] = {
    key: reason
    for reason, text in {
        "it is about writing": _WRITING,
        "it changes how fast files are read, not what is read": _SPEED,
        "it decides about a schema, and schemas are compared": _SCHEMA,
        "it decides which files are read, or that an error ends the query": _FILES,
        "no filter answers about the values that it changes": _NO_FILTERS,
        "it is recorded by itself, or Spark's reader sets it": _ELSEWHERE,
    }.items()
    for key in text.split()
}


def keys(file_format: str) -> list[str]:
    """Return the keys that change what is read of a format."""
    return [setting.key for setting in CHANGES if file_format in setting.formats]


def unusual(file_format: str, session: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return what a session sets otherwise than Spark's default, of all that changes what is read of a format.

    ``session`` has the values of ``keys``, and whatever else is set under the names that a format's settings have.

    >>> unusual("json", {"spark.sql.json.enablePartialResults": "FALSE", "spark.sql.json.isNew": "1"})
    {'spark.sql.json.enablePartialResults': 'false', 'spark.sql.json.isNew': '1'}
    >>> unusual("parquet", {"spark.sql.json.enablePartialResults": "false"})
    {}
    """
    found: dict[str, str | None] = {}
    for setting in CHANGES:
        if file_format in setting.formats:
            value = setting.value(session.get(setting.key))
            if value != setting.standard:
                found[setting.key] = value
    known = {setting.key for setting in CHANGES} | HARMLESS.keys()
    found.update((key, value) for key, value in session.items() if key not in known and is_of(file_format, key))
    return found


def is_of(file_format: str, key: str) -> bool:
    """Tell whether a key is named like the settings of a format."""
    return key.startswith((f"spark.sql.{file_format}.", f"spark.sql.legacy.{file_format}."))


def with_options(
    file_format: str, session: Mapping[str, str | None], options: Mapping[str, str]
) -> dict[str, str | None]:
    """Return a session's settings as a reader with these options finds them: its options are settings too, and win."""
    known = {key.lower(): key for key in keys(file_format)}
    given = {known[key.lower()]: value for key, value in options.items() if key.lower() in known}
    return {**session, **given}


def recorded(file_format: str, session: Mapping[str, str | None]) -> dict[str, str]:
    """Return what an index records of the session that builds it."""
    not_built = {setting.key for setting in CHANGES if not setting.built}
    found = unusual(file_format, session)
    return {key: value or "" for key, value in found.items() if key not in not_built}


def differing(
    file_format: str, build: Mapping[str, str], session: Mapping[str, str | None]
) -> dict[str, tuple[Matters, str, str]]:
    """Return the keys under which a query reads otherwise than a build: for what that matters, and both values."""
    asked = unusual(file_format, session)
    matters = {setting.key: setting.matters for setting in CHANGES}
    return {
        key: (matters.get(key, Matters.ALWAYS), build.get(key, "the default"), asked.get(key) or "the default")
        for key in sorted({*build, *asked})
        if build.get(key) != (None if key not in asked else asked[key] or "")
    }
