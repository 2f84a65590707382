package io.lakebloom.spark;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Describes the scans of an optimized plan, for explain. */
final class Scans {
    /** The name of lakebloom's own data source. */
    static final String SOURCE = "lakebloom";

    private Scans() {}

    /** A Wire.DescribedScan for each scan, also for those in subqueries and in cached plans. */
    static List of(LogicalPlan plan, LakebloomRule rule) throws Exception {
        Set fixed = new HashSet();
        Above.collectFixed(plan, false, fixed);
        List scans = new ArrayList();
        describe(plan, scans, rule, new Around(fixed, rule.unprunedJoins(plan)), false);
        return scans;
    }

    /** What the rest of the query means for its scans: those that need all rows, and joins that skip nothing. */
    private static final class Around {
        final Set fixed;
        final Map joins;

        Around(Set fixed, Map joins) {
            this.fixed = fixed;
            this.joins = joins;
        }

        void describe(LogicalPlan relation, Wire.DescribedScan scan, boolean stopped) {
            scan.needsAllRows = Boolean.valueOf(fixed.contains(relation) || stopped);
            List unpruned = (List) joins.get(relation);
            scan.joins = unpruned == null ? null : (Wire.UnprunedJoin[]) unpruned.toArray(new Wire.UnprunedJoin[0]);
        }
    }

    /** Stopped is a condition above a plan that says nothing about the files below. */
    private static void describe(LogicalPlan plan, List scans, LakebloomRule rule, Around around, boolean stopped) throws Exception {
        if (plan instanceof Filter && Plans.isScan(Plans.child(plan))) {
            LogicalPlan relation = Plans.child(plan);
            Wire.DescribedScan scan = described(relation, ((Filter) plan).condition(), rule);
            scan.seen = rule.seen((Filter) plan);
            around.describe(relation, scan, false);
            scans.add(scan);
        } else if (Plans.isScan(plan)) {
            Wire.DescribedScan scan = described(plan, null, rule);
            around.describe(plan, scan, stopped);
            scans.add(scan);
        } else if (source(plan) != null) {
            Wire.DescribedScan scan = new Wire.DescribedScan();
            scan.source = source(plan).asCaseSensitiveMap();
            scans.add(scan);
        } else if (plan instanceof InMemoryRelation) {
            for (Iterator it = Scala.list(plan.innerChildren()).iterator(); it.hasNext();) {
                Object cached = it.next();
                if (cached instanceof SparkPlan) {
                    Wire.DescribedScan scan = new Wire.DescribedScan();
                    scan.cached = ((SparkPlan) cached).simpleString(25);
                    scan.atRunTime = Boolean.valueOf(!((InMemoryRelation) plan).cacheBuilder().isCachedColumnBuffersLoaded());
                    scans.add(scan);
                }
            }
        }
        for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
            LogicalPlan child = (LogicalPlan) it.next();
            if (!(plan instanceof Filter && Plans.isScan(child))) {
                boolean stops = plan instanceof Filter && isOwn(((Filter) plan).condition())
                    && Above.below(child, ((Filter) plan).condition()) == null;
                describe(child, scans, rule, around, plan.children().size() == 1 && (stopped || stops));
            }
        }
        for (Iterator it = Scala.list(plan.subqueries()).iterator(); it.hasNext();) {
            describe((LogicalPlan) it.next(), scans, rule, around, false);
        }
    }

    private static Wire.DescribedScan described(LogicalPlan relation, Expression condition, LakebloomRule rule) throws Exception {
        try {
            return ScanDescription.of(Scan.of(relation, condition), rule);
        } catch (Exception problem) {
            if (Plans.isFiles(relation)) {
                throw problem;
            }
            Wire.DescribedScan scan = new Wire.DescribedScan(); // a version of Iceberg that is not known
            scan.table = ((DataSourceV2ScanRelation) relation).name();
            scan.plain = Boolean.FALSE;
            return scan;
        }
    }

    /** Whether a condition is more than the "k IS NOT NULL" that Spark adds by itself. */
    private static boolean isOwn(Expression condition) {
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
}
