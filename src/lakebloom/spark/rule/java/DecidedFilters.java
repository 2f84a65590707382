package io.lakebloom.spark;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/**
 * The run-time filters of an Iceberg scan, with what lakebloom decided about its files.
 *
 * Iceberg compares scans by the text of these filters, and not by their tasks. So the text says which files are kept, and
 * Spark takes two scans for the same only if both read the same files. The list is never sent to executors.
 */
final class DecidedFilters extends ArrayList implements Decided {
    private final transient LakebloomFileIndex decided;
    private final String kept;

    DecidedFilters(List filters, LakebloomFileIndex decided, List files) throws Exception {
        super(filters);
        this.decided = decided;
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (Iterator it = files.iterator(); it.hasNext();) {
            digest.update(((String) it.next()).getBytes(StandardCharsets.UTF_8));
            digest.update((byte) 0);
        }
        StringBuilder text = new StringBuilder();
        byte[] bytes = digest.digest();
        for (int i = 0; i < bytes.length; i++) {
            text.append(String.format("%02x", new Object[] {Byte.valueOf(bytes[i])}));
        }
        this.kept = text.toString();
    }

    public LakebloomFileIndex decided() {
        return decided;
    }

    public String toString() {
        return super.toString() + " and the files " + kept + " of " + decided;
    }
}
