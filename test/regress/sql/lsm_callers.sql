-- Callers in C that do what nbtree allows: test/callers.
CREATE FUNCTION late_keys(index regclass, key int) RETURNS text AS 'lsm_callers' LANGUAGE C STRICT;
CREATE FUNCTION insert_outside(index regclass, key int, other int) RETURNS text AS 'lsm_callers' LANGUAGE C STRICT;
CREATE TABLE called (k int, n int);
INSERT INTO called SELECT i % 100, -i FROM generate_series(1, 1000) i;
CREATE INDEX called_lsm ON called USING lsm (k);
CREATE UNIQUE INDEX called_unique ON called USING lsm (n) INCLUDE (k);
CREATE INDEX called_btree ON called (k);
-- Scan keys whose arguments are set after the rescan, as in pg_squeeze.
SELECT index, late_keys(index, 7), late_keys(index, 0), late_keys(index, 100) FROM unnest('{called_lsm,called_btree}'::regclass[]) index;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT late_keys('called_lsm', 7);
COMMIT;
-- Rows that are inserted and looked up outside the executor.
SELECT insert_outside('called_lsm', 7, 1), insert_outside('called_btree', 7, 11), insert_outside('called_lsm', 500, 21);
SELECT t.error_of('SELECT insert_outside(''called_lsm'', 8, 1)');
SELECT insert_outside('called_lsm', 7, 31);
SELECT lsm_check('called_lsm', true), lsm_check('called_unique', true);
-- A server with another block size than the library's.
CREATE FUNCTION server_of_block_size(bytes int) RETURNS void AS 'lsm_callers' LANGUAGE C STRICT;
SELECT server_of_block_size(current_setting('block_size')::int);
SELECT server_of_block_size(4096);
DROP TABLE called;
DROP FUNCTION late_keys, insert_outside, server_of_block_size;
