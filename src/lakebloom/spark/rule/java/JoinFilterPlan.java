package io.lakebloom.spark;

import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractPartialFunction;

/**
 * A plan with a filter on top that lets only those rows pass whose key may be in a set of keys.
 *
 * lakebloom.spark.rule.join_sql writes it as SQL over two made-up tables, one with the key and one with the words of the
 * filter. Spark analyses it; then the plan takes the place of the first. Arithmetic wraps, whatever the session's mode.
 */
final class JoinFilterPlan extends AbstractFunction0 {
    private static final String ROWS = "lakebloom_rows";
    private static final String WORDS = "lakebloom_words";
    static final String MARK = "__lakebloom_block_";

    private final Object session;
    private final LogicalPlan plan;
    private final AttributeReference key;
    private final Object words;
    private final String sql;

    /** Words is the one row of the second table. */
    JoinFilterPlan(Object session, LogicalPlan plan, AttributeReference key, Object words, String sql) {
        this.session = session;
        this.plan = plan;
        this.key = key;
        this.words = words;
        this.sql = sql;
    }

    /** The filtered plan, with the columns that it had. */
    LogicalPlan filtered() {
        SQLConf wrapping = (SQLConf) SQLConf.get().clone();
        wrapping.setConfString("spark.sql.ansi.enabled", "false");
        return (LogicalPlan) SQLConf.withExistingConf(wrapping, this);
    }

    public Object apply() {
        try {
            SessionState state = Sessions.state(session);
            LogicalPlan parsed = state.sqlParser().parsePlan(sql);
            LogicalPlan bound = (LogicalPlan) parsed.transformUpWithSubqueries(new Tables(tables()));
            LogicalPlan analysed = state.analyzer().execute(bound);
            return around(EliminateSubqueryAliases.apply(analysed));
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    private LogicalPlan[] tables() throws Exception {
        DataType block = DataTypes.createArrayType(DataTypes.IntegerType, false);
        StructField[] fields = {DataTypes.createStructField("w", DataTypes.createArrayType(block, false), false)};
        Seq wordColumns = DataTypeUtils.toAttributes(new StructType(fields));
        List rowColumns = Collections.singletonList(key.withName("k"));
        return new LogicalPlan[] {
            local(Scala.seq(rowColumns), Collections.emptyList()),
            local(wordColumns, Collections.singletonList(words))
        };
    }

    /**
     * The words as an array of arrays of eight, in the bytes of Spark's unsafe arrays: the number of elements, a bit for
     * each NULL, the elements; those that are arrays are offset and size, and follow.
     */
    static UnsafeArrayData blocks(int[] words) {
        int number = words.length / 8;
        int header = UnsafeArrayData.calculateHeaderPortionInBytes(number);
        int innerHeader = UnsafeArrayData.calculateHeaderPortionInBytes(8);
        int size = innerHeader + 32;
        byte[] bytes = new byte[header + number * 8 + number * size];
        ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
        buffer.putLong(0, (long) number);
        for (int i = 0; i < number; i++) {
            int start = header + number * 8 + i * size;
            buffer.putLong(header + i * 8, ((long) start << 32) | (long) size);
            buffer.putLong(start, 8L);
            for (int j = 0; j < 8; j++) {
                buffer.putInt(start + innerHeader + j * 4, words[i * 8 + j]);
            }
        }
        UnsafeArrayData array = new UnsafeArrayData();
        array.pointTo(bytes, (long) Platform.BYTE_ARRAY_OFFSET, bytes.length);
        return array;
    }

    private static LogicalPlan local(Seq columns, List rows) throws Exception {
        Constructor constructor = LocalRelation.class.getConstructors()[0];
        Object[] all = {columns, Scala.seq(rows), Boolean.FALSE, Option.empty()};
        Object[] arguments = new Object[constructor.getParameterCount()];
        System.arraycopy(all, 0, arguments, 0, arguments.length);
        return (LogicalPlan) constructor.newInstance(arguments);
    }

    /** Puts the two tables in the place of their names. */
    private static final class Tables extends AbstractPartialFunction {
        private final LogicalPlan[] tables;

        Tables(LogicalPlan[] tables) {
            this.tables = tables;
        }

        public boolean isDefinedAt(Object plan) {
            return plan instanceof UnresolvedRelation;
        }

        public Object applyOrElse(Object plan, Function1 otherwise) {
            if (!isDefinedAt(plan)) {
                return otherwise.apply(plan);
            }
            return tables[((UnresolvedRelation) plan).tableName().equals(ROWS) ? 0 : 1];
        }
    }

    /** From the analysed chain of projections over the made-up table to the same over the plan with all its columns. */
    private LogicalPlan around(LogicalPlan chain) {
        if (chain instanceof LocalRelation) {
            return plan;
        }
        if (chain instanceof Filter) {
            return new Filter(((Filter) chain).condition(), around((LogicalPlan) ((Filter) chain).child()));
        }
        List columns = new ArrayList(Scala.list(plan.output()));
        for (Iterator it = Scala.list(((Project) chain).projectList()).iterator(); it.hasNext();) {
            NamedExpression column = (NamedExpression) it.next();
            if (!column.exprId().equals(key.exprId())) {
                columns.add(column);
            }
        }
        return new Project(
            Scala.seq(columns), around((LogicalPlan) ((Project) chain).child()));
    }
}
