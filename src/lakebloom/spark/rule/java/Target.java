package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;

/** The indexed columns that a key of a join is about; a reason where their files must stay. */
final class Target {
    final List origins = new ArrayList();
    final Set relations = Collections.newSetFromMap(new IdentityHashMap());
    String column;
    String reason;
    /** Whether an index has a column of this name; in a table with a log it may have had another one. */
    boolean isNamed;

    private Target() {}

    /** What a key could skip files of; null if no index knows the column. */
    static Target of(Indexes indexes, LogicalPlan plan, JoinKey key) {
        Target target = new Target();
        Expression column = Origin.column(key.other);
        List origins = column == null ? Collections.emptyList() : Origin.of(plan, column, indexes);
        for (Iterator it = origins.iterator(); it.hasNext();) {
            target.add((Origin) it.next(), indexes);
        }
        if (!target.origins.isEmpty() || target.reason != null) {
            target.reason = target.origins.isEmpty() ? target.reason : null;
            return target;
        }
        target.reason = column == null ? "KEY_COMPUTED" : "NEEDS_ALL_ROWS";
        for (Iterator it = Scala.list(key.other.references()).iterator(); it.hasNext() && origins.isEmpty();) {
            target.trace(indexes, plan, (Expression) it.next());
        }
        return target.relations.isEmpty() ? null : target;
    }

    private void add(Origin origin, Indexes indexes) {
        String why = origin.whyNot(indexes);
        if (why == null) {
            origins.add(origin);
        } else if (!why.equals("NO_INDEX")) {
            reason = why;
        }
        if (why == null || !why.equals("NO_INDEX")) {
            relations.add(origin.relation);
            List path = origin.scan.path(origin.column);
            column = String.join(".", path);
            isNamed |= indexes.cover(origin.scan, path);
        }
    }

    /** Adds the relations with an index of a column, whatever lies between. */
    private void trace(Indexes indexes, LogicalPlan plan, Expression e) {
        if (plan.children().isEmpty()) {
            Expression found = Origin.column(e);
            Scan scan = found == null ? null : Scan.known(plan, null, indexes);
            List path = scan == null ? null : scan.path(found);
            if (path != null && indexes.cover(scan, path)) {
                relations.add(plan);
                column = String.join(".", path);
                isNamed = true;
            }
            return;
        }
        Expression made = e;
        if (plan instanceof Project) {
            made = Columns.replaced(e, Columns.definitions(((Project) plan).projectList()));
        } else if (plan instanceof Aggregate) {
            made = Columns.replaced(e, Columns.definitions(((Aggregate) plan).aggregateExpressions()));
        }
        for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
            LogicalPlan child = (LogicalPlan) it.next();
            Expression here = plan instanceof Union ? Columns.replaced(made, Columns.positions(plan.output(), child.output())) : made;
            if (Origin.column(here) != null) {
                if (here.references().subsetOf(child.outputSet())) {
                    trace(indexes, child, here);
                }
                continue;
            }
            for (Iterator jt = Scala.list(here.references()).iterator(); jt.hasNext();) {
                Expression part = (Expression) jt.next();
                if (Columns.has(child, part)) {
                    trace(indexes, child, part);
                }
            }
        }
    }

    /** Whether something else has skipped files here. */
    boolean isPruned() {
        for (Iterator it = origins.iterator(); it.hasNext();) {
            LakebloomFileIndex pruned = ((Origin) it.next()).pruned();
            if (pruned != null && pruned.leavesOutAny()) {
                return true;
            }
        }
        return false;
    }

    /** Whether some files are chosen once and for all when the query is planned. */
    boolean isPlanned() {
        for (Iterator it = origins.iterator(); it.hasNext();) {
            if (((Origin) it.next()).scan instanceof IcebergScan) {
                return true;
            }
        }
        return false;
    }

    /** Whether files were skipped here already, for this purpose. */
    boolean isDone(Object lake, String purpose) {
        for (Iterator it = origins.iterator(); it.hasNext();) {
            LakebloomFileIndex pruned = ((Origin) it.next()).pruned();
            if (pruned != null && pruned.isOf(lake, purpose)) {
                return true;
            }
        }
        return false;
    }
}
