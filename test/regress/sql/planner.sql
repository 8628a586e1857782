-- The planner chooses the same plans for lsm as for a btree: the same tables, one with
-- each, and the same queries.  Pages of normal size.  Without the prefetching scan, which by
-- default is for lsm only.
SET pg_lsm.enable_prefetch_scan = off;
SET pg_lsm.debug_buffer_entries = 0;
SET pg_lsm.debug_page_entries = 0;
SET pg_lsm.debug_merge_fanout = 8;
SET pg_lsm.debug_batch_entries = 0;
SET pg_lsm.debug_batch_min_entries = 48;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE pb (a int, b int, c text COLLATE "C", d timestamptz, filler text);
INSERT INTO pb
SELECT (i * 7919) % 20000, i % 100, 'c' || (i * 31) % 1000, timestamptz '2024-01-01 00:00+00' + i * interval '1 minute', repeat('f', 100)
FROM generate_series(1, 20000) i;
-- Not CREATE TABLE AS: from 16 on, it extends tables by more than it needs.
CREATE TABLE pl (LIKE pb);
INSERT INTO pl SELECT * FROM pb;
CREATE INDEX pb_a ON pb (a);
CREATE INDEX pb_bc ON pb (b, c DESC);
CREATE INDEX pb_d ON pb (d) INCLUDE (a);
CREATE INDEX pb_c ON pb (c) WHERE b < 10;
CREATE INDEX pb_e ON pb (lower(c), a);
CREATE INDEX pl_a ON pl USING lsm (a);
CREATE INDEX pl_bc ON pl USING lsm (b, c DESC);
CREATE INDEX pl_d ON pl USING lsm (d) INCLUDE (a);
CREATE INDEX pl_c ON pl USING lsm (c) WHERE b < 10;
CREATE INDEX pl_e ON pl USING lsm (lower(c), a);
VACUUM ANALYZE pb, pl;

CREATE FUNCTION plan(query text, tab text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	result text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(query, 'TAB', tab) LOOP
		result := result || regexp_replace(line, '\mp[bl](_?)', 'p\1', 'g') || E'\n';
	END LOOP;
	RETURN result;
END $$;
CREATE FUNCTION compare(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	b text := plan(query, 'pb');
	l text := plan(query, 'pl');
	rows_b text[];
	rows_l text[];
BEGIN
	IF b <> l THEN
		RETURN format(E'DIFFERENT, btree:\n%slsm:\n%s', b, l);
	END IF;
	rows_b := t.rows_of(replace(query, 'TAB', 'pb'));
	rows_l := t.rows_of(replace(query, 'TAB', 'pl'));
	-- With a LIMIT, any of several equal rows may be returned.
	IF query !~ 'LIMIT' AND ARRAY(SELECT unnest(rows_b) COLLATE "C" ORDER BY 1) <> ARRAY(SELECT unnest(rows_l) COLLATE "C" ORDER BY 1) THEN
		RETURN 'DIFFERENT rows';
	END IF;
	RETURN 'same';
END $$;
SELECT query, compare(query) FROM unnest(ARRAY[
	-- by selectivity
	'SELECT * FROM TAB WHERE a = 5', 'SELECT * FROM TAB WHERE a < 10', 'SELECT * FROM TAB WHERE a < 500', 'SELECT * FROM TAB WHERE a < 15000', 'SELECT * FROM TAB WHERE a > 0',
	'SELECT * FROM TAB WHERE a BETWEEN 100 AND 120', 'SELECT * FROM TAB WHERE a = 5::int8', 'SELECT * FROM TAB WHERE a = 5.0', 'SELECT * FROM TAB WHERE a <> 5',
	'SELECT * FROM TAB WHERE b = 5', 'SELECT * FROM TAB WHERE b = 5 AND c = ''c505''', 'SELECT * FROM TAB WHERE b = 5 AND c > ''c9''', 'SELECT * FROM TAB WHERE c = ''c505''', 'SELECT * FROM TAB WHERE c = ''c5'' AND b < 10', 'SELECT * FROM TAB WHERE c = ''c5'' AND b = 5',
	'SELECT * FROM TAB WHERE b = 5 AND c LIKE ''c50%''', 'SELECT * FROM TAB WHERE lower(c) = ''c17''', 'SELECT * FROM TAB WHERE lower(c) = ''c17'' AND a < 1000',
	'SELECT * FROM TAB WHERE d > ''2024-01-14 20:00+00''', 'SELECT * FROM TAB WHERE d < ''2024-01-01 01:00+00'' AND a = 5',
	-- index-only
	'SELECT a FROM TAB WHERE a < 500', 'SELECT a FROM TAB', 'SELECT count(a) FROM TAB', 'SELECT count(*) FROM TAB WHERE a < 10000', 'SELECT d, a FROM TAB WHERE d > ''2024-01-10 00:00+00''', 'SELECT b, c FROM TAB WHERE b = 5',
	-- arrays, OR, NULL
	'SELECT * FROM TAB WHERE a IN (1, 2, 3, 5000)', 'SELECT * FROM TAB WHERE a = ANY (''{1,2,3,4,5,6,7,8,9,10}'')', 'SELECT * FROM TAB WHERE b IN (1, 2) AND c = ''c501''', 'SELECT * FROM TAB WHERE a = 5 OR a = 7', 'SELECT * FROM TAB WHERE a = 5 OR b = 7 AND c = ''c7''',
	'SELECT * FROM TAB WHERE a IS NULL', 'SELECT * FROM TAB WHERE a IS NOT NULL', 'SELECT * FROM TAB WHERE b IS NULL OR a = 3',
	-- order, limits, ends
	'SELECT * FROM TAB ORDER BY a', 'SELECT * FROM TAB ORDER BY a LIMIT 10', 'SELECT * FROM TAB ORDER BY a DESC LIMIT 10', 'SELECT a FROM TAB ORDER BY a', 'SELECT * FROM TAB WHERE a > 5 ORDER BY a LIMIT 1', 'SELECT * FROM TAB ORDER BY b, c DESC LIMIT 5',
	'SELECT * FROM TAB ORDER BY b DESC, c LIMIT 5', 'SELECT * FROM TAB ORDER BY b, c LIMIT 5', 'SELECT * FROM TAB ORDER BY b, a LIMIT 5', 'SELECT * FROM TAB WHERE b = 7 ORDER BY c LIMIT 5', 'SELECT * FROM TAB WHERE b = 7 ORDER BY c DESC LIMIT 5', 'SELECT * FROM TAB WHERE c = ''c7'' ORDER BY a LIMIT 5',
	'SELECT min(a), max(a) FROM TAB', 'SELECT max(d) FROM TAB WHERE d < ''2024-01-05 00:00+00''', 'SELECT min(c) FROM TAB WHERE b = 9', 'SELECT min(b) FROM TAB WHERE c > ''c99''', 'SELECT DISTINCT b FROM TAB', 'SELECT b, count(*) FROM TAB GROUP BY b', 'SELECT a, count(*) FROM TAB GROUP BY a ORDER BY a LIMIT 3',
	-- joins
	'SELECT count(*) FROM TAB x JOIN TAB y USING (a)', 'SELECT x.b, y.c FROM TAB x JOIN TAB y USING (a) WHERE x.b = 3', 'SELECT x.b FROM TAB x JOIN TAB y USING (a) WHERE x.a < 20', 'SELECT x.a FROM TAB x JOIN TAB y USING (a) ORDER BY x.a LIMIT 5',
	'SELECT x.a FROM TAB x WHERE x.a < 50 AND EXISTS (SELECT FROM TAB y WHERE y.b = x.a AND y.c = x.c)', 'SELECT x.a FROM TAB x JOIN (VALUES (1), (2), (3)) v(n) ON x.a = v.n', 'SELECT x.a FROM TAB x, LATERAL (SELECT * FROM TAB y WHERE y.a > x.a ORDER BY y.a LIMIT 1) z WHERE x.a < 30',
	-- writes
	'SELECT * FROM TAB WHERE a = 5 FOR UPDATE', 'SELECT a FROM TAB WHERE (a, b) = (5, 6)']) WITH ORDINALITY q(query, n) ORDER BY n;
-- The tables once more, loaded row by row: many runs, but plans of the same shape.
CREATE TABLE pb2 (LIKE pb);
CREATE TABLE pl2 (LIKE pl);
CREATE INDEX pb2_a ON pb2 (a);
CREATE INDEX pb2_bc ON pb2 (b, c DESC);
CREATE INDEX pl2_a ON pl2 USING lsm (a);
CREATE INDEX pl2_bc ON pl2 USING lsm (b, c DESC);
INSERT INTO pb2 SELECT * FROM pb;
INSERT INTO pl2 SELECT * FROM pl;
VACUUM ANALYZE pb2, pl2;
CREATE OR REPLACE FUNCTION plan(query text, tab text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	result text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || replace(query, 'TAB', tab || '2') LOOP
		result := result || regexp_replace(line, '\mp[bl]2(_?)', 'p\1', 'g') || E'\n';
	END LOOP;
	RETURN result;
END $$;
SELECT query, compare(query) FROM unnest(ARRAY[
	'SELECT * FROM TAB WHERE a = 5', 'SELECT * FROM TAB WHERE a < 10', 'SELECT * FROM TAB WHERE a < 15000', 'SELECT a FROM TAB WHERE a < 500', 'SELECT * FROM TAB ORDER BY a LIMIT 10', 'SELECT * FROM TAB ORDER BY a DESC LIMIT 10',
	'SELECT * FROM TAB WHERE b = 5 AND c = ''c505''', 'SELECT min(a), max(a) FROM TAB', 'SELECT count(*) FROM TAB x JOIN TAB y USING (a)', 'SELECT x.b FROM TAB x JOIN TAB y USING (a) WHERE x.a < 20', 'SELECT * FROM TAB WHERE a IN (1, 2, 3, 5000)']) WITH ORDINALITY q(query, n) ORDER BY n;
DROP TABLE pb, pl, pb2, pl2;
DROP FUNCTION compare;
DROP FUNCTION plan;
