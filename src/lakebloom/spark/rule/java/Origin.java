package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.KnownFloatingPointNormalized;
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.types.DataType;

/**
 * A column of a plan, or what Spark compares of it, as it is in the files.
 *
 * Each row of the plan depends only on rows of the files with the same value. So skipping files with other values
 * skips other rows, and changes none.
 */
final class Origin {
    final LogicalPlan relation;
    final Expression column;
    final Scan scan;

    private Origin(LogicalPlan relation, Expression column, Scan scan) {
        this.relation = relation;
        this.column = column;
        this.scan = scan;
    }

    /** Where a column's values come from: several places for a union, none where rows depend on others. */
    static List of(LogicalPlan plan, Expression column, Indexes indexes) {
        List found = new ArrayList();
        add(plan, column, indexes, found);
        return found;
    }

    /** Why no index can know which files hold keys; null: one may, NO_INDEX: there is none. */
    String whyNot(Indexes indexes) {
        List path = scan.path(column);
        return path == null || !indexes.mayCover(scan, path) ? "NO_INDEX" : scan.unknown();
    }

    /** Whether an index may know which files hold keys of a type. */
    boolean canBeProbed(Indexes indexes, DataType type) {
        DataType own = column.dataType();
        boolean sameValues = own.equals(type) || Types.isExact(own, type) || Types.isExact(type, own);
        return sameValues && whyNot(indexes) == null;
    }

    /** How files were skipped here already; null if none were. */
    LakebloomFileIndex pruned() {
        return scan.decided();
    }

    /** A column, a leaf of its structs, or one of them that Spark has made wider to compare it; null for anything else. */
    static Expression column(Expression e) {
        if (e instanceof KnownFloatingPointNormalized || e instanceof NormalizeNaNAndZero) {
            return column((Expression) Scala.list(e.children()).get(0)); // an index knows one zero, one NaN
        }
        if (e instanceof Cast || e instanceof GetStructField) {
            Expression child = (Expression) Scala.list(e.children()).get(0);
            Expression below = e instanceof Cast && !Types.isExact(child.dataType(), e.dataType()) ? null : column(child);
            return below == null ? null : (Expression) e.withNewChildren(Scala.seq(Collections.singletonList(below)));
        }
        return e instanceof AttributeReference ? e : null;
    }

    private static AttributeReference root(Expression column) {
        Expression root = column;
        while (!(root instanceof AttributeReference)) {
            root = (Expression) Scala.list(root.children()).get(0);
        }
        return (AttributeReference) root;
    }

    private static void add(LogicalPlan plan, Expression column, Indexes indexes, List found) {
        AttributeReference root = root(column);
        if (plan.children().isEmpty()) {
            Scan scan = Columns.named(plan.output(), root) == null ? null
                : Scan.known(plan, KeyCondition.isIn(column, Collections.emptySet()), indexes);
            if (scan != null) {
                found.add(new Origin(plan, column, scan));
            }
            return;
        }
        if (plan instanceof Join) {
            LogicalPlan left = (LogicalPlan) ((Join) plan).left();
            boolean isLeft = Columns.has(left, root);
            if (keepsOthers((Join) plan, isLeft)) {
                add(isLeft ? left : (LogicalPlan) ((Join) plan).right(), column, indexes, found);
            }
            return;
        }
        if (!(plan instanceof Aggregate) && !plan.deterministic()) {
            return;
        }
        if (plan instanceof Union) {
            for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
                LogicalPlan child = (LogicalPlan) it.next();
                add(child, Columns.replaced(column, Columns.positions(plan.output(), child.output())), indexes, found);
            }
            return;
        }
        Expression below = below(plan, column, root);
        if (below != null) {
            add(Plans.child(plan), below, indexes, found);
        }
    }

    /** A column over what is below a plan with one child; null if its rows depend on rows with other values. */
    private static Expression below(LogicalPlan plan, Expression column, AttributeReference root) {
        if (plan instanceof Project) {
            return column(Columns.replaced(column, Columns.definitions(((Project) plan).projectList())));
        }
        if (plan instanceof Aggregate) {
            AttributeReference source = Columns.source(plan, root);
            boolean groups = source != null && Columns.named(((Aggregate) plan).groupingExpressions(), source) != null;
            return groups ? Columns.replaced(column, Collections.singletonMap(root.exprId(), source)) : null;
        }
        if (plan instanceof View || plan instanceof SubqueryAlias) {
            return Columns.named(Plans.child(plan).output(), root) == null ? null : column;
        }
        boolean passes = plan instanceof Filter || plan instanceof Sort || plan instanceof ResolvedHint
            || plan instanceof Repartition || plan instanceof RepartitionByExpression
            || plan instanceof Window && Columns.named(((Window) plan).partitionSpec(), root) != null;
        return passes ? column : null;
    }

    /** Whether rows of a side with other keys may go without changing rows with this one. */
    private static boolean keepsOthers(Join join, boolean isLeft) {
        String type = join.joinType().toString();
        String own = isLeft ? "LeftOuter LeftSemi LeftAnti" : "RightOuter";
        return Arrays.asList(("Inner Cross " + own).split(" ")).contains(type);
    }
}
