package io.lakebloom.spark;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.DataSourceRegister;

/** How a query reads files: their format, the columns, the reader's options, and the settings that change values. */
final class ReadSettings {
    private static final String CASE_SENSITIVE = "spark.sql.caseSensitive";
    private final HadoopFsRelation files;

    ReadSettings(HadoopFsRelation files) {
        this.files = files;
    }

    void fill(Wire.Reading reading) {
        reading.format = format();
        reading.schema = files.dataSchema().json();
        reading.options = Scala.map(files.options());
        reading.session = session(reading.format.toLowerCase(Locale.ROOT));
    }

    /** The settings that change what is read of this format, and whatever else is set under such names. */
    private Map session(String format) {
        Map session = new HashMap();
        SQLConf conf = SQLConf.get();
        session.put(CASE_SENSITIVE, conf.getConfString(CASE_SENSITIVE, "false").toLowerCase(Locale.ROOT));
        for (Iterator it = Settings.readerKeys(format).iterator(); it.hasNext();) {
            String key = (String) it.next();
            String value = value(conf, key);
            if (value != null) {
                session.put(key, value);
            }
        }
        for (Iterator it = Scala.map(conf.getAllConfs()).entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            String key = (String) entry.getKey();
            if (key.startsWith("spark.sql." + format + ".") || key.startsWith("spark.sql.legacy." + format + ".")) {
                session.put(key, entry.getValue());
            }
        }
        return session;
    }

    /** What a reader finds under a key: of the session, as Spark's default, or below it in Hadoop's configuration. */
    private String value(SQLConf conf, String key) {
        String value = conf.getConfString(key, null);
        if (value != null) {
            return value;
        }
        if (!key.startsWith("spark.")) {
            return files.sparkSession().sparkContext().hadoopConfiguration().get(key);
        }
        ConfigEntry entry = SQLConf$.MODULE$.getConfigEntry(key);
        return entry == null ? null : entry.defaultValueString();
    }

    private String format() {
        Object format = files.fileFormat();
        return format instanceof DataSourceRegister ? ((DataSourceRegister) format).shortName() : format.toString();
    }
}
