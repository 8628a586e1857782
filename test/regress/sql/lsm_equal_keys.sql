-- A page of equal keys holds thousands of entries: two bytes each.  VACUUM once
-- crashed when more than 2048 of them were dead.
SET pg_lsm.debug_page_entries = 0;
CREATE TABLE equal_keys (k int4, id int4) WITH (autovacuum_enabled = off);
INSERT INTO equal_keys SELECT 7, i FROM generate_series(1, 20000) i;
CREATE INDEX equal_keys_k ON equal_keys USING lsm (k);
SELECT max(entries / leaves) > 2048 AS dense FROM lsm_runs('equal_keys_k');
DELETE FROM equal_keys WHERE id % 10 <> 0;
VACUUM equal_keys;
SELECT lsm_check('equal_keys_k', true);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*), min(id), max(id) FROM equal_keys WHERE k = 7;
-- If all are dead, the run is dropped.
DELETE FROM equal_keys;
VACUUM equal_keys;
SELECT count(*) FROM lsm_runs('equal_keys_k');
SELECT count(*) FROM equal_keys WHERE k = 7;
SELECT lsm_check('equal_keys_k', true);
DROP TABLE equal_keys;
