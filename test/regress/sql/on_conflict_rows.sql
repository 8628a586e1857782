-- INSERT ... ON CONFLICT of many rows, which looks up keys ahead.
CREATE TABLE oa (a int, b bigint, c text, n int DEFAULT 0);
CREATE UNIQUE INDEX oa_ab ON oa USING lsm (a, b) INCLUDE (n);
CREATE INDEX oa_c ON oa USING lsm (c);
-- Keys that exist, that are new, and that occur twice in the statement; with all kinds of plans
-- below.
INSERT INTO oa SELECT i % 8, i, 'first ' || i FROM generate_series(1, 2000) i ON CONFLICT DO NOTHING;
INSERT INTO oa SELECT i % 8, i / 2 * 2, 'second ' || i FROM generate_series(1001, 3000) i ON CONFLICT DO NOTHING;
SELECT count(*), sum(b), count(*) FILTER (WHERE c LIKE 'first%') FROM oa;
INSERT INTO oa VALUES (1, 1, 'x'), (1, 100000, 'y'), (1, 100000, 'z'), (NULL, 1, 'null'), (NULL, 1, 'null'), (2, 2, 'two')
  ON CONFLICT (a, b) DO UPDATE SET n = oa.n + 1 WHERE oa.b <> 100000 RETURNING a, b, c, n;
INSERT INTO oa SELECT a, b, c FROM oa ON CONFLICT (a, b) DO UPDATE SET n = oa.n + 1;
INSERT INTO oa SELECT a, b + 1, c FROM oa ORDER BY c, a, b ON CONFLICT DO NOTHING;
WITH w AS MATERIALIZED (SELECT a, b + 2 AS b, c FROM oa) INSERT INTO oa SELECT * FROM w ON CONFLICT DO NOTHING;
INSERT INTO oa TABLE oa ON CONFLICT (a, b) DO UPDATE SET n = -1 WHERE excluded.n > 0;
INSERT INTO oa SELECT 7, unnest(ARRAY[1, 7, 7, 500000, NULL]::bigint[]) ON CONFLICT DO NOTHING;
SELECT count(*), sum(b), sum(n), count(DISTINCT (a, b)) FROM oa;
SELECT count(*) FROM (SELECT a, b FROM oa WHERE a IS NOT NULL AND b IS NOT NULL GROUP BY a, b HAVING count(*) > 1) twice;
-- A row may be changed only once.
INSERT INTO oa SELECT 3, 3 + i / 400 * 8, 'again' FROM generate_series(1, 800) i ON CONFLICT (a, b) DO UPDATE SET n = 5;
-- An error among the rows: the whole statement is rolled back.
INSERT INTO oa SELECT 9, 1000 / (500 - i), 'error' FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING;
SELECT count(*) FROM oa WHERE a = 9;
DO $$
BEGIN
  FOR i IN 1 .. 20 LOOP
    BEGIN
      INSERT INTO oa SELECT 10, 100 * i + j, 'loop' FROM generate_series(1, 100) j WHERE i % 3 > 0 OR 100 / (50 - j) < 1000 ON CONFLICT DO NOTHING;
    EXCEPTION WHEN division_by_zero THEN
      INSERT INTO oa SELECT 11, 100 * i + j, 'handler' FROM generate_series(1, 100) j ON CONFLICT DO NOTHING;
    END;
  END LOOP;
END $$;
SELECT a, count(*) FROM oa WHERE a IN (10, 11) GROUP BY a ORDER BY a;
-- Others insert the same keys meanwhile: a function in the UPDATE, whose rows the statement then
-- finds, and a trigger.
CREATE FUNCTION oa_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO oa SELECT 12 + j % 2, NEW.b + j, 'trigger' FROM generate_series(1, 9) j ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER oa_more AFTER UPDATE ON oa FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION oa_more();
CREATE FUNCTION oa_other(k bigint) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO oa SELECT 13, k + 3 + j, 'function' FROM generate_series(1, 5) j ON CONFLICT DO NOTHING;
  RETURN 1;
END $$;
INSERT INTO oa SELECT 13, i FROM generate_series(10, 19) i;
INSERT INTO oa SELECT 13, i, 'rows' FROM generate_series(1, 40) i ON CONFLICT (a, b) DO UPDATE SET n = oa_other(oa.b);
INSERT INTO oa SELECT 13, i, 'rows' FROM generate_series(1, 10) i ON CONFLICT (a, b) DO UPDATE SET n = oa_other(oa.b);
INSERT INTO oa SELECT 13, i, 'rows' FROM generate_series(1, 40) i ON CONFLICT (a, b) DO UPDATE SET n = 1;
SELECT c, count(*), min(b), max(b) FROM oa WHERE a IN (12, 13) GROUP BY c ORDER BY c;
SELECT count(*) FROM (SELECT a, b FROM oa WHERE a IS NOT NULL AND b IS NOT NULL GROUP BY a, b HAVING count(*) > 1) twice;
-- The plan runs ahead of the inserts, but not where this would be noticeable.
CREATE FUNCTION oa_so_far() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM oa WHERE a = 14';
INSERT INTO oa SELECT 14, oa_so_far() FROM generate_series(1, 300) i ON CONFLICT DO NOTHING;
INSERT INTO oa SELECT 14, 1000 + i FROM generate_series(1, 300) i WHERE oa_so_far() < 350 ON CONFLICT DO NOTHING;
INSERT INTO oa VALUES (14, oa_so_far()), (14, oa_so_far()), (14, oa_so_far()), (14, oa_so_far()), (14, oa_so_far()) ON CONFLICT DO NOTHING;
SELECT count(*), max(b) FROM oa WHERE a = 14;
-- Large rows, dropped and generated columns, an included column, other types.
CREATE TABLE ob (gone int, id text COLLATE "C", payload text, len int GENERATED ALWAYS AS (length(payload)) STORED, s serial);
ALTER TABLE ob DROP COLUMN gone;
CREATE UNIQUE INDEX ob_id ON ob USING lsm (id) INCLUDE (s);
CREATE UNIQUE INDEX ob_payload ON ob USING lsm (md5(payload));
SET work_mem = '64kB';
INSERT INTO ob (id, payload) SELECT 'id ' || i % 300, repeat(i::text, 3000) FROM generate_series(1, 600) i ON CONFLICT (id) DO NOTHING;
RESET work_mem;
INSERT INTO ob (id, payload) SELECT 'id ' || i, repeat((i + 1)::text, 3000) FROM generate_series(250, 350) i ON CONFLICT DO NOTHING;
SELECT count(*), sum(len), count(DISTINCT s) FROM ob;
-- A column that the rows of the source do not have on disk.
CREATE TABLE oc (a int, b int);
INSERT INTO oc SELECT i, i FROM generate_series(1, 10) i;
ALTER TABLE oc ADD c text DEFAULT 'missing', ADD n int DEFAULT 77;
INSERT INTO oa TABLE oc ON CONFLICT DO NOTHING;
SELECT c, n, count(*) FROM oa WHERE c = 'missing' GROUP BY c, n;
-- A statement fails in a function whose memory stays, and the index is emptied: what was known
-- about its keys must be discarded.
SET check_function_bodies = off;
CREATE FUNCTION od_rows() RETURNS int LANGUAGE sql AS
  'INSERT INTO od SELECT g, g FROM generate_series(1, 200) g ON CONFLICT DO NOTHING; SELECT 1';
BEGIN;
CREATE TABLE od (k int, v int CHECK (v < 150));
CREATE UNIQUE INDEX od_k ON od USING lsm (k);
DO $$
DECLARE n int;
BEGIN
  FOR i IN 1 .. 30 LOOP
    INSERT INTO od SELECT 10000 * i + g, 1 FROM generate_series(1, 100) g;
  END LOOP;
  BEGIN
    n := od_rows();
  EXCEPTION WHEN check_violation THEN NULL;
  END;
  TRUNCATE od;
  INSERT INTO od SELECT g, 1 FROM generate_series(1, 200) g;
  INSERT INTO od VALUES (79, 2) ON CONFLICT DO NOTHING;
  BEGIN
    INSERT INTO od VALUES (77, 2);
  EXCEPTION WHEN unique_violation THEN RAISE NOTICE '77 is there';
  END;
END $$;
SELECT count(*), count(DISTINCT k) FROM od;
COMMIT;
DROP TABLE od;
CREATE TEMP TABLE od (k int, v int CHECK (v < 150)) ON COMMIT DELETE ROWS;
CREATE UNIQUE INDEX od_k ON od USING lsm (k);
DO $$
DECLARE n int;
BEGIN
  FOR i IN 1 .. 30 LOOP
    INSERT INTO od SELECT 10000 * i + g, 1 FROM generate_series(1, 100) g;
  END LOOP;
  BEGIN
    n := od_rows();
  EXCEPTION WHEN check_violation THEN NULL;
  END;
  COMMIT;
  INSERT INTO od SELECT g, 1 FROM generate_series(1, 200) g;
  INSERT INTO od VALUES (79, 2) ON CONFLICT DO NOTHING;
  BEGIN
    INSERT INTO od VALUES (77, 2);
  EXCEPTION WHEN unique_violation THEN RAISE NOTICE '77 is there';
  END;
  RAISE NOTICE '% rows, % keys', (SELECT count(*) FROM od), (SELECT count(DISTINCT k) FROM od);
END $$;
DROP TABLE od;
-- Volatile functions in all parts of a plan, and locked rows.
CREATE TABLE oe (k int, v int);
CREATE UNIQUE INDEX oe_k ON oe USING lsm (k);
INSERT INTO oe SELECT i, 0 FROM generate_series(1, 300) i;
TRUNCATE oa;
CREATE FUNCTION oa_all(int) RETURNS bigint LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN (SELECT count(*) FROM oa); END';
INSERT INTO oa SELECT 1, s.k, f::text FROM oe s, LATERAL oa_all(s.k) f ON CONFLICT DO NOTHING;
SELECT sum(c::int) FROM oa;
TRUNCATE oa;
INSERT INTO oa SELECT 1, a.k FROM oe a, oe b WHERE a.k = b.k AND oa_all(a.k + b.k) < 100 ON CONFLICT DO NOTHING;
SELECT count(*) FROM oa;
TRUNCATE oa;
WITH w AS (SELECT k, oa_all(k) AS n FROM oe) INSERT INTO oa SELECT 1, k, n FROM w ON CONFLICT DO NOTHING;
SELECT sum(c::int) FROM oa;
TRUNCATE oa;
CREATE FUNCTION oa_step(bigint, int) RETURNS bigint LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN (SELECT count(*) FROM oa); END';
CREATE AGGREGATE oa_now (int) (SFUNC = oa_step, STYPE = bigint, INITCOND = '0');
INSERT INTO oa SELECT 1, k, oa_now(k) FROM oe GROUP BY k ON CONFLICT DO NOTHING;
SELECT count(*), sum(c::int) <= 300 * 299 / 2 AS as_they_came FROM oa;
INSERT INTO oe SELECT k + 1, 0 FROM (SELECT k FROM oe WHERE k < 20 ORDER BY k FOR UPDATE) s ON CONFLICT (k) DO UPDATE SET v = oe.v + 1;
SELECT sum(v) FROM oe;
-- A key that is too long for one index, in a row that has a conflict in another one.
CREATE TABLE og (a text COLLATE "C", b int);
CREATE UNIQUE INDEX og_a ON og USING lsm (a);
CREATE UNIQUE INDEX og_b ON og USING lsm (b);
INSERT INTO og SELECT i::text, i FROM generate_series(1, 10) i;
INSERT INTO og SELECT string_agg(md5(i::text || j), ''), j FROM generate_series(1, 500) i, generate_series(1, 10) j GROUP BY j ON CONFLICT (b) DO NOTHING;
SELECT count(*), max(length(a)) FROM og;
-- Keys that a function compares are looked up ahead, too, in bounded memory.
CREATE TABLE oh (k int[]);
CREATE UNIQUE INDEX oh_k ON oh USING lsm (k);
CREATE FUNCTION oh_memory() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE 'memory is bounded: %', (SELECT sum(total_bytes) < 20e6 FROM pg_backend_memory_contexts WHERE name IN ('ExecutorState', 'pg_lsm rows', 'pg_lsm keys'));
  RETURN NULL;
END $$;
CREATE TRIGGER oh_memory AFTER INSERT ON oh FOR EACH STATEMENT EXECUTE FUNCTION oh_memory();
INSERT INTO oh SELECT ARRAY[i % 5000] FROM generate_series(1, 10000) i ON CONFLICT DO NOTHING;
SELECT count(*), min(k), max(k) FROM oh;
DROP TABLE oh;
DROP FUNCTION oh_memory();
-- A sequence shows its current value, even to a reader that does not advance it.
CREATE SEQUENCE os_numbers;
CREATE TABLE os (k int, n bigint, seen bigint);
CREATE UNIQUE INDEX os_k ON os USING lsm (k);
INSERT INTO os SELECT i, 0, 0 FROM generate_series(1, 1000) i;
INSERT INTO os SELECT i, 0, (SELECT last_value + 0 * i FROM os_numbers) FROM generate_series(1, 1000) i
  ON CONFLICT (k) DO UPDATE SET n = nextval('os_numbers'), seen = excluded.seen;
SELECT count(*), count(DISTINCT seen), max(n), max(n - seen) FROM os;
DROP TABLE os;
DROP SEQUENCE os_numbers;
DROP TABLE oe, og;
DROP AGGREGATE oa_now (int);
DROP FUNCTION oa_all, oa_step, od_rows;
DROP TABLE oa, ob, oc;
DROP FUNCTION oa_more, oa_other, oa_so_far;
