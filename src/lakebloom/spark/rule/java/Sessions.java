package io.lakebloom.spark;

import org.apache.spark.sql.internal.SessionState;

/**
 * What belongs to a session. Its class has another package in each major version of Spark, so no other class names it.
 */
final class Sessions {
    private Sessions() {}

    static SessionState state(Object session) throws Exception {
        return (SessionState) session.getClass().getMethod("sessionState", new Class[0]).invoke(session, new Object[0]);
    }
}
