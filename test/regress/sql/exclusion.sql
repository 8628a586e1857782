-- Exclusion constraints: the nearest thing to unique that there is for now.
-- Their scans see rows of transactions in progress.
CREATE TABLE e (k int, v text COLLATE "C", CONSTRAINT e_k EXCLUDE USING lsm (k WITH =));
INSERT INTO e SELECT i, 'v' || i FROM generate_series(1, 50) i;
INSERT INTO e VALUES (51, 'fine'), (7, 'not fine');
INSERT INTO e VALUES (52, 'twice'), (52, 'twice');
INSERT INTO e VALUES (NULL, 'null'), (NULL, 'null');
INSERT INTO e VALUES (7, 'skipped'), (60, 'taken') ON CONFLICT DO NOTHING;
INSERT INTO e VALUES (7, 'skipped'), (60, 'skipped'), (61, 'taken') ON CONFLICT ON CONSTRAINT e_k DO NOTHING;
UPDATE e SET k = k + 1;
UPDATE e SET k = 8 WHERE k = 9;
UPDATE e SET v = 'same key' WHERE k = 9;
DELETE FROM e WHERE k = 10;
INSERT INTO e VALUES (10, 'again');
BEGIN;
DELETE FROM e WHERE k = 11;
INSERT INTO e VALUES (11, 'in transaction');
SAVEPOINT s;
INSERT INTO e VALUES (12, 'fails');
ROLLBACK TO s;
INSERT INTO e VALUES (100, 'undone');
ROLLBACK TO s;
INSERT INTO e VALUES (100, 'done');
COMMIT;
SELECT t.same('SELECT * FROM e WHERE k BETWEEN 7 AND 12'), t.same('SELECT * FROM e WHERE k >= 50'), lsm_check('e_k', true);
SELECT * FROM e WHERE k BETWEEN 7 AND 12 OR k >= 50 ORDER BY k;
-- Over several columns, with expressions, predicates and deferred.
CREATE TABLE f (a int, b text COLLATE "C", c bool);
ALTER TABLE f ADD CONSTRAINT f_ab EXCLUDE USING lsm (a WITH =, lower(b) WITH =) INCLUDE (c) WHERE (c) DEFERRABLE INITIALLY DEFERRED;
INSERT INTO f SELECT i % 10, 'B' || i / 10, true FROM generate_series(0, 49) i;
INSERT INTO f SELECT 5, 'b1', false FROM generate_series(1, 3);
BEGIN;
INSERT INTO f VALUES (5, 'b1', true);
INSERT INTO f VALUES (6, 'b1', true);
DELETE FROM f WHERE b = 'B1' AND a IN (5, 6);
COMMIT;
BEGIN;
INSERT INTO f VALUES (7, 'b1', true);
COMMIT;
BEGIN;
INSERT INTO f VALUES (7, 'b1', true);
SET CONSTRAINTS f_ab IMMEDIATE;
ROLLBACK;
SELECT t.same('SELECT * FROM f WHERE a = 5 AND lower(b) = ''b1'' AND c'), lsm_check('f_ab', true);
-- Built over rows that break it.
INSERT INTO f SELECT 9, 'x', false FROM generate_series(1, 2);
ALTER TABLE f ADD CONSTRAINT f_bad EXCLUDE USING lsm (a WITH =, b WITH =);
-- VACUUM and the constraint.
DELETE FROM e WHERE k < 40;
VACUUM e;
INSERT INTO e SELECT i, 'new' FROM generate_series(1, 39) i;
INSERT INTO e VALUES (20, 'not fine');
SELECT t.same('SELECT * FROM e WHERE k < 45'), lsm_check('e_k', true);
DROP TABLE e, f;
