package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;

/** The indexes of a lake as the rule needs to know them, without a call to Python. */
final class Indexes {
    private final List all = new ArrayList();

    Indexes(Wire.PublishedIndex[] published) {
        for (int i = 0; i < published.length; i++) {
            all.add(new Index(published[i]));
        }
    }

    boolean isEmpty() {
        return all.isEmpty();
    }

    /** Whether there is an index of a table with a log. */
    boolean anyLogged() {
        for (Iterator it = all.iterator(); it.hasNext();) {
            if (((Index) it.next()).isLogged) {
                return true;
            }
        }
        return false;
    }

    String[] names() {
        String[] names = new String[all.size()];
        for (int i = 0; i < names.length; i++) {
            names[i] = ((Index) all.get(i)).name;
        }
        return names;
    }

    /** Whether an index has filters for a column of this name in the table of a scan. */
    boolean cover(Scan scan, List column) {
        return found(scan, FileColumns.key(column), false, false) != null;
    }

    /** Whether an index may have filters for this column: in a table with a log it may have had another name. */
    boolean mayCover(Scan scan, List column) {
        return cover(scan, column) || scan.isLogged() && found(scan, null, false, true) != null;
    }

    /** The name of an index with a global filter for a column of this name in the table of a scan; null if there is none. */
    String withGlobalFilter(Scan scan, List column) {
        return found(scan, FileColumns.key(column), true, false);
    }

    /** The name of an index with a global filter for some column, which may be this one under another name; null if there is none. */
    String withSomeGlobalFilter(Scan scan) {
        return scan.isLogged() ? found(scan, null, true, true) : null;
    }

    /** Whether there is an index of a table with a log at one of these places. */
    boolean meetLogged(List roots) {
        for (Iterator it = all.iterator(); it.hasNext();) {
            Index index = (Index) it.next();
            if (index.isLogged && index.meets(roots)) {
                return true;
            }
        }
        return false;
    }

    private String found(Scan scan, String key, boolean isGlobal, boolean isAny) {
        List roots = null;
        for (Iterator it = all.iterator(); it.hasNext();) {
            Index index = (Index) it.next();
            Set columns = isGlobal ? index.globals : index.columns;
            if (index.isLogged == scan.isLogged() && (isAny ? !columns.isEmpty() : columns.contains(key))) {
                roots = roots == null ? scan.roots() : roots;
                if (index.meets(roots)) {
                    return index.name;
                }
            }
        }
        return null;
    }

    /** The names of the indexes that together could drop a file, each knowing a column that the condition names. */
    List usable(Scan scan) {
        List here = new ArrayList();
        List roots = scan.roots();
        for (Iterator it = all.iterator(); it.hasNext();) {
            Index index = (Index) it.next();
            if (index.isLogged == scan.isLogged() && index.meets(roots)) {
                here.add(index);
            }
        }
        List names = new ArrayList();
        Set columns = new HashSet();
        Set named = here.isEmpty() ? Collections.emptySet() : scan.columns();
        for (Iterator it = here.iterator(); it.hasNext();) {
            Index index = (Index) it.next();
            // A column of a table with a log may have been renamed since: then only Python knows which one it is.
            if (index.isLogged || !Collections.disjoint(index.columns, named)) {
                names.add(index.name);
                columns.addAll(index.isLogged ? named : index.columns);
            }
        }
        return !names.isEmpty() && scan.isUsable(columns) ? names : Collections.emptyList();
    }

    /** Where the table of an index is, and the columns it has filters for. */
    private static final class Index {
        final String name;
        final Set columns = new HashSet();
        final Set globals = new HashSet();
        /** Whether the log of the table says which files count. */
        final boolean isLogged;
        private final List locations;

        Index(Wire.PublishedIndex published) {
            name = published.name;
            isLogged = published.isLogged;
            locations = Arrays.asList(published.locations);
            for (int i = 0; i < published.columns.length; i++) {
                String key = FileColumns.key(Arrays.asList(published.columns[i]));
                columns.add(key);
                if (published.globalFilter) {
                    globals.add(key);
                }
            }
        }

        boolean meets(List roots) {
            for (Iterator it = roots.iterator(); it.hasNext();) {
                String root = (String) it.next();
                for (Iterator jt = locations.iterator(); jt.hasNext();) {
                    String location = (String) jt.next();
                    if (isWithin(root, location) || isWithin(location, root)) {
                        return true;
                    }
                }
            }
            return false;
        }

        private static boolean isWithin(String path, String directory) {
            return path.equals(directory) || path.startsWith(directory.endsWith("/") ? directory : directory + "/");
        }
    }
}
