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
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/** A relation of files in a plan, with the condition directly above it. */
final class Scan {
    final LogicalRelation relation;
    final HadoopFsRelation files;
    final Expression condition;
    private final FileColumns columns;
    private final Conditions conditions;
    private final List conjuncts;
    private ObjectNode tree;

    /** The condition may be null. */
    Scan(LogicalRelation relation, Expression condition) {
        this.relation = relation;
        this.files = (HadoopFsRelation) relation.relation();
        this.condition = condition;
        this.columns = new FileColumns(relation);
        this.conditions = new Conditions(columns);
        this.conjuncts = condition == null ? Collections.emptyList() : Conjuncts.needed(condition);
    }

    /** Whether a column is read from the files. */
    boolean isStored(AttributeReference column) {
        return columns.isStored(column);
    }

    /** How Spark lists the files, below what lakebloom has put over it. */
    FileIndex listing() {
        FileIndex location = files.location();
        for (LakebloomFileIndex above = LakebloomFileIndex.of(location); above != null; above = LakebloomFileIndex.of(location)) {
            location = above.base();
        }
        return location;
    }

    /** Whether the listing is one of Spark's own. Table formats have others, which change what a file's rows are. */
    boolean listsPlainFiles() {
        FileIndex listing = listing();
        return listing.getClass() == InMemoryFileIndex.class || listing.getClass() == CatalogFileIndex.class;
    }

    /** Whether a query reads a Delta table. Its log says which files count, and Delta which of their rows do. */
    boolean isDelta() {
        return Delta.isRead(listing());
    }

    /** The files before any was skipped. */
    Seq listed() {
        FileIndex listing = listing();
        return isDelta() ? Delta.files().listed(listing) : listing.listFiles(partitionFilters(), Scala.nothing());
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
    void fill(Wire.Reading reading) {
        new ReadSettings(files).fill(reading);
        if (isDelta()) {
            reading.tableSchema = Delta.files().schema(listing());
            reading.mapping = Delta.files().mapping(listing());
        }
        reading.predicate = condition == null ? null : tree();
    }
}
