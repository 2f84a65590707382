package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Tables with a log in a plan that is analysed and not yet optimized: their formats have chosen no files. */
final class Logged {
    private static final String ICEBERG = "org.apache.iceberg.spark.source.SparkTable";
    private static final String DELTA = "org.apache.spark.sql.delta.";

    private Logged() {}

    /** Where the tables of a plan are. */
    static List roots(LogicalPlan plan) {
        List found = new ArrayList();
        collect(plan, found);
        return found;
    }

    private static void collect(LogicalPlan plan, List found) {
        if (plan instanceof DataSourceV2Relation && ((DataSourceV2Relation) plan).table().getClass().getName().equals(ICEBERG)) {
            addIceberg(((DataSourceV2Relation) plan).table(), found);
        } else if (Plans.isFiles(plan)) {
            FileIndex location = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
            for (Iterator it = Scala.list(location.rootPaths()).iterator(); isDelta(location) && it.hasNext();) {
                found.add(KnownFiles.canonical(it.next().toString()));
            }
        }
        for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
            collect((LogicalPlan) it.next(), found);
        }
    }

    private static void addIceberg(Object source, List found) {
        try {
            Reflection reflection = new Reflection();
            Object table = reflection.call(source, "table");
            found.add(KnownFiles.canonical(Iceberg.path((String) reflection.call(table, "location")).toString()));
        } catch (Exception problem) {
            // A version of Iceberg that is not known: no index is for this table.
        }
    }

    private static boolean isDelta(FileIndex location) {
        return location.getClass().getName().startsWith(DELTA);
    }
}
