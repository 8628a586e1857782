-- Entries of unique indexes that wait until their statement ends. This has no visible
-- effect.
\set SHOW_CONTEXT never
CREATE TABLE ub (id int, v text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX ub_id ON ub USING lsm (id);
CREATE UNIQUE INDEX ub_n ON ub USING lsm (n) WHERE n IS NOT NULL;
-- A statement larger than a batch, with the duplicate of a key in the same batch, the next
-- one, the last one.
INSERT INTO ub SELECT i, 'a', i FROM generate_series(1, 1000) i;
INSERT INTO ub SELECT CASE i WHEN 1020 THEN 1019 ELSE i END, 'b' FROM generate_series(1001, 1400) i;
INSERT INTO ub SELECT CASE i WHEN 1170 THEN 1019 ELSE i END, 'b' FROM generate_series(1001, 1400) i;
INSERT INTO ub SELECT CASE i WHEN 1400 THEN 1019 ELSE i END, 'b' FROM generate_series(1001, 1400) i;
INSERT INTO ub SELECT CASE i WHEN 1400 THEN 7 ELSE i END, 'b' FROM generate_series(1001, 1400) i;
INSERT INTO ub SELECT i, 'b', CASE i WHEN 1100 THEN 7 END FROM generate_series(1001, 1400) i;
INSERT INTO ub SELECT i, 'b', CASE i WHEN 1100 THEN 1000.5 WHEN 1300 THEN 1000.50 END FROM generate_series(1001, 1400) i;
INSERT INTO ub SELECT NULL, 'null', NULL FROM generate_series(1, 300) i;
SELECT count(*), count(DISTINCT id) FROM ub;
-- A block catches the error of its statement, and continues.
CREATE FUNCTION ub_try(first int, last int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  k text;
BEGIN
  INSERT INTO ub SELECT i, 'try', NULL FROM generate_series(first, last) i;
  RETURN 'ok';
EXCEPTION WHEN unique_violation THEN
  GET STACKED DIAGNOSTICS k = CONSTRAINT_NAME;
  RETURN 'caught ' || k;
END $$;
SELECT ub_try(2001, 2100);
SELECT ub_try(2100, 2300);
SELECT ub_try(2101, 2300);
DO $$ BEGIN
  INSERT INTO ub SELECT i, 'do' FROM generate_series(3001, 3050) i;
  RAISE NOTICE '%', ub_try(3040, 3090);
  RAISE NOTICE '%', ub_try(3051, 3090);
  BEGIN
    INSERT INTO ub SELECT i, 'do' FROM generate_series(3100, 3050, -1) i;
  EXCEPTION WHEN unique_violation THEN RAISE NOTICE 'caught';
  END;
  INSERT INTO ub SELECT i, 'do' FROM generate_series(3100, 3091, -1) i;
END $$;
SELECT count(*), count(DISTINCT id) FROM ub WHERE id BETWEEN 2000 AND 4000;
-- Statements within a statement: on the same table, on its keys.
CREATE FUNCTION ub_inner(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF i % 25 = 0 THEN
    BEGIN
      INSERT INTO ub VALUES (i - 5, 'inner');
      RAISE NOTICE 'inserted %', i - 5;
    EXCEPTION WHEN unique_violation THEN RAISE NOTICE 'caught %', i - 5;
    END;
  ELSIF i % 25 = 1 THEN
    INSERT INTO ub SELECT j, 'inner' FROM generate_series(i * 100, i * 100 + 30) j;
  ELSIF i % 25 = 2 THEN
    DELETE FROM ub WHERE id = i - 1;
  END IF;
  RETURN i;
END $$;
INSERT INTO ub SELECT ub_inner(i), 'outer' FROM generate_series(5001, 5100) i;
SELECT v, count(*), sum(id) FROM ub WHERE id >= 5000 GROUP BY v ORDER BY v;
-- A row that the statement's own function deletes no longer counts.
CREATE FUNCTION ub_delete(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF i > 6050 THEN DELETE FROM ub WHERE id = i - 50; RETURN i - 50; END IF;
  RETURN i;
END $$;
INSERT INTO ub SELECT ub_delete(i), 'deleting' FROM generate_series(6001, 6100) i;
SELECT count(*), min(id), max(id) FROM ub WHERE v = 'deleting';
-- Triggers: AFTER triggers see the complete index.
CREATE FUNCTION ub_after() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  found_rows int;
BEGIN
  PERFORM set_config('enable_seqscan', 'off', true);
  SELECT count(*) INTO found_rows FROM ub WHERE id BETWEEN 7001 AND 7500;
  IF TG_LEVEL = 'STATEMENT' THEN RAISE NOTICE 'statement: %', found_rows;
  ELSIF NEW.id % 40 = 0 THEN
    RAISE NOTICE 'row: %', found_rows;
    INSERT INTO ub VALUES (NEW.id + 400, 'by trigger') ON CONFLICT DO NOTHING;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER ub_row AFTER INSERT ON ub FOR EACH ROW WHEN (NEW.id BETWEEN 7001 AND 7120) EXECUTE FUNCTION ub_after();
INSERT INTO ub SELECT i, 'trigger' FROM generate_series(7001, 7120) i;
CREATE TRIGGER ub_statement AFTER INSERT ON ub FOR EACH STATEMENT EXECUTE FUNCTION ub_after();
INSERT INTO ub SELECT i, 'trigger' FROM generate_series(7121, 7180) i;
DROP TRIGGER ub_row ON ub;
DROP TRIGGER ub_statement ON ub;
-- WITH, RETURNING fetched in portions, cursors, prepared transactions, savepoints.
WITH w AS (INSERT INTO ub SELECT i, 'with' FROM generate_series(8001, 8060) i RETURNING id)
INSERT INTO ub SELECT id + 100, 'with2' FROM w;
WITH w AS (INSERT INTO ub SELECT i, 'with' FROM generate_series(8201, 8260) i RETURNING id)
INSERT INTO ub SELECT id, 'with2' FROM w;
WITH w AS (INSERT INTO ub SELECT i, 'with' FROM generate_series(8201, 8260) i RETURNING id)
SELECT count(*) FROM w;
BEGIN;
SAVEPOINT a;
INSERT INTO ub SELECT i, 'a' FROM generate_series(9001, 9060) i;
ROLLBACK TO a;
INSERT INTO ub SELECT i, 'a2' FROM generate_series(9001, 9060) i;
SAVEPOINT b;
INSERT INTO ub SELECT i, 'b' FROM generate_series(9050, 9099) i;
ROLLBACK TO b;
INSERT INTO ub SELECT i, 'b' FROM generate_series(9061, 9099) i;
PREPARE TRANSACTION 'lsm_ub';
COMMIT PREPARED 'lsm_ub';
SELECT v, count(*) FROM ub WHERE id BETWEEN 9000 AND 9100 GROUP BY v ORDER BY v;
-- Rows selected from the table itself; keys of deleted rows.
INSERT INTO ub SELECT id + 20000, v FROM ub WHERE id < 400;
INSERT INTO ub SELECT id + 20000, v FROM ub WHERE id BETWEEN 399 AND 600;
BEGIN;
DELETE FROM ub WHERE id > 20000;
INSERT INTO ub SELECT id + 20000, v FROM ub WHERE id < 300;
COMMIT;
SELECT count(*), count(DISTINCT id) FROM ub WHERE id > 20000;
-- Partitions, each with its own.
CREATE TABLE ubp (k int, v int) PARTITION BY HASH (k);
CREATE TABLE ubp0 PARTITION OF ubp FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE ubp1 PARTITION OF ubp FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE ubp2 PARTITION OF ubp FOR VALUES WITH (MODULUS 3, REMAINDER 2);
CREATE UNIQUE INDEX ubp0_k ON ubp0 USING lsm (k);
CREATE UNIQUE INDEX ubp1_k ON ubp1 USING lsm (k);
CREATE UNIQUE INDEX ubp2_k ON ubp2 USING lsm (k);
INSERT INTO ubp SELECT i, i FROM generate_series(1, 500) i;
INSERT INTO ubp SELECT i, i FROM generate_series(500, 700) i;
INSERT INTO ubp SELECT i, i FROM generate_series(501, 700) i;
SELECT count(*), count(DISTINCT k) FROM ubp;
DROP TABLE ub, ubp;
DROP FUNCTION ub_try, ub_inner, ub_delete, ub_after;
