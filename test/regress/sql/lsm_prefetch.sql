-- The prefetching scan returns the rows of core's scan, in the same order, with lsm indexes and with core's.
-- By default, it is on for lsm indexes only.
SHOW pg_lsm.enable_prefetch_scan;
SET max_parallel_workers_per_gather = 0;
SET pg_lsm.prefetch_depth = 8;

CREATE TABLE p (id int, k int, c text, n int, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE p ALTER pad SET STORAGE plain;
INSERT INTO p SELECT i, i * 7919 % 997, 'c' || i % 50, nullif(i % 11, 0), repeat('x', 300) FROM generate_series(1, 3000) i;
-- Row versions that are dead, superseded, or visible to nobody else.
UPDATE p SET n = n + 100 WHERE id % 7 = 0;
UPDATE p SET k = k + 1 WHERE id % 13 = 0;
DELETE FROM p WHERE id % 17 = 0;
BEGIN;
INSERT INTO p SELECT i, i % 997, 'aborted' FROM generate_series(1, 500) i;
ROLLBACK;
ANALYZE p;

-- The rows of a query without the node and with it.  `mode` is what the plan must show.
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

-- Joins: parameters and rescans. There is no mark and restore, so the inner side of a merge join is
-- materialized.
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

-- Cursors: forward, in both directions, held, and a cursor's current row.
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
-- Rows inserted by the same transaction, after the cursors' positions, are invisible to them.
INSERT INTO p SELECT i, 201, 'new' FROM generate_series(9000, 9100) i;
FETCH ABSOLUTE 4 FROM s;
FETCH 2 FROM c;
DECLARE h CURSOR WITH HOLD FOR SELECT id, k FROM p WHERE k > 200 ORDER BY k;
SAVEPOINT a;
FETCH 1 FROM c;
ROLLBACK TO a;
FETCH 1 FROM c;
ROLLBACK;

-- A cursor can move backward from any position if a plain index scan could, even without SCROLL.
CREATE FUNCTION walk_both_ways(query text, moves text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	w refcursor := 'w';
	answer text := '';
	move text;
	r record;
BEGIN
	EXECUTE 'DECLARE w CURSOR FOR ' || query;
	FOREACH move IN ARRAY string_to_array(moves, ',') LOOP
		IF move ~ '^M' THEN
			EXECUTE regexp_replace(move, '^M', 'MOVE') || ' FROM w';
			CONTINUE;
		END IF;
		FOR i IN 1 .. move::int LOOP
			FETCH NEXT FROM w INTO r;
			answer := answer || ' ' || coalesce(r::text, '-');
		END LOOP;
		FOR i IN 1 .. -move::int LOOP
			FETCH PRIOR FROM w INTO r;
			answer := answer || ' ' || coalesce(r::text, '-');
		END LOOP;
	END LOOP;
	CLOSE w;
	RETURN answer;
END $$;
CREATE TABLE walks (query text, moves text);
INSERT INTO walks SELECT q, m FROM unnest(ARRAY[
	'SELECT id, k FROM p WHERE k > 200 ORDER BY k',
	'SELECT id, k FROM p WHERE k > 200 AND n > 4 ORDER BY k DESC',
	'SELECT id, k FROM p WHERE k BETWEEN 10 AND 12 ORDER BY k LIMIT 6',
	'SELECT id, k FROM p WHERE k < 0 ORDER BY k']) q, unnest(ARRAY['3,-2,4,-9,2', '1,-1,1,-2,3', '40,-5,3,-60,5', 'M FORWARD ALL,-3,2,-4',
	'M FORWARD ALL,M BACKWARD ALL,2,-1', 'M FORWARD 50,M BACKWARD 20,3,M FORWARD ALL,1,-1,M BACKWARD 1000,1', 'M FORWARD 20,M ABSOLUTE 3,1,-1',
	'M FORWARD 7,M RELATIVE -3,1,M LAST,1,-2,M FIRST,1']) m;
SELECT count(*), count(*) FILTER (WHERE t.plan_has(query, 'Prefetch')) AS prefetching FROM walks;
SET enable_sort = off;
BEGIN;
CREATE TEMP TABLE walked AS SELECT query, moves, walk_both_ways(query, moves) AS answer FROM walks;
SET LOCAL pg_lsm.debug_prefetch_scan = off;
SELECT query, moves, answer, walk_both_ways(query, moves) FROM walked WHERE answer <> walk_both_ways(query, moves);
SELECT moves, answer FROM walked WHERE query ~ 'LIMIT' AND length(answer) < 200 ORDER BY moves;
-- Rows inserted or deleted in between since then.
SET LOCAL pg_lsm.debug_prefetch_scan = on;
DECLARE w CURSOR FOR SELECT id, k FROM p WHERE k > 200 ORDER BY k;
FETCH 3 FROM w;
INSERT INTO p SELECT i, 200 + i % 10, 'new' FROM generate_series(1, 300) i;
DELETE FROM p WHERE k BETWEEN 201 AND 205;
FETCH BACKWARD 5 FROM w;
FETCH 5 FROM w;
-- A scan by page cannot go backward, so cursors without an order keep core's index scan.
DECLARE v CURSOR FOR SELECT k, id > 0 AS id FROM p WHERE k > 200;
FETCH 1 FROM v;
FETCH PRIOR FROM v;
ROLLBACK;
RESET enable_sort;

-- Changes that find their rows through the node, including those that move rows forward in the index.
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

-- A lossy index: the rows that it returns are rechecked.
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

-- Workers run the scan, each all of it, where they would run core's index scan.
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
-- Or they divide it among themselves.
SET enable_seqscan = off;
SET min_parallel_index_scan_size = 0;
CREATE TABLE parallel_queries (query text);
INSERT INTO parallel_queries VALUES
	('SELECT count(*), sum(id), sum(n) FROM p WHERE k < 700'),
	('SELECT k, id FROM p WHERE k BETWEEN 100 AND 700 AND n > 2 ORDER BY k, id'),
	('SELECT p.id, o.id FROM p JOIN o ON o.k = p.id % 97 WHERE p.k < 100 ORDER BY 1, 2'),
	('SELECT o.id, (SELECT count(*) FROM p WHERE p.k < o.k) FROM o WHERE o.id < 20 ORDER BY 1');
CREATE FUNCTION divided(query text, OUT rows bool, OUT is_parallel bool) LANGUAGE plpgsql AS $$
DECLARE
	want text[];
BEGIN
	PERFORM set_config('max_parallel_workers_per_gather', '0', true), set_config('pg_lsm.debug_prefetch_scan', 'off', true);
	want := t.rows_of(query);
	PERFORM set_config('max_parallel_workers_per_gather', '2', true), set_config('pg_lsm.debug_prefetch_scan', 'on', true);
	rows := want = t.rows_of(query);
	is_parallel := t.plan_has(query, 'Parallel Custom Scan .Prefetch');
END $$;
SELECT bool_and(rows) AS same_rows, bool_or(is_parallel) AS in_parallel FROM parallel_queries, divided(query);
SET parallel_leader_participation = off;
SELECT bool_and(rows) AS same_rows, bool_or(is_parallel) AS in_parallel FROM parallel_queries, divided(query);
RESET parallel_leader_participation;
-- No worker is available.
SET max_parallel_workers = 0;
SELECT bool_and(rows) AS same_rows, bool_or(is_parallel) AS in_parallel FROM parallel_queries, divided(query);
RESET max_parallel_workers;
SET enable_bitmapscan = off;
SELECT bool_and(rows) AS same_rows, bool_or(is_parallel) AS in_parallel FROM parallel_queries, divided(query);
RESET enable_bitmapscan;
RESET min_parallel_index_scan_size;
SET enable_seqscan = on;
DROP TABLE parallel_queries;
SET pg_lsm.debug_prefetch_scan = off;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_memoize;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
SET max_parallel_workers_per_gather = 0;

-- The planner chooses the scan for many rows at random places, but neither for few rows nor for rows in one
-- place.
CREATE TABLE near AS SELECT id, k, pad FROM p ORDER BY id;
CREATE INDEX near_id ON near (id);
ANALYZE near;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SET pg_lsm.enable_prefetch_scan = 'all';
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
-- As many reads at once as the disk can serve, or as we assume if the setting does not say.
SET pg_lsm.prefetch_depth = 0;
CREATE FUNCTION depth(query text) RETURNS text LANGUAGE sql AS $$ SELECT substring(line FROM 'Depth: \d+') FROM analyzed(query) line WHERE line ~ 'Depth:' $$;
SELECT depth('SELECT * FROM p WHERE k < 300');
SET effective_io_concurrency = 0;
SELECT chosen('SELECT * FROM p WHERE k < 300');
SET effective_io_concurrency = 1;
SELECT chosen('SELECT * FROM p WHERE k < 300');
SET effective_io_concurrency = 40;
SELECT depth('SELECT * FROM p WHERE k < 300');
RESET effective_io_concurrency;
SET effective_io_concurrency = 0;
SET pg_lsm.prefetch_depth = 8;
SELECT chosen('SELECT * FROM p WHERE k < 300');
SET pg_lsm.enable_prefetch_scan = off;
SELECT chosen('SELECT * FROM p WHERE k < 300');

-- Also where core has dropped its index path, because a sequential scan is better.
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
SET pg_lsm.enable_prefetch_scan = 'all';
SELECT chosen('SELECT * FROM large WHERE k < 500'), chosen('SELECT * FROM large WHERE id < 500');
-- By default, only over lsm indexes: the library must not change plans that use other indexes.
SET pg_lsm.enable_prefetch_scan = on;
SELECT chosen('SELECT * FROM large WHERE k < 500');
BEGIN;
DROP INDEX large_k_idx;
CREATE INDEX ON large USING lsm (k);
SELECT chosen('SELECT * FROM large WHERE k < 500');
ROLLBACK;
SET pg_lsm.enable_prefetch_scan = 'all';
SELECT count(*), sum(k), sum(length(pad)) FROM large WHERE k < 500;
SET pg_lsm.enable_prefetch_scan = 'all';

-- The leaves of a newly built B-tree are sequential. Those of one that has grown are not, which may decide the
-- plan.
CREATE TABLE grown (k int, pad text);
CREATE INDEX grown_k ON grown (k);
INSERT INTO grown SELECT hashint4(i), repeat('x', 300) FROM generate_series(1, 30000) i;
ANALYZE grown;
SET random_page_cost = 40;
SET enable_bitmapscan = off;
SELECT chosen('SELECT * FROM grown WHERE k > 1600000000'), t.plan_has('SELECT * FROM grown WHERE k > 1600000000', 'Seq Scan');
REINDEX INDEX grown_k;
SELECT chosen('SELECT * FROM grown WHERE k > 1600000000');
DROP TABLE grown;
SET random_page_cost = 10;
RESET enable_bitmapscan;

-- Methods other than B-tree and lsm, only if forced.
CREATE INDEX ON areas USING hash (id);
SET enable_bitmapscan = off;
SELECT chosen('SELECT * FROM areas WHERE a && polygon(circle(point(10, 10), 30))');
RESET enable_bitmapscan;

-- Partitions for which core wants parameterized paths: ours must not be the only paths.
CREATE TABLE both_sides (id int, k int, pad text) PARTITION BY RANGE (id);
CREATE TABLE left_side PARTITION OF both_sides FOR VALUES FROM (0) TO (2000);
CREATE TABLE right_side PARTITION OF both_sides FOR VALUES FROM (2000) TO (4001);
ALTER TABLE both_sides ALTER pad SET STORAGE plain;
INSERT INTO both_sides SELECT i * 7919 % 4001, i % 100, repeat('x', 500) FROM generate_series(1, 4000) i;
CREATE INDEX ON left_side (id);
CREATE INDEX ON right_side (k);
CREATE TABLE few AS SELECT 77 AS id;
ANALYZE both_sides, few;
RESET random_page_cost;
RESET enable_hashjoin;
RESET enable_mergejoin;
SELECT chosen('SELECT * FROM right_side WHERE k BETWEEN 10 AND 15');
SELECT t.plan_has('SELECT * FROM few JOIN both_sides USING (id) WHERE k BETWEEN 10 AND 15', 'Index Cond: .*few.id');
DROP TABLE few, both_sides;

-- The scan reports dead rows to the index, so that they do not make each scan slower than the one before.
CREATE TABLE queue (id int, state int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO queue SELECT i, i % 4, repeat('x', 100) FROM generate_series(1, 4000) i;
-- As many as with core's scan?
CREATE FUNCTION learns(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	first int := t.buffers(query);
	second int := t.buffers(query);
	third int;
BEGIN
	PERFORM set_config('pg_lsm.debug_prefetch_scan', 'off', true), t.buffers(query);
	third := t.buffers(query);
	PERFORM set_config('pg_lsm.debug_prefetch_scan', 'on', true);
	RETURN CASE WHEN second - third < (first - third) / 2 THEN 'yes' ELSE format('%s pages, then %s, core %s', first, second, third) END;
END $$;
SET enable_seqscan = off;
SET enable_sort = off;
SET pg_lsm.debug_prefetch_scan = on;
SET pg_lsm.prefetch_depth = 8;
CREATE INDEX queue_state ON queue (state);
DELETE FROM queue WHERE state = 1 AND id > 20;
SELECT learns('SELECT * FROM queue WHERE state = 1');
DELETE FROM queue WHERE state = 2 AND id < 3980;
SELECT learns('SELECT * FROM queue WHERE state >= 2 ORDER BY state LIMIT 2');
DROP INDEX queue_state;
TRUNCATE queue;
INSERT INTO queue SELECT i, i % 4, repeat('x', 100) FROM generate_series(1, 4000) i;
CREATE INDEX ON queue USING lsm (state);
DELETE FROM queue WHERE state = 1 AND id > 20;
SELECT learns('SELECT * FROM queue WHERE state = 1');
DELETE FROM queue WHERE state = 2 AND id < 3980;
SELECT learns('SELECT * FROM queue WHERE state >= 2 ORDER BY state LIMIT 2');
SELECT count(*), sum(state) FROM queue WHERE state >= 0;
-- Others have reported the rows before: the scan searches for them no further than it has read.
SET pg_lsm.debug_prefetch_scan = on;
CREATE TABLE told (id int, f text);
INSERT INTO told SELECT i, 'x' FROM generate_series(1, 100000) i;
CREATE INDEX told_id ON told (id);
DELETE FROM told WHERE id <= 1000;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM told ORDER BY id;
FETCH 2 FROM c;
SET LOCAL pg_lsm.debug_prefetch_scan = off;
SET LOCAL pg_lsm.enable_prefetch_scan = off;
SET LOCAL enable_bitmapscan = off;
SELECT count(f) FROM told WHERE id BETWEEN 0 AND 3000;
SELECT pg_stat_get_xact_tuples_returned('told_id'::regclass) AS before \gset
CLOSE c;
SELECT pg_stat_get_xact_tuples_returned('told_id'::regclass) - :before < 5000 AS looks_no_further;
COMMIT;
DROP TABLE told;
-- The keys of an inner scan that is not read to its end are freed with the outer row.
CREATE TABLE outer_rows (k text, f text);
INSERT INTO outer_rows SELECT 'key' || lpad((i % 10)::text, 300, 'x'), md5(i::text) || repeat('p', 200) FROM generate_series(1, 12000) i;
CREATE TABLE inner_rows (k text, v int, f text);
ALTER TABLE inner_rows ALTER k SET STORAGE plain;
INSERT INTO inner_rows SELECT 'key' || lpad((i % 10)::text, 300, 'x'), i, repeat('p', 100) FROM generate_series(1, 6000) i;
CREATE INDEX inner_k ON inner_rows (k);
VACUUM ANALYZE outer_rows, inner_rows;
DELETE FROM inner_rows WHERE v < 5000 AND (v % 3 > 0 OR v < 3000);
-- (A new session returns the memory of the sort to the system.)
\c
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET pg_lsm.debug_prefetch_scan = on;
SET pg_lsm.prefetch_depth = 8;
SELECT left(o.f, 4) FROM (SELECT * FROM outer_rows ORDER BY f OFFSET 0) o
WHERE EXISTS (SELECT 1 FROM inner_rows i WHERE i.k = o.k AND v % 97 = 3 OFFSET 0) LIMIT 3;
SELECT left(o.f, 4), n FROM (SELECT * FROM outer_rows ORDER BY f OFFSET 0) o,
	LATERAL (SELECT v AS n FROM inner_rows i WHERE i.k = o.k OFFSET 0 LIMIT 1) i LIMIT 3;
DROP TABLE outer_rows, inner_rows;
SET pg_lsm.debug_prefetch_scan = off;
SET enable_seqscan = on;
SELECT count(*), sum(state) FROM queue;
DROP TABLE queue;

-- Index-only scans: rows on all-visible pages come from the index, the others are looked up ahead.
CREATE TABLE io (id int, k int, v text, n int, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE io ALTER pad SET STORAGE plain;
INSERT INTO io SELECT i, i * 7919 % 997, 'v' || i % 50, nullif(i % 11, 0), repeat('x', 300) FROM generate_series(1, 3000) i;
VACUUM io;
-- Some pages have changed since: rows are deleted, others have new versions with or without index entries.
DELETE FROM io WHERE id % 97 = 0 AND id < 2000;
UPDATE io SET pad = 'y' WHERE id BETWEEN 1000 AND 1100;
UPDATE io SET v = 'z' WHERE id BETWEEN 1500 AND 1600;
ANALYZE io;
-- The same rows as from core's scan, and as many heap fetches.
CREATE FUNCTION looked_up(query text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(substring(line FROM 'Heap Fetches: \d+'), ', ') FROM analyzed(query) line
$$;
CREATE FUNCTION same_only(query text, mode text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	want text;
	got text;
BEGIN
	SET LOCAL enable_bitmapscan = off;
	PERFORM set_config('enable_seqscan', 'off', true), set_config('pg_lsm.debug_prefetch_scan', 'on', true);
	IF t.scan_of(query) <> 'index only' THEN
		RETURN 'NOT index only';
	END IF;
	got := same_rows(query, mode);
	PERFORM set_config('pg_lsm.debug_prefetch_scan', 'off', true);
	want := looked_up(query);
	PERFORM set_config('pg_lsm.debug_prefetch_scan', 'on', true);
	IF looked_up(query) IS DISTINCT FROM want THEN
		RETURN format('%s, should be %s', looked_up(query), want);
	END IF;
	RETURN got || CASE WHEN want ~ '[1-9]' THEN ' rows, some looked up' ELSE ' rows' END;
END $$;
TRUNCATE queries RESTART IDENTITY;
INSERT INTO queries (mode, query) VALUES
	('by page', 'SELECT k, v FROM io WHERE k < 300'),
	('by page', 'SELECT count(*) FROM io WHERE k < 900'),
	('by page', 'SELECT count(*), sum(n), min(v) FROM io WHERE k BETWEEN 100 AND 500 AND n > 3'),
	('by page', 'SELECT v || n FROM io WHERE k = ANY (''{5, 500, 7, NULL, 2000}'')'),
	('by page', 'SELECT k FROM io WHERE k < 0'),
	('by page', 'SELECT o.id, (SELECT count(*) FROM io WHERE k < o.id) FROM generate_series(1, 900, 50) o (id)'),
	('in index order', 'SELECT k, v, n FROM io WHERE k < 300 ORDER BY k'),
	('in index order', 'SELECT k, v FROM io WHERE k > 300 AND n IS NULL ORDER BY k DESC'),
	('in index order', 'SELECT k, count(*), max(v) FROM io GROUP BY k ORDER BY k'),
	('in index order', 'SELECT k FROM io ORDER BY k LIMIT 10 OFFSET 400'),
	('in index order', 'SELECT min(k), max(k) FROM io WHERE n > 3'),
	('in index order', 'SELECT o.id, q.* FROM generate_series(1, 900, 50) o (id), LATERAL (SELECT k, v FROM io q WHERE q.k > o.id ORDER BY q.k LIMIT 30) q');
CREATE FUNCTION check_only() RETURNS TABLE (n int, rows text) LANGUAGE sql AS $$
	SELECT n, same_only(query, mode) FROM queries ORDER BY n
$$;
SET enable_sort = off;
SET enable_hashagg = off;
CREATE INDEX io_k ON io (k) INCLUDE (v, n);
SELECT * FROM check_only();
DROP INDEX io_k;
CREATE INDEX io_k ON io USING lsm (k) INCLUDE (v, n);
SELECT * FROM check_only();
-- Little memory: few TIDs and entries at a time.
SET work_mem = '64kB';
SELECT same_only('SELECT v FROM io WHERE k > -1', 'by page'), same_only('SELECT k, v FROM io ORDER BY k', 'in index order');
CREATE TABLE wide (k int, v text, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE wide ALTER v SET STORAGE plain;
ALTER TABLE wide ALTER pad SET STORAGE plain;
INSERT INTO wide SELECT i * 7919 % 997, repeat(md5(i::text), 30), repeat('x', 2000) FROM generate_series(1, 997) i;
CREATE INDEX ON wide (k) INCLUDE (v);
VACUUM wide;
DELETE FROM wide WHERE k % 11 = 0;
ANALYZE wide;
SELECT same_only('SELECT k, v FROM wide ORDER BY k', 'in index order'), same_only('SELECT k, v FROM wide WHERE k > -1', 'by page');
DROP TABLE wide;
RESET work_mem;
RESET enable_hashagg;
-- Joins.
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SELECT same_rows('SELECT o.id, io.v FROM o JOIN io USING (k)', 'in index order');
SELECT same_rows('SELECT o.id, io.k FROM o LEFT JOIN io ON io.k BETWEEN o.k AND o.k + 2 AND io.n > 3', 'by page');
SET enable_nestloop = off;
SET enable_mergejoin = on;
SELECT same_rows('SELECT a.k, a.v, b.n FROM io a JOIN io b USING (k) WHERE a.n > 8 ORDER BY 1, 2, 3', 'in index order');
RESET enable_hashjoin;
RESET enable_memoize;
RESET enable_nestloop;
SET pg_lsm.debug_prefetch_scan = on;
SELECT regexp_replace(line, 'Fetches: \d+', 'Fetches: N') FROM analyzed('SELECT k, v FROM io WHERE k BETWEEN 100 AND 200 ORDER BY k') line;
-- Cursors, and a cursor's current row, wherever it came from.
TRUNCATE walks;
INSERT INTO walks SELECT q, m FROM unnest(ARRAY['SELECT k, v, n FROM io WHERE k > 200 ORDER BY k',
	'SELECT k FROM io WHERE k > 200 AND n > 4 ORDER BY k DESC', 'SELECT k, n FROM io WHERE k < 0 ORDER BY k']) q,
	unnest(ARRAY['3,-2,4,-9,2', '1,-1,1,-2,3', '40,-5,3,-60,5', 'M FORWARD ALL,-3,2,-4', 'M FORWARD 50,M BACKWARD 20,3,M FORWARD ALL,1,-1']) m;
SELECT count(*), count(*) FILTER (WHERE t.plan_has(query, 'Prefetch') AND t.scan_of(query) = 'index only') AS prefetching FROM walks;
BEGIN;
CREATE TEMP TABLE walked AS SELECT query, moves, walk_both_ways(query, moves) AS answer FROM walks;
SET LOCAL pg_lsm.debug_prefetch_scan = off;
SELECT query, moves, answer, walk_both_ways(query, moves) FROM walked WHERE answer <> walk_both_ways(query, moves);
ROLLBACK;
CREATE FUNCTION mark_rows(both_ways bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR FOR SELECT k, v FROM io WHERE k BETWEEN 100 AND 300 ORDER BY k;
	marked text[] := '{}';
	r record;
	w io;
BEGIN
	OPEN c;
	FOR i IN 1 .. 200 LOOP
		IF both_ways AND i % 3 = 0 THEN
			FETCH PRIOR FROM c INTO r;
		ELSE
			FETCH NEXT FROM c INTO r;
		END IF;
		CONTINUE WHEN i % 10 > 0;
		UPDATE io SET n = -i WHERE CURRENT OF c RETURNING * INTO w;
		IF w.k IS DISTINCT FROM r.k OR w.v IS DISTINCT FROM r.v THEN
			RETURN format('%s is another row than %s', w, r);
		END IF;
		marked := marked || r::text;
	END LOOP;
	CLOSE c;
	RETURN cardinality(marked) || ' ' || md5(marked::text);
END $$;
BEGIN;
SELECT mark_rows(false), mark_rows(true);
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT mark_rows(false), mark_rows(true);
ROLLBACK;
SET pg_lsm.debug_prefetch_scan = off;
BEGIN;
SELECT mark_rows(false), mark_rows(true);
ROLLBACK;
SET pg_lsm.debug_prefetch_scan = on;
-- A scan divided among processes.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET enable_bitmapscan = off;
SELECT bool_and(rows) AS same_rows, bool_or(is_parallel) AS in_parallel FROM unnest(ARRAY['SELECT count(*), sum(n), min(v) FROM io WHERE k < 700',
	'SELECT k, count(*), min(v) FROM io WHERE k BETWEEN 100 AND 700 GROUP BY k ORDER BY k']) q, divided(q);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET min_parallel_index_scan_size;
RESET enable_bitmapscan;
SET max_parallel_workers_per_gather = 0;
SET pg_lsm.debug_prefetch_scan = on;
-- B-trees store names as cstrings, which only core knows about. A scan by page computes no expressions.
CREATE TABLE named (n name, k int);
INSERT INTO named SELECT 'name' || i % 100, i FROM generate_series(1, 1000) i;
CREATE INDEX ON named (n, k);
CREATE INDEX ON io (k, (n + 1), n);
VACUUM ANALYZE named;
SET enable_bitmapscan = off;
SELECT t.scan_of(q), t.plan_has(q, 'Prefetch') FROM unnest(ARRAY[
	'SELECT n, k FROM named WHERE n > ''name5''',
	'SELECT n + 1 FROM io WHERE k < 100 AND n + 1 > 5',
	'SELECT n + 1 FROM io WHERE k < 100 AND n + 1 > 5 ORDER BY k']) q;
RESET enable_bitmapscan;
SELECT same_only('SELECT n + 1, n FROM io WHERE k < 100 AND n + 1 > 5 ORDER BY k', 'in index order');
DROP TABLE named;
-- The planner does not choose the scan if all pages are all-visible.
DROP INDEX io_k, io_k_expr_n_idx;
CREATE INDEX ON io (k) INCLUDE (v);
SET pg_lsm.debug_prefetch_scan = off;
SET pg_lsm.enable_prefetch_scan = 'all';
SET effective_cache_size = '1MB';
SELECT chosen(q), t.scan_of(q) FROM unnest(ARRAY['SELECT count(v) FROM io WHERE k < 300', 'SELECT k, v FROM io WHERE k < 300 ORDER BY k']) q;
VACUUM io;
SELECT chosen(q), t.scan_of(q) FROM unnest(ARRAY['SELECT count(v) FROM io WHERE k < 300', 'SELECT k, v FROM io WHERE k < 300 ORDER BY k']) q;
-- If nearly all pages are all-visible, a scan by page gains almost nothing, so no sort is put above it.
CREATE TABLE wide (k int, t text, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE wide ALTER pad SET STORAGE plain, ALTER t SET STORAGE plain;
INSERT INTO wide SELECT (i * 7919) % 20021, repeat(md5(i::text), 15), repeat('x', 6000) FROM generate_series(1, 4000) i;
CREATE INDEX wide_k ON wide (k) INCLUDE (t);
VACUUM ANALYZE wide;
UPDATE wide SET pad = pad WHERE ctid < '(20,0)';
ANALYZE wide;
SET work_mem = '64MB';
EXPLAIN (COSTS OFF) SELECT k, t FROM wide WHERE k > 0 ORDER BY k;
RESET work_mem;
DROP TABLE wide;
-- A cursor's current row, in a HOT chain whose root VACUUM has turned into a redirect: not by page,
-- index-only.
CREATE TABLE hot (k int, n int) WITH (fillfactor = 50, autovacuum_enabled = off);
INSERT INTO hot SELECT i, 0 FROM generate_series(1, 2000) i;
CREATE INDEX hot_k ON hot (k);
UPDATE hot SET n = 1 WHERE k % 2 = 0;
VACUUM ANALYZE hot;
SET pg_lsm.debug_prefetch_scan = on;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_seqscan = off;
SET cursor_tuple_fraction = 1;
DO $$
DECLARE
	c CURSOR FOR SELECT k FROM hot WHERE k BETWEEN 100 AND 300;
	found int := 0;
	updated int := 0;
	n int;
BEGIN
	FOR r IN c LOOP
		UPDATE hot SET n = 2 WHERE CURRENT OF c;
		GET DIAGNOSTICS n = ROW_COUNT;
		found := found + 1;
		updated := updated + n;
	END LOOP;
	RAISE NOTICE '% rows, % updated', found, updated;
END $$;
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM (SELECT k FROM hot WHERE k BETWEEN 400 AND 500 OFFSET 0) s;
FETCH 3 FROM c;
UPDATE hot SET n = 3 WHERE CURRENT OF c;
COMMIT;
SELECT k FROM hot WHERE n = 3;
-- Row comparisons: before PostgreSQL 18 they become keys when the node starts, and get their values when it
-- runs.
CREATE TABLE rc (c text COLLATE "C", a int, b int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO rc SELECT 'c' || i % 5, i / 10, i % 10, repeat('x', 100) FROM generate_series(1, 3000) i;
CREATE INDEX rc_cab ON rc USING lsm (c, a, b);
CREATE INDEX rc_ab ON rc USING lsm (a, b);
ANALYZE rc;
RESET enable_indexscan;
RESET enable_indexonlyscan;
SELECT same_rows(q, 'in index order') FROM unnest(ARRAY[
	'SELECT * FROM rc WHERE c = (SELECT ''c3'') AND (a, b) > (10, 2) ORDER BY a, b LIMIT 50',
	'SELECT * FROM rc WHERE c = (SELECT ''c3'') AND (a, b) <= ((SELECT 200), 2) ORDER BY a DESC, b DESC',
	'SELECT * FROM rc WHERE (a, b) < ((SELECT 250), (SELECT 5)) ORDER BY a DESC, b DESC LIMIT 30',
	'SELECT a, b FROM rc WHERE c = (SELECT ''c3'') AND (a, b) > (10, (SELECT 2)) ORDER BY a, b',
	'SELECT a, b FROM rc WHERE (a, b) >= ((SELECT 250), 5) ORDER BY a, b',
	'SELECT o.id, q.* FROM generate_series(1, 280, 20) o (id), LATERAL (SELECT * FROM rc WHERE (a, b) > (o.id, 3) ORDER BY a, b LIMIT 5) q',
	'SELECT o.id, q.* FROM generate_series(1, 280, 20) o (id), LATERAL (SELECT a, b FROM rc WHERE c = ''c'' || o.id % 6 AND (a, b) > (o.id, 3) ORDER BY a, b LIMIT 5) q']) q;
PREPARE page (text, int, int) AS SELECT a, b, pad = '' FROM rc WHERE c = $1 AND (a, b) > ($2, $3) ORDER BY a, b LIMIT 3;
SET plan_cache_mode = force_generic_plan;
EXECUTE page ('c3', 10, 2);
EXECUTE page ('c1', 298, 3);
RESET plan_cache_mode;
DEALLOCATE page;
DROP TABLE rc;
RESET cursor_tuple_fraction;
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET enable_seqscan;
SET pg_lsm.debug_prefetch_scan = off;
DROP TABLE hot;
DROP TABLE p, o, near, parts, areas, queries, unl, large, walks, io;
