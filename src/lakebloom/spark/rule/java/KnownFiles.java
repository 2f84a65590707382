package io.lakebloom.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.EtagSource;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;

/** The files of one version of an index, with what tells whether they changed, numbered as Python numbers them. */
public final class KnownFiles {
    /** Where times are compared in whole seconds, as lakebloom.tables.file_identity explains. */
    private static final List OBJECT_SCHEMES = Arrays.asList(new String[] {"s3:", "gs:", "az:", "abfs:"});
    private final Map files;

    /**
     * Reads path, size, modification time and ETag of each file, separated by tabs and ended by a zero character.
     *
     * They come after as many files of a version before. Of several files with one path the last one counts.
     */
    public KnownFiles(String lines, KnownFiles before, int after) {
        files = before == null ? new HashMap() : new HashMap(before.files);
        int number = after;
        for (int start = 0; start < lines.length(); number++) {
            int end = lines.indexOf('\0', start);
            int etag = lines.lastIndexOf('\t', end);
            int time = lines.lastIndexOf('\t', etag - 1);
            int size = lines.lastIndexOf('\t', time - 1);
            Known known = new Known();
            known.number = number;
            known.size = Long.parseLong(lines.substring(size + 1, time));
            known.time = Long.parseLong(lines.substring(time + 1, etag));
            known.etag = etag + 1 == end ? null : lines.substring(etag + 1, end);
            files.put(lines.substring(start, size), known);
            start = end + 1;
        }
    }

    private static final class Known {
        int number;
        long size;
        long time;
        String etag;
    }

    /** The number of a file; negative where the index does not know it as it is listed. */
    public int number(FileStatusWithMetadata file) {
        String path = canonical(file.getPath().toString());
        Known known = (Known) files.get(path);
        if (known == null || known.size != file.getLen()) {
            return -1;
        }
        long time = file.getModificationTime();
        if (OBJECT_SCHEMES.contains(path.substring(0, path.indexOf(':') + 1))) {
            time -= Math.floorMod(time, 1000L);
        }
        if (time != known.time) {
            return -1;
        }
        String etag = known.etag == null ? null : etag(file);
        return etag == null || etag.equals(known.etag) ? known.number : -1;
    }

    /** The ETag without what only some stores put around it; null if Spark has not kept it. */
    static String etag(FileStatusWithMetadata file) {
        Object status = file.fileStatus();
        String etag = status instanceof EtagSource ? ((EtagSource) status).getEtag() : null;
        if (etag == null) {
            return null;
        }
        String plain = etag.trim();
        plain = plain.startsWith("W/") ? plain.substring(2) : plain;
        while (plain.startsWith("\"")) {
            plain = plain.substring(1);
        }
        while (plain.endsWith("\"")) {
            plain = plain.substring(0, plain.length() - 1);
        }
        return plain.isEmpty() ? null : plain;
    }

    int size() {
        return files.size();
    }

    /** What tells people, and Python, which file it is as Spark has listed it. */
    static Object[] describe(FileStatusWithMetadata file) {
        return new Object[] {file.getPath().toString(), Long.valueOf(file.getLen()), Long.valueOf(file.getModificationTime()), etag(file)};
    }

    /** Whether the index knows a file of this path, as it is now or as it was. */
    public boolean isNamed(FileStatusWithMetadata file) {
        return files.containsKey(canonical(file.getPath().toString()));
    }

    /** From what Hadoop prints to what lakebloom.storage.uri calls canonical. */
    static String canonical(String path) {
        if (path.startsWith("file:/")) {
            return path.startsWith("file://") ? path : "file://" + path.substring(5);
        }
        if (path.startsWith("s3a:") || path.startsWith("s3n:")) {
            return "s3" + path.substring(3);
        }
        return path.startsWith("abfss:") ? "abfs" + path.substring(5) : path;
    }
}
