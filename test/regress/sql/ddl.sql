-- Commands that move, rewrite or rename what an index depends on.
CREATE TABLE d (a int, b text COLLATE "C", id serial);
CREATE INDEX d_ab ON d USING lsm (a, b);
INSERT INTO d (a, b) SELECT (i * 37) % 100, 'b' || i % 10 FROM generate_series(1, 500) i;

-- TRUNCATE, including that of a table filled in the same transaction.
BEGIN;
TRUNCATE d;
SELECT t.same('SELECT a, b FROM d ORDER BY a, b');
INSERT INTO d (a, b) SELECT i, 'in transaction' FROM generate_series(1, 100) i;
SELECT t.same('SELECT a, b FROM d WHERE a = 50');
TRUNCATE d;
INSERT INTO d (a, b) SELECT i, 'again' FROM generate_series(1, 50) i;
SELECT lsm_check('d_ab', true), t.same('SELECT a, b FROM d WHERE a BETWEEN 40 AND 60');
ROLLBACK;
SELECT lsm_check('d_ab', true), t.same_order('d', 'a, b', 'a, b');
BEGIN;
SAVEPOINT s;
TRUNCATE d;
INSERT INTO d (a, b) VALUES (1, 'gone');
ROLLBACK TO s;
INSERT INTO d (a, b) VALUES (-1, 'stays');
COMMIT;
SELECT lsm_check('d_ab', true), t.same('SELECT a, b FROM d WHERE a < 2');
TRUNCATE d;
SELECT lsm_check('d_ab', true), t.same('SELECT a, b FROM d ORDER BY a, b');
INSERT INTO d (a, b) SELECT (i * 37) % 100, 'b' || i % 10 FROM generate_series(1, 500) i;
-- A table made in this transaction is truncated in place.
BEGIN;
CREATE TABLE fresh (k int);
CREATE INDEX fresh_k ON fresh USING lsm (k);
INSERT INTO fresh SELECT i FROM generate_series(1, 100) i;
TRUNCATE fresh;
INSERT INTO fresh SELECT i FROM generate_series(50, 60) i;
SELECT lsm_check('fresh_k', true), t.same('SELECT k FROM fresh ORDER BY k');
COMMIT;
SELECT lsm_check('fresh_k', true), t.same('SELECT k FROM fresh ORDER BY k');
DROP TABLE fresh;

-- CLUSTER, VACUUM FULL.
CLUSTER d USING d_ab;
SELECT lsm_check('d_ab', true), t.same_order('d', 'a, b, id', 'a, b');
SELECT count(*) FROM (SELECT a, lag(a) OVER (ORDER BY ctid) AS before FROM d) x WHERE before > a;
SELECT indisclustered FROM pg_index WHERE indexrelid = 'd_ab'::regclass;
CREATE TABLE dead (k int, v text COLLATE "C");
CREATE INDEX dead_k ON dead USING lsm (k DESC, v);
INSERT INTO dead SELECT (i * 37) % 100, 'v' || i FROM generate_series(1, 500) i;
UPDATE dead SET k = k + 1 WHERE k % 2 = 0;
DELETE FROM dead WHERE k % 5 = 0;
SET enable_sort = off;
SET enable_seqscan = off;
CLUSTER dead USING dead_k;
RESET enable_sort;
RESET enable_seqscan;
SELECT lsm_check('dead_k', true), t.same_order('dead', 'k, v', 'k DESC, v');
SELECT count(*) FROM (SELECT k, lag(k) OVER (ORDER BY ctid) AS before FROM dead) x WHERE before < k;
CLUSTER dead;
VACUUM FULL dead;
SELECT lsm_check('dead_k', true), t.same_order('dead', 'k, v', 'k DESC, v');
DROP TABLE dead;

-- Tablespaces.
SET allow_in_place_tablespaces = true;
CREATE TABLESPACE regress_lsm_space LOCATION '';
RESET allow_in_place_tablespaces;
ALTER INDEX d_ab SET TABLESPACE regress_lsm_space;
SELECT lsm_check('d_ab', true), t.same_order('d', 'a, b, id', 'a, b');
INSERT INTO d (a, b) SELECT (i * 31) % 100, 'moved' FROM generate_series(1, 100) i;
BEGIN;
INSERT INTO d (a, b) SELECT (i * 31) % 100, 'moving' FROM generate_series(1, 50) i;
ALTER INDEX d_ab SET TABLESPACE pg_default;
INSERT INTO d (a, b) SELECT (i * 31) % 100, 'moved back' FROM generate_series(1, 50) i;
COMMIT;
SELECT lsm_check('d_ab', true), t.same_order('d', 'a, b, id', 'a, b');
REINDEX (TABLESPACE regress_lsm_space) INDEX d_ab;
SELECT lsm_check('d_ab', true), t.same('SELECT * FROM d WHERE b = ''moving'' AND a < 50');
ALTER TABLE d SET TABLESPACE regress_lsm_space;
ALTER INDEX d_ab SET TABLESPACE pg_default;
ALTER TABLE d SET TABLESPACE pg_default;
DROP TABLESPACE regress_lsm_space;
SELECT lsm_check('d_ab', true), t.same_order('d', 'a, b, id', 'a, b');

-- ALTER TYPE: without a rewrite, with one, and of a column in an expression.
CREATE TABLE ty (v varchar(20), n int, m numeric(8,2), ts timestamp);
CREATE INDEX ty_v ON ty USING lsm (v, n);
CREATE INDEX ty_m ON ty USING lsm (m, ts);
CREATE INDEX ty_e ON ty USING lsm ((n + 1));
INSERT INTO ty SELECT 'v' || i % 20, i, i / 3.0, timestamp '2024-01-01' + i * interval '1 hour' FROM generate_series(1, 200) i;
ALTER TABLE ty ALTER v TYPE varchar(40);
INSERT INTO ty SELECT 'longer than twenty characters ' || i, i FROM generate_series(1, 5) i;
ALTER TABLE ty ALTER v TYPE text;
ALTER TABLE ty ALTER m TYPE numeric(10,2);
ALTER TABLE ty ALTER ts TYPE timestamptz USING ts AT TIME ZONE 'UTC';
BEGIN;
INSERT INTO ty SELECT 'w' || i % 20, i, i / 3.0 FROM generate_series(1, 100) i;
ALTER TABLE ty ALTER n TYPE bigint;
INSERT INTO ty SELECT 'x' || i % 20, i, i / 3.0 FROM generate_series(1, 100) i;
COMMIT;
ALTER TABLE ty ALTER v TYPE text COLLATE "C";
SELECT lsm_check('ty_v', true), lsm_check('ty_m', true), lsm_check('ty_e', true);
SELECT t.same('SELECT * FROM ty WHERE v > ''v5'''), t.same('SELECT * FROM ty WHERE m < 20'), t.same('SELECT * FROM ty WHERE n + 1 = 50');
ALTER TABLE ty ADD COLUMN extra int DEFAULT 5;
ALTER TABLE ty DROP COLUMN m;
SELECT to_regclass('ty_m');
SELECT t.same('SELECT * FROM ty WHERE v > ''v5''');
ALTER TABLE ty SET LOGGED;
DROP TABLE ty;

-- Names, unknown storage parameters, LIKE, dropping in a transaction.
ALTER INDEX d_ab RENAME TO d_renamed;
SELECT t.same('SELECT a, b FROM d WHERE a = 5');
CREATE TABLE like_d (LIKE d INCLUDING INDEXES);
INSERT INTO like_d SELECT * FROM d;
SELECT count(*) FROM pg_indexes WHERE tablename = 'like_d' AND indexdef LIKE '% USING lsm (a, b)';
SELECT t.same('SELECT a, b FROM like_d WHERE a = 5');
BEGIN;
DROP INDEX d_renamed;
SELECT count(*) FROM d WHERE a = 5;
ROLLBACK;
SELECT t.same('SELECT a, b FROM d WHERE a = 5');
BEGIN;
CREATE INDEX d_rolled_back ON d USING lsm (b);
INSERT INTO d (a, b) VALUES (5, 'rolled back');
ROLLBACK;
SELECT to_regclass('d_rolled_back');
SELECT lsm_check('d_renamed', true);
-- The table as a statement in its own trigger sees it.
CREATE FUNCTION count_it() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF (SELECT count(*) FROM d WHERE a = NEW.a AND b = NEW.b) <> TG_ARGV[0]::int THEN
		RAISE EXCEPTION 'row is not there, or there too early';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER before_row BEFORE INSERT ON d FOR EACH ROW EXECUTE FUNCTION count_it(0);
CREATE TRIGGER after_row AFTER INSERT ON d FOR EACH ROW EXECUTE FUNCTION count_it(1);
CREATE CONSTRAINT TRIGGER deferred_row AFTER INSERT ON d DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_it(1);
SET enable_seqscan = off;
INSERT INTO d (a, b) SELECT i, 'trigger' FROM generate_series(1000, 1030) i;
RESET enable_seqscan;
DROP TRIGGER before_row ON d;
DROP TRIGGER after_row ON d;
DROP TRIGGER deferred_row ON d;
DROP FUNCTION count_it;

-- COPY in, out, and in again.
COPY d (a, b) FROM stdin;
2000	copied
2001	copied
2002	\N
\.
SELECT t.same('SELECT a, b FROM d WHERE a >= 2000');
-- A foreign key uses its own unique index; ours serves the referencing side.
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (parent int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
CREATE INDEX child_parent ON child USING lsm (parent);
INSERT INTO parent SELECT generate_series(1, 20);
INSERT INTO child SELECT i % 20 + 1 FROM generate_series(1, 100) i;
DELETE FROM parent WHERE id < 5;
UPDATE parent SET id = id + 100 WHERE id > 15;
SELECT t.same('SELECT * FROM child WHERE parent > 14');
SELECT lsm_check('child_parent', true);
DROP TABLE d, like_d, child, parent;
