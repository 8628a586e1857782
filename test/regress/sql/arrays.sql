-- column = ANY (array) and similar conditions.
CREATE TABLE s (a int, b int, c text COLLATE "C", id serial);
CREATE INDEX s_abc ON s USING lsm (a, b, c);
INSERT INTO s (a, b, c)
SELECT CASE WHEN i % 40 = 0 THEN NULL ELSE i % 20 END, CASE WHEN i % 9 = 0 THEN NULL ELSE (i * 7) % 13 END, 'v' || (i * 31) % 50
FROM generate_series(1, 800) i;
ANALYZE s;

-- On the first column, a later one, several; unsorted, repeated, NULL, empty.
SELECT q, t.same('SELECT a, b, c, id FROM s WHERE ' || q) FROM unnest(ARRAY[
	'a IN (3, 7, 11)', 'a IN (11, 3, 7, 3, 11)', 'a = ANY (''{7,NULL,3}'')', 'a = ANY (''{NULL}''::int[])', 'a = ANY (NULL::int[])',
	'a = ANY (''{}''::int[])', 'a = ANY (''{{1,2},{3,4}}''::int[])', 'a = ANY (''{-5,100}'')', 'a IN (3, 7) AND a IN (7, 8)', 'a IN (3, 7) AND a IN (8, 9)',
	'a IN (3, 7, 11) AND a > 5', 'a IN (3, 7, 11) AND a = 7', 'a IN (3, 7) AND b = 5', 'a IN (3, 7) AND b > 5', 'a IN (3, 7) AND b IN (2, 5)',
	'a = 5 AND b IN (1, 2, 3)', 'a = 5 AND b IN (3, 1, NULL, 2)', 'a > 15 AND b IN (1, 2)', 'b IN (1, 2)', 'a IN (1, 2) AND b IN (3, 4) AND c IN (''v1'', ''v5'', ''v9'', ''v20'')',
	'a IN (1, 2) AND c IN (''v1'', ''v5'', ''v9'')', 'a = 5 AND b = 6 AND c = ANY (''{v1,v2,v3,v34}'')', 'c IN (''v7'', ''v8'')',
	'a < ANY (''{3,1,2}'')', 'a > ANY (''{18,16}'')', 'a <= ANY (''{NULL,2}'')', 'a >= ANY (''{}''::int[])', 'a > ANY (''{3,5}'') AND a < ANY (''{7,6}'')',
	'a <> ALL (''{3,5}'') AND a < 6', 'b < ANY (''{2,3}'') AND a = 4']) q;

-- EXPLAIN ANALYZE, from 18 on, shows how often the index was searched.
CREATE FUNCTION searches(query text, most int) RETURNS bool
LANGUAGE plpgsql AS $$
DECLARE
	line text;
	shown int := CASE WHEN current_setting('server_version_num')::int < 180000 THEN 1 END;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		shown := coalesce(substring(line FROM 'Index Searches: (\d+)')::int, shown);
	END LOOP;
	RETURN shown BETWEEN 1 AND most;
END $$;
SELECT scan, t.allow(scan), searches('SELECT * FROM s WHERE a = 5 AND b = 3', 1) AS one, searches('SELECT * FROM s WHERE a IN (3, 7) AND b IN (2, 5)', 4) AS four
FROM unnest('{index,bitmap}'::text[]) scan;
DROP FUNCTION searches;

-- In the order of the index, forward and backward, without duplicates.
SELECT q, t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a, b, c', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a DESC, b DESC, c DESC', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a, b, c LIMIT 11', q)),
	t.same(format('SELECT a, b, c FROM s WHERE %s ORDER BY a DESC, b DESC, c DESC LIMIT 11', q))
FROM unnest(ARRAY['a IN (11, 3, 7, 3)', 'a IN (7, 3) AND b IN (9, 2, 5)', 'a = 5 AND b IN (3, 1, NULL, 2)', 'a IN (19, 1) AND b > 5', 'a IN (1, 3) AND c IN (''v1'', ''v5'', ''v9'')',
	'a = ANY (''{7,NULL,3}'') AND b = 5', 'a > 3 AND b IN (1, 2)']) q;
CREATE INDEX s_db ON s USING lsm (b DESC, a);
-- Index on (b DESC, a): elements are visited from high to low.
SELECT q, t.same(format('SELECT b, a FROM s WHERE %s ORDER BY b DESC, a', q)),
	t.same(format('SELECT b, a FROM s WHERE %s ORDER BY b, a DESC', q))
FROM unnest(ARRAY['b IN (2, 9, 5)', 'b IN (2, 9, NULL) AND a IN (1, 2, 3)', 'b IN (4) AND a IN (9, 1)']) q;

-- Parameters, including arrays that are long, NULL or change between scans.
PREPARE p (int[], int[]) AS SELECT count(*), sum(id) FROM s WHERE a = ANY ($1) AND b = ANY ($2);
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
EXECUTE p ('{1,2,3}', '{4,5}');
EXECUTE p ('{3,2,1,3}', '{5,4,NULL}');
EXECUTE p (NULL, '{4,5}');
EXECUTE p ('{}', '{4,5}');
RESET plan_cache_mode;
RESET enable_seqscan;
SELECT t.same('SELECT a, id FROM s WHERE a = ANY (ARRAY(SELECT generate_series(-1000, 1000)))');
SELECT t.same('SELECT a, b FROM s WHERE a = ANY (ARRAY(SELECT generate_series(0, 200, 2))) AND b = ANY (ARRAY(SELECT generate_series(300, -10, -3))) ORDER BY a, b');
SELECT t.same('SELECT x, s.id FROM (VALUES (ARRAY[1, 2]), (ARRAY[2, 3, NULL]), (NULL), (''{}'')) v(x), LATERAL (SELECT id FROM s WHERE a = ANY (x)) s');

-- Backward and forward over an array in one cursor.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b, c FROM s WHERE a IN (3, 7, 11) AND b = 5 ORDER BY a, b, c;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH 4 FROM c;
FETCH BACKWARD ALL FROM c;
FETCH 2 FROM c;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 3 FROM c;
FETCH FORWARD 5 FROM c;
COMMIT;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;

-- Texts and other types whose equal values may differ in their bytes.
CREATE TABLE n (k numeric, t text, d timestamptz);
CREATE INDEX n_k ON n USING lsm (k);
CREATE INDEX n_t ON n USING lsm (t);
CREATE INDEX n_d ON n USING lsm (d);
INSERT INTO n SELECT (i % 10)::numeric / 2, 't' || i % 10, timestamptz '2024-01-01 00:00+00' + interval '1 day' * (i % 10) FROM generate_series(1, 100) i;
SELECT t.same('SELECT * FROM n WHERE k = ANY (''{1,1.0,2.50,NULL,7}'')');
SELECT t.same('SELECT * FROM n WHERE t = ANY (''{t1,t3,t3,zz,""}'')');
SELECT t.same('SELECT * FROM n WHERE d IN (''2024-01-02 00:00+00'', ''2024-01-02 01:00+01'', ''2024-01-05 00:00+00'')');
SELECT t.same('SELECT * FROM n WHERE d = ANY (''{2024-01-02,2024-01-05}''::date[])');
DROP TABLE s, n;

-- A scan of arrays with millions of combinations, none of which exists, can be canceled.
CREATE TABLE c (a int, b int);
INSERT INTO c SELECT -1, -1 FROM generate_series(1, 1000);
CREATE INDEX c_ab ON c USING lsm (a, b);
ANALYZE c;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET statement_timeout = '200ms';
DO $$
DECLARE
	begin_time timestamptz := clock_timestamp();
	numbers int[] := ARRAY(SELECT generate_series(1, 5000));
BEGIN
	PERFORM FROM c WHERE a = ANY (numbers) AND b = ANY (numbers);
EXCEPTION WHEN query_canceled THEN
	IF clock_timestamp() - begin_time > interval '8 s' THEN
		RAISE 'took %', clock_timestamp() - begin_time;
	END IF;
END $$;
RESET statement_timeout;
-- Each descent has a cost. Otherwise the planner would make index conditions of any
-- number of arrays.
INSERT INTO c SELECT i, i % 1000 FROM generate_series(1, 20000) i;
CREATE FUNCTION cost_of_descent(am text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	DROP INDEX c_ab;
	EXECUTE format('CREATE INDEX c_ab ON c USING %s (a, b)', am);
	ANALYZE c;
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT a, b FROM c WHERE a = 1' INTO plan;
	RETURN plan->0->'Plan'->>'Startup Cost';
END $$;
SELECT cost_of_descent('lsm') >= cost_of_descent('btree') AS ok;
DROP FUNCTION cost_of_descent;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE c;

-- Memory does not grow with the number of searches, here for 100,000 elements.
CREATE TABLE combinations (a int8, n jsonb);
INSERT INTO combinations VALUES (100000, '1');
CREATE INDEX combinations_an ON combinations USING lsm (a, n);
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
DECLARE c CURSOR FOR SELECT a FROM combinations WHERE a = ANY ((SELECT array_agg(i) FROM generate_series(1, 100000) i)::int[]);
FETCH c;
SELECT coalesce(sum(total_bytes), 0) < 3 * 1024 * 1024 AS little_memory FROM pg_backend_memory_contexts WHERE name LIKE 'pg_lsm%';
COMMIT;
DROP TABLE combinations;
