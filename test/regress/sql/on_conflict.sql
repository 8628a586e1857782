-- INSERT ... ON CONFLICT with unique indexes, in all forms.
CREATE TABLE oc (id int, a int, b text COLLATE "C", n int DEFAULT 0);
CREATE UNIQUE INDEX oc_id ON oc USING lsm (id);
CREATE UNIQUE INDEX oc_a ON oc USING lsm (a) INCLUDE (b);
CREATE UNIQUE INDEX oc_b ON oc USING lsm (lower(b)) WHERE n >= 0;
CREATE INDEX oc_n ON oc USING lsm (n);
INSERT INTO oc SELECT i, i, 'b' || i FROM generate_series(1, 100) i ON CONFLICT DO NOTHING;
INSERT INTO oc SELECT i, i, 'b' || i FROM generate_series(50, 150) i ON CONFLICT DO NOTHING;
INSERT INTO oc SELECT i, i, 'b' || i FROM generate_series(150, 200) i ON CONFLICT (id) DO NOTHING;
SELECT count(*), sum(id) FROM oc;
-- The same key twice in a statement.
INSERT INTO oc SELECT 300 + i % 10, 300 + i % 10, 'c' || i FROM generate_series(1, 40) i ON CONFLICT DO NOTHING;
INSERT INTO oc VALUES (400, 400, 'x'), (400, 401, 'y') ON CONFLICT (id) DO UPDATE SET n = 5;
SELECT count(*) FROM oc;
-- The conflict is in the arbiter, or in another index.
INSERT INTO oc VALUES (1, 1000, 'new') ON CONFLICT (id) DO UPDATE SET n = oc.n + 1, b = excluded.b RETURNING *;
INSERT INTO oc VALUES (2000, 1, 'new2') ON CONFLICT (id) DO NOTHING;
INSERT INTO oc VALUES (2000, 1, 'new2') ON CONFLICT (a) DO UPDATE SET n = oc.n + 1 RETURNING *;
INSERT INTO oc VALUES (2000, 2000, 'B3') ON CONFLICT (lower(b)) WHERE n >= 0 DO UPDATE SET n = -1 RETURNING *;
INSERT INTO oc VALUES (2000, 2000, 'B3') ON CONFLICT (lower(b)) WHERE n >= 0 DO UPDATE SET n = -1 RETURNING *;
INSERT INTO oc VALUES (5, 5, 'b5') ON CONFLICT (id) DO UPDATE SET id = 6;
INSERT INTO oc VALUES (5, 5, 'b5') ON CONFLICT (id) DO UPDATE SET n = 7 WHERE oc.n = 1;
INSERT INTO oc VALUES (5, 5, 'b5') ON CONFLICT (n) DO NOTHING;
INSERT INTO oc VALUES (NULL, NULL, NULL), (NULL, NULL, NULL) ON CONFLICT (id) DO NOTHING;
SELECT count(*) FROM oc;
-- With WITH, PREPARE, functions and views.
WITH w AS (INSERT INTO oc VALUES (5, 5, 'q') ON CONFLICT DO NOTHING RETURNING id),
  x AS (INSERT INTO oc VALUES (6, 5000, 'qq'), (5000, 5001, 'r') ON CONFLICT (id) DO UPDATE SET b = 'cte' RETURNING id)
SELECT (SELECT count(*) FROM w), (SELECT sum(id) FROM x);
PREPARE oc_up (int) AS INSERT INTO oc VALUES ($1, $1, 'p' || $1) ON CONFLICT (id) DO UPDATE SET n = oc.n + 1;
EXECUTE oc_up (7000);
EXECUTE oc_up (7000);
EXECUTE oc_up (7000);
EXECUTE oc_up (7000);
EXECUTE oc_up (7000);
EXECUTE oc_up (7000);
EXECUTE oc_up (7000);
EXPLAIN (COSTS OFF) EXECUTE oc_up (7000);
SELECT * FROM oc WHERE id = 7000;
DO $$ BEGIN
  FOR i IN 1..60 LOOP
    INSERT INTO oc VALUES (i * 5, i * 5, 'd' || i) ON CONFLICT DO NOTHING;
    INSERT INTO oc VALUES (i * 7, i * 7, 'e' || i) ON CONFLICT (id) DO UPDATE SET n = oc.n + 1;
  END LOOP;
END $$;
CREATE VIEW oc_view AS SELECT id, a, b FROM oc;
INSERT INTO oc_view VALUES (1, 1, 'v') ON CONFLICT (id) DO UPDATE SET b = 'view' RETURNING id, b;
SELECT count(*), sum(id), sum(n), count(DISTINCT id), count(DISTINCT a) FROM oc;
-- In transactions that are partly rolled back.
BEGIN;
INSERT INTO oc VALUES (9000, 9000, 's') ON CONFLICT DO NOTHING;
SAVEPOINT s;
INSERT INTO oc VALUES (9000, 9001, 's2'), (9001, 9001, 's3') ON CONFLICT (id) DO UPDATE SET n = 1;
ROLLBACK TO s;
INSERT INTO oc VALUES (9000, 9001, 's2'), (9001, 9001, 's3') ON CONFLICT DO NOTHING;
COMMIT;
SELECT id, a, b, n FROM oc WHERE id >= 9000 ORDER BY id;
-- A trigger that inserts the same key first.
CREATE FUNCTION oc_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.n = 77 THEN INSERT INTO oc VALUES (NEW.id, NEW.a, 'by trigger', 78); END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER oc_t BEFORE INSERT ON oc FOR EACH ROW EXECUTE FUNCTION oc_first();
INSERT INTO oc VALUES (9100, 9100, 'mine', 77) ON CONFLICT (id) DO NOTHING;
INSERT INTO oc VALUES (9101, 9101, 'mine', 77);
SELECT id, b, n FROM oc WHERE id > 9099;
-- Deferrable constraints cannot be arbiters.
ALTER TABLE oc ADD CONSTRAINT oc_defer EXCLUDE USING lsm (id WITH =, a WITH =) DEFERRABLE;
INSERT INTO oc VALUES (1, 1, 'z') ON CONFLICT ON CONSTRAINT oc_defer DO NOTHING;
DROP VIEW oc_view;
DROP TABLE oc;
DROP FUNCTION oc_first();

-- Triggers and functions may alter an index of a table before its first row.
CREATE TABLE early (k int);
CREATE UNIQUE INDEX early_k ON early USING btree (k);
CREATE FUNCTION alter_early() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	ALTER INDEX early_k SET (fillfactor = 80);
	RETURN NULL;
END $$;
CREATE TRIGGER early_alter BEFORE INSERT ON early FOR EACH STATEMENT EXECUTE FUNCTION alter_early();
INSERT INTO early VALUES (1), (1), (2) ON CONFLICT DO NOTHING RETURNING k;
DROP TRIGGER early_alter ON early;
CREATE FUNCTION rebuild_early() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	REINDEX INDEX early_k;
	RETURN 3;
END $$;
INSERT INTO early SELECT rebuild_early() ON CONFLICT DO NOTHING RETURNING k;
WITH more AS (INSERT INTO early VALUES (3) ON CONFLICT (k) DO UPDATE SET k = excluded.k + 10)
INSERT INTO early VALUES (2), (5) ON CONFLICT (k) DO NOTHING;
EXPLAIN (COSTS OFF) INSERT INTO early VALUES (5) ON CONFLICT DO NOTHING;
INSERT INTO early SELECT 6 WHERE false ON CONFLICT DO NOTHING;
SELECT k FROM early ORDER BY k;
DROP TABLE early;
DROP FUNCTION alter_early, rebuild_early;
