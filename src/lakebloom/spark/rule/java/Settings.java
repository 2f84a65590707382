package io.lakebloom.spark;

import java.math.BigInteger;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.internal.SQLConf;

/** What Python told once, for all lakes of the process, and settings of the session with their defaults from there. */
final class Settings {
    private static final String UNITS = "bkmgtp";
    private static volatile Wire.RuleSettings told;

    private Settings() {}

    static void tell(Wire.RuleSettings settings) {
        told = settings;
    }

    /** The settings that change what is read of a format. */
    static List readerKeys(String format) {
        Object keys = told.readerKeys.get(format);
        return keys == null ? Collections.emptyList() : (List) keys;
    }

    /** What PySpark pickles to pass on the rows of a list. */
    static Wire.ListPickle[] listPickles() {
        return told.listPickles;
    }

    static String text(String key) {
        String otherwise = (String) told.defaults.get(key);
        if (otherwise == null) {
            throw new IllegalArgumentException("no default for " + key);
        }
        return SQLConf.get().getConfString(key, otherwise).trim();
    }

    static int number(String key) {
        return Integer.parseInt(text(key));
    }

    /** A size such as 67108864, 64m or 64MB, as lakebloom.index.settings reads it. */
    static BigInteger bytes(String key) {
        String text = text(key).toLowerCase(Locale.ROOT);
        int digits = 0;
        while (digits < text.length() && Character.isDigit(text.charAt(digits))) {
            digits++;
        }
        String unit = text.substring(digits).trim();
        int power = unit.isEmpty() ? 0 : UNITS.indexOf(unit.charAt(0));
        return new BigInteger(text.substring(0, digits)).shiftLeft(10 * Math.max(0, power));
    }
}
