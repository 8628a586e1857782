-- Parallel scans: several processes divide an index among themselves.  No row is lost or
-- returned twice, and each process returns rows in index order.
CREATE TABLE p (k int, a text COLLATE "C", n numeric, d date, id int) WITH (autovacuum_enabled = off, parallel_workers = 3);
CREATE INDEX p_k ON p USING lsm (k) INCLUDE (id);
CREATE INDEX p_ak ON p USING lsm (a DESC, k, id);
CREATE INDEX p_n ON p USING lsm (n NULLS FIRST, id);
CREATE INDEX p_d ON p USING lsm (d, n DESC) INCLUDE (id);
INSERT INTO p SELECT hashint4(i) % 700, 'a' || i % 13, CASE WHEN i % 11 > 0 THEN (i % 300) / 8.0 END, date '2020-01-01' + i % 40, i
	FROM generate_series(1, 3000) i;
INSERT INTO p SELECT NULL, NULL, NULL, NULL, i FROM generate_series(3001, 3060) i;
INSERT INTO p SELECT 55, 'a5', 5.50, date '2020-02-01', i FROM generate_series(3061, 3300) i;
INSERT INTO p VALUES (1, 'single', 1, NULL, 3301);
ANALYZE p;
-- The rows of a query by one process without an index, and by several
-- processes with one.  With ORDER BY, rows that are equal by it should be equal altogether.
CREATE FUNCTION in_parallel(query text) RETURNS text LANGUAGE plpgsql
SET max_parallel_workers_per_gather = 0 SET parallel_setup_cost = 0 SET parallel_tuple_cost = 0
SET min_parallel_index_scan_size = 0 SET min_parallel_table_scan_size = 0
SET random_page_cost = 0 SET seq_page_cost = 0 SET cpu_operator_cost = 0 AS $$
DECLARE
	scans text;
	want text[];
	got text[];
	used text[] := '{}';
	ordered bool := query ~* 'order by';
BEGIN
	PERFORM t.allow('seq');
	want := t.rows_of(query);
	IF NOT ordered THEN
		want := ARRAY(SELECT unnest(want) COLLATE "C" ORDER BY 1);
	END IF;
	FOREACH scans IN ARRAY '{index,index only,bitmap}'::text[] LOOP
		-- A bitmap has no order.
		CONTINUE WHEN ordered AND scans = 'bitmap';
		PERFORM t.allow(scans);
		PERFORM set_config('max_parallel_workers_per_gather', '3', true);
		CONTINUE WHEN NOT t.plan_has(query, CASE scans WHEN 'bitmap' THEN 'Parallel Bitmap Heap Scan'
			WHEN 'index' THEN 'Parallel Index Scan' ELSE 'Parallel Index Only Scan' END);
		used := used || scans;
		got := t.rows_of(query);
		IF NOT ordered THEN
			got := ARRAY(SELECT unnest(got) COLLATE "C" ORDER BY 1);
		END IF;
		IF got IS DISTINCT FROM want THEN
			RETURN format('DIFFERENT by %s scan: %s rows, should be %s: %s, should be %s',
				scans, cardinality(got), cardinality(want), left(got::text, 2000), left(want::text, 2000));
		END IF;
		PERFORM set_config('max_parallel_workers_per_gather', '0', true);
	END LOOP;
	RETURN format('%s rows by %s scan', cardinality(want), coalesce(nullif(array_to_string(used, ', '), ''), 'NO PARALLEL'));
END $$;
CREATE PROCEDURE all_in_parallel() LANGUAGE plpgsql AS $$
DECLARE
	query text;
BEGIN
	FOREACH query IN ARRAY ARRAY[
		-- All of an index, parts of it, nothing; in both directions.
		'SELECT id FROM p WHERE k IS NOT NULL', 'SELECT id, k FROM p WHERE k >= -200', 'SELECT id FROM p WHERE k BETWEEN -100 AND 100',
		'SELECT k FROM p ORDER BY k', 'SELECT k FROM p ORDER BY k DESC', 'SELECT k FROM p WHERE k > 20 ORDER BY k',
		'SELECT k FROM p WHERE k < 300 ORDER BY k DESC', 'SELECT id FROM p WHERE k = 55', 'SELECT id FROM p WHERE k = 100000',
		'SELECT id FROM p WHERE k IS NULL', 'SELECT k FROM p WHERE k > 5 AND k < 5',
		-- Several columns, in different directions; keys that compare by a function; nulls.
		'SELECT a, k, id FROM p ORDER BY a DESC, k, id', 'SELECT a, k, id FROM p ORDER BY a, k DESC, id DESC',
		'SELECT n, id FROM p ORDER BY n NULLS FIRST, id', 'SELECT n, id FROM p ORDER BY n DESC NULLS LAST, id DESC',
		'SELECT n, id FROM p WHERE n < 20 ORDER BY n, id', 'SELECT id FROM p WHERE n IS NULL', 'SELECT id FROM p WHERE n = 5.5',
		'SELECT d, n FROM p ORDER BY d, n DESC', 'SELECT d, n FROM p ORDER BY d DESC, n', 'SELECT id FROM p WHERE d > ''2020-01-20''',
		-- Arrays: a few large combinations, many small ones, none that matches; filters.
		'SELECT id FROM p WHERE k = ANY (''{55,1,2,3,700,55}'')', 'SELECT id FROM p WHERE k = ANY (ARRAY(SELECT generate_series(-300, 300)))',
		'SELECT a, k, id FROM p WHERE a = ANY (''{a1,a5,a7,b}'') ORDER BY a DESC, k, id', 'SELECT a, k, id FROM p WHERE a = ANY (''{a1,a5,a7,b}'') ORDER BY a, k DESC, id DESC',
		'SELECT id FROM p WHERE a = ANY (''{a5,a7,single}'') AND k = ANY (''{1,2,3,55,60,61,62}'')',
		'SELECT id FROM p WHERE a = ANY (''{a1,a5}'') AND id > 2500', 'SELECT id FROM p WHERE n = ANY (''{5.5,NULL,7,8.125}'')',
		'SELECT id FROM p WHERE d = ANY (''{2020-01-03,2020-01-15,2020-01-31,2020-02-01}'') AND n = ANY (''{5.5,7,8.125}'')', 'SELECT id FROM p WHERE a = ANY (''{x,y}'')',
		-- Row comparisons, patterns.
		'SELECT a, k, id FROM p WHERE (k, id) > (50, 1000) AND a = ''a5'' ORDER BY a DESC, k, id', 'SELECT id FROM p WHERE a = ''a5'' AND (k, id) < (55, 3100)',
		'SELECT id FROM p WHERE a LIKE ''a1%''',
		-- Nodes above the scans: aggregates, joins, limits.
		'SELECT count(*), sum(k), min(id) FROM p WHERE k > -500', 'SELECT k, count(*) FROM p GROUP BY k ORDER BY k', 'SELECT k FROM p ORDER BY k LIMIT 100',
		'SELECT k FROM p ORDER BY k DESC NULLS LAST OFFSET 50 LIMIT 7'] LOOP
		RAISE NOTICE '%: %', query, in_parallel(query);
	END LOOP;
END $$;
CALL all_in_parallel();
VACUUM ANALYZE p;
SET parallel_leader_participation = off;
CALL all_in_parallel();
RESET parallel_leader_participation;

-- A plan that is rescanned starts with the first range again.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_index_scan_size = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
-- With pages as small as in these tests, CPU time does not matter.
SET random_page_cost = 0;
SET seq_page_cost = 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT t.plan_has('SELECT g, n FROM generate_series(1, 4) g LEFT JOIN (SELECT count(*) AS n FROM p WHERE k BETWEEN -600 AND 600) s ON g > 1', 'Parallel Index Only Scan');
SELECT g, n FROM generate_series(1, 4) g LEFT JOIN (SELECT count(*) AS n FROM p WHERE k BETWEEN -600 AND 600) s ON g > 1 ORDER BY g;
SELECT count(*) FROM p WHERE k BETWEEN -600 AND 600;
-- Values that are known only at run time.
PREPARE between(int, int) AS SELECT count(*), sum(id) FROM p WHERE k >= $1 AND k < $2;
SET plan_cache_mode = force_generic_plan;
SELECT t.plan_has('EXECUTE between(10, 60)', 'Parallel Index Only Scan');
EXECUTE between(10, 60);
EXECUTE between(-1000, 1000);
EXECUTE between(60, 10);
SELECT t.plan_has('SELECT count(*) FROM p WHERE k > (SELECT min(id) FROM p)', 'Parallel Index Only Scan');
SELECT count(*) FROM p WHERE k > (SELECT min(id) FROM p);
-- A join whose outer side is divided, each of its processes searching the same index.
SET enable_mergejoin = on;
SELECT count(*), sum(x.id), sum(y.id) FROM p x JOIN p y ON x.k = y.k AND y.id < 100 WHERE x.k > 0;
SET enable_nestloop = off;
SELECT count(*), sum(x.id), sum(y.id) FROM p x JOIN p y ON x.k = y.k AND y.id < 100 WHERE x.k > 0;
RESET enable_nestloop;

-- Rows just inserted by the same transaction, and deleted rows.
BEGIN;
INSERT INTO p SELECT i, 'new', NULL, NULL, 10000 + i FROM generate_series(1, 500) i;
DELETE FROM p WHERE id % 7 = 0;
SELECT count(*), sum(id) FROM p WHERE k >= 0;
SAVEPOINT s;
INSERT INTO p SELECT 600, 'newer', NULL, NULL, 20000 + i FROM generate_series(1, 100) i;
SELECT count(*), sum(id) FROM p WHERE k >= 0;
ROLLBACK TO s;
SELECT count(*), sum(id) FROM p WHERE k >= 0;
COMMIT;
SELECT count(*), sum(id) FROM p WHERE k >= 0;
VACUUM p;
SELECT count(*), sum(id) FROM p WHERE k >= 0;
SELECT lsm_check('p_k', true), lsm_check('p_n', true);
-- No rows at all, and only dead rows.
DELETE FROM p;
SELECT count(*) FROM p WHERE k >= 0;
VACUUM p;
SELECT count(*) FROM p WHERE k >= 0;
SELECT count(*) FROM p WHERE a = ANY ('{a1,a2}') AND k > 3;
DROP TABLE p;
