-- Runs, levels and space, under several limits. Rows are inserted one by one, so the counts below are those of
-- the write buffer.
SET pg_lsm.batch_inserts = off;
CREATE TABLE m (k int, v text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
-- The figures of lsm_runs must add up.
CREATE FUNCTION check_runs(index regclass, rows bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	-- A row is counted once, either in the output of a merge or in the rest of an input.
	SELECT sum(entries) AS entries, count(*) AS runs, max(level) AS top, sum(blocks) AS blocks, count(DISTINCT run_id) AS ids, count(*) FILTER (WHERE state = 'open') AS open, count(*) FILTER (WHERE state = 'merging') AS jobs,
		bool_and(entries >= 0 AND bytes = blocks * current_setting('block_size')::int AND leaves <= blocks AND segments <= leaves AND level >= 0) AS sane,
		bool_and(segments > 0 AND blocks > 0) FILTER (WHERE state <> 'merging') AS something, bool_and(segments = 1 AND blocks = 1) FILTER (WHERE state IN ('open', 'sealed')) AS single
		INTO r FROM lsm_runs(index);
	IF r.entries IS DISTINCT FROM rows THEN
		RETURN format('%s entries, should be %s', r.entries, rows);
	ELSIF r.ids <> r.runs OR NOT r.sane OR NOT r.something OR NOT r.single OR r.open > 1 OR r.runs > 118 THEN
		RETURN format('not sane: %s', r);
	-- Inputs are shown with the blocks that they had when the job began.
	ELSIF r.jobs = 0 AND r.blocks > pg_relation_size(index) / current_setting('block_size')::int THEN
		RETURN 'more blocks than the file has';
	END IF;
	RETURN 'ok';
END $$;
CREATE FUNCTION load(buffer int, page int, fanout int, foreground int, segment int) RETURNS TABLE (limits text, runs text, levels bool, answers text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('pg_lsm.debug_buffer_entries', buffer::text, true);
	PERFORM set_config('pg_lsm.debug_page_entries', page::text, true);
	PERFORM set_config('pg_lsm.debug_merge_fanout', fanout::text, true);
	PERFORM set_config('pg_lsm.debug_foreground_blocks', foreground::text, true);
	PERFORM set_config('pg_lsm.debug_segment_size', segment::text, true);
	limits := concat_ws('/', buffer, page, fanout, foreground, segment);
	TRUNCATE m;
	INSERT INTO m SELECT (i * 7919) % 1001, 'v' || i % 100, i % 300 / 10.0 FROM generate_series(1, 1000) i;
	PERFORM lsm_check('m_k', true), lsm_check('m_vn', true), lsm_check('m_n', true);
	INSERT INTO m SELECT i, 'w' || i % 100, i FROM generate_series(1, 700) i;
	PERFORM lsm_check('m_k', true), lsm_check('m_vn', true), lsm_check('m_n', true);
	INSERT INTO m SELECT -i, NULL, 7 FROM generate_series(1, 300) i;
	PERFORM lsm_check('m_k', true), lsm_check('m_vn', true), lsm_check('m_n', true);
	SELECT string_agg(DISTINCT check_runs(i, 2000), ', ') INTO runs FROM unnest('{m_k,m_vn,m_n}'::regclass[]) i;
	SELECT max(level) > 0 INTO levels FROM lsm_runs('m_k');
	SELECT string_agg(DISTINCT regexp_replace(a, '^\d+ rows by index.* scan$', 'same'), ', ') INTO answers FROM unnest(ARRAY[
		t.same('SELECT * FROM m WHERE k = 77'), t.same('SELECT * FROM m WHERE k BETWEEN -10 AND 20'), t.same('SELECT k FROM m ORDER BY k'), t.same('SELECT k FROM m ORDER BY k DESC LIMIT 50'),
		t.same('SELECT * FROM m WHERE v = ''v7'''), t.same('SELECT v, n FROM m WHERE v > ''w5'' ORDER BY v, n DESC'), t.same('SELECT v, n FROM m ORDER BY v, n DESC'), t.same('SELECT * FROM m WHERE n = 7.00'), t.same('SELECT n FROM m WHERE n < 100 ORDER BY n DESC', 'SELECT n FROM m WHERE n < 100 ORDER BY n DESC, ctid DESC')]) a;
	RETURN NEXT;
END $$;
CREATE INDEX m_k ON m USING lsm (k);
CREATE INDEX m_vn ON m USING lsm (v, n DESC) INCLUDE (k);
CREATE INDEX m_n ON m USING lsm (n);
SELECT * FROM load(3, 5, 2, 100000, 64);
SELECT * FROM load(5, 7, 3, 8, 3);
SELECT * FROM load(1, 1, 8, 0, 1);
SELECT * FROM load(4, 100, 4, 0, 1);
SELECT * FROM load(10, 3, 8, 128, 2);
SELECT * FROM load(20, 20, 32, 4, 100);
SELECT * FROM load(7, 0, 2, 0, 8192);
SELECT runs, answers FROM load(0, 0, 8, 128, 0);
-- Merges of a few pages that nobody completes at once, with the smallest segments and with some larger than any
-- run.
SELECT * FROM load(2, 2, 2, 0, 1);
SELECT * FROM load(1, 3, 32, 0, 1);
SELECT * FROM load(6, 4, 3, 0, 3);

-- A build makes one run, at full density.
TRUNCATE m;
INSERT INTO m SELECT i, 'v' || i, i FROM generate_series(1, 5000) i;
REINDEX TABLE m;
SELECT i, count(*), min(state), sum(entries) FROM unnest('{m_k,m_vn,m_n}'::regclass[]) i, lsm_runs(i) GROUP BY i ORDER BY i::text;
-- An empty index has only its write buffer.
TRUNCATE m;
SELECT coalesce(sum(entries), 0) FROM lsm_runs('m_k');
SET pg_lsm.debug_foreground_blocks = 100000;
INSERT INTO m SELECT i, 'v' || i, i FROM generate_series(1, 5000) i;
-- VACUUM counts the entries that it removes. It drops empty runs unless a job is reading them; here all jobs
-- are done at once.
DELETE FROM m WHERE k % 3 = 0;
VACUUM m;
SELECT string_agg(DISTINCT check_runs(i, 3334), ', ') FROM unnest('{m_k,m_vn,m_n}'::regclass[]) i;
DELETE FROM m;
VACUUM m;
SELECT coalesce(sum(entries), 0), count(*) FILTER (WHERE entries = 0 AND state = 'packed') FROM lsm_runs('m_k');
SELECT lsm_check('m_k', true), lsm_check('m_vn', true), lsm_check('m_n', true);

RESET pg_lsm.debug_foreground_blocks;

-- Space is reused: the file does not grow with the number of rounds.
CREATE PROCEDURE churn(rounds int) LANGUAGE plpgsql AS $$
BEGIN
	FOR r IN 1..rounds LOOP
		INSERT INTO m SELECT (i * 7919 + r) % 5000, 'v' || i, i FROM generate_series(1, 500) i;
		COMMIT;
	END LOOP;
	DELETE FROM m;
	COMMIT;
END $$;
CALL churn(5);
VACUUM m;
CALL churn(5);
VACUUM m;
SELECT pg_relation_size('m_k') AS size_k, pg_relation_size('m_vn') AS size_vn \gset
CALL churn(5);
VACUUM m;
CALL churn(5);
VACUUM m;
CALL churn(5);
VACUUM m;
CALL churn(5);
VACUUM m;
SELECT pg_relation_size('m_k') <= 2 * :size_k AS bounded_k, pg_relation_size('m_vn') <= 2 * :size_vn AS bounded_vn;
SELECT lsm_check('m_k', true), lsm_check('m_vn', true), lsm_check('m_n', true);

-- Pages of normal size: a random int4 takes about 10 bytes, less than in a btree, and equal keys share their
-- bytes.
SET pg_lsm.debug_buffer_entries = 0;
SET pg_lsm.debug_page_entries = 0;
SET pg_lsm.debug_merge_fanout = 8;
SET pg_lsm.debug_foreground_blocks = 128;
SET pg_lsm.debug_segment_size = 0;
CREATE TABLE dense (r int, e int, t text COLLATE "C");
INSERT INTO dense SELECT hashint4(i), i % 10, 'a long common prefix ' || i FROM generate_series(1, 50000) i;
CREATE INDEX dense_r ON dense USING lsm (r);
CREATE INDEX dense_e ON dense USING lsm (e);
CREATE INDEX dense_t ON dense USING lsm (t);
SELECT pg_relation_size('dense_r') / 50000.0 < 11 AS random_int, pg_relation_size('dense_e') / 50000.0 < 5 AS equal_int, pg_relation_size('dense_t') / 50000.0 < 20 AS common_prefix;
-- A small index is at most twice as large as a btree.
CREATE TABLE small AS SELECT hashint4(i) AS k FROM generate_series(1, 1000) i;
CREATE INDEX small_btree ON small (k);
CREATE INDEX small_lsm ON small USING lsm (k);
SELECT pg_relation_size('small_lsm') <= 2 * pg_relation_size('small_btree') AS small_is_small;
TRUNCATE small;
INSERT INTO small SELECT hashint4(i) AS k FROM generate_series(1, 1000) i;
SELECT pg_relation_size('small_lsm') <= 2 * pg_relation_size('small_btree') AS small_is_small;
-- Rows in order, in reverse order, and at random.
CREATE TABLE loads (up int, down int, r int);
CREATE INDEX loads_up ON loads USING lsm (up);
CREATE INDEX loads_down ON loads USING lsm (down);
CREATE INDEX loads_r ON loads USING lsm (r);
INSERT INTO loads SELECT i, -i, hashint4(i) FROM generate_series(1, 50000) i;
SELECT lsm_check('loads_up', true), lsm_check('loads_down', true), lsm_check('loads_r', true);
SELECT check_runs('loads_up', 50000), check_runs('loads_down', 50000), check_runs('loads_r', 50000);
SELECT t.same('SELECT * FROM loads WHERE up = 777'), t.same('SELECT * FROM loads WHERE down BETWEEN -500 AND -400 ORDER BY down'), t.same('SELECT * FROM loads WHERE r = hashint4(4321)');
-- The storage parameter overrides the setting. It can be changed at any time.
SET pg_lsm.debug_merge_fanout = 16;
SET pg_lsm.debug_buffer_entries = 10;
CREATE TABLE fan (k int);
CREATE INDEX fan_few ON fan USING lsm (k) WITH (merge_fanout = 2);
CREATE INDEX fan_many ON fan USING lsm (k);
INSERT INTO fan SELECT i FROM generate_series(1, 300) i;
SELECT (SELECT count(*) FROM lsm_runs('fan_few')) < 10 AS few, (SELECT count(*) FROM lsm_runs('fan_many')) > 25 AS many;
ALTER INDEX fan_many SET (merge_fanout = 3);
INSERT INTO fan SELECT i FROM generate_series(1, 20) i;
SELECT (SELECT count(*) FROM lsm_runs('fan_many')) < 15 AS few;
ALTER INDEX fan_few RESET (merge_fanout);
INSERT INTO fan SELECT i FROM generate_series(1, 200) i;
SELECT (SELECT count(*) FROM lsm_runs('fan_few')) > 15 AS many;
ALTER INDEX fan_few SET (merge_fanout = 1);
ALTER INDEX fan_few SET (merge_fanout = 33);
-- A step fails: when its pages have been written, just before they are installed, and when they are installed
-- but the inputs' blocks are not free yet.  Whoever takes the next step releases the blocks that it had
-- reserved, and continues.
SET pg_lsm.debug_buffer_entries = 10;
CREATE TABLE twice (k int);
CREATE INDEX twice_k ON twice USING lsm (k);
SET pg_lsm.debug_page_entries = 40;
SET pg_lsm.debug_foreground_blocks = 0;
SET pg_lsm.debug_merge_fanout = 32;
SET pg_lsm.debug_segment_size = 8192;
INSERT INTO twice SELECT hashint4(i) FROM generate_series(1, 600) i;
SELECT t.try_to_compact('twice_k', 'install'), (t.jobs('twice_k')).*;
SELECT lsm_check('twice_k', true), check_runs('twice_k', 600), t.same('SELECT k FROM twice WHERE k < -2000000000');
-- Meanwhile rows are inserted, and the step is repeated with segments of other sizes.
INSERT INTO twice SELECT hashint4(i) FROM generate_series(601, 720) i;
SELECT lsm_check('twice_k', true);
SET pg_lsm.debug_page_entries = 5;
SET pg_lsm.debug_segment_size = 1;
SELECT t.try_to_compact('twice_k', 'install'), (t.jobs('twice_k')).*;
SELECT lsm_check('twice_k', true), check_runs('twice_k', 720);
SELECT t.try_to_compact('twice_k', 'save'), (t.jobs('twice_k')).*;
SELECT lsm_check('twice_k', true), check_runs('twice_k', 720);
-- One segment a step: each is installed even though its inputs cannot be freed.
SELECT t.try_to_compact('twice_k', 'free'), (t.jobs('twice_k')).* FROM generate_series(1, 3);
SELECT lsm_check('twice_k', true), check_runs('twice_k', 720);
-- Installed segments are not written again.
SELECT t.try_to_compact('twice_k', 'save'), (t.jobs('twice_k')).* FROM generate_series(1, 3);
SELECT t.try_to_compact('twice_k', 'install'), (t.jobs('twice_k')).* FROM generate_series(1, 3);
SELECT lsm_check('twice_k', true), check_runs('twice_k', 720), t.same('SELECT k FROM twice WHERE k < -2000000000');
SELECT lsm_compact('twice_k');
SELECT lsm_check('twice_k', true), check_runs('twice_k', 720), t.same('SELECT k FROM twice WHERE k < -2000000000');
SELECT state, segments > 20 AS many_segments FROM lsm_runs('twice_k') WHERE state <> 'open';
-- The same for the very last step: the next process that merges frees its inputs.
SET pg_lsm.debug_segment_size = 8192;
INSERT INTO twice SELECT hashint4(i) FROM generate_series(721, 1200) i;
SELECT t.try_to_compact('twice_k', 'free') FROM generate_series(1, 4);
SELECT lsm_check('twice_k', true), check_runs('twice_k', 1200);
SELECT lsm_compact('twice_k');
SELECT lsm_check('twice_k', true), check_runs('twice_k', 1200), t.same('SELECT k FROM twice WHERE k < -2000000000');
-- Inserts fail with their own merges at each point, but later inserts do not. The row that the error rolled
-- back is visible to nobody.
SET pg_lsm.debug_foreground_blocks = 100000;
SET pg_lsm.debug_merge_fanout = 2;
CREATE FUNCTION try_to_insert(since int, until int, at text, OUT failed bigint, OUT inserted bigint) LANGUAGE plpgsql AS $$
BEGIN
	failed := 0;
	inserted := 0;
	FOR i IN since .. until LOOP
		BEGIN
			PERFORM set_config('pg_lsm.debug_stop_at', format('merge-%s:error', at), true);
			INSERT INTO twice VALUES (hashint4(i));
			inserted := inserted + 1;
		EXCEPTION WHEN internal_error THEN
			failed := failed + 1;
		END;
		PERFORM set_config('pg_lsm.debug_stop_at', '', true);
	END LOOP;
END $$;
SELECT at, failed > 0 AS has_failed, failed + inserted AS tried FROM unnest('{save,install,free}'::text[]) WITH ORDINALITY u(at, n), try_to_insert(n::int * 1000 + 1000, n::int * 1000 + 1400, at);
SELECT lsm_check('twice_k', true), t.same('SELECT k FROM twice WHERE k < -1900000000');
INSERT INTO twice SELECT hashint4(i) FROM generate_series(6000, 6100) i;
SELECT lsm_check('twice_k', true), t.same('SELECT k FROM twice WHERE k < -1900000000');
-- VACUUM counts the entries that it removes from inputs, before and after the frontier, and from the output,
-- but not those that a failed step has left.
SET pg_lsm.debug_foreground_blocks = 8;
SET pg_lsm.debug_page_entries = 7;
SET pg_lsm.debug_merge_fanout = 3;
SET pg_lsm.debug_segment_size = 6;
CREATE TABLE vp (k int) WITH (autovacuum_enabled = off);
CREATE INDEX vp_k ON vp USING lsm (k);
INSERT INTO vp SELECT (i * 37) % 2003 FROM generate_series(1, 2000) i;
SELECT t.try_to_compact('vp_k', 'free');
SELECT t.try_to_compact('vp_k', 'save');
SELECT jobs > 0 AS under_way, segments > 0 AS got_somewhere FROM t.jobs('vp_k');
SELECT lsm_check('vp_k', true), check_runs('vp_k', 2000);
DELETE FROM vp WHERE k % 2 = 0;
VACUUM vp;
SELECT lsm_check('vp_k', true), check_runs('vp_k', (SELECT count(*) FROM vp));
SELECT t.try_to_compact('vp_k', 'free');
SELECT jobs > 0 AS under_way FROM t.jobs('vp_k');
SELECT lsm_check('vp_k', true), check_runs('vp_k', (SELECT count(*) FROM vp));
SELECT lsm_compact('vp_k');
SELECT lsm_check('vp_k', true), check_runs('vp_k', (SELECT count(*) FROM vp)), t.same('SELECT k FROM vp ORDER BY k');
-- A step has failed, and nothing is left to write for the next one: the blocks that the first had reserved are
-- not lost.
CREATE TABLE gone (k int) WITH (autovacuum_enabled = off);
CREATE INDEX gone_k ON gone USING lsm (k);
INSERT INTO gone SELECT hashint4(i) FROM generate_series(1, 2000) i;
SELECT t.try_to_compact('gone_k', 'install');
SELECT lsm_check('gone_k', true);
DELETE FROM gone;
VACUUM gone;
SELECT lsm_check('gone_k', true), check_runs('gone_k', 0);
SELECT lsm_compact('gone_k');
SELECT lsm_check('gone_k', true), count(*), sum(entries) FROM lsm_runs('gone_k');
INSERT INTO gone SELECT hashint4(i) FROM generate_series(1, 2000) i;
SELECT lsm_check('gone_k', true), check_runs('gone_k', 2000);
-- The same when the output already has a segment: the job ends with it.
SELECT t.try_to_compact('gone_k', 'free');
SELECT t.try_to_compact('gone_k', 'save');
DELETE FROM gone WHERE k > (SELECT min(k) FROM gone);
VACUUM gone;
SELECT lsm_check('gone_k', true), check_runs('gone_k', 1);
SELECT lsm_compact('gone_k');
SELECT lsm_check('gone_k', true), check_runs('gone_k', 1), t.same('SELECT k FROM gone ORDER BY k');
-- Each level has its jobs, of one leaf and more. Rows are inserted one by one.
SET pg_lsm.debug_buffer_entries = 1;
SET pg_lsm.debug_page_entries = 2;
SET pg_lsm.debug_segment_size = 2;
SET pg_lsm.debug_merge_fanout = 2;
SET pg_lsm.debug_foreground_blocks = 0;
CREATE TABLE levels (k int);
CREATE INDEX levels_k ON levels USING lsm (k);
CREATE TABLE seen (level int, state text, runs int);
DO $$
BEGIN
	FOR i IN 1 .. 400 LOOP
		INSERT INTO levels SELECT hashint4(i * 10 + j) FROM generate_series(0, 9) j;
		INSERT INTO seen SELECT level, state, count(*) FROM lsm_runs('levels_k') GROUP BY level, state;
	END LOOP;
END $$;
SELECT count(DISTINCT level) > 8 AS many_levels, count(DISTINCT level) = max(level) + 1 AS each_level, count(DISTINCT level) FILTER (WHERE state = 'merging') > 5 AS many_merged FROM seen;
SELECT lsm_check('levels_k', true), check_runs('levels_k', 4000), t.same('SELECT k FROM levels WHERE k < -2100000000');
-- Many levels, each with almost enough runs for a job, then a fanout with which none is due, and the smallest
-- steps: no insert fails because the manifest is full.
SET pg_lsm.debug_merge_fanout = 3;
INSERT INTO levels SELECT hashint4(i) FROM generate_series(4001, 20000) i;
SELECT count(DISTINCT level) > 6 AS many_levels FROM lsm_runs('levels_k');
SET pg_lsm.debug_merge_fanout = 32;
SET pg_lsm.debug_segment_size = 1;
DO $$
DECLARE
	most int := 0;
BEGIN
	FOR i IN 20001 .. 21500 LOOP
		INSERT INTO levels VALUES (hashint4(i));
		most := greatest(most, (SELECT count(*) FROM lsm_runs('levels_k')));
	END LOOP;
	IF most < 40 OR most > 102 THEN
		RAISE '% runs', most;
	END IF;
END $$;
SELECT lsm_check('levels_k', true), check_runs('levels_k', 21500), t.same('SELECT k FROM levels WHERE k < -2100000000');
-- All merges fail for some time, each at a different point.  The manifest fills up, and inserts fail with the
-- merges that would make room.  Then everything works again.
CREATE FUNCTION fail_for_long(times int, at text[], OUT failed int, OUT most int) LANGUAGE plpgsql AS $$
BEGIN
	failed := 0;
	FOR i IN 1 .. times LOOP
		BEGIN
			PERFORM set_config('pg_lsm.debug_stop_at', format('merge-%s:error', at[1 + i % cardinality(at)]), true);
			INSERT INTO levels VALUES (hashint4(i));
		EXCEPTION WHEN internal_error THEN
			failed := failed + 1;
		END;
		PERFORM set_config('pg_lsm.debug_stop_at', '', true);
	END LOOP;
	most := (SELECT count(*) FROM lsm_runs('levels_k'));
END $$;
SELECT failed > 10 AS has_failed, most BETWEEN 85 AND 102 AS full FROM fail_for_long(300, '{save}');
SELECT lsm_check('levels_k', true), t.same('SELECT k FROM levels WHERE k < -2100000000');
INSERT INTO levels SELECT hashint4(i) FROM generate_series(1, 50) i;
SELECT lsm_check('levels_k', true), t.same('SELECT k FROM levels WHERE k < -2100000000');
SET pg_lsm.debug_merge_fanout = 2;
SET pg_lsm.debug_foreground_blocks = 100000;
SELECT failed > 10 AS has_failed FROM fail_for_long(300, '{save,install}');
SELECT lsm_check('levels_k', true), t.same('SELECT k FROM levels WHERE k < -2100000000');
INSERT INTO levels SELECT hashint4(i) FROM generate_series(1, 50) i;
SELECT failed > 10 AS has_failed FROM fail_for_long(300, '{free,install,save,free}');
SELECT lsm_check('levels_k', true), t.same('SELECT k FROM levels WHERE k < -2100000000');
INSERT INTO levels SELECT hashint4(i) FROM generate_series(1, 50) i;
SELECT lsm_compact('levels_k');
SELECT lsm_check('levels_k', true), t.same('SELECT k FROM levels WHERE k < -2100000000');
VACUUM levels;
SELECT lsm_check('levels_k', true), check_runs('levels_k', (SELECT count(*) FROM levels));
SET pg_lsm.debug_foreground_blocks = 0;
-- And back.
SET pg_lsm.debug_merge_fanout = 2;
INSERT INTO levels SELECT hashint4(i) FROM generate_series(21501, 22500) i;
SELECT lsm_check('levels_k', true), check_runs('levels_k', (SELECT count(*) FROM levels));
SET pg_lsm.debug_merge_fanout = 32;
INSERT INTO levels SELECT hashint4(i) FROM generate_series(22501, 23000) i;
SELECT lsm_compact('levels_k');
SELECT lsm_check('levels_k', true), check_runs('levels_k', (SELECT count(*) FROM levels)), t.same('SELECT k FROM levels WHERE k < -2100000000');
DROP TABLE m, dense, small, loads, fan, twice, vp, gone, levels, seen;
DROP FUNCTION load, check_runs, try_to_insert, fail_for_long;
DROP PROCEDURE churn;

-- A merge that fails releases its reader, although the transaction goes on.
CREATE TABLE failing (k int);
CREATE INDEX failing_k ON failing USING lsm (k);
SET pg_lsm.debug_buffer_entries = 2;
SET pg_lsm.debug_merge_fanout = 2;
SET pg_lsm.debug_foreground_blocks = 128;
SET pg_lsm.debug_batch_min_entries = 1;
BEGIN;
SET LOCAL pg_lsm.debug_stop_at = 'merge-save:error';
DO $$
DECLARE
	failed int := 0;
BEGIN
	FOR i IN 1 .. 60 LOOP
		BEGIN
			INSERT INTO failing SELECT generate_series(i, i + 9);
		EXCEPTION WHEN OTHERS THEN
			failed := failed + 1;
		END;
	END LOOP;
	RAISE NOTICE 'some failed: %', failed > 20;
END $$;
SELECT count(*) <= 2 AS few FROM pg_backend_memory_contexts WHERE name = 'pg_lsm reader';
COMMIT;
SELECT lsm_check('failing_k', true);
RESET pg_lsm.debug_buffer_entries;
RESET pg_lsm.debug_merge_fanout;
RESET pg_lsm.debug_foreground_blocks;
RESET pg_lsm.debug_batch_min_entries;
DROP TABLE failing;
