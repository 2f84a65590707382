package io.lakebloom.spark;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import java.util.Map;

/**
 * Every JSON struct that crosses between Java and Python. lakebloom.spark.rule.wire has the same, and says what the
 * fields mean; a test compares the two. A field is fileCount here, file_count in JSON, and skipped if it is null.
 * An unknown field is an error.
 */
public final class Wire {
    private static final ObjectMapper MAPPER = new ObjectMapper()
        .setPropertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
        .setSerializationInclusion(JsonInclude.Include.NON_NULL);

    private Wire() {}

    static Object read(String json, Class type) throws Exception {
        return MAPPER.readValue(json, type);
    }

    static String write(Object struct) throws Exception {
        return MAPPER.writeValueAsString(struct);
    }

    /** What Python tells the rule once. */
    public static final class RuleSettings {
        public Map defaults;
        public Map readerKeys;
        public ListPickle[] listPickles;
    }

    public static final class ListPickle {
        public byte[] pickle;
        public int[] free;
    }

    public static final class PublishedIndex {
        public String name;
        public String[] locations;
        public String[][] columns;
        public boolean globalFilter;
        public boolean isLogged;
    }

    /** How a query reads files, and the condition on them. */
    public static class Reading {
        public String format;
        public String schema;
        public Map options;
        public Map session;
        public JsonNode predicate;
        public String tableSchema;
        public String mapping;
        public IcebergTable iceberg;
    }

    /** The Iceberg table of a scan, in Iceberg's own JSON. */
    public static final class IcebergTable {
        public String id;
        public String schema;
        public String[] specs;
        public String nameMapping;
    }

    public static final class PruneRequest extends Reading {
        public String[] indexes;
        public Map known;
    }

    public static final class PruneReply {
        public KeptFiles[] kept;
        public JsonNode note;
        public String reason;
    }

    public static final class KeptFiles {
        public String name;
        public String fingerprint;
        public byte[] bits;
        public String files;
        public int after;
        public int[] changed;
    }

    public static final class JoinRequest extends Reading {
        public String index;
        public String[] column;
        public String known;
        public Object[][] missing;
        public String filter;
        public String mark;
    }

    public static final class JoinFilesReply {
        public String reason;
        public String fingerprint;
        public String files;
        public int after;
    }

    public static final class JoinFilterReply {
        public String reason;
        public String fingerprint;
        public byte[] words;
        public String sql;
        public double rate;
        public long sizeBytes;
        public int merged;
    }

    public static final class JoinFilter {
        public String index;
        public String column;
        public double rate;
        public long sizeBytes;
        public int merged;
    }

    public static final class DescribedJoin {
        public String index;
        public String column;
        public String key;
        public String side;
        public String join;
        public JoinFilter filter;
        public String reason;
    }

    public static final class DescribedScan {
        public String table;
        public String[] roots;
        public Boolean plain;
        public Reading reading;
        public Object[][] files;
        public String states;
        public JsonNode[] keys;
        public JsonNode[] notes;
        public JsonNode[] predicates;
        public Seen seen;
        public String[] others;
        public Boolean atRunTime;
        public String partitions;
        public Integer filesOfTable;
        public Boolean needsAllRows;
        public String cached;
        public UnprunedJoin[] joins;
        public Map source;
    }

    public static final class Seen {
        public String[] there;
        public JsonNode note;
        public String failure;
    }

    public static final class UnprunedJoin {
        public String join;
        public String side;
        public String column;
        public String key;
        public String reason;
        public String message;
    }

    public static final class FinishedQuery {
        public String action;
        public double seconds;
        public boolean failed;
        public FinishedScan[] scans;
        public FinishedJoin[] joins;
    }

    public static final class FinishedScan {
        public String table;
        public String[] roots;
        public Long filesRead;
        public Long bytesRead;
        public Long rows;
        public Integer files;
        public Integer filesKept;
        public byte[][] tasks;
    }

    public static final class FinishedJoin {
        public String mark;
        public long rows;
        public long rowsPassed;
    }

    public static final class Written {
        public String[] paths;
        public String[][] tables;
    }

    /** A table of Iceberg's connector as a source. */
    public static final class IcebergSource {
        public String metadata;
        public String directory;
        public boolean isFixed;
        public String[] name;
        public String part;
    }

    public static final class CatalogTable {
        public String location;
        public String provider;
        public String schema;
        public String[] columns;
        public String[][] partitions;
    }
}
