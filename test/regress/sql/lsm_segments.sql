-- Jobs that take many steps. Each step writes a segment and installs it. Input entries up to
-- its end, the frontier, no longer count.  Freed blocks are reused at once.
SET pg_lsm.debug_segment_size = 3;
SET pg_lsm.debug_batch_min_entries = 12;
SET pg_lsm.debug_batch_entries = 100;
SET pg_lsm.debug_page_entries = 10;
SET pg_lsm.debug_buffer_entries = 10;
SET pg_lsm.debug_foreground_blocks = 0;
SET pg_lsm.debug_merge_fanout = 3;
CREATE TABLE f (k int, v text, n numeric) WITH (autovacuum_enabled = off);
CREATE INDEX f_k ON f USING lsm (k);
CREATE INDEX f_v ON f USING lsm (v DESC, k) INCLUDE (n);
CREATE INDEX f_n ON f USING lsm (n);
CREATE FUNCTION check_segments() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text;
BEGIN
	PERFORM lsm_check('f_k', true), lsm_check('f_v', true), lsm_check('f_n', true);
	SELECT string_agg(DISTINCT regexp_replace(a, '^\d+ rows by index.* scan$', 'same'), ', ') INTO answers FROM unnest(ARRAY[
		t.same('SELECT k FROM f ORDER BY k'), t.same('SELECT k FROM f ORDER BY k DESC'), t.same('SELECT * FROM f WHERE k = 77'),
		t.same('SELECT k FROM f WHERE k BETWEEN 300 AND 500 ORDER BY k'), t.same('SELECT k FROM f WHERE k BETWEEN 300 AND 500 ORDER BY k DESC'),
		t.same('SELECT v, k, n FROM f WHERE v > ''v33'' ORDER BY v, k DESC'), t.same('SELECT v, k FROM f ORDER BY v DESC, k'),
		t.same('SELECT n FROM f WHERE n < 20 ORDER BY n', 'SELECT n FROM f WHERE n < 20 ORDER BY n, ctid'), t.same('SELECT n FROM f ORDER BY n DESC', 'SELECT n FROM f ORDER BY n DESC, ctid DESC')]) a;
	RETURN answers;
END $$;
-- Takes a number of steps. Each fails once its segment is installed.
CREATE FUNCTION take_steps(index regclass, steps int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. steps LOOP
		PERFORM t.try_to_compact(index, 'free');
	END LOOP;
END $$;
-- Takes steps until a job has made progress.
CREATE FUNCTION start_job(index regclass) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		IF (SELECT jobs > 0 AND segments > 0 FROM t.jobs(index)) THEN RETURN true; END IF;
		PERFORM t.try_to_compact(index, 'free');
	END LOOP;
	RETURN false;
END $$;
-- Inserts continue while jobs are unfinished: at each stage all rows are found, once, in order.
CREATE TABLE seen (index regclass, jobs bigint, segments bigint, entries bigint, rows bigint);
CREATE PROCEDURE grow(batches int) LANGUAGE plpgsql AS $$
BEGIN
	FOR b IN 1 .. batches LOOP
		INSERT INTO f SELECT (i * 7919 + b) % 1009, 'v' || i % 100, (i + b) % 300 / 10.0 FROM generate_series(1, 60) i;
		COMMIT;
		INSERT INTO seen SELECT i, (t.jobs(i)).*, (SELECT sum(entries) FROM lsm_runs(i)), (SELECT count(*) FROM f) FROM unnest('{f_k,f_v,f_n}'::regclass[]) i;
		COMMIT;
		IF b % 16 = 0 AND check_segments() <> 'same' THEN
			RAISE 'batch %: %', b, check_segments();
		END IF;
	END LOOP;
END $$;
CALL grow(80);
SELECT index, count(*) FILTER (WHERE jobs > 0) > 20 AS often_under_way, max(jobs) > 1 AS several_jobs, max(segments) > 5 AS many_segments, count(*) FILTER (WHERE entries <> rows) AS miscounted FROM seen GROUP BY index ORDER BY index::text;
SELECT check_segments();
-- Bitmap scans, alone and together, and scans over arrays.
INSERT INTO f SELECT i % 1009, 'y', i % 30 FROM generate_series(1, 1000) i;
SELECT start_job(i) FROM unnest('{f_k,f_v,f_n}'::regclass[]) i;
SELECT t.same(q) ~ '^\d+ rows by index.*bitmap' AS by_bitmap FROM unnest(ARRAY['SELECT * FROM f WHERE k BETWEEN 100 AND 600', 'SELECT * FROM f WHERE v > ''v5'' AND k < 300', 'SELECT k FROM f WHERE k IN (3, 500, 77, 1008)', 'SELECT count(*) FROM f WHERE n < 3']) q;
SET enable_seqscan = off;
SELECT t.plan_has('SELECT * FROM f WHERE k BETWEEN 100 AND 110 OR v = ''v5''', 'BitmapOr') AS two_indexes;
SELECT count(*) > 100 AS rows, count(*) = (SELECT count(*) FROM (SELECT k, v FROM f OFFSET 0) x WHERE k BETWEEN 100 AND 110 OR v = 'v5') AS same FROM f WHERE k BETWEEN 100 AND 110 OR v = 'v5';
RESET enable_seqscan;
-- Open cursors continue after all pages that they read were merged, freed and reused many
-- times: forward and backward, over the whole index and over a part, index-only and not.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
CREATE FUNCTION pass(cur refcursor, many int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR i IN 1 .. many LOOP
		FETCH cur INTO r;
		EXIT WHEN NOT FOUND;
		INSERT INTO got (cur, k) VALUES (cur, r.k);
	END LOOP;
END $$;
-- Every block of the index gets new contents: more rows are inserted than it has, and merged
-- completely.
CREATE FUNCTION overwrite() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR round IN 1 .. 3 LOOP
		INSERT INTO f SELECT i % 1009, 'w', 1 FROM generate_series(1, 700) i;
		PERFORM lsm_compact('f_k'), lsm_compact('f_v');
	END LOOP;
END $$;
CREATE TABLE got (cur text, k int, place serial);
CREATE TABLE expected (k int, up bigint, down bigint);
BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO expected SELECT k, row_number() OVER (ORDER BY k), row_number() OVER (ORDER BY k DESC) FROM f;
DECLARE up CURSOR FOR SELECT k FROM f ORDER BY k;
DECLARE down SCROLL CURSOR FOR SELECT k FROM f ORDER BY k DESC;
DECLARE part SCROLL CURSOR FOR SELECT k FROM f WHERE k BETWEEN 200 AND 800 ORDER BY k;
SET LOCAL enable_indexonlyscan = off;
DECLARE plain SCROLL CURSOR FOR SELECT k, n FROM f ORDER BY k;
SET LOCAL enable_indexonlyscan = on;
SELECT pass(c::refcursor, 100) FROM unnest('{up,down,part,plain}'::text[]) c;
SELECT take_steps('f_k', 5);
SELECT pass(c::refcursor, 1000) FROM unnest('{up,down,part,plain}'::text[]) c;
SELECT lsm_compact('f_k');
SELECT pass(c::refcursor, 200) FROM unnest('{up,down,part,plain}'::text[]) c;
SELECT overwrite();
SELECT pass(c::refcursor, 200) FROM unnest('{up,down,part,plain}'::text[]) c;
SELECT overwrite();
-- Backward over the rows read before that.
MOVE BACKWARD 1000 IN down;
MOVE 1000 IN down;
MOVE BACKWARD 1300 IN part;
MOVE 1300 IN part;
FETCH BACKWARD 1 FROM plain;
FETCH 1 FROM plain;
SELECT overwrite();
SELECT pass(c::refcursor, 100000) FROM unnest('{up,down,part,plain}'::text[]) c;
WITH g AS (SELECT cur, k, row_number() OVER (PARTITION BY cur ORDER BY place) AS place FROM got)
SELECT cur, count(*) AS rows, count(*) FILTER (WHERE g.k IS DISTINCT FROM e.k) AS wrong
FROM g LEFT JOIN expected e ON g.place = CASE cur WHEN 'down' THEN e.down WHEN 'part' THEN e.up - (SELECT count(*) FROM expected WHERE k < 200) ELSE e.up END
GROUP BY cur ORDER BY cur;
SELECT count(*) AS all_rows, count(*) FILTER (WHERE k BETWEEN 200 AND 800) AS part FROM expected;
-- Once more from the end back to the beginning.
SELECT overwrite();
MOVE BACKWARD 100 IN down;
FETCH BACKWARD 2 FROM down;
SELECT overwrite();
MOVE BACKWARD 4000 IN down;
FETCH BACKWARD 2 FROM down;
COMMIT;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
SELECT check_segments();
SELECT restarts > 5 AS have_restarted FROM pg_stat_lsm_indexes WHERE indexrelname = 'f_k';
-- Steps that fail repeatedly at each point: installed segments are never lost.
TRUNCATE f;
CALL grow(30);
SELECT lsm_compact('f_k');
INSERT INTO f SELECT (i * 7919) % 1009, 'x', 1 FROM generate_series(1, 500) i;
SELECT take_steps('f_k', 3);
SELECT jobs, segments > 0 AS some FROM t.jobs('f_k');
SELECT segments AS before FROM t.jobs('f_k') \gset
SELECT t.try_to_compact('f_k', 'save') FROM generate_series(1, 3);
SELECT segments - :before AS more FROM t.jobs('f_k');
SELECT check_segments();
SELECT t.try_to_compact('f_k', 'install') FROM generate_series(1, 3);
SELECT segments - :before AS more FROM t.jobs('f_k');
SELECT check_segments();
SELECT t.try_to_compact('f_k', 'free') FROM generate_series(1, 3);
SELECT segments - :before AS more FROM t.jobs('f_k');
SELECT check_segments();
-- VACUUM of inputs, before and after the frontier.
SELECT sum(entries) = (SELECT count(*) FROM f) AS counted FROM lsm_runs('f_k');
DELETE FROM f WHERE k < 30;
VACUUM f;
SELECT jobs FROM t.jobs('f_k');
SELECT check_segments(), (SELECT sum(entries) FROM lsm_runs('f_k')) = (SELECT count(*) FROM f) AS counted;
DELETE FROM f WHERE k > 970;
VACUUM f;
SELECT check_segments(), (SELECT sum(entries) FROM lsm_runs('f_k')) = (SELECT count(*) FROM f) AS counted;
-- VACUUM empties the segments at which the job continues, and the output's last one.
DELETE FROM f WHERE k < 500;
VACUUM f;
SELECT jobs FROM t.jobs('f_k');
SELECT check_segments(), (SELECT sum(entries) FROM lsm_runs('f_k')) = (SELECT count(*) FROM f) AS counted;
SELECT take_steps('f_k', 2);
SELECT check_segments();
INSERT INTO f SELECT (i * 7919) % 1009, 'late', 1 FROM generate_series(1, 300) i;
SELECT check_segments();
SELECT lsm_compact('f_k'), lsm_compact('f_n');
SELECT check_segments(), (SELECT sum(entries) FROM lsm_runs('f_k')) = (SELECT count(*) FROM f) AS counted;
CALL grow(20);
SELECT take_steps('f_v', 4);
DELETE FROM f WHERE v > 'v2';
VACUUM f;
SELECT check_segments();
SELECT lsm_compact('f_v'), lsm_compact('f_n');
SELECT check_segments();
-- A step that fails repeatedly takes no more space each time, and its reserved blocks are free
-- after the next step.
CREATE TABLE fv (k int) WITH (autovacuum_enabled = off);
CREATE INDEX fv_k ON fv USING lsm (k);
SET pg_lsm.debug_segment_size = 20;
SET pg_lsm.debug_batch_min_entries = 1;
SET pg_lsm.debug_merge_fanout = 32;
INSERT INTO fv SELECT x FROM generate_series(1, 3000, 2) x;
INSERT INTO fv SELECT x FROM generate_series(2, 3000, 2) x;
SELECT t.try_to_compact('fv_k', 'free');
SELECT t.try_to_compact('fv_k', 'save');
CREATE PROCEDURE fail_often(at text) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 20 LOOP
		PERFORM t.try_to_compact('fv_k', at);
		COMMIT;
	END LOOP;
END $$;
CALL fail_often('save');
SELECT pg_relation_size('fv_k') AS size \gset
CALL fail_often('save');
CALL fail_often('install');
SELECT pg_relation_size('fv_k') = :size AS bounded;
SELECT lsm_check('fv_k', true);
DELETE FROM fv WHERE k % 3 = 0;
VACUUM fv;
SELECT t.try_to_compact('fv_k', 'free');
SELECT lsm_check('fv_k', true);
SELECT lsm_compact('fv_k');
SELECT lsm_check('fv_k', true);
-- A segment that VACUUM empties is dropped at once, and its blocks are free.
SELECT segments AS before, blocks AS blocks_before FROM lsm_runs('fv_k') WHERE state = 'packed' \gset
DELETE FROM fv WHERE k BETWEEN 1000 AND 2000;
VACUUM fv;
SELECT segments < :before - 1 AS dropped, segments > 2 AS not_all, blocks < :blocks_before AS freed, entries = (SELECT count(*) FROM fv) AS counted FROM lsm_runs('fv_k') WHERE state = 'packed';
SELECT lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k'), t.same('SELECT k FROM fv WHERE k BETWEEN 990 AND 2010 ORDER BY k DESC'), t.same('SELECT k FROM fv WHERE k BETWEEN 1100 AND 1200');
SELECT pg_relation_size('fv_k') AS size \gset
INSERT INTO fv SELECT x FROM generate_series(1000, 1300) x;
SELECT pg_relation_size('fv_k') <= :size AS used_again, lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k');
-- The same with the first and the last ones, then with all.
DELETE FROM fv WHERE k < 800 OR k > 2500;
VACUUM fv;
SELECT lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k'), t.same('SELECT k FROM fv ORDER BY k DESC');
DELETE FROM fv;
VACUUM fv;
SELECT count(*) FROM lsm_runs('fv_k') WHERE state <> 'open';
SELECT lsm_check('fv_k', true);
-- VACUUM truncates the free end of the file. New entries go to the front, so sooner or later
-- the rest can be truncated, too.
SET pg_lsm.debug_page_entries = 100;
INSERT INTO fv SELECT x FROM generate_series(1, 30000) x;
SELECT lsm_compact('fv_k');
SELECT pg_relation_size('fv_k') AS size \gset
DELETE FROM fv;
VACUUM fv;
SELECT lsm_check('fv_k', true);
INSERT INTO fv SELECT x FROM generate_series(1, 100) x;
SELECT lsm_compact('fv_k');
VACUUM fv;
SELECT pg_relation_size('fv_k') < :size / 10 AS smaller, lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k');
-- The file grows again, and is truncated again.
INSERT INTO fv SELECT x FROM generate_series(1, 30000) x;
SELECT pg_relation_size('fv_k') > :size / 2 AS has_grown, lsm_check('fv_k', true);
DELETE FROM fv WHERE k > 100;
VACUUM fv;
INSERT INTO fv SELECT x FROM generate_series(1, 100) x;
SELECT lsm_compact('fv_k');
VACUUM fv;
SELECT pg_relation_size('fv_k') < :size / 10 AS smaller, lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k');
INSERT INTO fv SELECT x FROM generate_series(1, 3000) x;
SELECT lsm_check('fv_k', true), t.same('SELECT k FROM fv WHERE k > 2500 ORDER BY k');
-- lsm_compact rewrites a run from which VACUUM has removed much, even if it is the only one,
-- but not one that lost little.
SELECT lsm_compact('fv_k');
SELECT run_id AS id, blocks AS blocks_before FROM lsm_runs('fv_k') WHERE state = 'packed' \gset
DELETE FROM fv WHERE k % 50 = 0;
VACUUM fv;
SELECT lsm_compact('fv_k');
SELECT run_id = :id AS as_it_was, blocks = :blocks_before AS same_size FROM lsm_runs('fv_k') WHERE state = 'packed';
DELETE FROM fv WHERE k % 4 <> 0;
VACUUM fv;
SELECT count(*) AS runs, sum(blocks) > :blocks_before * 0.9 AS thin FROM lsm_runs('fv_k') WHERE state = 'packed';
SELECT lsm_compact('fv_k');
SELECT count(*) AS runs, sum(blocks) < :blocks_before * 0.4 AS dense, sum(entries) = (SELECT count(*) FROM fv) AS counted FROM lsm_runs('fv_k') WHERE state = 'packed';
SELECT lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k');
-- A run of many segments, some of which have lost entries: those are rewritten, and the others
-- stay.
TRUNCATE fv;
SET pg_lsm.debug_page_entries = 10;
INSERT INTO fv SELECT x FROM generate_series(1, 6000) x;
SELECT lsm_compact('fv_k');
DELETE FROM fv WHERE k BETWEEN 2000 AND 4000 AND k % 2 = 0;
VACUUM fv;
SELECT lsm_stat_reset();
SELECT lsm_compact('fv_k');
SELECT bytes_merged / current_setting('block_size')::int BETWEEN 80 AND 250 AS wrote_the_thin_ones FROM pg_stat_lsm_indexes WHERE indexrelname = 'fv_k';
SELECT lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k');
-- Directories of more than one page.
TRUNCATE fv;
SET pg_lsm.debug_page_entries = 2;
SET pg_lsm.debug_segment_size = 1;
INSERT INTO fv SELECT hashint4(x) FROM generate_series(1, 4000) x;
SELECT lsm_compact('fv_k');
SELECT segments > 500 AS many_segments, entries FROM lsm_runs('fv_k') WHERE state = 'packed';
SELECT lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k'), t.same('SELECT k FROM fv WHERE k BETWEEN -1000000000 AND 0 ORDER BY k DESC');
DELETE FROM fv WHERE k BETWEEN -1000000000 AND 1000000000;
VACUUM fv;
SELECT lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k'), t.same('SELECT k FROM fv ORDER BY k DESC'), t.same('SELECT k FROM fv WHERE k BETWEEN -1100000000 AND 1100000000 ORDER BY k');
INSERT INTO fv SELECT hashint4(x) FROM generate_series(4001, 5000) x;
SELECT take_steps('fv_k', 100);
SELECT lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k'), t.same('SELECT k FROM fv ORDER BY k DESC');
DELETE FROM fv WHERE k < 0;
VACUUM fv;
SELECT lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k');
SELECT lsm_compact('fv_k');
SELECT lsm_check('fv_k', true), t.same('SELECT k FROM fv ORDER BY k'), t.same('SELECT k FROM fv ORDER BY k DESC');
DELETE FROM fv;
VACUUM fv;
SELECT lsm_check('fv_k', true), count(*) FROM lsm_runs('fv_k') WHERE state <> 'open';
-- Two indexes with jobs of the same id.  Steps in one of them fail before they have freed the
-- input segments before the frontier.  Its next step frees them, although this process has
-- already trimmed the inputs of the other job as far as possible.
SET pg_lsm.debug_segment_size = 3;
SET pg_lsm.debug_batch_entries = 0;
SET pg_lsm.debug_page_entries = 10;
CREATE TABLE one (k int) WITH (autovacuum_enabled = off);
CREATE TABLE two (k int) WITH (autovacuum_enabled = off);
INSERT INTO one SELECT hashint4(i) FROM generate_series(1, 3000) i;
INSERT INTO two SELECT k FROM one;
CREATE INDEX one_k ON one USING lsm (k);
CREATE INDEX two_k ON two USING lsm (k);
INSERT INTO one SELECT hashint4(i) FROM generate_series(3001, 3200) i;
INSERT INTO two SELECT hashint4(i) FROM generate_series(3001, 3200) i;
SELECT take_steps('one_k', 60);
SELECT max(run_id) AS job FROM lsm_runs('one_k') WHERE state = 'merging' \gset
SELECT lsm_compact('two_k');
SELECT max(run_id) = :job AS same_number FROM lsm_runs('two_k') WHERE state = 'packed';
INSERT INTO one SELECT hashint4(i) FROM generate_series(3201, 3250) i;
SELECT jobs AS still_under_way, pg_relation_size('one_k') AS size FROM t.jobs('one_k') \gset
INSERT INTO one SELECT hashint4(i) FROM generate_series(4001, 4500) i;
SELECT :still_under_way AS still_under_way, pg_relation_size('one_k') - :size AS more_bytes;
SELECT lsm_check('one_k', true), t.same('SELECT k FROM one ORDER BY k');
DROP TABLE one, two;
DROP TABLE f, fv, seen, got, expected;
DROP FUNCTION check_segments, take_steps, start_job, pass, overwrite;
DROP PROCEDURE grow, fail_often;
