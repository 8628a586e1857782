-- All strategies on several layouts of columns, with duplicates.
CREATE TABLE s (a int, b int, c text COLLATE "C", id serial);
INSERT INTO s (a, b, c)
SELECT i % 20, (i * 7) % 13, 'v' || (i * 31) % 50 FROM generate_series(1, 500) i;
CREATE INDEX s_abc ON s USING lsm (a, b, c);
INSERT INTO s (a, b, c)
SELECT CASE WHEN i % 17 = 0 THEN NULL ELSE i % 20 END, CASE WHEN i % 11 = 0 THEN NULL ELSE (i * 5) % 13 END,
	CASE WHEN i % 7 = 0 THEN NULL ELSE 'v' || (i * 29) % 50 END
FROM generate_series(1, 500) i;
CREATE INDEX s_cb ON s USING lsm (c DESC, b);
INSERT INTO s (a, b, c) SELECT a, b, c FROM s WHERE id % 3 = 0;
ANALYZE s;
SELECT lsm_check('s_abc', true), lsm_check('s_cb', true);

-- Each strategy on the first column, on a later one, on all of them.
SELECT q, t.same('SELECT * FROM s WHERE ' || q) FROM unnest(ARRAY[
	'a < 5', 'a <= 5', 'a = 5', 'a >= 15', 'a > 15', 'a > 100', 'a < 0', 'a = -1', 'a <= 1000',
	'b < 5', 'b = 3', 'b > 11',
	'a = 5 AND b < 5', 'a = 5 AND b <= 5', 'a = 5 AND b = 5', 'a = 5 AND b >= 5', 'a = 5 AND b > 5',
	'a > 5 AND b = 5', 'a < 5 AND b > 5', 'a >= 5 AND a <= 7', 'a > 5 AND a < 6', 'a > 7 AND a < 5', 'a BETWEEN 3 AND 4 AND b BETWEEN 2 AND 9',
	'a = 5 AND b = 5 AND c = ''v5''', 'a = 5 AND b = 5 AND c > ''v2''', 'a = 5 AND c = ''v5''', 'a = 5 AND c > ''v2'' AND c < ''v4''',
	'a > 5 AND b > 5 AND c > ''v3''', 'c = ''v7''', 'c > ''v4''', 'c < ''v2'' AND b = 5', 'c >= ''v2'' AND c <= ''v3'' AND b > 3',
	'b = 5 AND c = ''v9''', 'a = 3 AND a = 3', 'a = 3 AND a = (SELECT 4)', 'a > 3 AND a > 5 AND a >= 6', 'a < 10 AND a <= 10 AND a < 11 AND a = 4']) q;

-- The same in index order, from both ends, with a limit.
SELECT q, t.same(format('SELECT a, b, c, id FROM s WHERE %s ORDER BY a, b, c, id', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a, b, c', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a DESC, b DESC, c DESC', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a DESC, b DESC, c DESC LIMIT 7', q))
FROM unnest(ARRAY['a < 5', 'a = 5', 'a > 15', 'a = 5 AND b > 5', 'a = 5 AND b = 5', 'a > 5 AND b = 5', 'a >= 5 AND a <= 7 AND c > ''v3''', 'true', 'a > 100']) q;
SELECT t.same_order('s', 'a, b, c, id', 'a, b, c');
SELECT t.same_order('s', 'c, b, id', 'c DESC, b');

-- min, max and LIMIT read one end of the index.
CREATE TABLE ends (k int, g int);
CREATE INDEX ends_k ON ends USING lsm (k);
CREATE INDEX ends_gk ON ends USING lsm (g, k DESC NULLS LAST);
INSERT INTO ends SELECT NULLIF(i % 100, 50), i % 3 FROM generate_series(1, 300) i;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT k FROM ends ORDER BY k LIMIT 1;
SELECT min(k), max(k) FROM ends;
SELECT min(k), max(k) FROM ends WHERE k < 50;
SELECT min(k), max(k) FROM ends WHERE k > 1000;
SELECT g, (SELECT min(k) FROM ends e WHERE e.g = x.g), (SELECT max(k) FROM ends e WHERE e.g = x.g) FROM generate_series(0, 3) x(g);
SELECT k FROM ends ORDER BY k LIMIT 3;
SELECT k FROM ends ORDER BY k DESC LIMIT 5;
SELECT k FROM ends ORDER BY k NULLS FIRST LIMIT 2;
SELECT k FROM ends ORDER BY k OFFSET 150 LIMIT 3;
SELECT k FROM ends WHERE g = 1 ORDER BY k DESC NULLS LAST LIMIT 3;
SELECT k FROM ends WHERE g = 1 ORDER BY k NULLS FIRST LIMIT 3;
DELETE FROM ends;
SELECT min(k), max(k) FROM ends;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- No rows at all, and a scan before the first insert.
CREATE TABLE empty (k int);
CREATE INDEX empty_k ON empty USING lsm (k);
SELECT t.same('SELECT * FROM empty WHERE k = 1'), t.same('SELECT k FROM empty ORDER BY k'), t.same('SELECT k FROM empty ORDER BY k DESC');
INSERT INTO empty VALUES (1);
SELECT t.same('SELECT * FROM empty WHERE k = 1'), t.same('SELECT k FROM empty ORDER BY k'), t.same('SELECT k FROM empty ORDER BY k DESC');
SELECT lsm_check('empty_k', true);

-- Many equal keys, found by each key, all of them in TID order.
CREATE TABLE dup (k int, id serial);
CREATE INDEX dup_k ON dup USING lsm (k);
INSERT INTO dup (k) SELECT 1 FROM generate_series(1, 1000);
INSERT INTO dup (k) SELECT i FROM generate_series(0, 2) i, generate_series(1, 500);
SELECT k, t.same('SELECT * FROM dup WHERE k = ' || k) FROM generate_series(-1, 3) k;
SELECT t.same('SELECT * FROM dup WHERE k < 1'), t.same('SELECT * FROM dup WHERE k > 1'), t.same('SELECT * FROM dup WHERE k <= 1');
SELECT t.same_order('dup', 'k, id', 'k');
SELECT lsm_check('dup_k', true);

-- A nested loop restarts the scan for each outer row.
SELECT t.same('SELECT o.x, s.id FROM generate_series(-2, 22) o(x), LATERAL (SELECT id FROM s WHERE a = o.x AND b > o.x / 4 ORDER BY a, b, c, id LIMIT 5) s ORDER BY 1, 2');

-- Prepared statements, generic and custom.
PREPARE p (int, int) AS SELECT count(*), sum(id) FROM s WHERE a = $1 AND b >= $2;
SET plan_cache_mode = force_generic_plan;
EXECUTE p (5, 3);
EXECUTE p (5, NULL);
EXECUTE p (NULL, 3);
SET plan_cache_mode = force_custom_plan;
EXECUTE p (5, 3);
EXECUTE p (5, NULL);
RESET plan_cache_mode;

-- Index conditions with stable functions and subqueries.
SELECT t.same('SELECT * FROM s WHERE a = (SELECT max(a) FROM s)');
SELECT t.same('SELECT * FROM s WHERE a = length(current_setting(''TimeZone'')) - length(current_setting(''TimeZone'')) + 4');
SELECT t.same('SELECT * FROM s WHERE a > (SELECT NULL::int)');

-- A scan within a function that also writes to the table.
CREATE FUNCTION add_and_count(v int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
	FOR i IN 1..10 LOOP
		INSERT INTO s (a, b, c) VALUES (v, i, 'f');
		SELECT count(*) INTO n FROM s WHERE a = v AND b = i;
		IF n <> 1 THEN RAISE EXCEPTION 'own row % is not found', i; END IF;
	END LOOP;
	SELECT count(*) INTO n FROM s WHERE a = v;
	RETURN n;
END $$;
SET enable_seqscan = off;
SELECT add_and_count(777);
RESET enable_seqscan;
-- A statement does not see its own rows.
INSERT INTO s (a, b, c) SELECT a, b, 'again' FROM s WHERE a = 777;
UPDATE s SET a = a + 1 WHERE a >= 777;
UPDATE s SET a = a + 1 WHERE a >= 777;
SELECT t.same('SELECT a, count(*) FROM s WHERE a >= 700 GROUP BY a ORDER BY a');
DROP FUNCTION add_and_count;
DROP TABLE s, ends, empty, dup;
