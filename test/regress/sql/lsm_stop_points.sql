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
