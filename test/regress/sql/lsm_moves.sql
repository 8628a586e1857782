-- Segments that overlap nothing in the other inputs of a merge are moved by reference. Keys in ascending
-- or descending order, and disjoint ranges, cost an edit each, not a copy.
SET pg_lsm.debug_page_entries = 10;
SET pg_lsm.debug_buffer_entries = 10;
SET pg_lsm.debug_batch_min_entries = 1;
SET pg_lsm.debug_batch_entries = 0;
SET pg_lsm.debug_merge_fanout = 2;
SET pg_lsm.debug_foreground_blocks = 128;
-- Any segment of two blocks is large enough to be moved.
SET pg_lsm.debug_segment_size = 8;
CREATE TABLE a (k int, d int, s text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
CREATE INDEX a_k ON a USING lsm (k);
CREATE INDEX a_d ON a USING lsm (d DESC);
CREATE INDEX a_s ON a USING lsm (s) INCLUDE (d);
CREATE INDEX a_n ON a USING lsm (n DESC, k);
CREATE FUNCTION check_moves() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text;
BEGIN
	PERFORM lsm_check(i, true) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
	SELECT string_agg(DISTINCT regexp_replace(a, '^\d+ rows by index.* scan$', 'same'), ', ') INTO answers FROM unnest(ARRAY[
		t.same('SELECT k FROM a ORDER BY k'), t.same('SELECT k FROM a ORDER BY k DESC'), t.same('SELECT d FROM a WHERE d < -300 ORDER BY d DESC'),
		t.same('SELECT s, d FROM a WHERE s > ''000300'' ORDER BY s'), t.same('SELECT n, k FROM a ORDER BY n DESC, k'), t.same('SELECT n, k FROM a ORDER BY n, k DESC')]) a;
	RETURN answers;
END $$;
CREATE FUNCTION add(since int, until int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO a SELECT i, -i, lpad(i::text, 6, '0'), i / 7.0 FROM generate_series(since, until) i;
$$;
-- One statement, and so one batch, each.
CREATE PROCEDURE load(since int, until int, step int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 0 .. (until - since) / step LOOP
		PERFORM add(least(since + i * step, since + (i + 1) * step), greatest(since + i * step, since + (i + 1) * step) - 1);
		COMMIT;
	END LOOP;
END $$;
CREATE VIEW moved AS SELECT indexrelid::regclass AS i, merges > 0 AS merges, bytes_merged / current_setting('block_size')::int AS pages, pages_copied AS copied FROM pg_stat_lsm_indexes
	WHERE relid = 'a'::regclass ORDER BY indexrelname;
CREATE FUNCTION shape() RETURNS TABLE (i regclass, entries numeric, few_runs boolean, segments boolean) LANGUAGE sql AS $$
	SELECT i, sum(r.entries), count(*) FILTER (WHERE state = 'packed') < 12, max(r.segments) > 10 FROM unnest('{a_d,a_k,a_n,a_s}'::regclass[]) i, lsm_runs(i) r GROUP BY i ORDER BY i::text
$$;
-- Ascending keys, and descending ones in a_n.  Nothing is written a second time.
SELECT lsm_stat_reset();
CALL load(0, 2000, 50);
SELECT * FROM moved;
SELECT * FROM shape();
SELECT check_moves();
-- Descending keys.
TRUNCATE a;
SELECT lsm_stat_reset();
CALL load(2000, 0, -50);
SELECT * FROM moved;
SELECT * FROM shape();
SELECT check_moves();
-- lsm_compact combines them into one run of the same segments.
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT * FROM moved;
SELECT * FROM shape();
SELECT i, count(*) FROM unnest('{a_d,a_k,a_n,a_s}'::regclass[]) i, lsm_runs(i) r WHERE state <> 'open' GROUP BY i ORDER BY i::text;
SELECT check_moves();
-- Batches of disjoint ranges, in random order.
CREATE PROCEDURE load_mixed(since int, until int) LANGUAGE plpgsql AS $$
BEGIN
	FOR b IN since .. until LOOP
		PERFORM add((b * 17) % 40 * 50, (b * 17) % 40 * 50 + 49);
		COMMIT;
	END LOOP;
END $$;
TRUNCATE a;
SELECT lsm_stat_reset();
CALL load_mixed(0, 39);
SELECT * FROM moved;
SELECT * FROM shape();
SELECT check_moves();
-- Two large ranges: each run's segments are moved.
TRUNCATE a;
CALL load(0, 1000, 50);
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
CALL load(3000, 4000, 50);
SELECT lsm_stat_reset();
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT * FROM moved;
SELECT check_moves();
-- A batch that overlaps some of them: those are merged, the others are moved.
SELECT lsm_stat_reset();
SELECT add(990, 1030), add(2995, 3005);
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT i, merges, pages BETWEEN 1 AND 100 AS few_pages FROM moved;
SELECT * FROM shape();
SELECT check_moves();
-- Equal keys: a segment whose last key is the first of the next segment.
TRUNCATE a;
CALL load(0, 500, 50);
SELECT add(499, 499), add(499, 499);
SELECT count(add(499, 499)) FROM generate_series(1, 60);
CALL load(499, 999, 50);
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT check_moves();
-- Older cursors see their rows while segments move from run to run.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
TRUNCATE a;
CALL load(0, 2000, 50);
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE up SCROLL CURSOR FOR SELECT k FROM a ORDER BY k;
DECLARE down SCROLL CURSOR FOR SELECT k FROM a ORDER BY k DESC;
MOVE 1990 IN up;
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(40, 49) b;
FETCH 3 FROM up;
SELECT lsm_compact('a_k');
MOVE 100 IN up;
FETCH BACKWARD 3 FROM up;
FETCH 3 FROM down;
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(50, 59) b;
SELECT lsm_compact('a_k');
MOVE 1000 IN down;
FETCH 3 FROM down;
FETCH BACKWARD 3 FROM down;
MOVE 10000 IN down;
FETCH BACKWARD 2 FROM down;
COMMIT;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
SELECT check_moves();
-- The merge fails just before the overlapping part is installed, and is repeated: segments moved before
-- stay moved.
SELECT add(100, 130), add(2500, 2550), add(2550, 2550), add(2550, 2700);
SET pg_lsm.debug_stop_at = 'merge-install:error';
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT lsm_compact('a_d');
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(71, 79) b;
RESET pg_lsm.debug_stop_at;
SELECT check_moves();
CALL load(3550, 4000, 50);
SELECT check_moves();
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT check_moves();
-- VACUUM removes the first entries of segments, and some last ones. Then the segments are moved, and the
-- next entries may sort before the removed ones.
TRUNCATE a;
CALL load(1000, 2000, 50);
DELETE FROM a WHERE k % 50 < 3 OR k % 50 = 49;
VACUUM a;
SELECT lsm_stat_reset();
CALL load(2000, 2200, 50);
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT i, pages BETWEEN 0 AND 120 AS few_pages FROM moved;
SELECT check_moves();
SELECT add(1050, 1052), add(1999, 1999), add(1000, 1002), add(1349, 1352);
SELECT check_moves();
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT check_moves();
-- The same while jobs are unfinished: segments of inputs, moved and not moved.
TRUNCATE a;
SET pg_lsm.debug_foreground_blocks = 0;
SET pg_lsm.debug_merge_fanout = 4;
CREATE PROCEDURE thin(rounds int) LANGUAGE plpgsql AS $$
BEGIN
	FOR r IN 0 .. rounds - 1 LOOP
		PERFORM add(r * 50, r * 50 + 49), add(r * 50 + 25, r * 50 + 30);
		COMMIT;
		DELETE FROM a WHERE k BETWEEN r * 50 AND r * 50 + 3 OR k = r * 50 - 51;
		COMMIT;
	END LOOP;
END $$;
CALL thin(20);
VACUUM a;
SELECT check_moves();
CALL thin(40);
SELECT check_moves();
VACUUM a;
SELECT check_moves();
CALL thin(60);
VACUUM a;
SELECT check_moves();
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT check_moves();
SET pg_lsm.debug_foreground_blocks = 128;
SET pg_lsm.debug_merge_fanout = 2;
-- VACUUM empties the last segments, or all of them.
DELETE FROM a WHERE k > 1500;
VACUUM a;
SELECT check_moves();
CALL load(4000, 4500, 50);
SELECT check_moves();
DELETE FROM a;
VACUUM a;
SELECT i, count(*) FILTER (WHERE state = 'packed') FROM unnest('{a_d,a_k,a_n,a_s}'::regclass[]) i, lsm_runs(i) GROUP BY i ORDER BY i::text;
CALL load(0, 500, 50);
SELECT check_moves();
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
CALL load(500, 1000, 50);
SELECT check_moves();
-- After CREATE INDEX, and next to a run of a single page, which has no fence pages.
REINDEX TABLE a;
SELECT lsm_stat_reset();
CALL load(1000, 1500, 50);
SELECT * FROM moved;
SELECT check_moves();
TRUNCATE a;
SELECT add(1, 5);
REINDEX TABLE a;
CALL load(1000, 1500, 50);
SELECT check_moves();
-- A window that moves over the keys: empty segments are dropped, so the index stays small.
TRUNCATE a;
\set ECHO none
\o /dev/null
SELECT format('SELECT add(%s, %s)', b * 100, b * 100 + 49), format('SELECT add(%s, %s)', b * 100 + 50, b * 100 + 99),
	format('DELETE FROM a WHERE k < %s', b * 100 - 800), 'VACUUM a' FROM generate_series(0, 59) b \gexec
\o
\set ECHO all
SELECT i, sum(entries), sum(blocks) < 400 AS is_small FROM unnest('{a_k,a_s,a_n}'::regclass[]) i, lsm_runs(i) GROUP BY i ORDER BY i::text;
SELECT check_moves();
-- VACUUM has removed a seventh of the rest of a run.  lsm_compact rewrites the run, once.
TRUNCATE a;
CALL load(0, 2000, 50);
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
DELETE FROM a WHERE k % 8 = 0;
VACUUM a;
SELECT lsm_stat_reset();
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT i, merges, pages > 0 AS written FROM moved;
SELECT lsm_stat_reset();
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT i, merges, pages > 0 AS written FROM moved;
SELECT check_moves();
DROP VIEW moved;
DROP TABLE a;
DROP FUNCTION check_moves, add, shape;
DROP PROCEDURE load, load_mixed, thin;
