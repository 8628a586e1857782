-- Conditions on columns that follow columns without an equality: scans skip from value to value
-- of the latter.
CREATE TABLE s (a int, b int, c text COLLATE "C", d numeric, id serial);
CREATE INDEX s_abc ON s USING lsm (a, b, c);
CREATE INDEX s_cab ON s USING lsm (c DESC NULLS LAST, a NULLS FIRST, b DESC);
CREATE INDEX s_da ON s USING lsm (d, a) INCLUDE (b);
INSERT INTO s (a, b, c, d)
SELECT CASE WHEN i % 40 = 0 THEN NULL ELSE i % 7 END, CASE WHEN i % 23 = 0 THEN NULL ELSE i % 60 END,
	CASE WHEN i % 29 = 0 THEN NULL ELSE 'v' || i % 4 END, CASE WHEN i % 31 = 0 THEN NULL ELSE (i % 5) / 2.0 END
FROM generate_series(1, 4000) i;
INSERT INTO s (a, b, c, d)
SELECT v, 5, 'edge', v FROM unnest('{2147483647,-2147483648,2147483646,NULL}'::int[]) v;
ANALYZE s;
SELECT q, t.same('SELECT a, b, c, id FROM s WHERE ' || q) FROM unnest(ARRAY[
	'b = 5', 'b IS NULL', 'b IN (5, 50, 500)', 'b > 58', 'b BETWEEN 57 AND 58', 'c = ''v3''', 'c = ''edge''', 'b = 5 AND c = ''v1''', 'b IN (1, 2) AND c IN (''v1'', ''v2'')',
	'a > 3 AND b = 5', 'a >= 3 AND a < 6 AND b = 5', 'a IS NOT NULL AND b = 5', 'a IS NULL AND c = ''v1''', 'a < 3 AND b > 55', 'a > 5 AND a < 4 AND b = 5', 'a > 2147483646 AND b = 5',
	'a < -2147483647 AND b = 5', 'a = 3 AND c = ''v1''', 'a IN (1, 3) AND c = ''v1''', 'a IN (1, 3, NULL) AND b BETWEEN 20 AND 22 AND c = ''v1''', 'a IN (1, 3) AND b > 55 AND c >= ''v2''',
	'a > 1.5::float8 AND b = 5', 'a = ANY (''{1,3}''::int8[]) AND c IN (''v1'', ''v2'')', '(a, b) > (2, 30) AND c = ''v1''', '(b, c) < (2, ''v2'')',
	'a <> 3 AND b = 5', 'c > ''v1'' AND b = 5', 'c IS NULL AND b = 7', 'a = 2 AND b IN (5, 6)', 'c < ''v2'' AND a IS NULL', 'd > 1 AND a = 3', 'd = ANY (''{0.5,1.50,9}'') AND a IN (2, 3)', 'a = 4 AND d IS NULL']) q;

-- In the order of the index, forward and backward, and only some rows.
SELECT q, t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a, b, c', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a DESC, b DESC, c DESC', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a, b, c LIMIT 20 OFFSET 10', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a DESC, b DESC, c DESC LIMIT 20 OFFSET 10', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY c DESC NULLS LAST, a NULLS FIRST, b DESC', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY c NULLS FIRST, a DESC NULLS LAST, b', q)),
	t.same(format('SELECT d, a FROM s WHERE %s ORDER BY d, a', q)), t.same(format('SELECT d, a FROM s WHERE %s ORDER BY d DESC, a DESC', q))
FROM unnest(ARRAY['b = 5', 'a = 3', 'a IN (2, 4) AND b IN (4, 44)', 'c = ''v1''', 'b > 57', 'a > 2 AND b IN (3, 33)', 'a IS NULL', 'b IS NULL', 'a IN (1, 3) AND b BETWEEN 20 AND 22 AND c = ''v1''',
	'd > 0.5 AND a = 2']) q;

-- A cursor that changes direction, and marks.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b, c FROM s WHERE b = 5 AND c = 'v1' ORDER BY a, b, c;
FETCH 2 FROM c;
MOVE FORWARD 12 IN c;
FETCH BACKWARD 2 FROM c;
FETCH 3 FROM c;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 2 FROM c;
MOVE BACKWARD ALL IN c;
FETCH 1 FROM c;
COMMIT;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT count(*), sum(x.id), sum(y.id) FROM s x JOIN s y ON x.a = y.a WHERE x.b = 5 AND y.b IN (5, 6);
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;
RESET enable_sort;

-- The inner side of a join: other values each time, NULL among them.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT v.x, count(s.id), sum(s.id) FROM (VALUES (5), (NULL), (59), (-1), (5)) v(x) LEFT JOIN s ON s.b = v.x AND s.c = 'v1' GROUP BY v.x ORDER BY v.x;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- Many values, few values, and both in turn: the rows are the same, whether the scan skips or
-- not.
CREATE TABLE m (a int8, b int2, c text);
CREATE INDEX m_ab ON m USING lsm (a, b);
CREATE INDEX m_cb ON m USING lsm (c, b);
INSERT INTO m SELECT CASE WHEN i % 9000 < 3000 THEN i ELSE i / 3000 END, i % 500, 't' || i / 700 FROM generate_series(1, 30000) i;
ANALYZE m;
SELECT q, t.same('SELECT a, b, c FROM m WHERE ' || q), t.same(format('SELECT a, b FROM m WHERE %s ORDER BY a DESC, b DESC', q)), t.same(format('SELECT c, b FROM m WHERE %s ORDER BY c, b', q))
FROM unnest(ARRAY['b = 77', 'b IN (7, 77, 477)', 'b > 497', 'a > 2000 AND b = 77', 'a IN (4, 5, 9001, 9100, 9200) AND b IN (100, 200)', 'c > ''t2'' AND b = 77']) q;

-- A row comparison and values of another type bound a skipped column of tuple keys. It is not
-- known which bound is tighter.
CREATE TABLE e (a int8, n numeric, c int);
CREATE INDEX e_anc ON e USING lsm (a, n, c);
INSERT INTO e SELECT i / 5, i % 5, i % 3 FROM generate_series(1, 500) i;
ANALYZE e;
SELECT q, t.same('SELECT * FROM e WHERE ' || q), t.same(format('SELECT * FROM e WHERE %s ORDER BY a, n, c', q)), t.same(format('SELECT * FROM e WHERE %s ORDER BY a DESC, n DESC, c DESC', q))
FROM unnest(ARRAY['a > 50 AND (a, n) > (10, 2) AND c = 1', '(a, n) > (10, 2) AND a > 50 AND c = 1', 'a < 40 AND (a, n) < (90, 2) AND c = 1', '(a, n) < (90, 2) AND a < 40 AND c = 1',
	'a > 50 AND (a, n) > (70, 2) AND a < 90 AND (a, n) < (80, 2) AND c = 1', 'a BETWEEN 50 AND 60 AND (a, n) BETWEEN (10, 2) AND (90, 2) AND c IN (1, 2)']) q;
-- Nearly every entry has another value of the first column, as in intervals. Here and there, many entries share one.
CREATE TABLE v (s int, e int, t text COLLATE "C", j jsonb, id serial);
CREATE INDEX v_se ON v USING lsm (s, e);
CREATE INDEX v_tse ON v USING lsm (t DESC, s, e DESC NULLS LAST);
CREATE INDEX v_je ON v USING lsm (j, e) INCLUDE (s);
INSERT INTO v (s, e, t, j)
SELECT s, CASE WHEN i % 37 = 0 THEN NULL ELSE s + i % 90 END, 't' || s % 997 || s, to_jsonb(CASE WHEN i % 41 = 0 THEN NULL ELSE s END)
FROM generate_series(1, 6000) i, LATERAL (SELECT CASE WHEN i % 1000 < 100 THEN i / 1000 * 1000 WHEN i % 1000 < 200 THEN i / 5 ELSE i END) x(s);
ANALYZE v;
SELECT q, t.same('SELECT s, e, j, id FROM v WHERE ' || q), t.same(format('SELECT s, e FROM v WHERE %s ORDER BY s, e', q)), t.same(format('SELECT s, e FROM v WHERE %s ORDER BY s DESC, e DESC', q)),
	t.same(format('SELECT t, s, e FROM v WHERE %s ORDER BY t DESC, s, e DESC NULLS LAST', q)), t.same(format('SELECT j, e, s FROM v WHERE %s ORDER BY j DESC, e DESC', q))
FROM unnest(ARRAY['s <= 3010 AND e >= 3000', 's < 4000 AND e > 100', 'e = 2500', 'e IS NULL', 'e IS NOT NULL', 'e IN (50, 500, 2500, 2501)', 's > 100 AND e BETWEEN 200 AND 300', 's >= 5900 AND e < 5950',
	't < ''t5'' AND e = 2500', 't > ''t1'' AND s < 4000 AND e > 3900', 'j < ''3010'' AND e >= 3000', 'j IS NOT NULL AND e = 2500', 'j > ''2000'' AND e IN (2500, 2501)', '(s, e) < (3000, 50) AND e > 2900']) q;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT s, e FROM v WHERE s <= 4010 AND e >= 3300 ORDER BY s, e;
FETCH 2 FROM c;
MOVE FORWARD 150 IN c;
FETCH BACKWARD 3 FROM c;
MOVE FORWARD 400 IN c;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
MOVE BACKWARD ALL IN c;
FETCH 1 FROM c;
COMMIT;
RESET enable_sort;
DROP TABLE s, m, e, v;
RESET enable_seqscan;
RESET enable_bitmapscan;
