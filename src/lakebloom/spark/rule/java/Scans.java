package io.lakebloom.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandResultExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.util.AccumulatorV2;

/** Finds the scans of files in plans, and what they ask; and what the filters on joins counted. */
final class Scans {
    /** The name of lakebloom's own data source. */
    static final String SOURCE = "lakebloom";

    private Scans() {}

    /** Describes the scans of an optimized plan, also those in subqueries and in cached plans. */
    static void describe(LogicalPlan plan, ArrayNode scans, ObjectMapper mapper, LakebloomRule rule) throws Exception {
        Set fixed = new HashSet();
        Above.collectFixed(plan, false, fixed);
        describe(plan, scans, mapper, rule, new Around(fixed, rule.unprunedJoins(plan)), false);
    }

    /** What the rest of the query means for its scans: those that need all rows, and joins that leave out nothing. */
    private static final class Around {
        final Set fixed;
        final Map joins;

        Around(Set fixed, Map joins) {
            this.fixed = fixed;
            this.joins = joins;
        }

        void describe(LogicalPlan relation, ObjectNode scan, boolean stopped) {
            scan.put("needs_all_rows", fixed.contains(relation) || stopped);
            if (joins.containsKey(relation)) {
                scan.set("joins", (ArrayNode) joins.get(relation));
            }
        }
    }

    /** Stopped is a condition above a plan that says nothing about the files below. */
    private static void describe(
            LogicalPlan plan, ArrayNode scans, ObjectMapper mapper, LakebloomRule rule, Around around, boolean stopped)
            throws Exception {
        if (plan instanceof Filter && Plans.isFiles(((Filter) plan).child())) {
            LogicalRelation relation = (LogicalRelation) ((Filter) plan).child();
            ObjectNode scan = new Scan(relation, ((Filter) plan).condition()).description(mapper, rule);
            scan.put("seen", rule.seen((Filter) plan));
            around.describe(relation, scan, false);
            scans.add(scan);
        } else if (Plans.isFiles(plan)) {
            ObjectNode scan = new Scan((LogicalRelation) plan, null).description(mapper, rule);
            around.describe(plan, scan, stopped);
            scans.add(scan);
        } else if (source(plan) != null) {
            ObjectNode options = scans.addObject().putObject("source");
            Map given = source(plan).asCaseSensitiveMap();
            for (Iterator it = given.entrySet().iterator(); it.hasNext();) {
                Map.Entry option = (Map.Entry) it.next();
                options.put((String) option.getKey(), (String) option.getValue());
            }
        } else if (plan instanceof InMemoryRelation) {
            for (Iterator it = Scala.list(plan.innerChildren()).iterator(); it.hasNext();) {
                Object cached = it.next();
                if (cached instanceof SparkPlan) {
                    ObjectNode scan = scans.addObject();
                    scan.put("cached", ((SparkPlan) cached).simpleString(25));
                    scan.put("at_run_time", !((InMemoryRelation) plan).cacheBuilder().isCachedColumnBuffersLoaded());
                }
            }
        }
        for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
            LogicalPlan child = (LogicalPlan) it.next();
            if (!(plan instanceof Filter && Plans.isFiles(child))) {
                boolean stops = plan instanceof Filter && isAsked(((Filter) plan).condition())
                    && Above.below(child, ((Filter) plan).condition()) == null;
                describe(child, scans, mapper, rule, around, plan.children().size() == 1 && (stopped || stops));
            }
        }
        for (Iterator it = Scala.list(plan.subqueries()).iterator(); it.hasNext();) {
            describe((LogicalPlan) it.next(), scans, mapper, rule, around, false);
        }
    }

    /** Whether a condition is more than the "k IS NOT NULL" that Spark adds by itself. */
    private static boolean isAsked(Expression condition) {
        for (Iterator it = Conjuncts.of(condition).iterator(); it.hasNext();) {
            if (!(it.next() instanceof IsNotNull)) {
                return true;
            }
        }
        return false;
    }

    /** The options of a scan by lakebloom's own data source; null for any other plan. */
    private static CaseInsensitiveStringMap source(LogicalPlan plan) {
        LogicalPlan relation = plan instanceof DataSourceV2ScanRelation ? ((DataSourceV2ScanRelation) plan).relation() : plan;
        if (!(relation instanceof DataSourceV2Relation)) {
            return null;
        }
        DataSourceV2Relation found = (DataSourceV2Relation) relation;
        return found.table().name().equals(SOURCE) ? found.options() : null;
    }

    /** Adds, for each filter that was put on a side of a join, how many rows came and how many it let pass. */
    static void countJoins(SparkPlan plan, ArrayNode joins) {
        if (plan instanceof FilterExec) {
            String mark = mark((FilterExec) plan);
            long rows = mark == null ? -1 : rows(plan);
            if (rows >= 0) {
                ObjectNode join = joins.addObject();
                join.put("mark", mark);
                join.put("rows_passed", rows);
                join.put("rows", rowsBelow(plan));
            }
        }
        for (Iterator it = parts(plan).iterator(); it.hasNext();) {
            countJoins((SparkPlan) it.next(), joins);
        }
    }

    private static String mark(FilterExec filter) {
        Iterator columns = Scala.list(filter.condition().references()).iterator();
        while (columns.hasNext()) {
            String name = ((NamedExpression) columns.next()).name();
            if (name.startsWith(JoinFilterPlan.MARK)) {
                return name;
            }
        }
        return null;
    }

    private static long rowsBelow(SparkPlan plan) {
        List children = below(plan);
        while (children.size() == 1) {
            SparkPlan child = (SparkPlan) children.get(0);
            if (rows(child) >= 0) {
                return rows(child);
            }
            children = below(child);
        }
        return -1;
    }

    private static long rows(SparkPlan plan) {
        AccumulatorV2 metric = (AccumulatorV2) Scala.map(plan.metrics()).get("numOutputRows");
        return metric == null ? -1 : ((Number) metric.value()).longValue();
    }

    /** The plans below a plan, and those of its subqueries. */
    static List parts(SparkPlan plan) {
        List parts = new ArrayList(below(plan));
        parts.addAll(Scala.list(plan.subqueries()));
        return parts;
    }

    /** The plans below a plan, whatever wraps them; one that is used again is not counted again. */
    static List below(SparkPlan plan) {
        if (plan instanceof AdaptiveSparkPlanExec) {
            return Collections.singletonList(((AdaptiveSparkPlanExec) plan).executedPlan());
        }
        if (plan instanceof QueryStageExec) {
            return Collections.singletonList(((QueryStageExec) plan).plan());
        }
        if (plan instanceof InMemoryTableScanExec) {
            return Collections.singletonList(((InMemoryTableScanExec) plan).relation().cachedPlan());
        }
        if (plan instanceof CommandResultExec) {
            return Collections.singletonList(((CommandResultExec) plan).commandPhysicalPlan());
        }
        if (plan instanceof ReusedExchangeExec) {
            return Collections.emptyList();
        }
        return Scala.list(plan.children());
    }
}
