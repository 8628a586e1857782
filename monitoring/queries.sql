-- What the collectors in this folder ask of a database. tools/make_monitoring.py makes the collectors from this file; run
-- it after a change. A query begins with a line "--- NAME, every N seconds: what it shows". Each of its columns has a
-- line that ends with "-- label|counter|gauge: description".
--
-- The queries run as a member of pg_monitor, on a primary and on a standby, in a database that has the extension. The
-- schema of the extension must be in search_path. They cast each argument to the type of the parameter, so that a user's
-- function of the same name cannot fit better.

--- pg_lsm_index, every 15 seconds: what inserts, merges and queries have done to each index; reads shared memory
SELECT
	current_database()::text AS datname,	-- label: database
	schemaname::text AS schemaname,			-- label: schema of the table
	relname::text AS relname,				-- label: table
	indexrelname::text AS indexrelname,		-- label: index
	entries_inserted,						-- counter: entries inserted
	pages_flushed * current_setting('block_size')::bigint AS bytes_flushed, -- counter: bytes that became runs before any merge
	bytes_merged,							-- counter: bytes written by merges
	throttled_time,							-- counter: milliseconds that writers spent on large merges, or waiting for them
	seeks,									-- counter: searches of the index
	runs_read,								-- counter: runs that the searches looked into
	bytes_loaded,							-- counter: bytes of index pages that were not in shared buffers
	filter_skips,							-- counter: filters that ruled out a key
	filter_misses							-- counter: filters that did not rule out a key although it was absent
FROM pg_stat_lsm_indexes;

--- pg_lsm_state, every 15 seconds: runs and debt as of an index's latest flush or merge; no row if there was none since the server started
SELECT
	current_database()::text AS datname,	-- label: database
	schemaname::text AS schemaname,			-- label: schema of the table
	relname::text AS relname,				-- label: table
	indexrelname::text AS indexrelname,		-- label: index
	runs::bigint AS runs,					-- gauge: runs
	debt_bytes								-- gauge: bytes waiting to be merged
FROM pg_stat_lsm_indexes
WHERE runs IS NOT NULL;

--- pg_lsm_size, every 60 seconds: sizes; reads a few pages of each index, and leaves out indexes that somebody has locked
WITH free AS MATERIALIZED (
	SELECT i.*, pg_relation_size(i.indexrelid::regclass) AS bytes
	FROM pg_stat_lsm_indexes i JOIN pg_class c ON c.oid = i.indexrelid
	WHERE (c.relpersistence = 'p' OR c.relpersistence = 'u' AND NOT pg_is_in_recovery())
		AND NOT EXISTS (
			SELECT FROM pg_locks l
			WHERE l.relation IN (i.indexrelid, i.relid) AND l.mode = 'AccessExclusiveLock'
				AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())))
SELECT
	current_database()::text AS datname,	-- label: database
	schemaname::text AS schemaname,			-- label: schema of the table
	relname::text AS relname,				-- label: table
	indexrelname::text AS indexrelname,		-- label: index
	free.bytes AS file_bytes,				-- gauge: size of the file
	runs.bytes AS run_bytes,				-- gauge: size of the runs; a merge under way counts with its inputs
	greatest(free.bytes - runs.bytes, 0) AS reusable_bytes, -- gauge: bytes of the file outside the runs; the index reuses nearly all of them
	runs.entries							-- gauge: entries, those of dead rows included
FROM free CROSS JOIN LATERAL (
	SELECT coalesce(sum(r.bytes) FILTER (WHERE r.state <> 'merging'), 0)::bigint AS bytes,
		coalesce(sum(r.entries), 0)::bigint AS entries
	FROM lsm_runs(free.indexrelid::regclass) r) runs;

--- pg_lsm_database, every 15 seconds: the processes that merge; one row for each database
SELECT
	current_database()::text AS datname,	-- label: database
	count(*) FILTER (WHERE backend_type = 'pg_lsm worker' AND datname = current_database()) AS workers, -- gauge: workers of the database
	coalesce(current_setting('pg_lsm.max_workers', true), '0')::bigint AS max_workers, -- gauge: workers that the database may have
	count(*) FILTER (WHERE backend_type = 'pg_lsm launcher') AS launchers, -- gauge: launchers of the server: 1, or 0 if it has not started
	pg_is_in_recovery()::int::bigint AS in_recovery -- gauge: 1 on a standby, which merges nothing, otherwise 0
FROM pg_stat_activity;
