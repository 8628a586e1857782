-- CONCURRENTLY.
CREATE TABLE c (a int, b text COLLATE "C", id serial);
INSERT INTO c (a, b) SELECT (i * 37) % 500, 'b' || i % 10 FROM generate_series(1, 1000) i;
DELETE FROM c WHERE id % 5 = 0;
UPDATE c SET a = a + 1 WHERE id % 7 = 0;
CREATE INDEX CONCURRENTLY c_a ON c USING lsm (a) INCLUDE (id);
CREATE INDEX CONCURRENTLY c_part ON c USING lsm (b, a DESC) WHERE a > 100;
CREATE INDEX CONCURRENTLY IF NOT EXISTS c_a ON c USING lsm (a);
INSERT INTO c (a, b) SELECT (i * 31) % 500, 'b' || i % 10 FROM generate_series(1, 300) i;
SELECT lsm_check('c_a', true), lsm_check('c_part', true);
SELECT t.same_order('c', 'a, id', 'a'), t.same('SELECT * FROM c WHERE b = ''b3'' AND a > 100');
REINDEX INDEX CONCURRENTLY c_a;
REINDEX TABLE CONCURRENTLY c;
SELECT lsm_check('c_a', true), lsm_check('c_part', true);
SELECT t.same_order('c', 'a, id', 'a'), t.same('SELECT * FROM c WHERE b = ''b3'' AND a > 100');
SELECT indexrelid::regclass, indisvalid, indisready FROM pg_index WHERE indrelid = 'c'::regclass ORDER BY indexrelid::regclass::text;
-- An index whose build failed stays invalid, accepts writes, and can be dropped or
-- rebuilt.
CREATE INDEX CONCURRENTLY c_fails ON c USING lsm ((1 / (a - 250)));
SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE indrelid = 'c'::regclass ORDER BY indexrelid::regclass::text;
DELETE FROM c WHERE a = 250;
REINDEX INDEX CONCURRENTLY c_fails;
SELECT lsm_check('c_fails', true);
SELECT t.same('SELECT * FROM c WHERE 1 / (a - 250) = 1');
DROP INDEX CONCURRENTLY c_fails;
DROP INDEX CONCURRENTLY c_a;
SELECT t.same('SELECT * FROM c WHERE b = ''b3'' AND a > 100');
BEGIN;
CREATE INDEX CONCURRENTLY c_tx ON c USING lsm (a);
ROLLBACK;
DROP TABLE c;
