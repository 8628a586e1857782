-- Unique indexes: everything that one session can test.
CREATE TABLE uq (id int, v text, w numeric, note text) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX uq_id ON uq USING lsm (id) INCLUDE (note);
CREATE UNIQUE INDEX uq_v ON uq USING lsm (v);
CREATE UNIQUE INDEX uq_w ON uq USING lsm (w DESC, id) WHERE w > 0;
CREATE UNIQUE INDEX uq_expr ON uq USING lsm (lower(v), (id % 7));
INSERT INTO uq SELECT i, 'v' || i, i FROM generate_series(1, 400) i;
SELECT count(*) FROM uq;

-- Single rows, and statements with one duplicate: the whole statement is rolled back.
INSERT INTO uq VALUES (17, 'x', 1000);
INSERT INTO uq VALUES (1000, 'v17', 1000);
INSERT INTO uq VALUES (1000, 'V17', 1000);
INSERT INTO uq VALUES (17 + 7000, 'V17', 1000);
INSERT INTO uq VALUES (17 + 7001, 'V17', 1000);
INSERT INTO uq SELECT i, 'w' || i, i FROM generate_series(500, 400, -1) i;
INSERT INTO uq SELECT i % 250 + 1000, 'w' || i, i FROM generate_series(1, 300) i;
SELECT count(*) FROM uq;
-- If the rows wait in a batch, the error does not name the line.
\set SHOW_CONTEXT never
COPY uq (id, v) FROM stdin;
2001	c1
2002	c2
2001	c3
\.
COPY uq (id, v) FROM stdin;
2001	c1
2002	c2
2003	c3
\.
\set SHOW_CONTEXT errors
SELECT count(*) FROM uq;

-- Equal values that do not look equal, and nulls.
INSERT INTO uq VALUES (3001, 'a1', 3), (3002, 'a2', 3.0), (3003, NULL, NULL);
INSERT INTO uq VALUES (3001, 'a5', 4), (3001, 'a6', 4.00);
CREATE UNIQUE INDEX uq_w2 ON uq USING lsm (w) WHERE w > 100;
INSERT INTO uq VALUES (3010, 'a10', 5000), (3011, 'a11', 5000.0);
DROP INDEX uq_w2;
INSERT INTO uq VALUES (NULL, NULL, 6), (NULL, NULL, 7), (NULL, NULL, NULL), (NULL, NULL, NULL);
CREATE UNIQUE INDEX uq_nulls ON uq USING lsm (id) NULLS NOT DISTINCT;
DELETE FROM uq WHERE id IS NULL;
CREATE UNIQUE INDEX uq_nulls ON uq USING lsm (id, v) NULLS NOT DISTINCT;
INSERT INTO uq VALUES (NULL, NULL, 1);
INSERT INTO uq VALUES (NULL, NULL, 2);
INSERT INTO uq VALUES (NULL, 'nn', 2);
INSERT INTO uq VALUES (NULL, 'nn2', 2);
UPDATE uq SET v = NULL WHERE v = 'nn2';
DROP INDEX uq_nulls;

-- A partial index checks only its own rows.
INSERT INTO uq VALUES (4000, 'p1', -1), (4001, 'p2', -1);
UPDATE uq SET w = 8000, id = 4000 WHERE id = 4000;
UPDATE uq SET w = 8000, id = 4000 WHERE v = 'p2';
UPDATE uq SET w = 8000 WHERE v = 'p2';

-- Updates and deletes: old versions of a row do not conflict with the new one.
UPDATE uq SET note = 'u';
UPDATE uq SET id = id WHERE id < 100;
-- Rows are checked one by one: the next row's key still exists.
UPDATE uq SET id = id + 1 WHERE id BETWEEN 50 AND 99;
UPDATE uq SET id = id + 100000 WHERE id BETWEEN 50 AND 99;
UPDATE uq SET id = 50 WHERE id = 100050;
UPDATE uq SET id = 51 WHERE id = 100052;
INSERT INTO uq VALUES (51, 'again', 51);
DELETE FROM uq WHERE id = 51;
INSERT INTO uq VALUES (51, 'again', 51);
BEGIN;
DELETE FROM uq WHERE id BETWEEN 1 AND 20;
INSERT INTO uq SELECT i, 'v' || i, i FROM generate_series(1, 20) i;
SAVEPOINT a;
DELETE FROM uq WHERE id BETWEEN 1 AND 20;
INSERT INTO uq SELECT i, 'v' || i, i FROM generate_series(1, 20) i;
ROLLBACK TO a;
INSERT INTO uq SELECT i, 'v' || i, i FROM generate_series(20, 21) i;
ROLLBACK;
BEGIN;
DELETE FROM uq WHERE id BETWEEN 1 AND 20;
SAVEPOINT a;
INSERT INTO uq SELECT i, 'v' || i, i FROM generate_series(1, 20) i;
ROLLBACK TO a;
INSERT INTO uq SELECT i, 'v' || i, i FROM generate_series(1, 19) i;
COMMIT;
INSERT INTO uq VALUES (20, 'v20', 20);
INSERT INTO uq VALUES (20, 'v20', 20);
VACUUM uq;
INSERT INTO uq VALUES (20, 'v20b', 20);
SELECT count(*), count(DISTINCT id), count(DISTINCT v) FROM uq;

-- A block that catches the error; its rows are rolled back.
CREATE FUNCTION uq_try(k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    INSERT INTO uq SELECT k + i, 't' || (k + i) FROM generate_series(-60, 0) i;
    RETURN 'inserted';
  EXCEPTION WHEN unique_violation THEN
    RETURN 'caught ' || sqlerrm;
  END;
END $$;
SELECT uq_try(7000), uq_try(7060), uq_try(7200);
SELECT count(*) FROM uq WHERE id BETWEEN 6900 AND 7300;

-- Many versions of one key.
CREATE TABLE uq_hot (id int, n int);
CREATE UNIQUE INDEX uq_hot_id ON uq_hot USING lsm (id);
CREATE INDEX uq_hot_n ON uq_hot USING lsm (n);
INSERT INTO uq_hot VALUES (1, 0), (2, 0);
DO $$ BEGIN FOR i IN 1..300 LOOP UPDATE uq_hot SET n = n + 1 WHERE id = 1; END LOOP; END $$;
INSERT INTO uq_hot VALUES (1, 0);
SELECT * FROM uq_hot ORDER BY id;

-- CREATE INDEX on rows that are not unique, or were not.
CREATE TABLE uq_b (a int, b text COLLATE "C", c numeric);
INSERT INTO uq_b SELECT i, 'b' || i, i FROM generate_series(1, 500) i;
UPDATE uq_b SET b = b || 'x' WHERE a < 100;
DELETE FROM uq_b WHERE a = 300;
CREATE UNIQUE INDEX uq_b_a ON uq_b USING lsm (a);
CREATE UNIQUE INDEX uq_b_c ON uq_b USING lsm (c) INCLUDE (b);
INSERT INTO uq_b VALUES (300, 'b300', 300);
DROP INDEX uq_b_a, uq_b_c;
INSERT INTO uq_b VALUES (300, 'b300', 300.0);
CREATE UNIQUE INDEX uq_b_a ON uq_b USING lsm (a);
CREATE UNIQUE INDEX uq_b_c ON uq_b USING lsm (c);
CREATE UNIQUE INDEX uq_b_ac ON uq_b USING lsm (a, b DESC, c);
CREATE UNIQUE INDEX CONCURRENTLY uq_b_ac2 ON uq_b USING lsm (a, b DESC, c);
CREATE UNIQUE INDEX CONCURRENTLY uq_b_ok ON uq_b USING lsm (b, c, a) WHERE a <> 300;
BEGIN;
DELETE FROM uq_b WHERE ctid = (SELECT max(ctid) FROM uq_b WHERE a = 300);
CREATE UNIQUE INDEX uq_b_a ON uq_b USING lsm (a);
INSERT INTO uq_b VALUES (1, 'b1', 1);
ROLLBACK;
DROP INDEX uq_b_ac2;
DELETE FROM uq_b WHERE ctid = (SELECT max(ctid) FROM uq_b WHERE a = 300);
CREATE UNIQUE INDEX CONCURRENTLY uq_b_ac2 ON uq_b USING lsm (a, b DESC, c);
REINDEX INDEX CONCURRENTLY uq_b_ok;
REINDEX TABLE uq_b;
TRUNCATE uq_b;
INSERT INTO uq_b VALUES (1, 'b1', 1);
INSERT INTO uq_b VALUES (1, 'b1', 1.000);

-- Types whose keys are compared by functions, with and without a hash.
CREATE TABLE uq_t (a int[], r int4range, n numeric, b bit varying, c bpchar(8), p point, t interval, j jsonb);
CREATE UNIQUE INDEX uq_t_a ON uq_t USING lsm (a);
CREATE UNIQUE INDEX uq_t_r ON uq_t USING lsm (r);
CREATE UNIQUE INDEX uq_t_n ON uq_t USING lsm (n);
CREATE UNIQUE INDEX uq_t_b ON uq_t USING lsm (b);
CREATE UNIQUE INDEX uq_t_c ON uq_t USING lsm (c);
CREATE UNIQUE INDEX uq_t_t ON uq_t USING lsm (t);
CREATE UNIQUE INDEX uq_t_j ON uq_t USING lsm (j);
INSERT INTO uq_t SELECT ARRAY[i, i + 1], int4range(i, i + 5), i, i::bit(16)::varbit, 'c' || i, NULL,
  make_interval(hours => i), to_jsonb(i) FROM generate_series(1, 60) i;
INSERT INTO uq_t (a) VALUES ('{7,8}');
INSERT INTO uq_t (r) VALUES ('[7,11]');
INSERT INTO uq_t (n) VALUES (7.00);
INSERT INTO uq_t (b) VALUES (7::bit(16));
INSERT INTO uq_t (c) VALUES ('c7   ');
INSERT INTO uq_t (t) VALUES ('1 day');
INSERT INTO uq_t (j) VALUES ('7.0');

-- Floats: zeros are equal, and so are NaNs.
CREATE TABLE uq_f (f float8, g float4);
CREATE UNIQUE INDEX uq_f_f ON uq_f USING lsm (f);
CREATE UNIQUE INDEX uq_f_g ON uq_f USING lsm (g DESC);
INSERT INTO uq_f VALUES ('0', '0'), ('NaN', 'NaN');
INSERT INTO uq_f VALUES ('-0', '1');
INSERT INTO uq_f VALUES ('1', '-0');
INSERT INTO uq_f VALUES ('NaN', '2');
INSERT INTO uq_f VALUES ('2', 'NaN');

-- Temporary and unlogged tables.
CREATE TEMP TABLE uq_temp (k int);
CREATE UNIQUE INDEX uq_temp_k ON uq_temp USING lsm (k);
INSERT INTO uq_temp SELECT generate_series(1, 100);
INSERT INTO uq_temp SELECT generate_series(100, 1, -1);
CREATE UNLOGGED TABLE uq_un (k int);
CREATE UNIQUE INDEX uq_un_k ON uq_un USING lsm (k);
INSERT INTO uq_un SELECT generate_series(1, 100);
INSERT INTO uq_un SELECT generate_series(50, 150);

-- The planner knows that there is at most one row.
EXPLAIN (COSTS OFF) SELECT x.id FROM uq x LEFT JOIN uq y ON x.id = y.id;
EXPLAIN (COSTS OFF) SELECT x.id FROM uq x LEFT JOIN uq y ON x.w = y.w AND x.id = y.id;

-- MERGE.
MERGE INTO uq_hot t USING (VALUES (2, 5), (3, 6), (4, 7)) s (id, n) ON t.id = s.id
  WHEN MATCHED THEN UPDATE SET n = s.n
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n);
MERGE INTO uq_hot t USING (VALUES (2, 5), (3, 6), (4, 7)) s (id, n) ON t.n = s.id
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n);
SELECT * FROM uq_hot ORDER BY id;
DROP TABLE uq, uq_hot, uq_b, uq_t, uq_f, uq_temp, uq_un;
DROP FUNCTION uq_try;
