-- INSERT ... ON CONFLICT of many rows: they are looked at ahead.
CREATE TABLE oa (a int, b bigint, c text, n int DEFAULT 0);
CREATE UNIQUE INDEX oa_ab ON oa USING lsm (a, b) INCLUDE (n);
CREATE INDEX oa_c ON oa USING lsm (c);
-- Keys that were there, that are new, and that come twice in the statement; plans of all kinds below.
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
-- An error in the midst of the rows; the statement is undone as a whole.
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
-- Others insert the same keys meanwhile: a function of the UPDATE, whose rows the statement then meets; and a trigger.
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
-- The plan runs ahead of the inserts, but not where that could be seen.
CREATE FUNCTION oa_so_far() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM oa WHERE a = 14';
INSERT INTO oa SELECT 14, oa_so_far() FROM generate_series(1, 300) i ON CONFLICT DO NOTHING;
INSERT INTO oa SELECT 14, 1000 + i FROM generate_series(1, 300) i WHERE oa_so_far() < 350 ON CONFLICT DO NOTHING;
INSERT INTO oa VALUES (14, oa_so_far()), (14, oa_so_far()), (14, oa_so_far()), (14, oa_so_far()), (14, oa_so_far()) ON CONFLICT DO NOTHING;
SELECT count(*), max(b) FROM oa WHERE a = 14;
-- Rows that are large, columns that are gone or generated, a column that is included, other types.
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
DROP TABLE oa, ob, oc;
DROP FUNCTION oa_more, oa_other, oa_so_far;
