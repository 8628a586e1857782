-- What statements read from each index and, from 18 on, what the nodes of their plans read.
SET pg_lsm.debug_buffer_entries = 0;
SET pg_lsm.debug_page_entries = 0;
SET pg_lsm.debug_batch_entries = 0;
SET pg_lsm.debug_batch_min_entries = 48;
SET pg_lsm.debug_merge_fanout = 32;
CREATE TABLE r (k int, v int, f text) WITH (autovacuum_enabled = off);
CREATE INDEX r_k ON r USING lsm (k) WITH (filter_bits = 0);
CREATE INDEX r_v ON r USING lsm (v);
INSERT INTO r SELECT i, i % 100, repeat('f', 100) FROM generate_series(1, 3000) i;
INSERT INTO r SELECT i, i % 100, repeat('f', 100) FROM generate_series(1, 3000) i;
INSERT INTO r SELECT i, i % 100, repeat('f', 100) FROM generate_series(1, 3000) i;
VACUUM ANALYZE r;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
-- The number of runs that a search reads.
SELECT count(*) AS runs FROM lsm_runs('r_k') \gset
SELECT :runs > 3 AS several;

-- A lookup: one search of all runs.
CALL t.note_reads();
SELECT k FROM r WHERE k = 5;
SELECT index, seeks, runs_read = :runs AS all_runs, segments_read BETWEEN 1 AND runs_read AS segments, pages_read >= segments_read AS pages, entries_read BETWEEN 3 AND 200 AS entries, restarts, entries_removed FROM t.reads();
-- An array whose elements are close to each other needs one search, too.
SELECT count(*) FROM r WHERE k IN (5, 7, 9);
SELECT index, seeks FROM t.reads();
-- A statement that scans no index reads nothing.
SET work_mem = '1MB';
SELECT count(*) FROM (SELECT 1) x;
SELECT index, seeks FROM t.reads();
-- Elements of another type that no value of the column can equal are ignored; others at least bound the scan.
CREATE TABLE other (f4 real, n name COLLATE "C", at timestamp) WITH (autovacuum_enabled = off);
INSERT INTO other SELECT i::real / 7, 'n' || i, timestamp '2024-11-01' + i * interval '1 minute' FROM generate_series(1, 9000) i;
CREATE INDEX ON other USING lsm (f4);
CREATE INDEX ON other USING lsm (n);
CREATE INDEX ON other USING lsm (at);
VACUUM ANALYZE other;
SELECT k FROM r WHERE k = ANY ('{1,2,3000000000}'::int8[]);
SELECT index, entries_read < 500 AS few FROM t.reads();
SELECT k FROM r WHERE k = ANY ('{3000000000}'::int8[]);
SELECT index, entries_read < 500 AS few FROM t.reads();
SELECT f4 FROM other WHERE f4 = ANY ('{0.1,3,5}'::float8[]);
SELECT index, entries_read < 500 AS few FROM t.reads();
SELECT n FROM other WHERE n = ANY (ARRAY['n5', repeat('n', 70), 'n77']);
SELECT index, entries_read < 500 AS few FROM t.reads();
SELECT count(*) FROM other WHERE n > repeat('n', 70) AND n < 'n2';
CALL t.note_reads();
SET TimeZone = 'America/New_York';
SELECT at FROM other WHERE at = ANY ('{2024-11-03 01:15-04,2024-11-03 02:15-05}'::timestamptz[]);
SELECT index, entries_read < 1000 AS few FROM t.reads();
RESET TimeZone;
DROP TABLE other;
-- All kinds of scans.
CALL t.note_reads();
SELECT count(f) FROM r WHERE k = 5;
SELECT index, seeks, runs_read = :runs AS all_runs FROM t.reads();
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT count(f) FROM r WHERE k = 5 AND v + 0 = 5;
SELECT index, seeks FROM t.reads();
SELECT count(f) FROM r WHERE k = 5 OR v = 7;
SELECT index, seeks FROM t.reads() ORDER BY index::text;
SET enable_bitmapscan = off;
SET enable_indexscan = on;
-- One of the two seeks is by the planner, which reads an end of the index.
SELECT count(*) FROM r WHERE k BETWEEN 100 AND 2100;
SELECT index, seeks, entries_read >= 3 * 2001 AND entries_read < 3 * 2300 AS entries FROM t.reads();
-- Rescans, and statements within statements.
SELECT sum((SELECT count(*) FROM r WHERE k = i)) FROM generate_series(1, 700) i;
SELECT index, seeks, runs_read = 700 * :runs AS all_runs FROM t.reads();
DO $$ BEGIN FOR i IN 1 .. 100 LOOP PERFORM FROM r WHERE k = i; END LOOP; PERFORM FROM r WHERE v = 3; END $$;
SELECT index, seeks FROM t.reads() ORDER BY index::text;
CREATE FUNCTION look(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1 .. n LOOP PERFORM FROM r WHERE k = i; END LOOP; RETURN n; END $$;
SELECT look(3), look(4);
SELECT index, seeks FROM t.reads();
-- A cursor's reads are counted when it is closed; those of the planner before that.
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM r WHERE k > 100 ORDER BY k;
FETCH 2 FROM c;
SELECT index, seeks FROM t.reads();
CLOSE c;
SELECT index, seeks, entries_read > 2 AS entries FROM t.reads();
COMMIT;
-- The reads of a failed statement.
SELECT 100 / (k - 7) FROM r WHERE k IN (5, 6, 7, 8);
SELECT index, seeks FROM t.reads();
DO $$ BEGIN PERFORM FROM r WHERE k = 5; PERFORM 100 / (k - 7) FROM r WHERE k = 7; EXCEPTION WHEN division_by_zero THEN PERFORM FROM r WHERE k = 9; END $$;
SELECT index, seeks FROM t.reads();
-- Writes count the reads of their lookups.  Merges and checks are not scans.
UPDATE r SET f = 'x' WHERE k = 5;
SELECT index, seeks FROM t.reads();
SET pg_lsm.debug_merge_fanout = 2;
SET pg_lsm.debug_foreground_blocks = 100000;
INSERT INTO r SELECT i, i % 100, repeat('f', 100) FROM generate_series(1, 2000) i;
RESET pg_lsm.debug_foreground_blocks;
SET pg_lsm.debug_merge_fanout = 32;
SELECT lsm_compact('r_k'), lsm_check('r_k');
SELECT index, seeks FROM t.reads();
-- Looking up the rows of the table in the index is a scan.
SELECT lsm_check('r_k', true);
SELECT index, seeks > 0 AS seeks FROM t.reads();
SELECT count(*) FROM r WHERE k = 6;
SELECT index, seeks, runs_read FROM t.reads();
-- EXPLAIN (LSM), from 18 on.
CREATE FUNCTION explained(query text, expected text, format text DEFAULT 'text') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	result text := '';
BEGIN
	IF current_setting('server_version_num')::int < 180000 THEN
		RETURN 'as expected';
	END IF;
	FOR line IN EXECUTE format('EXPLAIN (ANALYZE, LSM, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT %s) %s', format, query) LOOP
		result := result || line || E'\n';
	END LOOP;
	RETURN CASE WHEN result ~ expected THEN 'as expected' ELSE result END;
END $$;
-- Partitions and temporary tables.  Temporary tables have no counters, but EXPLAIN shows their reads.
CREATE TABLE pr (k int) PARTITION BY RANGE (k);
CREATE TABLE pr1 PARTITION OF pr FOR VALUES FROM (0) TO (10);
CREATE TABLE pr2 PARTITION OF pr FOR VALUES FROM (10) TO (20);
CREATE TEMP TABLE tr (k int);
CREATE INDEX ON pr USING lsm (k);
CREATE INDEX tr_k ON tr USING lsm (k);
INSERT INTO pr SELECT i % 20 FROM generate_series(1, 100) i;
INSERT INTO tr VALUES (1), (2);
SELECT count(*) FROM pr, tr WHERE pr.k BETWEEN 1 AND 15 AND tr.k = 1;
SELECT index, seeks FROM t.reads() ORDER BY index::text;
SELECT explained('SELECT count(*) FROM tr WHERE k = 1', 'Index Only Scan using tr_k[^-]*\n *LSM Reads: seeks=1 runs=1 ');
DROP TABLE pr, tr;

-- The totals are those of the nodes: all of them, in the order in which EXPLAIN has them. A session lists the segments of
-- a small run once.
SELECT count(*) FROM r WHERE k = 1;
CALL t.note_reads();
SELECT sum((SELECT count(*) FROM r WHERE k = i)) FROM generate_series(1, 7) i;
SELECT index, seeks, format('"LSM Seeks": %s,\s*"LSM Runs Read": %s,\s*"LSM Segments Read": %s,\s*"LSM Pages Read": %s,\s*"LSM Entries Read": %s,\s*"LSM Restarts": %s,\s*"LSM Entries Removed": %s,\s*"LSM Filter Checks": %s,\s*"LSM Filter Skips": %s,\s*"LSM Filter Misses": %s,\s*"LSM Pages Prefetched": %s,\s*"LSM Bytes Loaded": [0-9]+,',
	seeks, runs_read, segments_read, pages_read, entries_read, restarts, entries_removed, filter_checks, filter_skips, filter_misses, pages_prefetched) AS totals FROM t.reads() \gset
SELECT :'index' AS index, :seeks AS seeks, explained('SELECT sum((SELECT count(*) FROM r WHERE k = i)) FROM generate_series(1, 7) i', :'totals', 'json');
-- Other sessions see the counts when the transaction has ended.
SELECT seeks AS old_seeks FROM pg_stat_lsm_indexes WHERE indexrelname = 'r_k' \gset
SELECT pg_sleep(0.01);
DO $$ BEGIN PERFORM FROM r WHERE k = 5; PERFORM FROM r WHERE k = 6; END $$;
SELECT pg_stat_force_next_flush();
\c -
SELECT seeks - :old_seeks AS seeks FROM pg_stat_lsm_indexes WHERE indexrelname = 'r_k';

-- Dead entries that a scan removes.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET pg_lsm.debug_page_entries = 0;
DELETE FROM r WHERE k < 1000;
CALL t.note_reads();
SELECT k FROM r ORDER BY k LIMIT 1;
SELECT index, seeks, entries_removed > 3000 AS removed FROM t.reads();

-- By node of a plan, in the formats of EXPLAIN.
INSERT INTO r SELECT i, i % 100, repeat('f', 100) FROM generate_series(1, 3000) i;
SELECT count(*) AS runs FROM lsm_runs('r_k') \gset
CALL t.note_reads();
SELECT count(*) FROM r WHERE k = 2000;
SELECT format(' seeks=%s runs=%s segments=%s pages=%s entries=%s( bytes=[0-9]+)?', seeks, runs_read, segments_read, pages_read, entries_read) AS reads,
	format('"LSM Seeks": %s,\s*"LSM Runs Read": %s,\s*"LSM Segments Read": %s,\s*"LSM Pages Read": %s,\s*"LSM Entries Read": %s,\s*"LSM Restarts": 0,\s*"LSM Entries Removed": 0,\s*"LSM Filter Checks": [0-9]+,\s*"LSM Filter Skips": [0-9]+,\s*"LSM Filter Misses": [0-9]+,\s*"LSM Pages Prefetched": 0,\s*"LSM Bytes Loaded": [0-9]+,\s*"LSM Leader Only": false', seeks, runs_read, segments_read, pages_read, entries_read) AS json FROM t.reads() \gset
SELECT explained('SELECT count(*) FROM r WHERE k = 2000', 'Index Only Scan[^-]*\n *LSM Reads:' || :'reads' || E'\n'), explained('SELECT count(*) FROM r WHERE k = 2000', :'json', 'json'),
	explained('SELECT count(*) FROM r WHERE k = 2000', '<LSM-Seeks>1</LSM-Seeks>.*<LSM-Leader-Only>false</LSM-Leader-Only>', 'xml'), explained('SELECT count(*) FROM r WHERE k = 2000', 'LSM Seeks: 1\n *LSM Runs Read: ', 'yaml');
SELECT explained('SELECT f FROM r WHERE k = 2000', 'Index Scan[^-]*\n *LSM Reads:' || :'reads' || E'\n');
-- The counts include all loops.
SELECT explained('SELECT sum((SELECT count(*) FROM r WHERE k = i)) FROM generate_series(1, 700) i', 'loops=700.*LSM Reads: seeks=700 runs=' || 700 * :runs || ' ');
-- Filters are shown only if some have been tested.
SET pg_lsm.debug_segment_size = 64;
CREATE TABLE fr (k int) WITH (autovacuum_enabled = off);
INSERT INTO fr SELECT i * 2 FROM generate_series(1, 60000) i;
CREATE INDEX fr_k ON fr USING lsm (k);
SELECT explained('SELECT count(*) FROM fr WHERE k = 2001', 'Index Only Scan[^-]*\n *LSM Reads: seeks=1 [^\n]*filter_checks=1 filter_skips=1( bytes=\d+)?\n');
DROP TABLE fr;
RESET pg_lsm.debug_segment_size;
SELECT explained('SELECT sum((SELECT count(*) FROM r WHERE k = i)) FROM generate_series(1, 7) i WHERE i > 100', 'never executed.*LSM Reads: seeks=0\n');
-- Nodes that scan other indexes, or none, show nothing.
CREATE TABLE b (k int PRIMARY KEY);
SELECT explained('SELECT count(*) FROM b WHERE k = 5', '^((?!LSM).)*$');
SELECT explained('SELECT count(*) FROM b, r WHERE r.k = b.k', '^((?!LSM).)*LSM Reads((?!LSM).)*$');
SELECT explained('SELECT generate_series(1, 2)', '^((?!LSM).)*$', 'json');
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT explained('SELECT count(f) FROM r WHERE k = 2000 OR v = 7', 'BitmapOr.*Bitmap Index Scan on r_k[^-]*\n *LSM Reads:' || :'reads' || E'\n.*Bitmap Index Scan on r_v[^-]*\n *LSM Reads: seeks=1 ');
SET enable_bitmapscan = off;
SET enable_indexscan = on;
-- The scan removes dead entries before its counts are shown.
DELETE FROM r WHERE k < 2000;
SELECT explained('SELECT k FROM r ORDER BY k LIMIT 1', 'Index Only Scan[^-]*LSM Reads:.* removed=\d\d\d\d');
SELECT explained('SELECT k FROM r ORDER BY k LIMIT 1', 'Index Only Scan[^-]*LSM Reads: seeks=1 runs=\d+ segments=\d+ pages=\d+ entries=\d+( removed=\d)?( bytes=\d+)?\n');
-- Workers' scans have ended by then.
INSERT INTO b SELECT generate_series(1, 2500);
ANALYZE b;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = '1GB';
SET enable_seqscan = on;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_memoize = off;
SELECT explained('SELECT count(*), sum(length(f)) FROM b LEFT JOIN r ON r.k = b.k', 'Gather.*LSM Reads \(leader\): seeks=');
-- But the counters include them.
SELECT t.plan_has('SELECT count(*), sum(length(f)) FROM b LEFT JOIN r ON r.k = b.k', 'Gather') AS parallel;
CALL t.note_reads();
SELECT count(*), sum(length(f)) FROM b LEFT JOIN r ON r.k = b.k;
SELECT index, seeks FROM t.reads();
RESET enable_hashjoin;
RESET enable_mergejoin;
-- The option alone.
SELECT t.error_of('EXPLAIN (LSM) SELECT 1') = CASE WHEN current_setting('server_version_num')::int < 180000 THEN '42601' ELSE '22023' END AS needs_analyze;
SELECT t.error_of('EXPLAIN (LSM nonsense, ANALYZE) SELECT 1') AS not_boolean;
DROP TABLE r, b;
DROP FUNCTION look, explained;

-- No worker may merge meanwhile.
ALTER SYSTEM SET pg_lsm.idle_delay = -1;
SELECT pg_reload_conf();
-- Prefetching the pages of further runs involves searching for them, which is counted once.
CREATE TABLE ahead (k int);
CREATE INDEX ahead_k ON ahead USING lsm (k);
INSERT INTO ahead SELECT i FROM generate_series(1, 1000) i;
INSERT INTO ahead SELECT i FROM generate_series(1, 1000) i;
INSERT INTO ahead SELECT i FROM generate_series(1, 1000) i;
VACUUM ahead;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET pg_lsm.debug_prefetch_scan = off;
SELECT count(*) FROM ahead WHERE k = 500;
SELECT count(*) FROM ahead WHERE k = 5;
CALL t.note_reads();
SELECT count(*) FROM ahead WHERE k = 900;
SELECT runs_read, segments_read, pages_read FROM t.reads() \gset
SET pg_lsm.debug_prefetch_scan = on;
SELECT count(*) FROM ahead WHERE k = 500;
SELECT count(*) FROM ahead WHERE k = 5;
CALL t.note_reads();
SELECT count(*) FROM ahead WHERE k = 900;
SELECT runs_read > 1 AS runs, runs_read = :runs_read AND segments_read = :segments_read AND pages_read = :pages_read AS same FROM t.reads();
RESET pg_lsm.debug_prefetch_scan;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE ahead;

-- When an index handle is replaced, its unused memory is freed, even within a transaction.
CREATE TABLE replaced (k int);
CREATE INDEX replaced_k ON replaced USING lsm (k);
DO $$
BEGIN
	PERFORM set_config('enable_seqscan', 'off', true);
	FOR i IN 1 .. 50 LOOP
		TRUNCATE replaced;
		INSERT INTO replaced SELECT generate_series(1, 20);
		PERFORM FROM replaced WHERE k = 7;
	END LOOP;
	ASSERT (SELECT count(*) <= 3 FROM pg_backend_memory_contexts WHERE name = 'pg_lsm reader'),
		'readers of handles that are gone';
END $$;
DROP TABLE replaced;

-- Indexes that transactions use in turn keep a reader each, up to a limit.
CREATE TABLE turns (k int) WITH (autovacuum_enabled = off);
SELECT format('CREATE INDEX turns_%s ON turns USING lsm ((k + %s))', i, i) FROM generate_series(1, 20) i \gexec
INSERT INTO turns SELECT generate_series(1, 20);
\c -
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM turns WHERE k + 1 = 7;
SELECT count(*) FROM turns WHERE k + 2 = 7;
SELECT count(*) FROM turns WHERE k + 3 = 7;
SELECT count(*) AS three FROM pg_backend_memory_contexts WHERE name = 'pg_lsm reader';
-- Indexes that need no reader push out none.
INSERT INTO turns VALUES (21);
SELECT count(*) AS still_three FROM pg_backend_memory_contexts WHERE name = 'pg_lsm reader';
DO $$
BEGIN
	PERFORM set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false);
	FOR i IN 1 .. 20 LOOP
		EXECUTE format('SELECT FROM turns WHERE k + %s = 7', i);
		COMMIT;
	END LOOP;
END $$;
SELECT count(*) AS sixteen FROM pg_backend_memory_contexts WHERE name = 'pg_lsm reader';
DROP TABLE turns;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- Rescans leak no memory, whatever comparisons cache: in a session, and in an index of a single run, that has
-- compared nothing before.
CREATE TYPE pair AS (a int, b text);
CREATE TABLE again (r pair, a int[]);
CREATE INDEX again_r ON again USING lsm (r);
CREATE INDEX again_a ON again USING lsm (a);
INSERT INTO again SELECT ROW(i, 'x')::pair, ARRAY[i, 1] FROM generate_series(1, 200) i;
SELECT lsm_compact('again_r');
CREATE FUNCTION memory_after(condition text) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'SELECT count(*) FROM generate_series(1, 150) i, LATERAL (SELECT FROM again WHERE ' || condition || ') x';
	RETURN (SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name LIKE 'pg_lsm%' OR ident LIKE 'again_%');
END $$;
\c -
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT condition, memory_after(condition) IS NOT NULL AS first, memory_after(condition) = memory_after(condition) AS same
FROM unnest(ARRAY['r = ANY (ARRAY[ROW(i, ''x'')::pair, ROW(i + 1, ''x'')::pair])', 'r = ROW(i, ''x'')::pair',
	'a = ARRAY[i, 1]', 'r > ROW(i, ''x'')::pair AND r < ROW(i + 3, ''x'')::pair']) condition;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE again;
DROP FUNCTION memory_after;
DROP TYPE pair;
ALTER SYSTEM RESET pg_lsm.idle_delay;
SELECT pg_reload_conf();
-- The counters of a dropped index make room for those of another.
CREATE TABLE slots (k int) WITH (autovacuum_enabled = off);
INSERT INTO slots SELECT generate_series(1, 100);
DO $$
BEGIN
	FOR i IN 1..1100 LOOP
		CREATE INDEX slots_k ON slots USING lsm (k);
		DROP INDEX slots_k;
		COMMIT;
	END LOOP;
END $$;
BEGIN;
CREATE INDEX slots_k ON slots USING lsm (k);
COMMIT;
BEGIN;
SAVEPOINT a;
DROP INDEX slots_k;
ROLLBACK TO a;
COMMIT;
SET enable_seqscan = off;
CALL t.note_reads();
SELECT k FROM slots WHERE k = 5;
SELECT index, seeks FROM t.reads();
RESET enable_seqscan;
DROP TABLE slots;
