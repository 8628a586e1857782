-- Keys that come in order are appended to a run, not merged again and again.
SET pg_lsm.page_entries = 10;
SET pg_lsm.batch_min_entries = 1;
SET pg_lsm.batch_entries = 0;
SET pg_lsm.merge_fanout = 2;
SET pg_lsm.foreground_blocks = 128;
CREATE TABLE a (k int, d int, s text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
CREATE INDEX a_k ON a USING lsm (k);
CREATE INDEX a_d ON a USING lsm (d DESC);
CREATE INDEX a_s ON a USING lsm (s) INCLUDE (d);
CREATE INDEX a_n ON a USING lsm (n, k);
CREATE FUNCTION check_append() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text;
BEGIN
	PERFORM lsm_check(i, true) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
	SELECT string_agg(DISTINCT regexp_replace(a, '^\d+ rows by index.* scan$', 'same'), ', ') INTO answers FROM unnest(ARRAY[
		t.same('SELECT k FROM a ORDER BY k'), t.same('SELECT k FROM a ORDER BY k DESC'), t.same('SELECT d FROM a WHERE d < -300 ORDER BY d DESC'),
		t.same('SELECT s, d FROM a WHERE s > ''000300'' ORDER BY s'), t.same('SELECT n, k FROM a ORDER BY n DESC, k DESC')]) a;
	RETURN answers;
END $$;
CREATE FUNCTION add(since int, until int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO a SELECT i, -i, lpad(i::text, 6, '0'), i / 7.0 FROM generate_series(since, until) i;
$$;
-- One run takes all that comes in, but for what waits on level 0.
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(0, 39) b;
SELECT i, count(*) FILTER (WHERE level > 0) AS large_runs, sum(entries) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i, lsm_runs(i) GROUP BY i ORDER BY i::text;
SELECT check_append();
-- A cursor that is older does not see what comes to the run's end.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE up SCROLL CURSOR FOR SELECT k FROM a ORDER BY k;
DECLARE down SCROLL CURSOR FOR SELECT k FROM a ORDER BY k DESC;
MOVE 1990 IN up;
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(40, 49) b;
FETCH 3 FROM up;
MOVE 100 IN up;
FETCH BACKWARD 3 FROM up;
FETCH 3 FROM down;
COMMIT;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
SELECT check_append();
-- What comes late begins another run; equal keys are in order, too.
SELECT add(100, 130), add(2500, 2550), add(2550, 2550), add(2550, 2700);
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(55, 70) b;
SELECT check_append();
SELECT count(*) FILTER (WHERE level > 0) AS large_runs FROM lsm_runs('a_k');
-- It fails before it is installed, and is done again.
SET pg_lsm.fail_at = 'install';
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(71, 79) b;
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(71, 79) b;
SET pg_lsm.fail_at = '';
SELECT check_append();
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(71, 79) b;
SELECT check_append();
-- VACUUM empties the last leaf, or all.
DELETE FROM a WHERE k > 3000;
VACUUM a;
SELECT check_append();
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(80, 89) b;
SELECT check_append();
DELETE FROM a;
VACUUM a;
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(0, 9) b;
SELECT check_append();
SELECT lsm_compact(i) FROM unnest('{a_k,a_d,a_s,a_n}'::regclass[]) i;
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(10, 19) b;
SELECT check_append();
-- After CREATE INDEX, and to a run of a single page, which has no fence pages.
REINDEX TABLE a;
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(20, 29) b;
SELECT count(*) FILTER (WHERE level > 0) AS large_runs FROM lsm_runs('a_k');
SELECT check_append();
TRUNCATE a;
SELECT add(1, 5);
REINDEX TABLE a;
SELECT count(add(b * 50, b * 50 + 49)) FROM generate_series(20, 29) b;
SELECT check_append();
-- A run of which VACUUM leaves little is not appended to for ever: when it is empty, it is gone.
TRUNCATE a;
\set ECHO none
\o /dev/null
SELECT format('SELECT add(%s, %s)', b * 100, b * 100 + 49), format('SELECT add(%s, %s)', b * 100 + 50, b * 100 + 99),
	format('DELETE FROM a WHERE k < %s', b * 100 - 800), 'VACUUM a' FROM generate_series(0, 59) b \gexec
\o
\set ECHO all
SELECT i, sum(entries), sum(blocks) < 400 AS is_small FROM unnest('{a_k,a_s,a_n}'::regclass[]) i, lsm_runs(i) GROUP BY i ORDER BY i::text;
SELECT check_append();
