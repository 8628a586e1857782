-- The setting of stop points.
SET pg_lsm.debug_stop_at = 'merge-save:error, batch-write,page-seal:wait';
SHOW pg_lsm.debug_stop_at;
\set VERBOSITY terse
SET pg_lsm.debug_stop_at = 'no-such-point';
SET pg_lsm.debug_stop_at = 'merge-save:explode';
SET pg_lsm.debug_stop_at = 'merge-save:';
SET pg_lsm.debug_stop_at = ':error';
\set VERBOSITY default
SHOW pg_lsm.debug_stop_at;
RESET pg_lsm.debug_stop_at;
SET ROLE regress_lsm_nobody;
SET pg_lsm.debug_stop_at = 'batch-write:crash';
RESET ROLE;

-- A merge that fails releases its reader, although the transaction goes on.
CREATE TABLE failing (k int);
CREATE INDEX failing_k ON failing USING lsm (k);
SET pg_lsm.debug_buffer_entries = 2;
SET pg_lsm.debug_merge_fanout = 2;
SET pg_lsm.debug_foreground_blocks = 128;
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
DROP TABLE failing;
