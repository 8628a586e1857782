-- CREATE INDEX stays within maintenance_work_mem, however many sorted batches it merges.
SET maintenance_work_mem = '1MB';
SET pg_lsm.debug_page_entries = 0;
SET client_min_messages = warning;
SET enable_seqscan = off;
SET enable_sort = off;
-- The comparison counts its calls, so it cannot run in parallel workers.
SET max_parallel_workers_per_gather = 0;
-- A comparison that checks its backend's memory from time to time.
CREATE SEQUENCE calls;
CREATE SEQUENCE most_memory MINVALUE 0;
CREATE FUNCTION watching_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	IF nextval('public.calls') % 2000 = 0 THEN
		PERFORM setval('public.most_memory', greatest(
			(SELECT last_value FROM public.most_memory),
			(SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name IN ('pg_lsm sort', 'pg_lsm entries'))::int8));
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS watching_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 watching_cmp (int, int);
CREATE TABLE wide (k int, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE wide ALTER filler SET STORAGE plain;
-- Enough for 40 batches, more than are merged at once.
INSERT INTO wide SELECT (i * 7919) % 20011, repeat('x', 2500) FROM generate_series(1, 16000) i;
CREATE INDEX wide_k ON wide USING lsm (k watching_ops) INCLUDE (filler);
SELECT last_value > 500000 AS watched, last_value < 1.2 * 1024 * 1024 AS bounded FROM most_memory;
SELECT lsm_check('wide_k');
SELECT count(*), bool_and(k > before) AS ascending FROM (SELECT k, lag(k) OVER () AS before FROM (SELECT k FROM wide ORDER BY k) x) y;
DROP TABLE wide;

-- Small rows, and keys that are compared as bytes.
CREATE TABLE narrow (k int) WITH (autovacuum_enabled = off);
INSERT INTO narrow SELECT (i::int8 * 7919) % 400009 FROM generate_series(1, 400000) i;
CREATE INDEX narrow_k ON narrow USING lsm (k);
SELECT lsm_check('narrow_k', true), sum(entries), count(*) FROM lsm_runs('narrow_k') WHERE state = 'packed';
SELECT count(*), bool_and(k >= before) AS ascending FROM (SELECT k, lag(k) OVER () AS before FROM (SELECT k FROM narrow ORDER BY k) x) y;
DROP TABLE narrow;
DROP OPERATOR FAMILY watching_ops USING lsm CASCADE;
DROP FUNCTION watching_cmp;
DROP SEQUENCE calls, most_memory;
