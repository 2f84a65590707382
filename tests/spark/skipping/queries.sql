-- Queries that run with and without indexes and must return the same rows. Each ends with a semicolon at the end of a
-- line. "-- skips" above a query: with indexes it reads fewer files. Other comments are headings.
-- t(k bigint, n int, s string, d double, day date, c decimal(10,2), f float, st struct<a int, b string>), u(k bigint,
-- n int, s string, w bigint), e(k int, s string): several files each, all columns indexed, with NULLs.

-- Conditions
-- skips
SELECT * FROM t WHERE k = 3;
-- skips
SELECT k, s FROM t WHERE k IN (3, 14, NULL);
-- skips
SELECT * FROM t WHERE (k = 3) IS TRUE;
SELECT * FROM t WHERE (k = 3) IS NOT TRUE;
SELECT * FROM t WHERE (k = 3) IS FALSE;
SELECT * FROM t WHERE (k = 3) IS NOT FALSE;
SELECT * FROM t WHERE (k = 3) IS UNKNOWN;
SELECT * FROM t WHERE NOT ((k = 3) IS UNKNOWN);
-- skips
SELECT * FROM t WHERE CASE WHEN k = 3 THEN true WHEN k = 5 THEN NULL ELSE n = 31 END;
SELECT * FROM t WHERE NOT CASE WHEN k = 3 THEN true WHEN k = 5 THEN NULL ELSE n = 31 END;
-- skips
SELECT * FROM t WHERE if(s = 'b', k = 3, k = 14);
-- skips
SELECT * FROM t WHERE k BETWEEN 3 AND 4;
SELECT * FROM t WHERE k NOT BETWEEN 3 AND 4;
-- skips
SELECT * FROM t WHERE n > 30 AND n < 33;
-- skips
SELECT * FROM t WHERE day BETWEEN DATE'2024-01-03' AND DATE'2024-01-04';
-- skips
SELECT * FROM t WHERE c BETWEEN 1.50 AND 1.50;
SELECT * FROM t WHERE c BETWEEN 1 AND 2;
SELECT * FROM t WHERE d BETWEEN 0 AND 0;
SELECT * FROM t WHERE d >= 0.0D AND d <= -0.0D;
-- skips
SELECT * FROM t WHERE d = double('NaN');
SELECT * FROM t WHERE d >= double('NaN') AND d <= double('NaN');
-- skips
SELECT * FROM t WHERE d = -0.0D;
SELECT * FROM t WHERE d <> 0.0D;
SELECT * FROM t WHERE NOT (d = double('NaN'));
SELECT * FROM t WHERE (d = double('NaN')) IS NOT TRUE;
-- skips
SELECT * FROM t WHERE f = 1.5D;
SELECT * FROM t WHERE f = 0.1D;
-- skips
SELECT * FROM t WHERE st = named_struct('a', 3, 'b', 'x3');
SELECT * FROM t WHERE st <> named_struct('a', 3, 'b', 'x3');
-- skips
SELECT * FROM t WHERE st = named_struct('a', CAST(NULL AS INT), 'b', 'x5');
SELECT * FROM t WHERE (st = named_struct('a', 3, 'b', 'x3')) IS NULL;
SELECT * FROM t WHERE st <=> named_struct('a', CAST(NULL AS INT), 'b', CAST(NULL AS STRING));
-- skips
SELECT * FROM t WHERE st IN (named_struct('a', 3, 'b', 'x3'), named_struct('a', 13, 'b', 'x13'));
SELECT * FROM t WHERE st NOT IN (named_struct('a', 3, 'b', 'x3'));
-- skips
SELECT * FROM t WHERE st = named_struct('a', 3L, 'b', 'x3');
-- skips
SELECT * FROM t WHERE array_contains(array(3, 4), k);
-- skips
SELECT * FROM t WHERE array_contains(array(31L, 32L), n);
SELECT * FROM t WHERE array_contains(array(31L, 3000000000), n);
SELECT * FROM t WHERE NOT array_contains(array(3, NULL), k);
SELECT * FROM t WHERE array_contains(array(3, NULL), k) IS NULL;
-- skips
SELECT * FROM t WHERE n = 31L;
-- skips
SELECT * FROM t WHERE k = 3.0BD;
SELECT * FROM t WHERE k = 3.0D;
-- skips
SELECT * FROM t WHERE k = '3';
-- skips
SELECT * FROM t WHERE c = 1.5;
-- skips
SELECT * FROM t WHERE (k, s) = (3L, 'd');
-- skips
SELECT * FROM t WHERE (k, n) IN ((3L, 3), (14L, 14));
-- skips
SELECT * FROM t WHERE coalesce(k = 3, false) OR coalesce(n = 31, false);
SELECT * FROM t WHERE coalesce(k = 3, true);
SELECT * FROM t WHERE (k = 3) = (n = 3);
SELECT * FROM t WHERE (k = 3) <=> (n = 99);
-- skips
SELECT * FROM t WHERE NOT (k <> 3 OR s <> 'd');
SELECT * FROM t WHERE k + 0 = 3 OR upper(s) = 'D';
SELECT * FROM t WHERE k = n AND st.a <=> n;
-- skips
SELECT * FROM t WHERE st.a = 3 AND st.b LIKE 'x3';

-- Subqueries
-- skips
SELECT * FROM t WHERE k IN (VALUES 3L, 14L);
-- skips
SELECT * FROM t WHERE k IN (VALUES 3, 14);
-- skips
SELECT * FROM t WHERE n IN (VALUES 31L, 3000000000L);
SELECT * FROM t WHERE k NOT IN (VALUES 3, 14);
SELECT * FROM t WHERE k NOT IN (VALUES 3, NULL);
SELECT * FROM t WHERE k NOT IN (SELECT k FROM u WHERE k IS NOT NULL);
SELECT * FROM t WHERE k NOT IN (SELECT k FROM u);
SELECT * FROM t WHERE (k, n) NOT IN (SELECT k, n FROM u);
SELECT * FROM t WHERE k IN (SELECT k FROM u WHERE s = 'b');
-- skips
SELECT * FROM t WHERE k IN (SELECT k FROM u WHERE w = 300);
SELECT * FROM t WHERE (k, n) IN (SELECT k, n FROM u);
SELECT * FROM t WHERE k IN (SELECT u.k FROM u WHERE u.n = t.n);
SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w > 300);
SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k);
-- skips
SELECT * FROM t WHERE EXISTS (SELECT 1 FROM VALUES (3), (14) v(x) WHERE v.x = t.k);
SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM VALUES (3), (14) v(x) WHERE v.x = t.k);
-- skips
SELECT * FROM t WHERE EXISTS (SELECT 1 FROM VALUES (31L) v(x) WHERE v.x = t.n);
-- skips
SELECT * FROM VALUES (3), (77) v(x) WHERE EXISTS (SELECT 1 FROM t WHERE t.k = v.x) OR x = 77;
SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k) OR t.s = 'c';
SELECT * FROM t WHERE k IN (SELECT k FROM u) OR n IN (SELECT n FROM u WHERE s IS NULL);
-- skips
SELECT * FROM t WHERE k = (SELECT max(k) FROM u WHERE s = 'c') AND n = 14;
SELECT * FROM t WHERE k > (SELECT avg(k) FROM u WHERE u.s = t.s);
SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k) AS c FROM t WHERE k < 5;
-- skips
SELECT k, (SELECT max(w) FROM u WHERE u.k = 3) AS w FROM t WHERE k = 3;
SELECT s, count(*) FROM t GROUP BY s HAVING count(*) > (SELECT count(*) FROM u WHERE w = 300);
SELECT * FROM (SELECT k FROM t WHERE k IN (SELECT k FROM u WHERE k IN (SELECT k FROM e)));
SELECT * FROM t WHERE n IN (SELECT n FROM u) AND s IS NOT NULL;
SELECT CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.k = t.k) THEN 'in' ELSE 'out' END AS where_, count(*) FROM t GROUP BY 1;
SELECT k IN (SELECT k FROM u) AS found, count(*) FROM t GROUP BY 1;
SELECT * FROM t WHERE (SELECT count(*) FROM u WHERE u.k <=> t.k) = 0;

-- Joins
-- skips
SELECT * FROM VALUES (3), (14) v(x) LEFT JOIN t ON t.k = v.x;
-- skips
SELECT * FROM VALUES (31L), (NULL) v(x) LEFT JOIN t ON t.n = v.x;
-- skips
SELECT * FROM VALUES (3S), (99S) v(x) JOIN t ON t.k = v.x;
-- skips
SELECT * FROM t RIGHT JOIN VALUES (3), (99) v(x) ON t.k = v.x;
SELECT * FROM t LEFT JOIN VALUES (3) v(x) ON t.k = v.x;
SELECT * FROM t FULL JOIN VALUES (3), (99) v(x) ON t.k = v.x;
SELECT * FROM VALUES (3), (99) v(x) LEFT ANTI JOIN t ON t.k = v.x;
SELECT * FROM t LEFT ANTI JOIN VALUES (3) v(x) ON t.k = v.x;
-- skips
SELECT * FROM t LEFT SEMI JOIN VALUES (3), (14) v(x) ON t.k = v.x;
SELECT * FROM t JOIN VALUES (3.0D) v(x) ON t.k = v.x;
SELECT * FROM t JOIN VALUES (CAST(NULL AS BIGINT)) v(x) ON t.k <=> v.x;
SELECT t.k, u.w FROM t JOIN u ON t.k = u.k;
SELECT t.k, u.w FROM t LEFT JOIN u ON t.k = u.k AND u.s = 'b';
-- skips
SELECT t.k, u.w FROM t LEFT JOIN u ON t.k = u.k WHERE t.k = 3;
SELECT t.k, u.w FROM t LEFT JOIN u ON t.k = u.k WHERE u.k IS NULL;
-- skips
SELECT t.k, u.w FROM t RIGHT JOIN u ON t.k = u.k WHERE u.w = 300;
SELECT t.k, u.k FROM t FULL JOIN u ON t.k = u.k;
-- skips
SELECT t.k, u.k FROM t FULL JOIN u ON t.k = u.k WHERE t.k = 3 AND u.k = 3;
SELECT t.k, u.k FROM t FULL JOIN u USING (k) WHERE k = 3;
SELECT count(*) FROM t CROSS JOIN e;
-- skips
SELECT a.k, b.n FROM t a JOIN t b ON a.k = b.k WHERE a.k = 3;
SELECT a.k, b.n FROM t a JOIN t b ON a.k = b.n AND a.s < b.s;
SELECT a.k FROM t a LEFT SEMI JOIN u b ON a.k = b.k AND a.n <> b.n;
SELECT a.k FROM t a LEFT ANTI JOIN u b ON a.k = b.k AND b.s = 'b';
SELECT * FROM t NATURAL JOIN (SELECT k, w FROM u);
SELECT t.k, e.s FROM t JOIN e ON t.k = e.k;
SELECT t.n, e.s FROM t JOIN e ON t.n = e.k WHERE e.k IN (3, 14);
-- skips
SELECT t.k, u.w, e.s FROM t JOIN u ON t.k = u.k JOIN e ON e.k = u.n WHERE t.k = 3;
SELECT t.k, x.m FROM t JOIN LATERAL (SELECT max(w) AS m FROM u WHERE u.k = t.k) x WHERE t.s = 'd';
SELECT t.k, x.w FROM t LEFT JOIN LATERAL (SELECT w FROM u WHERE u.k = t.k AND u.w > 100) x;
-- skips
SELECT * FROM t, LATERAL explode(array(k, n)) AS g(v) WHERE k = 3;
SELECT /*+ BROADCAST(u) */ t.k FROM t JOIN u ON t.k = u.k AND t.n = u.n;
SELECT /*+ MERGE(t, u) */ t.k FROM t JOIN u ON t.k = u.k;
SELECT /*+ SHUFFLE_HASH(u) */ t.k FROM t LEFT JOIN u ON t.k = u.k;

-- Set operations
SELECT k FROM t UNION SELECT k FROM u;
-- skips
SELECT * FROM (SELECT k FROM t UNION ALL SELECT n FROM t UNION ALL SELECT w FROM u) WHERE k = 3;
SELECT k, s FROM t INTERSECT SELECT k, s FROM u;
SELECT k FROM t INTERSECT ALL SELECT k FROM u;
SELECT k FROM t EXCEPT SELECT k FROM u;
SELECT k FROM t EXCEPT ALL SELECT n FROM t;
SELECT k FROM t MINUS VALUES (3), (4);
SELECT k FROM t INTERSECT VALUES (3), (NULL);
-- skips
SELECT * FROM (SELECT k FROM t EXCEPT SELECT k FROM u) WHERE k = 11;
-- skips
SELECT k FROM t WHERE k = 3 UNION ALL SELECT n FROM u WHERE n = 31;
SELECT n FROM t UNION ALL SELECT c FROM t UNION ALL SELECT d FROM t;
-- skips
SELECT * FROM (SELECT n AS x FROM t UNION ALL SELECT k FROM u UNION ALL SELECT c FROM t) WHERE x = 3;
(SELECT k FROM t WHERE k = 3) UNION (SELECT k FROM u WHERE k = 3 EXCEPT SELECT 3L);
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) v(x, y) UNION ALL SELECT k, s FROM e;

-- Common table expressions and views
-- skips
WITH a AS (SELECT * FROM t WHERE k = 3) SELECT * FROM a JOIN a b ON a.k = b.k;
WITH a AS (SELECT k, count(*) AS c FROM t GROUP BY k) SELECT x.k, y.c FROM a x JOIN a y ON x.k = y.c;
WITH a AS (SELECT k, n FROM t) SELECT * FROM a WHERE k = 3 UNION ALL SELECT * FROM a WHERE k = 14;
-- skips
WITH a AS (SELECT * FROM t), b AS (SELECT * FROM a WHERE n = 31) SELECT count(*) FROM b WHERE k IS NOT NULL;
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 4) SELECT r.i, t.s FROM r JOIN t ON t.k = r.i;
-- skips
SELECT * FROM nested_view WHERE key = 3;
SELECT * FROM nested_view v JOIN u ON v.key = u.k;
-- skips
SELECT * FROM (SELECT key AS again FROM nested_view) WHERE again IN (3, 14);
-- skips
SELECT * FROM (SELECT k AS n, n AS k FROM t) WHERE k = 31 AND n = 31;
-- skips
SELECT x.y FROM (SELECT named_struct('y', k) AS x FROM t) WHERE x.y = 3;

-- Grouping
-- skips
SELECT k, count(*), sum(n) FROM t WHERE k IN (3, 14) GROUP BY k;
-- skips
SELECT k, count(*) FROM t GROUP BY k HAVING k = 3;
SELECT s, max(k) FROM t GROUP BY s HAVING max(k) = 14;
SELECT s, n, count(*) FROM t GROUP BY GROUPING SETS ((s, n), (s), ());
-- skips
SELECT k, n, count(*) FROM t GROUP BY CUBE (k, n) HAVING k = 3;
-- skips
SELECT k, s, count(*) FROM t GROUP BY ROLLUP (k, s) HAVING k = 14 AND s = 'c';
SELECT k, n, grouping(k) FROM t GROUP BY CUBE (k, n) HAVING k IS NULL;
SELECT k, n, count(*) FROM t GROUP BY GROUPING SETS ((k), (n)) HAVING k = 3 OR n = 31;
SELECT count(*), count(k), count(DISTINCT k), sum(c) FROM t;
-- skips
SELECT count(*) FILTER (WHERE n = 31), count(DISTINCT s) FROM t WHERE k = 31;
SELECT count(*) FILTER (WHERE k = 3), count(*) FROM t;
-- skips
SELECT DISTINCT s FROM t WHERE k = 3 OR n = 14;
SELECT bool_or(k = 3), every(k = 3), max(k) FROM t;
SELECT * FROM (SELECT s, k, n FROM t) PIVOT (max(n) FOR k IN (3, 14));
-- skips
SELECT * FROM (SELECT s, k, n FROM t WHERE k IN (3, 14)) PIVOT (count(n) AS c FOR k IN (3, 14));
SELECT * FROM (SELECT k, n, w FROM u) UNPIVOT (v FOR name IN (n, w)) WHERE v = 31;
-- skips
SELECT * FROM (SELECT k, n, w FROM u) UNPIVOT (v FOR name IN (n, w)) WHERE k = 31;

-- Windows
-- skips
SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n, s, c) AS r FROM t WHERE k = 3;
-- skips
SELECT * FROM (SELECT k, s, count(*) OVER (PARTITION BY k) AS c FROM t) WHERE k = 3;
SELECT * FROM (SELECT k, s, count(*) OVER (PARTITION BY s) AS c FROM t) WHERE k = 3;
SELECT * FROM (SELECT k, sum(n) OVER (ORDER BY k, n, s, c) AS running FROM t) WHERE k = 3;
SELECT * FROM (SELECT k, rank() OVER (ORDER BY k DESC) AS r FROM t) WHERE r <= 2;
SELECT * FROM (SELECT k, lag(k) OVER (ORDER BY k, n, s, c) AS before FROM t) WHERE before = 3;
SELECT k, max(n) OVER w FROM t WINDOW w AS (PARTITION BY s) ORDER BY k, n LIMIT 3;

-- Limits, samples and order
SELECT * FROM (SELECT k, s, n FROM t ORDER BY k NULLS LAST, s, n LIMIT 5) WHERE k = 3;
SELECT * FROM (SELECT k, s, n FROM t ORDER BY k, s, n OFFSET 3) WHERE k = 3;
-- skips
SELECT k, n, s FROM t WHERE k = 3 ORDER BY k, n, s LIMIT 1;
SELECT * FROM t TABLESAMPLE (40 PERCENT) REPEATABLE (7) WHERE k IN (3, 4, 14, 31);
SELECT * FROM (SELECT * FROM t WHERE k IN (3, 4, 14, 31)) TABLESAMPLE (40 PERCENT) REPEATABLE (11);
-- skips
SELECT * FROM t TABLESAMPLE (100 PERCENT) WHERE k = 3;
SELECT * FROM t TABLESAMPLE (BUCKET 1 OUT OF 3) REPEATABLE (3) WHERE k IN (3, 14);
SELECT t.k, u.w FROM u JOIN t TABLESAMPLE (50 PERCENT) REPEATABLE (5) ON t.k = u.k WHERE t.k IN (3, 14);
SELECT * FROM t TABLESAMPLE (50 PERCENT) REPEATABLE (5) JOIN VALUES (3), (14) v(x) ON t.k = v.x;
SELECT k, n FROM t WHERE rand(42) < 0.5 AND k IN (3, 4, 14, 31);
SELECT * FROM (SELECT k, n, rand(42) < 0.5 AS chosen FROM t) WHERE k IN (3, 4, 14, 31);
-- skips
SELECT k, regexp_extract(file, '[a-z]+[.]parquet', 0) FROM (SELECT k, input_file_name() AS file FROM t) WHERE k = 3;
-- skips
SELECT /*+ REPARTITION(2) */ * FROM t WHERE k = 3;
-- skips
SELECT * FROM (SELECT /*+ REBALANCE(k) */ * FROM t) WHERE k = 3;
-- skips
SELECT * FROM (SELECT * FROM t DISTRIBUTE BY k SORT BY n) WHERE k = 3;
-- skips
SELECT * FROM (SELECT * FROM t CLUSTER BY n) WHERE n = 31;

-- VALUES and other tables without files
SELECT * FROM VALUES (1, 'a'), (2, NULL) v(x, y) WHERE x = 1;
SELECT * FROM range(5) r JOIN t ON r.id = t.k;
-- skips
SELECT v.x, t.s FROM (SELECT x + 1 AS x FROM VALUES (2), (13) v(x)) v JOIN t ON t.k = v.x;
-- skips
SELECT t.s FROM t JOIN (SELECT explode(array(3L, 14L)) AS x) v ON t.k = v.x WHERE t.k IN (3, 14);
