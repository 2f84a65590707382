package io.lakebloom.spark;

import java.util.Map;

/** The files of indexes as Python sent them. It sends those of a version once, while they are kept here. */
final class FileLists {
    /** Of all lists together; a file takes about 300 bytes. */
    static final long MAX_FILES = 2000000;
    private final Bounded lists = new Bounded(MAX_FILES);

    /** The files of one version of an index; equal fingerprints mean the same files in the same order. */
    static final class Known {
        final String fingerprint;
        final KnownFiles files;

        Known(String fingerprint, KnownFiles files) {
            this.fingerprint = fingerprint;
            this.files = files;
        }
    }

    /** For each index the Known that there is now. */
    Map now() {
        return lists.copy();
    }

    /**
     * The files with this fingerprint: those that are sent, after as many that were known; or else those that were known.
     * Null if neither are.
     */
    Known updated(String index, String fingerprint, String sent, int after, Map before) {
        Known known = (Known) before.get(index);
        if (sent != null) {
            if (after > 0 && known == null) {
                return null;
            }
            Known made = new Known(fingerprint, new KnownFiles(sent, after > 0 ? known.files : null, after));
            lists.put(index, made, 1 + made.files.size());
            return made;
        }
        boolean isSame = known != null && known.fingerprint.equals(fingerprint);
        if (isSame) {
            lists.get(index); // it was used
        }
        return isSame ? known : null;
    }
}
