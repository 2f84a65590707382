package io.lakebloom.spark;

import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BiFunction;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.command.DataWritingCommand;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.util.QueryExecutionListener;
import scala.Option;

/**
 * Tells Python where the session wrote, after the fact: paths, and names of tables.
 *
 * It is called on Spark's listener bus, so no write waits for it. Errors here are ignored.
 */
public final class WriteWatch implements QueryExecutionListener {
    /** Commands that change the files of a table and are no DataWritingCommand. */
    private static final Set OTHERS = new HashSet(Arrays.asList(new String[] {
        "CreateDataSourceTableAsSelectCommand", "InsertIntoDataSourceDirCommand", "LoadDataCommand",
        "AlterTableAddPartitionCommand", "AlterTableDropPartitionCommand", "AlterTableRenamePartitionCommand",
        "AlterTableSetLocationCommand", "RepairTableCommand", "SaveAsV1TableCommand", "TruncateTableCommand",
    }));
    private final SessionState session;
    private final Callback python;

    public WriteWatch(Object session, BiFunction python, String secret) throws Exception {
        this.session = Sessions.state(session);
        this.python = new Callback(python, secret);
    }

    public void onSuccess(String action, QueryExecution query, long nanoseconds) {
        try {
            LogicalPlan command = query.analyzed();
            if (command instanceof DataWritingCommand || OTHERS.contains(command.getClass().getSimpleName())) {
                tell(command, query);
            }
        } catch (Throwable problem) {
            return; // the session ends, or its plans are like none that is known: somebody refreshes by hand
        }
    }

    /** What a command wrote before it failed is not part of the table, or is found by the next refresh. */
    public void onFailure(String action, QueryExecution query, Exception error) {
    }

    /** Where a table is; null if the catalog does not know it any more. */
    public String location(String database, String name) {
        try {
            SessionCatalog catalog = session.catalog();
            return text(catalog.getTableMetadata(new TableIdentifier(name, Option.apply(database))).location());
        } catch (Throwable problem) {
            return null;
        }
    }

    private void tell(LogicalPlan command, QueryExecution query) throws Exception {
        List paths = new ArrayList();
        List tables = new ArrayList();
        for (int i = 0; i < command.productArity(); i++) {
            Object part = command.productElement(i);
            part = part instanceof Option ? (((Option) part).isDefined() ? ((Option) part).get() : null) : part;
            if (part instanceof Path) {
                paths.add(part.toString());
            } else if (part instanceof CatalogStorageFormat) {
                add(((CatalogStorageFormat) part).locationUri(), paths);
            } else if (part instanceof CatalogTable) {
                add(((CatalogTable) part).storage().locationUri(), paths);
                add(((CatalogTable) part).identifier(), tables);
            } else if (part instanceof TableIdentifier) {
                add((TableIdentifier) part, tables);
            }
        }
        Wire.Written written = new Wire.Written();
        written.paths = (String[]) paths.toArray(new String[0]);
        written.tables = (String[][]) tables.toArray(new String[0][]);
        python.tell(written);
    }

    private void add(Option location, List paths) throws Exception {
        if (location.isDefined()) {
            paths.add(text((URI) location.get()));
        }
    }

    private void add(TableIdentifier table, List tables) {
        Option database = table.database();
        String name = database.isDefined() ? (String) database.get() : session.catalog().getCurrentDatabase();
        tables.add(new String[] {name, table.table()});
    }

    /** A location as Hadoop prints it, with its file system. */
    private String text(URI location) throws Exception {
        Path path = new Path(location);
        return path.getFileSystem(session.newHadoopConf()).makeQualified(path).toString();
    }
}
