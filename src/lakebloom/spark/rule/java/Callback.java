package io.lakebloom.spark;

import java.util.function.BiFunction;

/** Python, as lakebloom.spark.rule.callback exposes it: every question carries the secret that both sides know. */
final class Callback {
    private final BiFunction python;
    private final String secret;

    Callback(BiFunction python, String secret) {
        this.python = python;
        this.secret = secret;
    }

    String answer(String question) {
        return (String) python.apply(secret, question);
    }
}
