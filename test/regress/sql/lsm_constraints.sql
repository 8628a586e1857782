-- PRIMARY KEY and UNIQUE ... WITH (lsm): real constraints with an lsm index.
CREATE FUNCTION c_newer(major int) RETURNS bool LANGUAGE sql AS $$ SELECT current_setting('server_version_num')::int >= major * 10000 $$;
CREATE TABLE c1 (id int PRIMARY KEY WITH (lsm), a int, b text UNIQUE WITH (lsm = true, merge_fanout = 4),
  CONSTRAINT ab UNIQUE (a, b) WITH (lsm) DEFERRABLE INITIALLY DEFERRED);
SELECT conname, contype, condeferrable, amname, reloptions, pg_get_constraintdef(c.oid)
FROM pg_constraint c JOIN pg_class i ON i.oid = conindid JOIN pg_am m ON m.oid = relam WHERE conrelid = 'c1'::regclass AND contype IN ('p', 'u') ORDER BY 1;
INSERT INTO c1 VALUES (1, 1, 'x'), (2, 2, 'y');
INSERT INTO c1 VALUES (1, 3, 'z');
INSERT INTO c1 VALUES (3, 3, 'x');
INSERT INTO c1 VALUES (NULL, 3, 'w');
-- Copies of the table.
CREATE TABLE c2 (LIKE c1 INCLUDING ALL);
SELECT conname, amname FROM pg_constraint c JOIN pg_class i ON i.oid = conindid JOIN pg_am m ON m.oid = relam
WHERE conrelid = 'c2'::regclass AND contype IN ('p', 'u') ORDER BY 1;
-- ALTER TABLE, a schema, a function that does it repeatedly.
CREATE TABLE c3 (id int, v int);
ALTER TABLE c3 ADD PRIMARY KEY (id) WITH (lsm), ADD COLUMN w int UNIQUE WITH (lsm);
ALTER TABLE c3 ADD CONSTRAINT c3_v UNIQUE (v) WITH (lsm = false, fillfactor = 80);
SELECT pg_get_indexdef('c3_v'::regclass);
ALTER TABLE c3 DROP CONSTRAINT c3_v;
ALTER TABLE c3 ADD CONSTRAINT c3_v UNIQUE NULLS NOT DISTINCT (v) INCLUDE (w) WITH (lsm);
\d c3
CREATE SCHEMA c_schema CREATE TABLE t (id int PRIMARY KEY WITH (lsm));
CREATE FUNCTION c_make() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  CREATE TEMP TABLE tt (a int PRIMARY KEY WITH (lsm)) ON COMMIT DROP;
  INSERT INTO tt VALUES (1);
END $$;
SELECT c_make();
SELECT c_make();
INSERT INTO c3 VALUES (1, NULL, 1);
INSERT INTO c3 VALUES (2, NULL, 2);
ALTER TABLE c3 DROP CONSTRAINT c3_v;
ALTER TABLE c3 ADD CONSTRAINT c3_v UNIQUE (v) WITH (lsm);
ALTER TABLE c3 DROP CONSTRAINT c3_v, ALTER COLUMN v TYPE bigint;
ALTER TABLE c3 ADD CONSTRAINT c3_v UNIQUE (v) WITH (lsm);
-- The parameter stays, because without it a dump would restore the key as a btree.
ALTER INDEX c3_v SET (lsm = false);
ALTER INDEX c3_v RESET (merge_fanout, lsm);
ALTER TABLE c_schema.t_pkey SET (lsm = off, merge_fanout = 4);
ALTER INDEX c3_v SET (lsm, merge_fanout = 4);
ALTER INDEX c3_v RESET (merge_fanout);
CREATE UNIQUE INDEX c3_w ON c3 USING lsm (w) WITH (lsm);
ALTER INDEX c3_w RESET (lsm);
ALTER INDEX c_nothing RESET (lsm);
DROP INDEX c3_w;
SELECT relname, reloptions FROM pg_class WHERE relname IN ('c3_v', 't_pkey') ORDER BY 1;
-- What a primary key is needed for.
SELECT id, v FROM c3 GROUP BY id;
INSERT INTO c1 VALUES (1, 1, 'q') ON CONFLICT ON CONSTRAINT c1_pkey DO UPDATE SET a = 10 RETURNING *;
ALTER TABLE c1 REPLICA IDENTITY USING INDEX c1_pkey;
-- Foreign keys, and keys of partitioned tables: from 18 on.
SELECT (t.error_of('CREATE TABLE c_fk (id int REFERENCES c1)') = 'no error') = c_newer(18) AS as_documented;
SELECT (t.error_of('CREATE TABLE c_part (id int PRIMARY KEY WITH (lsm)) PARTITION BY RANGE (id)') = 'no error') = c_newer(18) AS as_documented;
CREATE TABLE c_p (id int) PARTITION BY RANGE (id);
CREATE TABLE c_p1 PARTITION OF c_p FOR VALUES FROM (0) TO (100);
CREATE UNIQUE INDEX c_p1_id ON c_p1 USING lsm (id);
INSERT INTO c_p VALUES (1);
INSERT INTO c_p VALUES (1);
SELECT (t.error_of('INSERT INTO c_p VALUES (1) ON CONFLICT DO NOTHING') = 'no error') = c_newer(18) AS as_documented;
INSERT INTO c_p1 VALUES (1) ON CONFLICT DO NOTHING;
CREATE MATERIALIZED VIEW c_m AS SELECT id FROM c1;
CREATE UNIQUE INDEX c_m_id ON c_m USING lsm (id);
SELECT (t.error_of('REFRESH MATERIALIZED VIEW CONCURRENTLY c_m') = 'no error') = c_newer(18) AS as_documented;
DROP MATERIALIZED VIEW c_m;
-- Deferred checks.
BEGIN;
INSERT INTO c1 VALUES (5, 2, 'five');
UPDATE c1 SET b = 'y2' WHERE id = 2;
UPDATE c1 SET b = 'y' WHERE id = 5;
COMMIT;
BEGIN;
ALTER TABLE c1 DROP CONSTRAINT c1_b_key;
INSERT INTO c1 VALUES (6, 2, 'y');
SELECT count(*) FROM c1 WHERE a = 2;
COMMIT;
CREATE TABLE c4 (a int UNIQUE WITH (lsm) DEFERRABLE);
INSERT INTO c4 SELECT generate_series(1, 100);
UPDATE c4 SET a = a + 1;
UPDATE c4 SET a = 5 WHERE a = 7;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
UPDATE c4 SET a = 5 WHERE a = 7;
SELECT count(*) FROM c4 WHERE a = 5;
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
UPDATE c4 SET a = 5 WHERE a = 7;
SELECT lsm_check('c4_a_key', true);
DELETE FROM c4 WHERE a = 5;
COMMIT;
SELECT count(*), lsm_check('c4_a_key', true), lsm_check('c1_pkey', true), lsm_check('ab', true) FROM c4;
SET client_min_messages = warning;
DROP TABLE IF EXISTS c_fk, c_part;
RESET client_min_messages;
DROP TABLE c1, c2, c3, c4, c_p;
DROP SCHEMA c_schema CASCADE;
DROP FUNCTION c_newer, c_make;

-- A NOT NULL constraint that is NOT VALID (18 and later) does not make a column fit for a primary key.
CREATE TABLE not_valid (id int);
INSERT INTO not_valid VALUES (NULL);
DO $$ BEGIN
	IF current_setting('server_version_num')::int >= 180000 THEN
		EXECUTE 'ALTER TABLE not_valid ADD CONSTRAINT n NOT NULL id NOT VALID';
	END IF;
END $$;
CREATE UNIQUE INDEX not_valid_id ON not_valid USING lsm (id);
SELECT t.error_of('ALTER TABLE not_valid ADD PRIMARY KEY USING INDEX not_valid_id') <> 'no error';
DELETE FROM not_valid;
DO $$ BEGIN
	IF current_setting('server_version_num')::int >= 180000 THEN
		ALTER TABLE not_valid VALIDATE CONSTRAINT n;
	END IF;
END $$;
ALTER TABLE not_valid ADD PRIMARY KEY USING INDEX not_valid_id;
DROP TABLE not_valid;
