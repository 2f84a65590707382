package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import scala.collection.JavaConverters;
import scala.collection.immutable.Seq;

/**
 * Scala's collections as Java's and back. No other class converts them, because that differs between versions of Scala.
 *
 * JavaConverters is deprecated, but Scala 2.12 and 2.13 both have it.
 */
final class Scala {
    private Scala() {}

    /** A view, not a copy. */
    static List list(scala.collection.Seq items) {
        return JavaConverters.seqAsJavaList(items);
    }

    static List list(scala.collection.Iterable items) {
        List copy = new ArrayList();
        for (Iterator it = JavaConverters.asJavaIterable(items).iterator(); it.hasNext();) {
            copy.add(it.next());
        }
        return copy;
    }

    static Map map(scala.collection.Map items) {
        return JavaConverters.mapAsJavaMap(items);
    }

    static Iterator iterator(scala.collection.Iterator items) {
        return JavaConverters.asJavaIterator(items);
    }

    static Seq seq(List items) {
        return JavaConverters.asScalaBuffer(items).toSeq();
    }

    static Seq nothing() {
        return seq(Collections.emptyList());
    }

    static scala.collection.immutable.Set set(java.util.Set items) {
        return JavaConverters.asScalaSet(items).toSet();
    }
}
