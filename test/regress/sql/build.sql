-- CREATE INDEX and REINDEX over data: expressions, predicates, fill, sizes.
CREATE TABLE d (a int, b text COLLATE "C", c numeric, id serial);
INSERT INTO d (a, b, c) SELECT (i * 7919) % 1000, 'b' || (i * 31) % 77, i % 10 / 2.0 FROM generate_series(1, 3000) i;
-- A build leaves a dense index.
SET pg_lsm.debug_page_entries = 0;
CREATE INDEX d_a ON d USING lsm (a);
SELECT relname, reltuples, relpages BETWEEN 1 AND 40 AS dense FROM pg_class WHERE relname = 'd_a';
RESET pg_lsm.debug_page_entries;
CREATE INDEX d_bc ON d USING lsm (b, c DESC);
-- More memory than needed, and so little that the sort uses disk.
SET maintenance_work_mem = '1MB';
CREATE INDEX d_ca ON d USING lsm (c, a) INCLUDE (b);
RESET maintenance_work_mem;
SELECT lsm_check('d_a', true), lsm_check('d_bc', true), lsm_check('d_ca', true);
SELECT t.same_order('d', 'a, id', 'a'), t.same_order('d', 'b, c, id', 'b, c DESC'), t.same_order('d', 'c, a, b', 'c, a');
SELECT t.same('SELECT * FROM d WHERE a = 77'), t.same('SELECT * FROM d WHERE b = ''b5'' AND c > 1'), t.same('SELECT c, a, b FROM d WHERE c = 2.5 AND a < 100');

-- No rows, one row, only NULLs, only equal rows.
CREATE TABLE e (k int);
CREATE INDEX e_none ON e USING lsm (k);
SELECT lsm_check('e_none', true), t.same('SELECT k FROM e ORDER BY k');
INSERT INTO e VALUES (5);
CREATE INDEX e_one ON e USING lsm (k);
DROP INDEX e_none;
SELECT lsm_check('e_one', true), t.same('SELECT k FROM e ORDER BY k');
TRUNCATE e;
INSERT INTO e SELECT NULL FROM generate_series(1, 2000);
REINDEX INDEX e_one;
SELECT lsm_check('e_one', true), t.same('SELECT k FROM e WHERE k IS NULL');
TRUNCATE e;
INSERT INTO e SELECT 1 FROM generate_series(1, 5000);
REINDEX INDEX e_one;
SELECT lsm_check('e_one', true), t.same('SELECT k FROM e WHERE k = 1');
DROP TABLE e;

-- Expressions and predicates.
CREATE TABLE x (a int, b text COLLATE "C", deleted bool);
INSERT INTO x SELECT i % 50, 'Name' || i % 30, i % 4 = 0 FROM generate_series(1, 300) i;
CREATE INDEX x_expr ON x USING lsm (lower(b), (a % 10) DESC);
CREATE INDEX x_part ON x USING lsm (a) WHERE NOT deleted;
CREATE INDEX x_both ON x USING lsm ((a + 1), b) WHERE b > 'Name2' AND a IS NOT NULL;
INSERT INTO x SELECT i % 50, 'NAME' || i % 30, i % 4 = 0 FROM generate_series(1, 100) i;
INSERT INTO x VALUES (NULL, NULL, NULL), (1, NULL, false), (NULL, 'Name3', false);
ANALYZE x;
SELECT lsm_check('x_expr', true), lsm_check('x_part', true), lsm_check('x_both', true);
SELECT t.same('SELECT * FROM x WHERE lower(b) = ''name3'''), t.same('SELECT * FROM x WHERE lower(b) >= ''name27'' AND a % 10 = 3'),
	t.same('SELECT lower(b), a % 10 FROM x ORDER BY lower(b), a % 10 DESC');
SELECT t.same('SELECT * FROM x WHERE a = 5 AND NOT deleted'), t.same('SELECT a FROM x WHERE NOT deleted ORDER BY a'),
	t.same('SELECT * FROM x WHERE a + 1 < 9 AND b > ''Name2'' AND a IS NOT NULL');
-- Updates move rows into the predicate and out of it, and change rows within it.
UPDATE x SET deleted = NOT deleted WHERE a < 10;
UPDATE x SET a = a + 1 WHERE NOT deleted;
UPDATE x SET b = 'name' WHERE a = 7;
DELETE FROM x WHERE a = 8;
SELECT lsm_check('x_expr', true), lsm_check('x_part', true), lsm_check('x_both', true);
SELECT t.same('SELECT * FROM x WHERE a < 12 AND NOT deleted'), t.same('SELECT * FROM x WHERE lower(b) = ''name'''),
	t.same('SELECT * FROM x WHERE a + 1 < 13 AND b > ''Name2'' AND a IS NOT NULL');
VACUUM x;
SELECT lsm_check('x_expr', true), lsm_check('x_part', true), lsm_check('x_both', true);
-- An index whose expression fails leaves nothing behind.
CREATE INDEX x_fails ON x USING lsm ((1 / (a - 3)));
SELECT to_regclass('x_fails');

-- REINDEX after many changes, one index, a table, in a transaction.
DELETE FROM d WHERE a % 3 = 0;
INSERT INTO d (a, b, c) SELECT i, 'new', NULL FROM generate_series(1, 500) i;
REINDEX INDEX d_a;
REINDEX TABLE d;
BEGIN;
REINDEX INDEX d_bc;
INSERT INTO d (a, b, c) VALUES (-1, 'in transaction', 1);
SELECT t.same('SELECT * FROM d WHERE b = ''in transaction''');
ROLLBACK;
SELECT t.same('SELECT * FROM d WHERE b = ''in transaction'''), t.same('SELECT * FROM d WHERE b = ''new''');
SELECT lsm_check('d_a', true), lsm_check('d_bc', true), lsm_check('d_ca', true);
-- Dead rows that somebody may still see are indexed, too. Broken HOT chains: an index on
-- a column that a HOT update changed is not used too early.
CREATE TABLE hot (k int, v int) WITH (fillfactor = 50);
INSERT INTO hot SELECT i, i FROM generate_series(1, 50) i;
UPDATE hot SET v = v + 1;
BEGIN;
UPDATE hot SET v = v + 1 WHERE k < 10;
CREATE INDEX hot_v ON hot USING lsm (v);
SELECT t.same('SELECT * FROM hot WHERE v = 7');
COMMIT;
SELECT lsm_check('hot_v', true);
DROP TABLE d, x, hot;
