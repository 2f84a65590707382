package io.lakebloom.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/** A relation of files in a plan, with the condition directly above it. */
abstract class Scan {
    final LogicalPlan relation;
    final Expression condition;
    private final FileColumns columns;
    private final Conditions conditions;
    private final List conjuncts;
    private ObjectNode tree;

    /** The condition may be null. */
    Scan(LogicalPlan relation, FileColumns columns, Expression condition) {
        this.relation = relation;
        this.condition = condition;
        this.columns = columns;
        this.conditions = new Conditions(columns);
        this.conjuncts = condition == null ? Collections.emptyList() : Conjuncts.needed(condition);
    }

    /** The relation is one that Plans.isScan knows. */
    static Scan of(LogicalPlan relation, Expression condition) throws Exception {
        return relation instanceof LogicalRelation ? new FileScan((LogicalRelation) relation, condition) : new IcebergScan(relation, condition);
    }

    /**
     * The scan of a relation that an index may know; null for any other plan, and for a reader that is not as expected.
     *
     * Iceberg's tasks are looked at only if there is an index of a table with a log.
     */
    static Scan known(LogicalPlan relation, Expression condition, Indexes indexes) {
        if (!Plans.isBatch(relation) || !Plans.isFiles(relation) && !indexes.anyLogged()) {
            return null;
        }
        try {
            Scan scan = of(relation, condition);
            return scan.isSupported() ? scan : null;
        } catch (Exception problem) {
            return null; // explain says so of the scan itself
        }
    }

    /** The files, with what lakebloom has put over them. */
    abstract FileIndex location();

    /** What lakebloom decided about the files; null if nothing. */
    abstract LakebloomFileIndex decided();

    /** Whether lakebloom knows how the files are listed, and what their rows are. */
    abstract boolean isSupported();

    /** Whether a log says which files count, and the format which of their rows do. */
    abstract boolean isLogged();

    /** The files before any was skipped. */
    abstract Seq listed();

    /** The same relation over other files. */
    abstract LogicalPlan with(LakebloomFileIndex files) throws Exception;

    /** The name of the table; null for files without one. */
    abstract String table();

    /** The columns by which files are skipped when the query runs. */
    abstract Set partitionNames();

    /** Fills in how the files are read. */
    abstract void fillFormat(Wire.Reading reading) throws Exception;

    /** Whether a column is read from the files. */
    boolean isStored(AttributeReference column) {
        return columns.isStored(column);
    }

    /** How the files are listed, below what lakebloom has put over it. */
    FileIndex listing() {
        FileIndex location = location();
        for (LakebloomFileIndex above = LakebloomFileIndex.of(location); above != null; above = LakebloomFileIndex.of(location)) {
            location = above.base();
        }
        return location;
    }

    /** Where the files are, as Hadoop prints it. */
    List roots() {
        List roots = new ArrayList();
        for (Iterator it = Scala.list(listing().rootPaths()).iterator(); it.hasNext();) {
            roots.add(KnownFiles.canonical(it.next().toString()));
        }
        return roots;
    }

    /** The columns that the condition compares, as indexes are compared by. */
    Set columns() {
        Set found = new HashSet();
        if (condition != null) {
            Trees.collectColumns(tree(), found);
        }
        return found;
    }

    /** Whether filters of these columns could drop a file. */
    boolean isUsable(Set indexed) {
        return condition != null && new Usable(indexed).canDrop(tree());
    }

    /** The parts of a column's name; null for anything that is not read from the files. */
    List path(Expression e) {
        return columns.path(e);
    }

    /** Why the whole condition has no form in a tree; null if it has one. */
    String unknown() {
        return tree().path("kind").asText().equals("unknown") ? tree().get("reason").asText() : null;
    }

    private ObjectNode tree() {
        if (tree == null) {
            tree = conditions.json(conjuncts);
        }
        return tree;
    }

    /** The conditions that decide about whole partitions: Spark applies them when it lists. */
    Seq partitionFilters() {
        return Scala.seq(columns.partitionFilters(conjuncts()));
    }

    /** The same as people type them. */
    String partitionText() {
        List texts = new ArrayList();
        for (Iterator it = columns.partitionFilters(conjuncts).iterator(); it.hasNext();) {
            texts.add(ConditionText.of((Expression) it.next()));
        }
        return String.join(" AND ", texts);
    }

    /** The conditions that must all hold. */
    List conjuncts() {
        return condition == null ? Collections.emptyList() : Conjuncts.of(condition);
    }

    /** Fills in how the files are read, and the condition. */
    void fill(Wire.Reading reading) throws Exception {
        fillFormat(reading);
        reading.predicate = condition == null ? null : tree();
    }
}
