package io.lakebloom.spark;

import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A cache whose entries weigh no more than a limit in all. The one that was not used for longest goes first; the newest
 * stays, whatever it weighs.
 */
public final class Bounded {
    private final long limit;
    private final Map entries = new LinkedHashMap(16, 0.75f, true);
    private long weight;

    public Bounded(long limit) {
        this.limit = limit;
    }

    private static final class Entry {
        final Object value;
        final long weight;

        Entry(Object value, long weight) {
            this.value = value;
            this.weight = weight;
        }
    }

    /** Null if there is no such entry. */
    public synchronized Object get(Object key) {
        Entry found = (Entry) entries.get(key);
        return found == null ? null : found.value;
    }

    public synchronized void put(Object key, Object value, long weighs) {
        Entry old = (Entry) entries.put(key, new Entry(value, weighs));
        weight += weighs - (old == null ? 0 : old.weight);
        for (Iterator it = entries.values().iterator(); weight > limit && entries.size() > 1;) {
            weight -= ((Entry) it.next()).weight;
            it.remove();
        }
    }

    /** What is there now. */
    public synchronized Map copy() {
        Map copy = new HashMap();
        for (Iterator it = entries.entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            copy.put(entry.getKey(), ((Entry) entry.getValue()).value);
        }
        return copy;
    }
}
