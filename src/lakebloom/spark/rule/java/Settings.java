package io.lakebloom.spark;

import java.math.BigInteger;
import java.util.Locale;
import org.apache.spark.sql.internal.SQLConf;

/** Settings of the session, read as lakebloom.index.settings reads them. */
final class Settings {
    private static final String UNITS = "bkmgtp";

    private Settings() {}

    /** A size such as 67108864, 64m or 64MB. */
    static BigInteger bytes(String key, long otherwise) {
        String text = SQLConf.get().getConfString(key, Long.toString(otherwise)).trim().toLowerCase(Locale.ROOT);
        int digits = 0;
        while (digits < text.length() && Character.isDigit(text.charAt(digits))) {
            digits++;
        }
        String unit = text.substring(digits).trim();
        int power = unit.isEmpty() ? 0 : UNITS.indexOf(unit.charAt(0));
        return new BigInteger(text.substring(0, digits)).shiftLeft(10 * Math.max(0, power));
    }
}
