package io.lakebloom.spark;

import java.util.function.BiFunction;

/** Python, as lakebloom.spark.rule.exposed hands it over: every call carries the secret that both sides know. */
final class Callback {
    private final BiFunction python;
    private final String secret;

    Callback(BiFunction python, String secret) {
        this.python = python;
        this.secret = secret;
    }

    /** Both are structs of Wire. */
    Object call(Object request, Class reply) throws Exception {
        return Wire.read((String) python.apply(secret, Wire.write(request)), reply);
    }

    /** Expects no reply. */
    void tell(Object struct) throws Exception {
        python.apply(secret, Wire.write(struct));
    }
}
