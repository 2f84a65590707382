package io.lakebloom.spark;

import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;

/** A scan for explain: how it reads, its files as they are listed, and what the plan skips. */
final class ScanDescription {
    private ScanDescription() {}

    static Wire.DescribedScan of(Scan scan, Object lake) throws Exception {
        Wire.DescribedScan described = new Wire.DescribedScan();
        described.table = scan.table();
        described.plain = Boolean.valueOf(scan.isSupported());
        if (scan instanceof IcebergScan && !scan.isSupported()) {
            return described;
        }
        described.roots = (String[]) scan.roots().toArray(new String[0]);
        described.reading = new Wire.Reading();
        scan.fill(described.reading);
        describeFiles(scan, described);
        described.keys = LakebloomFileIndex.keyConditions(scan.location());
        LakebloomFileIndex.describe(scan.location(), lake, described);
        described.atRunTime = Boolean.valueOf(decidesAtRunTime(scan));
        described.partitions = scan.partitionText();
        // A catalog's other partitions Spark does not list, and neither do we.
        if (scan.listing() instanceof InMemoryFileIndex && scan.table() == null) {
            described.filesOfTable = Integer.valueOf(((InMemoryFileIndex) scan.listing()).allFiles().size());
        }
        return described;
    }

    private static void describeFiles(Scan scan, Wire.DescribedScan described) {
        LakebloomFileIndex decided = LakebloomFileIndex.of(scan.location());
        List listed = LakebloomFileIndex.files(scan.listed());
        StringBuilder states = new StringBuilder();
        described.files = new Object[listed.size()][];
        for (int i = 0; i < listed.size(); i++) {
            FileStatusWithMetadata file = (FileStatusWithMetadata) listed.get(i);
            described.files[i] = KnownFiles.describe(file);
            states.append(decided == null ? "#" : decided.state(file));
        }
        described.states = states.toString();
    }

    /** Whether a subquery decides about partitions: which, Spark knows only when the query runs. */
    private static boolean decidesAtRunTime(Scan scan) {
        Set names = scan.partitionNames();
        for (Iterator it = scan.conjuncts().iterator(); it.hasNext();) {
            Expression part = (Expression) it.next();
            if (SubqueryExpression.hasSubquery(part) && isOf(part, names)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isOf(Expression part, Set names) {
        boolean any = false;
        for (Iterator it = Scala.list(part.references()).iterator(); it.hasNext();) {
            if (!names.contains(((Attribute) it.next()).name())) {
                return false;
            }
            any = true;
        }
        return any;
    }
}
