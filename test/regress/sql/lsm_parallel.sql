-- VACUUM with several processes, each at another index.  None of them can cut off
-- the end of a file: the lock for that needs a transaction id.
CREATE TABLE v (a int, b int, c int, d text) WITH (autovacuum_enabled = off);
CREATE INDEX v_a ON v USING btree (a);
CREATE INDEX v_b ON v USING btree (b);
CREATE INDEX v_c ON v USING lsm (c);
CREATE INDEX v_d ON v USING lsm (d, a);
INSERT INTO v SELECT i, -i, hashint4(i), 'd' || i FROM generate_series(1, 3000) i;
INSERT INTO v SELECT i, -i, hashint4(i), 'd' || i FROM generate_series(1, 3000) i;
SELECT lsm_compact('v_c'), lsm_compact('v_d');
DELETE FROM v WHERE a > 100;
SET max_parallel_maintenance_workers = 3;
SET min_parallel_index_scan_size = 0;
VACUUM (PARALLEL 3, INDEX_CLEANUP ON) v;
SELECT count(*), sum(b) FROM v WHERE c > 0;
SELECT lsm_check('v_c', true), lsm_check('v_d', true);
INSERT INTO v SELECT i, -i, hashint4(i), 'd' || i FROM generate_series(1, 1000) i;
DELETE FROM v WHERE a % 3 = 0;
VACUUM (PARALLEL 2, INDEX_CLEANUP ON) v;
VACUUM (PARALLEL 0, INDEX_CLEANUP ON) v;
SELECT count(*), sum(b) FROM v WHERE c > 0;
SELECT lsm_check('v_c', true), lsm_check('v_d', true);
DROP TABLE v;
