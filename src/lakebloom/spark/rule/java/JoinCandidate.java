package io.lakebloom.spark;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DecimalType;

/** A key of one side of a join that a global filter of the other side's column could filter. */
final class JoinCandidate {
    /** Decimals of more digits take longer to hash than a join takes. */
    private static final int LONG_DIGITS = 18;
    /** The side to filter: 0 is left, 1 is right. */
    final int side;
    final AttributeReference key;
    /** The scan of the other side, and the column there. */
    final Scan scan;
    final List path;
    final String index;
    /** Whether the index has a column of this name; in a table with a log it may have had another one. */
    final boolean isNamed;
    /** Why the side must not, or need not, be filtered; null: it may. */
    final String reason;

    private JoinCandidate(int side, AttributeReference key, Scan scan, List path, String index, boolean isNamed, String reason) {
        this.side = side;
        this.key = key;
        this.scan = scan;
        this.path = path;
        this.index = index;
        this.isNamed = isNamed;
        this.reason = reason;
    }

    /** The equalities of a join between columns, each in both directions, that an index has a global filter for. */
    static List of(Join join, Indexes indexes) {
        List found = new ArrayList();
        if (join.condition().isEmpty()) {
            return found;
        }
        LogicalPlan[] sides = Plans.sides(join);
        for (Iterator it = Conjuncts.of((Expression) join.condition().get()).iterator(); it.hasNext();) {
            Object part = it.next();
            List both = part instanceof EqualTo ? Scala.list(((EqualTo) part).children()) : Collections.emptyList();
            for (int first = 0; first < both.size(); first++) {
                AttributeReference key = column(both.get(first));
                AttributeReference other = column(both.get(1 - first));
                if (key == null || other == null) {
                    continue;
                }
                boolean isCast = key != both.get(first) || other != both.get(1 - first) || !key.dataType().equals(other.dataType());
                for (int side = 0; side < 2; side++) {
                    if (Columns.has(sides[side], key) && Columns.has(sides[1 - side], other)) {
                        add(found, join, side, key, other, isCast, indexes);
                    }
                }
            }
        }
        return found;
    }

    /** A column, or the one that Spark casts to compare it; null for anything else. */
    private static AttributeReference column(Object e) {
        Object compared = e instanceof Cast ? ((Cast) e).child() : e;
        return compared instanceof AttributeReference ? (AttributeReference) compared : null;
    }

    private static void add(
            List found, Join join, int side, AttributeReference key, AttributeReference other, boolean isCast, Indexes indexes) {
        LogicalPlan[] sides = Plans.sides(join);
        ValueSource source = ValueSource.of(sides[1 - side], other);
        if (source == null) {
            return;
        }
        // Where both sides read the same column of the same files every row passes.
        Scan scan = Scan.known(source.relation, null, indexes);
        if (scan == null || source.isSame(ValueSource.of(sides[side], key)) || !scan.isStored(source.column)) {
            return;
        }
        List path = Collections.singletonList(source.column.name());
        String index = indexes.withGlobalFilter(scan, path);
        boolean isNamed = index != null;
        index = isNamed ? index : indexes.withSomeGlobalFilter(scan);
        if (index != null) {
            found.add(new JoinCandidate(side, key, scan, path, index, isNamed, whyNot(join, side, key, isCast)));
        }
    }

    private static String whyNot(Join join, int side, AttributeReference key, boolean isCast) {
        String type = join.joinType().toString();
        boolean both = type.equals("Inner") || type.equals("LeftSemi");
        if (!both && !(type.equals("LeftOuter") && side == 1) && !(type.equals("RightOuter") && side == 0)) {
            return "JOIN_NOT_SAFE";
        }
        if (Types.isCollated(key.dataType())) {
            return "COLLATION"; // strings with other bytes are equal
        }
        if (isCast || key.dataType() instanceof DecimalType && ((DecimalType) key.dataType()).precision() > LONG_DIGITS) {
            return "NOT_SUPPORTED";
        }
        LogicalPlan[] sides = Plans.sides(join);
        BigInteger threshold = BigInteger.valueOf(SQLConf.get().autoBroadcastJoinThreshold());
        for (int i = 0; i < 2; i++) {
            if (sides[i].stats().sizeInBytes().bigInteger().compareTo(threshold) <= 0) {
                return "BROADCAST_JOIN";
            }
        }
        if (join.hint().toString().toLowerCase().contains("broadcast")) {
            return "BROADCAST_JOIN";
        }
        BigInteger minimum = Settings.bytes("spark.lakebloom.join.minBytes");
        if (sides[side].stats().sizeInBytes().bigInteger().compareTo(minimum) < 0) {
            return "JOIN_TOO_SMALL";
        }
        return hasRuntimeFilter(sides[side], key) ? "RUNTIME_FILTER" : null;
    }

    private static boolean hasRuntimeFilter(LogicalPlan plan, AttributeReference key) {
        if (plan instanceof Filter) {
            for (Iterator it = Conjuncts.of(((Filter) plan).condition()).iterator(); it.hasNext();) {
                Expression part = (Expression) it.next();
                if (part instanceof BloomFilterMightContain && part.references().contains(key)) {
                    return true;
                }
            }
        }
        for (Iterator it = Scala.list(plan.children()).iterator(); it.hasNext();) {
            if (hasRuntimeFilter((LogicalPlan) it.next(), key)) {
                return true;
            }
        }
        return false;
    }
}
