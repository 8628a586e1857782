-- CREATE INDEX with parallel workers makes the same index as a single process.
CREATE TABLE w (k int, t text COLLATE "C", n numeric, id int) WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO w SELECT hashint4(i), 't' || i % 50, CASE WHEN i % 7 > 0 THEN i / 4.0 END, i FROM generate_series(1, 4000) i;
DELETE FROM w WHERE id % 10 = 0;
UPDATE w SET n = n + 1 WHERE id % 10 = 1;
SET max_parallel_maintenance_workers = 2;
CREATE INDEX w_k ON w USING lsm (k);
CREATE INDEX w_t ON w USING lsm (t DESC, k) INCLUDE (id);
CREATE INDEX w_n ON w USING lsm (n NULLS FIRST, id);
CREATE INDEX w_e ON w USING lsm ((id % 100)) WHERE k > 0;
CREATE INDEX CONCURRENTLY w_c ON w USING lsm (k, n);
-- A failed build leaves an index without contents.
\set VERBOSITY sqlstate
CREATE UNIQUE INDEX CONCURRENTLY w_failed ON w USING lsm ((id % 100));
\set VERBOSITY default
SELECT count(*) FROM lsm_runs('w_failed');
DROP INDEX w_failed;
SET max_parallel_maintenance_workers = 0;
CREATE INDEX w_serial ON w USING lsm (k);
SELECT index, lsm_check(index, true) FROM unnest('{w_k,w_t,w_n,w_e,w_c}'::regclass[]) index;
SELECT (SELECT array_agg((level, leaves, entries, bytes)) FROM lsm_runs('w_k')) = (SELECT array_agg((level, leaves, entries, bytes)) FROM lsm_runs('w_serial')) AS same;
SELECT t.same('SELECT k FROM w ORDER BY k'), t.same('SELECT t, k, id FROM w WHERE t > ''t3'' ORDER BY t DESC, k'),
	t.same('SELECT n, id FROM w ORDER BY n NULLS FIRST, id'), t.same('SELECT id FROM w WHERE id % 100 = 7 AND k > 0');
SET max_parallel_maintenance_workers = 2;
REINDEX INDEX w_n;
REINDEX INDEX CONCURRENTLY w_t;
-- More than fits into memory, so there are several batches from each process.
SET maintenance_work_mem = '1MB';
INSERT INTO w SELECT i, repeat('x', 100) || i % 1000, i, i FROM generate_series(4001, 24000) i;
CREATE INDEX w_m ON w USING lsm (t, n, k);
RESET maintenance_work_mem;
SELECT index, lsm_check(index, true) FROM unnest('{w_t,w_n,w_m}'::regclass[]) index;
-- An error in one process ends all of them. Here the leader waits until a worker is running.
CREATE FUNCTION fails_in_worker(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) a WHERE a.backend_type = 'parallel worker') THEN
		RAISE EXCEPTION 'a worker is running';
	END IF;
	PERFORM pg_catalog.pg_sleep(0.01);
	RETURN i;
END $$;
\set SHOW_CONTEXT never
CREATE INDEX w_f ON w USING lsm (public.fails_in_worker(k));
SELECT lsm_check('w_k', true);
-- CLUSTER rebuilds unique indexes without checking for duplicates. Workers help there, too.
CREATE TABLE wu (k int, id int) WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO wu SELECT i, i FROM generate_series(1, 3000) i;
CREATE UNIQUE INDEX wu_k ON wu USING lsm (k);
CREATE UNIQUE INDEX wu_id ON wu USING btree (id);
CREATE INDEX wu_n ON wu USING lsm ((id::numeric));
CREATE INDEX wu_ki ON wu USING lsm (k, id);
UPDATE wu SET k = k + 5000 WHERE id % 3 = 0;
CLUSTER wu USING wu_id;
SELECT lsm_check('wu_k', true);
VACUUM FULL wu;
SELECT lsm_check('wu_k', true);
DROP TABLE wu;
-- Unique indexes: duplicates in the shares of different processes, and recently dead rows.
CREATE TABLE pu (k int, t text COLLATE "C", n numeric) WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO pu SELECT i, 'key ' || i, nullif(i % 1500, 7) FROM generate_series(1, 20000) i;
CREATE UNIQUE INDEX pu_k ON pu USING lsm (k);
CREATE UNIQUE INDEX CONCURRENTLY pu_tk ON pu USING lsm (t DESC, k);
CREATE UNIQUE INDEX pu_n ON pu USING lsm (n) WHERE k % 1500 = 7;
SELECT index, lsm_check(index, true) FROM unnest('{pu_k,pu_tk,pu_n}'::regclass[]) index;
CREATE UNIQUE INDEX pu_not_distinct ON pu USING lsm (n) NULLS NOT DISTINCT WHERE k % 1500 = 7;
DROP INDEX pu_k;
INSERT INTO pu VALUES (15000, 'twice', -1), (33, 'twice', -1);
CREATE UNIQUE INDEX pu_k ON pu USING lsm (k);
BEGIN;
DELETE FROM pu WHERE n = -1;
CREATE UNIQUE INDEX pu_k ON pu USING lsm (k);
SELECT lsm_check('pu_k', true), t.same('SELECT * FROM pu WHERE k IN (33, 15000)'), t.same('SELECT k FROM pu ORDER BY k');
ROLLBACK;
-- No workers are available: one process does everything.
SET max_parallel_workers = 0;
DELETE FROM pu WHERE n = -1;
CREATE UNIQUE INDEX pu_k ON pu USING lsm (k);
CREATE INDEX pu_t ON pu USING lsm (t);
VACUUM (PARALLEL 2, INDEX_CLEANUP ON) pu;
SELECT lsm_check('pu_k', true), lsm_check('pu_t', true);
RESET max_parallel_workers;
DROP TABLE pu;
-- Functions that workers must not run, and tables that they cannot see.
CREATE FUNCTION unsafe(i int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL UNSAFE AS 'SELECT i + 1';
CREATE INDEX w_u ON w USING lsm (public.unsafe(k));
CREATE TEMP TABLE wt WITH (parallel_workers = 2) AS SELECT i AS k FROM generate_series(1, 1000) i;
CREATE INDEX wt_k ON wt USING lsm (k);
SELECT lsm_check('w_u', true), lsm_check('wt_k', true);
-- Nothing to sort.
TRUNCATE w;
REINDEX INDEX w_k;
INSERT INTO w SELECT i, i, i, i FROM generate_series(1, 100) i;
SELECT index, lsm_check(index, true) FROM unnest('{w_k,w_t,w_n}'::regclass[]) index;
DROP TABLE w, wt;

-- VACUUM with several processes, each on a different index.
CREATE TABLE v (a int, b int, c int, d text) WITH (autovacuum_enabled = off);
CREATE INDEX v_a ON v USING btree (a);
CREATE INDEX v_b ON v USING btree (b);
CREATE INDEX v_c ON v USING lsm (c);
CREATE INDEX v_d ON v USING lsm (d, a);
CREATE INDEX v_e ON v USING lsm ((ARRAY[d, c::text]));
INSERT INTO v SELECT i, -i, hashint4(i), 'd' || i FROM generate_series(1, 3000) i;
INSERT INTO v SELECT i, -i, hashint4(i), 'd' || i FROM generate_series(1, 3000) i;
SELECT lsm_compact('v_c'), lsm_compact('v_d'), lsm_compact('v_e');
DELETE FROM v WHERE a > 100;
SET max_parallel_maintenance_workers = 3;
SET min_parallel_index_scan_size = 0;
VACUUM (PARALLEL 3, INDEX_CLEANUP ON) v;
SELECT count(*), sum(b) FROM v WHERE c > 0;
SELECT lsm_check('v_c', true), lsm_check('v_d', true), lsm_check('v_e', true);
INSERT INTO v SELECT i, -i, hashint4(i), 'd' || i FROM generate_series(1, 1000) i;
DELETE FROM v WHERE a % 3 = 0;
VACUUM (PARALLEL 2, INDEX_CLEANUP ON) v;
VACUUM (PARALLEL 0, INDEX_CLEANUP ON) v;
SELECT count(*), sum(b) FROM v WHERE c > 0;
SELECT lsm_check('v_c', true), lsm_check('v_d', true), lsm_check('v_e', true);
DROP TABLE v;
