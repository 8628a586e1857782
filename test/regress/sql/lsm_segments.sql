-- Large merges replace their inputs part by part.
SET pg_lsm.part_size = 6;
SET pg_lsm.step_leaves = 2;
SET pg_lsm.page_entries = 10;
SET pg_lsm.buffer_entries = 10;
SET pg_lsm.foreground_blocks = 0;
SET pg_lsm.merge_fanout = 8;
CREATE TABLE f (k int, v text, n numeric) WITH (autovacuum_enabled = off);
CREATE INDEX f_k ON f USING lsm (k);
CREATE INDEX f_v ON f USING lsm (v DESC, k) INCLUDE (n);
CREATE INDEX f_n ON f USING lsm (n);
CREATE FUNCTION check_frontier() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text;
BEGIN
	PERFORM lsm_check('f_k', true), lsm_check('f_v', true), lsm_check('f_n', true);
	SELECT string_agg(DISTINCT regexp_replace(a, '^\d+ rows by index.* scan$', 'same'), ', ') INTO answers FROM unnest(ARRAY[
		t.same('SELECT k FROM f ORDER BY k'), t.same('SELECT k FROM f ORDER BY k DESC'), t.same('SELECT * FROM f WHERE k = 77'),
		t.same('SELECT k FROM f WHERE k BETWEEN 300 AND 500 ORDER BY k'), t.same('SELECT k FROM f WHERE k BETWEEN 300 AND 500 ORDER BY k DESC'),
		t.same('SELECT v, k, n FROM f WHERE v > ''v33'' ORDER BY v, k DESC'), t.same('SELECT v, k FROM f ORDER BY v DESC, k'),
		t.same('SELECT n FROM f WHERE n < 20 ORDER BY n'), t.same('SELECT n FROM f ORDER BY n DESC', 'SELECT n FROM f ORDER BY n DESC, ctid DESC')]) a;
	RETURN answers;
END $$;
-- Inserting goes on while merges are under way: at each stage all rows are found, once, in order.
CREATE TABLE seen (parts bigint, cut bool);
CREATE PROCEDURE grow(batches int) LANGUAGE plpgsql AS $$
BEGIN
	FOR b IN 1 .. batches LOOP
		INSERT INTO f SELECT (i * 7919 + b) % 1009, 'v' || i % 100, (i + b) % 300 / 10.0 FROM generate_series(1, 60) i;
		COMMIT;
		INSERT INTO seen SELECT count(*) FROM unnest('{f_k,f_v,f_n}'::regclass[]) i, lsm_runs(i) WHERE state = 'part';
		COMMIT;
		IF b % 16 = 0 AND check_frontier() <> 'same' THEN
			RAISE 'batch %: %', b, check_frontier();
		END IF;
	END LOOP;
END $$;
CALL grow(80);
SELECT sum(parts) > 20 AS many_parts FROM seen;
SELECT check_frontier();
-- A cursor keeps to its version while the frontier passes it, forward and backward.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN ISOLATION LEVEL REPEATABLE READ;
CREATE TEMP TABLE expected AS SELECT k, row_number() OVER (ORDER BY k) AS place FROM f;
CREATE TEMP TABLE got (k int, place serial);
DECLARE up CURSOR FOR SELECT k FROM f ORDER BY k;
DECLARE down SCROLL CURSOR FOR SELECT k FROM f ORDER BY k DESC;
CREATE FUNCTION pass(cur refcursor, many int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	FOR i IN 1 .. many LOOP
		FETCH cur INTO r;
		EXIT WHEN NOT FOUND;
		INSERT INTO got (k) VALUES (r.k);
	END LOOP;
END $$;
SELECT pass('up', 1000);
INSERT INTO f SELECT i % 1009, 'w', 1 FROM generate_series(1, 1500) i;
SELECT pass('up', 1000);
SELECT lsm_compact('f_k');
SELECT pass('up', 10000);
SELECT count(*) AS wrong FROM got FULL JOIN expected USING (place) WHERE got.k IS DISTINCT FROM expected.k;
TRUNCATE got RESTART IDENTITY;
INSERT INTO f SELECT i % 1009, 'w', 1 FROM generate_series(1, 1500) i;
SELECT pass('down', 10000);
SELECT count(*) AS wrong FROM (SELECT k, place FROM got) g FULL JOIN (SELECT k, row_number() OVER (ORDER BY place DESC) AS place FROM expected) e USING (place) WHERE g.k IS DISTINCT FROM e.k;
ROLLBACK;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
SELECT check_frontier();
-- Steps that fail at each point, again and again: what is in a part is never given up.
CREATE FUNCTION try_to_compact(index regclass, at text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('pg_lsm.fail_at', at, true);
	PERFORM lsm_compact(index);
	RETURN 'settled';
EXCEPTION WHEN internal_error THEN
	PERFORM set_config('pg_lsm.fail_at', '', true);
	RETURN 'failed';
END $$;
SELECT try_to_compact('f_k', 'free');
SELECT count(*) FILTER (WHERE state = 'part') AS parts FROM lsm_runs('f_k');
SELECT try_to_compact('f_k', 'save');
SELECT try_to_compact('f_k', 'save');
SELECT try_to_compact('f_k', 'save');
SELECT count(*) FILTER (WHERE state = 'part') AS parts FROM lsm_runs('f_k');
SELECT check_frontier();
SELECT try_to_compact('f_k', 'free');
SELECT try_to_compact('f_k', 'install');
SELECT try_to_compact('f_k', 'install');
SELECT count(*) FILTER (WHERE state = 'part') AS parts FROM lsm_runs('f_k');
SELECT check_frontier();
-- VACUUM with merges under way; it may empty the leaf at which the merge goes on.
DELETE FROM f WHERE k % 3 = 0 OR k > 700;
VACUUM f;
SELECT check_frontier();
SELECT lsm_compact('f_k');
SELECT check_frontier();
CALL grow(20);
SELECT try_to_compact('f_v', 'free');
DELETE FROM f WHERE v > 'v2';
VACUUM f;
SELECT check_frontier();
SELECT lsm_compact('f_v'), lsm_compact('f_n');
SELECT check_frontier();
-- What VACUUM removes from pages of a failed step is not in the part, what it removes from the part's is.
CREATE TABLE fv (k int);
CREATE INDEX fv_k ON fv USING lsm (k);
SET pg_lsm.step_leaves = 4;
SET pg_lsm.part_size = 8;
SET pg_lsm.page_entries = 10;
SET pg_lsm.foreground_blocks = 0;
SET pg_lsm.batch_min_entries = 1;
SET pg_lsm.merge_fanout = 32;
INSERT INTO fv SELECT x FROM generate_series(1, 3000, 2) x;
INSERT INTO fv SELECT x FROM generate_series(2, 3000, 2) x;
SELECT try_to_compact('fv_k', 'free');
SELECT try_to_compact('fv_k', 'save');
-- A step that fails again and again takes no more space each time.
CREATE PROCEDURE fail_often() LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 20 LOOP
		PERFORM try_to_compact('fv_k', 'save');
		COMMIT;
	END LOOP;
END $$;
CALL fail_often();
SELECT pg_relation_size('fv_k') AS size \gset
CALL fail_often();
SELECT pg_relation_size('fv_k') <= 1.1 * :size AS bounded;
SELECT lsm_check('fv_k', true);
DELETE FROM fv WHERE k % 3 = 0;
VACUUM fv;
SELECT try_to_compact('fv_k', 'free');
SELECT lsm_check('fv_k', true);
SELECT lsm_compact('fv_k');
SELECT lsm_check('fv_k', true);
DROP TABLE fv;
