-- Rows of a unique index wait while a trigger queries their table in a block that handles errors.
\set SHOW_CONTEXT never
CREATE TABLE un (id int, act text, parent int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX un_id ON un USING lsm (id);
INSERT INTO un SELECT g, NULL FROM generate_series(1, 10) g;
ANALYZE un;
-- What a block does and rolls back does not let another row with the same key in.
CREATE FUNCTION un_undo() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.act IS NULL THEN
    RETURN NEW;
  END IF;
  BEGIN
    EXECUTE NEW.act;
    INSERT INTO un VALUES (1000);		-- what waits is written now
    RAISE raise_exception;
  EXCEPTION WHEN raise_exception THEN
  END;
  RETURN NEW;
END $$;
CREATE TRIGGER undo BEFORE INSERT ON un FOR EACH ROW EXECUTE FUNCTION un_undo();
SET enable_indexscan = off;		-- it would write what waits before the command runs
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
INSERT INTO un SELECT CASE g WHEN 6 THEN 3 ELSE 100 + g END,
  CASE g WHEN 9 THEN 'DELETE FROM un WHERE id = 3' END FROM generate_series(1, 12) g;
INSERT INTO un SELECT CASE g WHEN 6 THEN 3 ELSE 100 + g END,
  CASE g WHEN 9 THEN 'UPDATE un SET id = 2000 WHERE id = 3 AND ctid = ''(0,3)''' END FROM generate_series(1, 12) g;
INSERT INTO un SELECT CASE g WHEN 6 THEN 105 WHEN 3 THEN 105 ELSE 100 + g END,
  CASE g WHEN 9 THEN 'DELETE FROM un WHERE id = 105' END FROM generate_series(1, 12) g;
-- Nor if the violation is the only one in a later part of the batch.
INSERT INTO un SELECT CASE g WHEN 11 THEN 3 ELSE 100 + g END,
  CASE g WHEN 9 THEN 'SELECT' WHEN 12 THEN 'DELETE FROM un WHERE id = 3' END FROM generate_series(1, 12) g;
COPY un FROM stdin;
101	\N	\N
3	\N	\N
102	DELETE FROM un WHERE id = 3	\N
\.
SELECT count(*), count(DISTINCT id), max(id) FROM un;
-- Without a violation, all rows exist once.
INSERT INTO un SELECT 100 + g, CASE WHEN g % 7 = 0 THEN 'DELETE FROM un WHERE id < 100 + ' || g END
  FROM generate_series(1, 700) g;
SELECT count(*), count(DISTINCT id), max(id) FROM un;
SELECT lsm_check('un_id', true);
-- If the statement is rolled back, so are the entries written for it.
DO $$ BEGIN
  INSERT INTO un SELECT 3000 + g, CASE WHEN g % 5 = 0 THEN 'SELECT' END FROM generate_series(1, 50) g;
  RAISE raise_exception;
EXCEPTION WHEN raise_exception THEN
  INSERT INTO un SELECT 3000 + g, CASE WHEN g % 9 = 0 THEN 'SELECT' END FROM generate_series(1, 50) g;
  RAISE NOTICE '%', (SELECT count(*) FROM un WHERE id > 3000);
END $$;
DO $$ BEGIN
  INSERT INTO un SELECT CASE g WHEN 40 THEN 7 ELSE 4000 + g END, CASE WHEN g % 45 = 0 THEN 'DELETE FROM un WHERE id = 7' END
    FROM generate_series(1, 50) g;
EXCEPTION WHEN unique_violation THEN
  RAISE NOTICE '%', SQLERRM;
END $$;
SELECT count(*) FROM un WHERE id > 4000;
SELECT lsm_check('un_id', true);
DROP TRIGGER undo ON un;
-- A block catches only the violations of its own statements. Otherwise the loop below would not
-- end.
CREATE FUNCTION un_parent() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  tries int := 0;
BEGIN
  LOOP
    EXIT WHEN NEW.parent IS NULL;
    UPDATE un SET act = 'parent' WHERE id = NEW.parent;
    EXIT WHEN FOUND;
    BEGIN
      INSERT INTO un (id) VALUES (NEW.parent);
      EXIT;
    EXCEPTION WHEN unique_violation THEN
      tries := tries + 1;
      IF tries > 10 THEN
        RAISE 'no end of it: %', SQLERRM;
      END IF;
    END;
  END LOOP;
  RETURN NEW;
END $$;
CREATE TRIGGER parent BEFORE INSERT ON un FOR EACH ROW EXECUTE FUNCTION un_parent();
INSERT INTO un (id, parent) SELECT CASE g WHEN 6 THEN 3 ELSE 5000 + g END, CASE WHEN g > 8 THEN 6000 + g / 11 END
  FROM generate_series(1, 12) g;
INSERT INTO un (id, parent) SELECT 5000 + g, CASE WHEN g > 8 THEN 6000 + g / 11 WHEN g = 6 THEN 5003 END
  FROM generate_series(1, 12) g;
SELECT id, act FROM un WHERE id > 5000 ORDER BY id;
-- A row of the statement itself conflicts with one inserted in a block, as with any other row.
DROP TRIGGER parent ON un;
CREATE FUNCTION un_twice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.parent IS NOT NULL THEN
    INSERT INTO un (id) VALUES (NEW.parent);
  END IF;
  RETURN NEW;
EXCEPTION WHEN unique_violation THEN
  RAISE NOTICE '%', SQLERRM;
  RETURN NEW;
END $$;
CREATE TRIGGER twice BEFORE INSERT ON un FOR EACH ROW EXECUTE FUNCTION un_twice();
INSERT INTO un (id, parent) SELECT 7000 + g, CASE g WHEN 9 THEN 7002 WHEN 10 THEN 7008 WHEN 11 THEN 7050 END
  FROM generate_series(1, 12) g;
SELECT count(*), count(DISTINCT id) FROM un WHERE id > 7000;
SELECT lsm_check('un_id', true);
DROP TABLE un;
DROP FUNCTION un_undo, un_parent, un_twice;
