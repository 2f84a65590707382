package io.lakebloom.spark;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.Partition;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.PythonRDD;
import org.apache.spark.rdd.MapPartitionsRDD;
import org.apache.spark.rdd.ParallelCollectionPartition;
import org.apache.spark.rdd.ParallelCollectionRDD;
import org.apache.spark.rdd.RDD;
import scala.Function3;

/**
 * The rows of spark.createDataFrame([...]): a list that PySpark has copied into the driver, and that nobody can change.
 *
 * To Spark it is an RDD like any other, which a Python worker computes. It is known by every step of its making: the
 * pickled list, a Python function that passes on what it gets (its pickle is compared byte by byte with PySpark's own),
 * and Spark's own functions from pickles to rows. Those run here, in the driver: no job, no Python worker.
 */
final class ListRows {
    /** Whose functions make rows of pickles, from the rows down. */
    private static final String[] HOSTS = {
        "org.apache.spark.sql.classic.SparkSession", "org.apache.spark.api.python.SerDeUtil$", "org.apache.spark.api.python.SerDeUtil$"};
    private final Function3[] steps;
    private final List pickles;
    final long bytes;

    private ListRows(Function3[] steps, List pickles) {
        this.steps = steps;
        this.pickles = pickles;
        long all = 0;
        for (Iterator it = pickles.iterator(); it.hasNext();) {
            for (Iterator jt = Scala.list(((ParallelCollectionPartition) it.next()).values()).iterator(); jt.hasNext();) {
                all += ((byte[]) jt.next()).length;
            }
        }
        this.bytes = all;
    }

    /** The rows of an RDD that is such a list; null if it is anything else. */
    static ListRows of(RDD rdd) {
        try {
            return found(rdd);
        } catch (Exception otherVersion) {
            return null; // of Spark, with other fields
        }
    }

    private static ListRows found(RDD rdd) throws Exception {
        RDD at = rdd;
        Function3[] steps = new Function3[HOSTS.length];
        for (int i = 0; i < steps.length; i++) {
            if (at == null || at.getClass() != MapPartitionsRDD.class) {
                return null;
            }
            steps[i] = (Function3) field(at, MapPartitionsRDD.class, "f");
            if (!isOf(steps[i], HOSTS[i])) {
                return null;
            }
            at = ((MapPartitionsRDD) at).prev();
        }
        if (at == null || at.getClass() != PythonRDD.class || !passesOn((PythonFunction) field(at, PythonRDD.class, "func"))) {
            return null;
        }
        RDD source = ((org.apache.spark.Dependency) at.dependencies().head()).rdd();
        if (source.getClass() != ParallelCollectionRDD.class) {
            return null;
        }
        Partition[] parts = source.partitions();
        List pickles = new ArrayList();
        for (int i = 0; i < parts.length; i++) {
            pickles.add(parts[i]);
        }
        return new ListRows(steps, pickles);
    }

    private static Object field(Object of, Class declaring, String name) throws Exception {
        Field field = declaring.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
    }

    /** Whether a function of RDD.map or RDD.mapPartitions has got one that is written in this class of Spark. */
    private static boolean isOf(Object function, String host) throws Exception {
        Field[] captured = function.getClass().getDeclaredFields();
        if (!function.getClass().getName().startsWith("org.apache.spark.rdd.RDD$$Lambda") || captured.length != 1) {
            return false;
        }
        captured[0].setAccessible(true);
        return captured[0].get(function).getClass().getName().startsWith(host + "$$Lambda");
    }

    /** Whether a function is PySpark's own, whatever the size of its batches, for which some bytes are free. */
    private static boolean passesOn(PythonFunction function) {
        List command = Scala.list(function.command());
        Wire.ListPickle[] known = Settings.listPickles();
        for (int i = 0; i < known.length; i++) {
            if (isSame(command, known[i])) {
                return function.broadcastVars().isEmpty();
            }
        }
        return false;
    }

    private static boolean isSame(List command, Wire.ListPickle known) {
        if (command.size() != known.pickle.length) {
            return false;
        }
        Set free = new HashSet();
        for (int i = 0; i < known.free.length; i++) {
            free.add(Integer.valueOf(known.free[i]));
        }
        for (int i = 0; i < known.pickle.length; i++) {
            if (((Number) command.get(i)).byteValue() != known.pickle[i] && !free.contains(Integer.valueOf(i))) {
                return false;
            }
        }
        return true;
    }

    /** The rows, made one after the other. */
    Iterator rows() {
        return new Rows(this);
    }

    private static final class Rows implements Iterator {
        private final ListRows list;
        private int next;
        private Iterator part = Collections.emptyIterator();

        Rows(ListRows list) {
            this.list = list;
        }

        public boolean hasNext() {
            while (!part.hasNext() && next < list.pickles.size()) {
                Object made = ((ParallelCollectionPartition) list.pickles.get(next)).iterator();
                for (int i = list.steps.length - 1; i >= 0; i--) {
                    made = list.steps[i].apply(null, Integer.valueOf(next), made);
                }
                next++;
                part = Scala.iterator((scala.collection.Iterator) made);
            }
            return part.hasNext();
        }

        public Object next() {
            return part.next();
        }
    }
}
