-- The prefetching scan gives the rows of core's scan, in the same order, with indexes of lsm and of core.
SET max_parallel_workers_per_gather = 0;
SET pg_lsm.prefetch_depth = 8;

CREATE TABLE p (id int, k int, c text, n int, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE p ALTER pad SET STORAGE plain;
INSERT INTO p SELECT i, i * 7919 % 997, 'c' || i % 50, nullif(i % 11, 0), repeat('x', 300) FROM generate_series(1, 3000) i;
-- Versions that are dead, in the way, or visible to nobody else.
UPDATE p SET n = n + 100 WHERE id % 7 = 0;
UPDATE p SET k = k + 1 WHERE id % 13 = 0;
DELETE FROM p WHERE id % 17 = 0;
BEGIN;
INSERT INTO p SELECT i, i % 997, 'aborted' FROM generate_series(1, 500) i;
ROLLBACK;
ANALYZE p;

-- Rows of a query without the node and with it.  `mode` is what the plan must show.
CREATE FUNCTION same_rows(query text, mode text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	want text[];
	got text[];
BEGIN
	SET LOCAL enable_seqscan = off;
	PERFORM set_config('pg_lsm.debug_prefetch_scan', 'off', true);
	want := t.rows_of(query);
	PERFORM set_config('pg_lsm.debug_prefetch_scan', 'on', true);
	got := t.rows_of(query);
	IF NOT t.plan_has(query, 'Mode: ' || mode) THEN
		RETURN 'NOT ' || mode;
	END IF;
	IF mode = 'by page' AND query !~* 'order by' THEN
		want := ARRAY(SELECT unnest(want) COLLATE "C" ORDER BY 1);
		got := ARRAY(SELECT unnest(got) COLLATE "C" ORDER BY 1);
	END IF;
	IF got IS DISTINCT FROM want THEN
		RETURN format('DIFFERENT: %s rows, should be %s', cardinality(got), cardinality(want));
	END IF;
	RETURN cardinality(want);
END $$;

CREATE TABLE queries (n int GENERATED ALWAYS AS IDENTITY, mode text, query text);
INSERT INTO queries (mode, query) VALUES
	('by page', 'SELECT * FROM p WHERE k < 100'),
	('by page', 'SELECT * FROM p WHERE k = 5'),
	('by page', 'SELECT * FROM p WHERE k = ANY (''{5, 500, 7, NULL, 2000}'')'),
	('by page', 'SELECT * FROM p WHERE k BETWEEN 10 AND 900 AND n IS NULL'),
	('by page', 'SELECT * FROM p WHERE k < 0'),
	('by page', 'SELECT ctid, tableoid::regclass, xmin::text <> ''0'', p, id + 1 FROM p WHERE k < 100'),
	('by page', 'SELECT id FROM p WHERE k < 300 AND n = (SELECT max(n) FROM p q WHERE q.id = p.id % 50)'),
	('by page', 'SELECT id, (SELECT count(*) FROM p q WHERE q.k = p.k AND q.c < p.c) FROM p WHERE k < 30'),
	('by page', 'SELECT count(*), sum(n) FROM p WHERE k < 500'),
	('by page', 'SELECT * FROM p WHERE k < 200 AND now() > ''2000-01-01'' AND 1 = (SELECT 1)'),
	('in index order', 'SELECT * FROM p WHERE k < 100 ORDER BY k'),
	('in index order', 'SELECT * FROM p ORDER BY k'),
	('in index order', 'SELECT * FROM p WHERE k > 300 ORDER BY k DESC'),
	('in index order', 'SELECT * FROM p ORDER BY k DESC LIMIT 1'),
	('in index order', 'SELECT * FROM p ORDER BY k LIMIT 10 OFFSET 400'),
	('in index order', 'SELECT k, count(*), min(id) FROM p GROUP BY k ORDER BY k'),
	('in index order', 'SELECT DISTINCT ON (k) k, id FROM p ORDER BY k'),
	('in index order', 'SELECT id, rank() OVER (ORDER BY k) FROM p WHERE k < 200'),
	('in index order', 'SELECT id + 1, c || n FROM p WHERE n > 3 ORDER BY k'),
	('in index order', 'SELECT (SELECT q.id FROM p q WHERE q.k >= o.id AND q.n > 5 ORDER BY q.k LIMIT 1) FROM generate_series(1, 900, 50) o (id)'),
	('in index order', 'SELECT o.id, q.* FROM generate_series(1, 900, 50) o (id), LATERAL (SELECT * FROM p q WHERE q.k > o.id ORDER BY q.k LIMIT 30) q'),
	('in index order', 'SELECT min(k), max(k) FROM p WHERE n > 3');
CREATE FUNCTION check_all() RETURNS TABLE (n int, rows text) LANGUAGE sql AS $$
	SELECT n, same_rows(query, mode) FROM queries ORDER BY n
$$;

SET enable_sort = off;
SET enable_hashagg = off;
CREATE INDEX p_k ON p (k);
SELECT * FROM check_all();
DROP INDEX p_k;
CREATE INDEX p_k ON p USING lsm (k);
SELECT * FROM check_all();

-- A few TIDs at a time: several rounds.
SET work_mem = '64kB';
SELECT same_rows('SELECT * FROM p WHERE k > -1', 'by page');
RESET work_mem;

-- Joins: parameters and rescans; no mark and restore, so the inner side of a merge join is materialised.
CREATE TABLE o AS SELECT i AS id, i % 97 AS k FROM generate_series(1, 150) i;
SET enable_hashjoin = off;
SET enable_memoize = off;
SET enable_mergejoin = off;
SELECT same_rows(q, 'in index order') FROM unnest(ARRAY[
	'SELECT o.id, p.id FROM o JOIN p USING (k)',
	'SELECT o.id, p.id FROM o LEFT JOIN p ON p.k = o.k AND p.n > 3',
	'SELECT o.id FROM o WHERE EXISTS (SELECT FROM p WHERE p.k = o.k + 1 AND p.n > 5)',
	'SELECT o.id FROM o WHERE NOT EXISTS (SELECT FROM p WHERE p.k = o.k + 1 AND p.n > 5)']) q;
SELECT same_rows('SELECT o.id, p.id FROM o JOIN p ON p.k BETWEEN o.k AND o.k + 2', 'by page');
SET enable_sort = on;
SET enable_nestloop = off;
SET enable_mergejoin = on;
SELECT same_rows(q, 'in index order') FROM unnest(ARRAY[
	'SELECT o.id, p.id FROM o JOIN p USING (k) ORDER BY 1, 2',
	'SELECT a.id, b.id FROM p a JOIN p b USING (k) WHERE a.n > 3 ORDER BY 1, 2']) q;
RESET enable_hashjoin;
RESET enable_memoize;
RESET enable_nestloop;
RESET enable_sort;
RESET enable_hashagg;

-- What the plan shows.
SET enable_seqscan = off;
SET pg_lsm.debug_prefetch_scan = on;
EXPLAIN (COSTS OFF) SELECT id FROM p WHERE k < 100 AND n > 3;
EXPLAIN (COSTS OFF) SELECT id + 1 FROM p WHERE k < 100 AND now() > '2000-01-01' ORDER BY k DESC LIMIT 5;
CREATE FUNCTION analyzed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
		CONTINUE WHEN line ~ 'Index Searches';
		RETURN NEXT regexp_replace(regexp_replace(line, '(Prefetched|Memory): \d+', '\1: N'), 'rows=(\d+)\.00', 'rows=\1');
	END LOOP;
END $$;
SELECT analyzed('SELECT id FROM p WHERE k < 100 AND n > 3');
SELECT analyzed('SELECT id FROM p WHERE k < 100 AND n > 3 ORDER BY k');
SELECT analyzed('SELECT id FROM p WHERE k < 100 AND n > 3 ORDER BY k LIMIT 1');

-- Cursors: forward, both ways, held, and the row that one is on.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, k FROM p WHERE k > 200 ORDER BY k;
FETCH 3 FROM c;
DELETE FROM p WHERE CURRENT OF c RETURNING id, k;
FETCH 1 FROM c;
UPDATE p SET n = -1 WHERE CURRENT OF c RETURNING id, k, n;
DECLARE s SCROLL CURSOR FOR SELECT id, k FROM p WHERE k > 200 ORDER BY k;
FETCH 3 FROM s;
FETCH BACKWARD 2 FROM s;
FETCH LAST FROM s;
FETCH PRIOR FROM s;
-- Inserted by the same transaction, behind what the cursors have read, and for them invisible.
INSERT INTO p SELECT i, 201, 'new' FROM generate_series(9000, 9100) i;
FETCH ABSOLUTE 4 FROM s;
FETCH 2 FROM c;
DECLARE h CURSOR WITH HOLD FOR SELECT id, k FROM p WHERE k > 200 ORDER BY k;
SAVEPOINT a;
FETCH 1 FROM c;
ROLLBACK TO a;
FETCH 1 FROM c;
ROLLBACK;

-- Changes that find their rows by the node, also such that move them forward in the index.
BEGIN;
WITH u AS (UPDATE p SET k = k + 50 WHERE k BETWEEN 100 AND 200 RETURNING id) SELECT count(*), count(DISTINCT id) FROM u;
SELECT count(*) FROM p WHERE k BETWEEN 150 AND 250;
WITH d AS (DELETE FROM p WHERE k < 20 RETURNING id) SELECT count(*), count(DISTINCT id) FROM d;
SELECT count(*) FROM (SELECT * FROM p WHERE k BETWEEN 300 AND 350 ORDER BY k FOR UPDATE) q;
SELECT count(*) FROM (SELECT * FROM p WHERE k BETWEEN 300 AND 350 FOR SHARE SKIP LOCKED) q;
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM p WHERE k BETWEEN 300 AND 350;
COMMIT;

-- Functions that change the table that the query reads.
CREATE FUNCTION add_row(key int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO p (id, k) VALUES (-1, key + 1);
	RETURN key;
END $$;
BEGIN;
SELECT count(*), sum(add_row(k)) FROM p WHERE k BETWEEN 100 AND 150;
SELECT count(*) FROM p WHERE k BETWEEN 100 AND 151;
ROLLBACK;

-- Partitions, partial, expression and multicolumn indexes, row comparisons.
CREATE TABLE parts (id int, k int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1000) TO (3001);
CREATE INDEX ON parts USING lsm (k);
CREATE INDEX ON parts (id, k);
INSERT INTO parts SELECT id, k FROM p WHERE k IS NOT NULL AND id > 0;
CREATE INDEX p_part ON p USING lsm (id) WHERE n IS NULL;
CREATE INDEX p_expr ON p USING lsm ((id % 100), c);
ANALYZE p, parts;
SELECT same_rows(q, 'by page') FROM unnest(ARRAY[
	'SELECT tableoid::regclass, * FROM parts WHERE k < 50',
	'SELECT * FROM p WHERE id < 700 AND n IS NULL',
	'SELECT * FROM p WHERE id % 100 = 7 AND c > ''c2''',
	'SELECT * FROM p WHERE (id % 100, c) >= (70, ''c3'') AND id % 100 < 90',
	'SELECT a.k, b.id FROM parts a JOIN parts b ON a.id = b.k WHERE a.k < 10']) q;
SET enable_sort = off;
SELECT same_rows(q, 'in index order') FROM unnest(ARRAY[
	'SELECT * FROM parts WHERE k < 900 AND id <> 5 ORDER BY k',
	'SELECT id, pad FROM p WHERE n IS NULL ORDER BY id']) q;
RESET enable_sort;

-- A lossy index: what it returns is checked again.
CREATE TABLE areas AS SELECT i AS id, polygon(circle(point(i % 50, i / 50), 0.7)) AS a FROM generate_series(1, 2000) i;
CREATE INDEX ON areas USING gist (a);
SELECT same_rows('SELECT id FROM areas WHERE a && polygon(circle(point(10.4, 10.4), 3))', 'by page');
SELECT analyzed('SELECT id FROM areas WHERE a && polygon(circle(point(10.4, 10.4), 3))');

-- Temporary and unlogged tables.
CREATE TEMP TABLE tmp AS SELECT id, k, c FROM p;
CREATE UNLOGGED TABLE unl AS SELECT id, k, c FROM p;
CREATE INDEX ON tmp (k);
CREATE INDEX ON unl USING lsm (k);
SET enable_sort = off;
SELECT same_rows('SELECT * FROM tmp WHERE k < 100', 'by page'), same_rows('SELECT * FROM unl WHERE k < 900 ORDER BY k', 'in index order');
RESET enable_sort;

-- Workers run it, each as a whole, where core's index scan would do so.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SET enable_seqscan = on;
SELECT t.plan_has('SELECT count(*) FROM o JOIN p USING (k) WHERE p.n > 3', 'Gather') AND t.plan_has('SELECT count(*) FROM o JOIN p USING (k) WHERE p.n > 3', 'Prefetch');
SELECT count(*) FROM o JOIN p USING (k) WHERE p.n > 3;
SELECT bool_or(line ~ 'Depth Reached') FROM analyzed('SELECT count(*) FROM o JOIN p USING (k) WHERE p.n > 3') line;
SET pg_lsm.debug_prefetch_scan = off;
SELECT count(*) FROM o JOIN p USING (k) WHERE p.n > 3;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;

-- The planner's choice: many rows at random places, but neither a few nor those of one place.
CREATE TABLE near AS SELECT id, k, pad FROM p ORDER BY id;
CREATE INDEX near_id ON near (id);
ANALYZE near;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SET pg_lsm.enable_prefetch_scan = on;
CREATE FUNCTION chosen(query text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN t.plan_has(query, 'Mode: by page') THEN 'by page' WHEN t.plan_has(query, 'Mode: in') THEN 'in index order' ELSE 'core' END
$$;
SELECT q, chosen(q) FROM unnest(ARRAY[
	'SELECT * FROM p WHERE k < 300',
	'SELECT * FROM p WHERE k < 300 ORDER BY k LIMIT 300',
	'SELECT * FROM p ORDER BY k LIMIT 1',
	'SELECT * FROM p ORDER BY k LIMIT 10',
	'SELECT * FROM p WHERE k = 5',
	'SELECT * FROM near WHERE id < 300 ORDER BY id',
	'SELECT * FROM o, p WHERE o.id < 5 AND p.k = o.k']) q;
SET effective_io_concurrency = 0;
SET pg_lsm.prefetch_depth = 0;
SELECT chosen('SELECT * FROM p WHERE k < 300');
SET pg_lsm.prefetch_depth = 8;
SELECT chosen('SELECT * FROM p WHERE k < 300');
SET pg_lsm.enable_prefetch_scan = off;
SELECT chosen('SELECT * FROM p WHERE k < 300');

-- Also where core has forgotten the index, since a sequential scan is better than what it has.
CREATE TABLE large AS SELECT i * 7919 % 1500 AS k, i AS id FROM generate_series(1, 1500) i;
ALTER TABLE large ADD pad text;
ALTER TABLE large ALTER pad SET STORAGE plain;
UPDATE large SET pad = repeat('x', 5000);
VACUUM FULL large;
CREATE INDEX ON large (k);
ANALYZE large;
SET enable_seqscan = on;
SET random_page_cost = 10;
SELECT chosen('SELECT * FROM large WHERE k < 500'), t.plan_has('SELECT * FROM large WHERE k < 500', 'Seq Scan');
SET pg_lsm.enable_prefetch_scan = on;
SELECT chosen('SELECT * FROM large WHERE k < 500'), chosen('SELECT * FROM large WHERE id < 500');
SELECT count(*), sum(k), sum(length(pad)) FROM large WHERE k < 500;
RESET pg_lsm.enable_prefetch_scan;
DROP TABLE p, o, near, parts, areas, queries, unl, large;
