package io.lakebloom.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;

/** The files of one version of an index, with size and time of change, numbered as Python numbers them. */
public final class KnownFiles {
    /** Where times are compared in whole seconds, as lakebloom.tables.files explains. */
    private static final List OBJECT_SCHEMES = Arrays.asList(new String[] {"s3:", "gs:", "az:", "abfs:"});
    private final Map files = new HashMap();

    /** Reads path, size and modification time of each file, separated by tabs and ended by a zero character. */
    public KnownFiles(String lines) {
        int number = 0;
        for (int start = 0; start < lines.length(); number++) {
            int end = lines.indexOf('\0', start);
            int time = lines.lastIndexOf('\t', end);
            int size = lines.lastIndexOf('\t', time - 1);
            long[] known = new long[3];
            known[0] = number;
            known[1] = Long.parseLong(lines.substring(size + 1, time));
            known[2] = Long.parseLong(lines.substring(time + 1, end));
            files.put(lines.substring(start, size), known);
            start = end + 1;
        }
    }

    /** The number of a file; negative where the index does not know it as it is now. */
    public int number(FileStatusWithMetadata file) {
        String path = canonical(file.getPath().toString());
        long[] known = (long[]) files.get(path);
        if (known == null || known[1] != file.getLen()) {
            return -1;
        }
        long time = file.getModificationTime();
        if (OBJECT_SCHEMES.contains(path.substring(0, path.indexOf(':') + 1))) {
            time -= Math.floorMod(time, 1000L);
        }
        return time == known[2] ? (int) known[0] : -1;
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
