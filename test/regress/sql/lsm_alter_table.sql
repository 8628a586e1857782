-- ALTER TABLE of tables with keys WITH (lsm): types of columns, and keys from existing indexes.
CREATE VIEW at_keys AS
SELECT conrelid::regclass AS "table", conname, contype, condeferrable, amname, i.reloptions, pg_get_constraintdef(c.oid) AS definition,
	obj_description(c.oid, 'pg_constraint') AS comment, obj_description(i.oid, 'pg_class') AS index_comment, x.indisclustered, x.indisreplident
FROM pg_constraint c JOIN pg_class i ON i.oid = conindid JOIN pg_am m ON m.oid = relam JOIN pg_index x ON x.indexrelid = i.oid
WHERE contype IN ('p', 'u') AND conrelid::regclass::text LIKE 'at%';
-- Several keys, an identity column, and all properties of a key.
CREATE TABLE at1 (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY WITH (lsm = true), a int NOT NULL, b varchar(10), c text,
	CONSTRAINT at1_ab UNIQUE (a, b) WITH (lsm, merge_fanout = 4) DEFERRABLE INITIALLY DEFERRED,
	CONSTRAINT "at1 a" UNIQUE (a) INCLUDE (c) WITH (lsm), CONSTRAINT at1_c UNIQUE (c));
CREATE INDEX at1_plain ON at1 USING lsm (b, a);
COMMENT ON CONSTRAINT at1_pkey ON at1 IS 'of the constraint';
COMMENT ON INDEX at1_pkey IS 'of the index';
ALTER TABLE at1 CLUSTER ON at1_pkey;
ALTER TABLE at1 REPLICA IDENTITY USING INDEX "at1 a";
INSERT INTO at1 (a, b, c) SELECT i, i, i FROM generate_series(1, 500) i;
CREATE TABLE at1_before AS SELECT * FROM at_keys WHERE "table" = 'at1'::regclass;
ALTER TABLE at1 ALTER COLUMN id TYPE bigint, ALTER COLUMN b SET DATA TYPE text COLLATE "C", ALTER COLUMN a TYPE bigint USING a + 1;
SELECT count(*) FROM (TABLE at_keys EXCEPT TABLE at1_before) x;
SELECT conname, amname, comment, index_comment, indisclustered, indisreplident, reloptions, definition FROM at_keys ORDER BY 1;
SELECT lsm_check(indexrelid::regclass, true) FROM pg_index JOIN pg_class i ON i.oid = indexrelid WHERE indrelid = 'at1'::regclass AND relam = (SELECT oid FROM pg_am WHERE amname = 'lsm');
INSERT INTO at1 (a, b, c) VALUES (7, '6', 'new');
INSERT INTO at1 (a, b, c) VALUES (1000, 'x', 'new') RETURNING id;
-- A failure leaves everything as it was.
SELECT t.error_of('ALTER TABLE at1 ALTER COLUMN a TYPE int USING 1');
SELECT count(*) FROM at_keys WHERE "table" = 'at1'::regclass AND amname = 'lsm';
-- Together with other subcommands, including those that drop a key.
ALTER TABLE at1 DROP CONSTRAINT at1_ab, ALTER COLUMN a TYPE numeric, ADD COLUMN d int UNIQUE WITH (lsm);
ALTER TABLE at1 DROP COLUMN c, ALTER COLUMN a TYPE int;
SELECT conname, amname, definition FROM at_keys WHERE "table" = 'at1'::regclass ORDER BY 1;
-- A prepared statement, executed repeatedly, and a function.
CREATE FUNCTION at_retype(type text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('ALTER TABLE at1 ALTER id TYPE %s', type); END $$;
SELECT at_retype('int'), at_retype('bigint');
DO $$ BEGIN FOR i IN 1..2 LOOP ALTER TABLE at1 ALTER id TYPE int; END LOOP; END $$;
-- Children and partitions have keys of their own.
CREATE TABLE at2 (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE at2_1 PARTITION OF at2 (PRIMARY KEY (v) WITH (lsm)) FOR VALUES FROM (0) TO (100);
CREATE TABLE at2_2 PARTITION OF at2 FOR VALUES FROM (100) TO (200);
CREATE TABLE at3 (k int PRIMARY KEY WITH (lsm), v int);
CREATE TABLE at3_1 (UNIQUE (v) WITH (lsm)) INHERITS (at3);
INSERT INTO at2 SELECT i, i FROM generate_series(1, 150) i;
ALTER TABLE at2 ALTER v TYPE bigint;
ALTER TABLE at3 ALTER v TYPE bigint, ALTER k TYPE bigint;
SELECT "table", conname, amname FROM at_keys WHERE "table"::text ~ 'at[23]' ORDER BY 1, 2;

-- A key stays in its tablespace. A subcommand may name a key that is rebuilt, or from 18 on a foreign key that refers to it.
SET allow_in_place_tablespaces = true;
CREATE TABLESPACE regress_at_space LOCATION '';
RESET allow_in_place_tablespaces;
CREATE TABLE at6 (a int CONSTRAINT at6_a PRIMARY KEY WITH (lsm), b int NOT NULL CONSTRAINT at6_b UNIQUE WITH (lsm) USING INDEX TABLESPACE regress_at_space, c int);
SET default_tablespace = regress_at_space;
ALTER TABLE at6 CLUSTER ON at6_a, REPLICA IDENTITY USING INDEX at6_b, ALTER a TYPE bigint, ALTER b TYPE bigint;
SHOW default_tablespace;
RESET default_tablespace;
SELECT relname, spcname, indisclustered, indisreplident FROM pg_index JOIN pg_class i ON i.oid = indexrelid LEFT JOIN pg_tablespace t ON t.oid = reltablespace
WHERE indrelid = 'at6'::regclass ORDER BY 1;
DO $$
BEGIN
	IF current_setting('server_version_num')::int < 180000 THEN
		RETURN;
	END IF;
	ALTER TABLE at6 ADD CONSTRAINT at6_c FOREIGN KEY (c) REFERENCES at6 NOT VALID;
	ALTER TABLE at6 VALIDATE CONSTRAINT at6_c, ALTER a TYPE int;
	ASSERT (SELECT convalidated FROM pg_constraint WHERE conname = 'at6_c');
	ALTER TABLE at6 ALTER CONSTRAINT at6_c DEFERRABLE, ALTER a TYPE bigint;
	ASSERT (SELECT condeferrable FROM pg_constraint WHERE conname = 'at6_c');
	ALTER TABLE at6 DROP CONSTRAINT at6_c, ALTER a TYPE int;
	ASSERT NOT EXISTS (SELECT FROM pg_constraint WHERE conname = 'at6_c');
	ALTER TABLE at6 ADD CONSTRAINT at6_c FOREIGN KEY (c) REFERENCES at6;
	ALTER TABLE at6 DROP COLUMN c, ALTER a TYPE bigint;
	ASSERT NOT EXISTS (SELECT FROM pg_constraint WHERE conname = 'at6_c');
END $$;
DROP TABLE at6;
DROP TABLESPACE regress_at_space;

-- Subcommands that need keys, or choose a name that no key has, run after the keys are rebuilt.
CREATE TABLE at7 (a int UNIQUE WITH (lsm), b int NOT NULL, c int NOT NULL, d int);
ALTER TABLE at7 CLUSTER ON at7_a_key;
ALTER TABLE at7 ALTER a TYPE bigint, ADD UNIQUE (a) WITH (lsm), ADD PRIMARY KEY (d) WITH (lsm), ALTER d ADD GENERATED ALWAYS AS IDENTITY, SET WITHOUT CLUSTER;
CREATE UNIQUE INDEX at7_b ON at7 USING lsm (b);
CREATE UNIQUE INDEX at7_c ON at7 USING lsm (c);
ALTER TABLE at7 ADD CONSTRAINT at7_bu UNIQUE USING INDEX at7_b, CLUSTER ON at7_bu;
ALTER TABLE at7 ADD CONSTRAINT at7_cu UNIQUE USING INDEX at7_c, REPLICA IDENTITY USING INDEX at7_cu, ALTER b TYPE bigint;
SELECT conname, amname, definition, indisclustered, indisreplident FROM at_keys WHERE "table" = 'at7'::regclass ORDER BY 1;
DO $$
BEGIN
	IF current_setting('server_version_num')::int >= 180000 THEN
		ALTER TABLE at7 ADD FOREIGN KEY (c) REFERENCES at7 (b), ADD e bigint REFERENCES at7 (b), ALTER b TYPE int;
		ASSERT (SELECT count(*) = 2 FROM pg_constraint WHERE conrelid = 'at7'::regclass AND contype = 'f');
	END IF;
END $$;
-- ALTER TYPE changes the columns of typed tables, too.
CREATE TYPE at_type AS (a int, b int);
CREATE TABLE at8 OF at_type (PRIMARY KEY (a) WITH (lsm));
ALTER TYPE at_type ALTER ATTRIBUTE a TYPE bigint CASCADE, ADD ATTRIBUTE c int CASCADE;
SELECT conname, amname, definition FROM at_keys WHERE "table" = 'at8'::regclass;
ALTER TYPE at_type ALTER ATTRIBUTE a TYPE int CASCADE, DROP ATTRIBUTE b CASCADE;
ALTER TYPE at_type DROP ATTRIBUTE a CASCADE, ALTER ATTRIBUTE c TYPE bigint CASCADE;
SELECT conname, amname, definition FROM at_keys WHERE "table" = 'at8'::regclass;
DROP TABLE at8;
DROP TYPE at_type;
-- Event triggers hear of every command and subcommand, and see the keys.
CREATE FUNCTION at_note() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE what text;
BEGIN
	IF tg_event = 'ddl_command_end' THEN
		SELECT string_agg(command_tag || ' ' || object_identity, ', ') INTO what FROM pg_event_trigger_ddl_commands();
	ELSIF tg_event = 'sql_drop' THEN
		SELECT string_agg(object_identity, ', ') INTO what FROM pg_event_trigger_dropped_objects();
	END IF;
	RAISE NOTICE '% %: %; % keys', tg_event, tg_tag, what, (SELECT count(*) FROM pg_constraint WHERE conrelid = 'at7'::regclass AND contype IN ('p', 'u'));
END $$;
CREATE UNIQUE INDEX at7_new ON at7 USING lsm (c);
ALTER TABLE at7 ADD COLUMN f int, ENABLE ROW LEVEL SECURITY;
CREATE EVENT TRIGGER at_start ON ddl_command_start EXECUTE FUNCTION at_note();
CREATE EVENT TRIGGER at_drop ON sql_drop EXECUTE FUNCTION at_note();
CREATE EVENT TRIGGER at_end ON ddl_command_end EXECUTE FUNCTION at_note();
ALTER TABLE at7 ADD UNIQUE USING INDEX at7_new;
ALTER TABLE at7 ALTER c TYPE bigint, DISABLE ROW LEVEL SECURITY, DROP COLUMN f;
DROP EVENT TRIGGER at_start;
DROP EVENT TRIGGER at_drop;
DROP EVENT TRIGGER at_end;
SELECT conname, contype, amname FROM at_keys WHERE "table" = 'at7'::regclass ORDER BY 1;
-- The index of a new key may change its type in the same command.
CREATE UNIQUE INDEX at7_newer ON at7 USING lsm (c);
ALTER TABLE at7 ALTER c TYPE int, ADD CONSTRAINT at7_newest UNIQUE USING INDEX at7_newer, REPLICA IDENTITY USING INDEX at7_newest;
SELECT conname, amname, reloptions, definition, indisreplident FROM at_keys WHERE conname LIKE 'at7_new%' ORDER BY 1;
DROP FUNCTION at_note;
DROP TABLE at7;

-- ONLY: before 18, the columns of child tables need not be NOT NULL, neither when a key is added nor when it is rebuilt.
CREATE TABLE at9 (a int, b int);
CREATE TABLE at9_1 () INHERITS (at9);
INSERT INTO at9_1 VALUES (NULL, NULL);
CREATE UNIQUE INDEX at9_a ON at9 USING lsm (a);
DO $$
BEGIN
	IF current_setting('server_version_num')::int >= 180000 THEN
		RETURN;
	END IF;
	ALTER TABLE ONLY at9 ADD PRIMARY KEY USING INDEX at9_a;
	ALTER TABLE at9 ALTER a TYPE bigint;
	ALTER TABLE at9 DROP CONSTRAINT at9_a;
	ALTER TABLE ONLY at9 ADD PRIMARY KEY (b) WITH (lsm);
	ALTER TABLE at9 ALTER b TYPE bigint;
	ASSERT NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'at9_1'::regclass AND attnum > 0 AND attnotnull);
END $$;
DROP TABLE at9 CASCADE;

-- A child keeps its own column and its own constraint if its parent drops one of the same name. The parent may be a foreign table.
CREATE TABLE at9 (a int CONSTRAINT at9_u UNIQUE WITH (lsm), b int);
CREATE TABLE at9_1 (a int, b int, PRIMARY KEY (a, b) WITH (lsm)) INHERITS (at9);
ALTER TABLE at9 DROP COLUMN b, ALTER a TYPE bigint;
CREATE SCHEMA at_other;
CREATE TABLE at_other.at9_2 (CONSTRAINT at9_u UNIQUE (a) WITH (lsm)) INHERITS (at9);
ALTER TABLE at9 DROP CONSTRAINT at9_u, ALTER a TYPE int;
CREATE FOREIGN DATA WRAPPER at_wrapper;
CREATE SERVER at_server FOREIGN DATA WRAPPER at_wrapper;
CREATE FOREIGN TABLE at_foreign (a int) SERVER at_server;
CREATE TABLE at9_3 (PRIMARY KEY (a) WITH (lsm)) INHERITS (at_foreign);
ALTER TABLE at_foreign ALTER a TYPE bigint;
ALTER FOREIGN TABLE at_foreign ALTER a TYPE numeric;
SELECT conrelid::regclass, conname, amname, pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_class i ON i.oid = conindid JOIN pg_am m ON m.oid = relam
WHERE conrelid::regclass::text ~ 'at9' ORDER BY 1;
SET client_min_messages = warning;
DROP FOREIGN DATA WRAPPER at_wrapper CASCADE;
DROP TABLE at9 CASCADE;
RESET client_min_messages;
DROP SCHEMA at_other;

-- A foreign key of a child loses a column.
DO $$ BEGIN
	IF current_setting('server_version_num')::int >= 180000 THEN
		CREATE TABLE at9 (a int, b int);
		CREATE TABLE at9_1 (PRIMARY KEY (a) WITH (lsm)) INHERITS (at9);
		ALTER TABLE at9_1 ADD CONSTRAINT at9_a FOREIGN KEY (a) REFERENCES at9_1, ADD CONSTRAINT at9_b FOREIGN KEY (b) REFERENCES at9_1;
		ALTER TABLE at9 ALTER a TYPE bigint, DROP COLUMN b;
		ASSERT (SELECT string_agg(conname, ' ') FROM pg_constraint WHERE conname IN ('at9_a', 'at9_b')) = 'at9_a';
		DROP TABLE at9_1, at9;
	END IF;
END $$;

-- A new key does not take the name of a key that is rebuilt. Other subcommands may use the new column.
CREATE TABLE at9 (a int UNIQUE WITH (lsm), g int DEFAULT 7);
ALTER TABLE at9 RENAME a TO old_a;
ALTER TABLE at9 ALTER g DROP DEFAULT, ALTER old_a TYPE bigint, ADD COLUMN a int UNIQUE WITH (lsm), ALTER a SET DEFAULT 5, ADD CHECK (a > old_a),
	ALTER g TYPE text, ALTER g SET DEFAULT 'seven', ALTER a SET NOT NULL;
\d at9
DROP TABLE at9;

-- New columns keep their order, and each key the method that was asked for. DROP NOT NULL finds the primary key.
CREATE TABLE at9 (id int NOT NULL);
CREATE UNIQUE INDEX at9_i ON at9 USING lsm (id);
ALTER TABLE at9 ADD PRIMARY KEY USING INDEX at9_i, ADD COLUMN code text UNIQUE, ADD COLUMN note text;
SET pg_lsm.default_method = lsm;
ALTER TABLE at9 ALTER id TYPE bigint, ADD COLUMN c int UNIQUE WITH (lsm = false), ADD COLUMN d int CHECK (d > c), ADD COLUMN e int UNIQUE, ADD UNIQUE (d) WITH (lsm = false);
RESET pg_lsm.default_method;
SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'at9'::regclass AND attnum > 0;
SELECT conname, amname FROM at_keys WHERE "table" = 'at9'::regclass ORDER BY 1;
SELECT t.error_of('ALTER TABLE at9 ALTER id TYPE int, ALTER id DROP NOT NULL');
DROP TABLE at9;
-- A child keeps a column that another parent has.
CREATE TABLE at9 (a int, b int);
CREATE TABLE at9_b (b int);
SET client_min_messages = warning;
CREATE TABLE at9_1 (PRIMARY KEY (a, b) WITH (lsm)) INHERITS (at9, at9_b);
ALTER TABLE at9 DROP b, ALTER a TYPE bigint;
SELECT conname, amname, definition FROM at_keys WHERE "table" = 'at9_1'::regclass;
DROP TABLE at9, at9_b CASCADE;
RESET client_min_messages;

-- A new type that is stored in the same way keeps the index's file.
CREATE TABLE at9 (v varchar(10) PRIMARY KEY WITH (lsm), n numeric(10, 2) UNIQUE WITH (lsm) DEFERRABLE);
INSERT INTO at9 SELECT i, i FROM generate_series(1, 500) i;
CREATE TABLE at9_files AS SELECT relname, relfilenode FROM pg_class WHERE relname LIKE 'at9%key';
ALTER TABLE at9 ALTER v TYPE varchar(20), ALTER n TYPE numeric;
SELECT relname, f.relfilenode = c.relfilenode AS kept, lsm_check(relname::regclass, true) FROM at9_files f JOIN pg_class c USING (relname) ORDER BY 1;
ALTER TABLE at9 ALTER v TYPE text;
SELECT relname, f.relfilenode = c.relfilenode AS kept, lsm_check(relname::regclass, true) FROM at9_files f JOIN pg_class c USING (relname) ORDER BY 1;
SELECT conname, definition, condeferrable FROM at_keys WHERE "table" = 'at9'::regclass ORDER BY 1;
INSERT INTO at9 VALUES ('77', 1000);
-- A view that depends on the key.
CREATE TABLE at9_base (id int PRIMARY KEY WITH (lsm), v int);
CREATE VIEW at9_view AS SELECT v FROM at9_base GROUP BY id;
SELECT t.error_of('ALTER TABLE at9_base ALTER id TYPE bigint');
SELECT conname, amname FROM at_keys WHERE "table" = 'at9_base'::regclass;
DROP TABLE at9, at9_files, at9_base CASCADE;
-- A view that the command drops.
CREATE TABLE at9 (a int PRIMARY KEY WITH (lsm), b int, x int);
CREATE VIEW at9_view AS SELECT a, b, x FROM at9 GROUP BY a;
ALTER TABLE at9 DROP COLUMN x CASCADE, ALTER a TYPE bigint;
SELECT conname, amname FROM at_keys WHERE "table" = 'at9'::regclass;
DROP TABLE at9;
-- A new key with the name of one that goes with its column.
CREATE TABLE at9 (a int, b int, CONSTRAINT at9_k UNIQUE (a, b) WITH (lsm));
COMMENT ON CONSTRAINT at9_k ON at9 IS 'old';
ALTER TABLE at9 DROP COLUMN a, ALTER b TYPE bigint, ADD CONSTRAINT at9_k UNIQUE (b) WITH (lsm);
SELECT conname, amname, definition, comment, coninhcount FROM at_keys JOIN pg_constraint c USING (conname) WHERE "table" = 'at9'::regclass;
-- Errors of core: no such index any more, a second primary key, a table of somebody else.
CREATE UNIQUE INDEX at9_b ON at9 USING lsm (b);
ALTER TABLE at9 ADD COLUMN p int PRIMARY KEY;
SELECT t.error_of('ALTER TABLE at9 DROP b, ADD UNIQUE USING INDEX at9_b'), t.error_of('ALTER TABLE at9 ALTER b TYPE int, ADD PRIMARY KEY USING INDEX at9_b');
ALTER TABLE at9 DROP CONSTRAINT at9_pkey, ALTER b TYPE int, ADD CONSTRAINT at9_pkey PRIMARY KEY USING INDEX at9_b DEFERRABLE;
SELECT conname, amname, definition FROM at_keys WHERE "table" = 'at9'::regclass ORDER BY 1;
SELECT t.error_of('INSERT INTO at9 (b) VALUES (NULL)');
DROP TABLE at9;
-- A new key on a column that changes: the marks of its index, an index that has a key, and one that is gone.
CREATE TABLE at9 (a int NOT NULL, b int, CONSTRAINT at9_ab UNIQUE (a, b) WITH (lsm) DEFERRABLE);
CREATE UNIQUE INDEX at9_i ON at9 USING lsm (a);
ALTER TABLE at9 REPLICA IDENTITY USING INDEX at9_i, CLUSTER ON at9_i;
ALTER TABLE at9 ADD CONSTRAINT at9_k UNIQUE USING INDEX at9_i, ALTER a TYPE bigint;
SELECT conname, definition, indisclustered, indisreplident FROM at_keys WHERE "table" = 'at9'::regclass ORDER BY 1;
SELECT t.error_of('ALTER TABLE at9 ALTER a TYPE int, ADD UNIQUE USING INDEX at9_k');
CREATE UNIQUE INDEX at9_i ON at9 USING lsm (a);
CREATE FUNCTION at_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN DROP INDEX IF EXISTS at9_i; END $$;
CREATE EVENT TRIGGER at_start ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION at_drop();
SELECT t.error_of('ALTER TABLE at9 ALTER a TYPE int, ADD UNIQUE USING INDEX at9_i');
DROP EVENT TRIGGER at_start;
DROP FUNCTION at_drop;
-- Triggers hear of a key that goes with its column.
CREATE FUNCTION at_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '%', (SELECT string_agg(object_type, ', ' ORDER BY object_type) FROM pg_event_trigger_dropped_objects());
END $$;
CREATE EVENT TRIGGER at_drop ON sql_drop EXECUTE FUNCTION at_drop();
ALTER TABLE at9 DROP COLUMN b, ALTER a TYPE int;
DROP EVENT TRIGGER at_drop;
DROP FUNCTION at_drop;
DROP TABLE at9;
-- Triggers that act before the command, on the table without its keys.
CREATE TABLE at9 (v varchar(5) UNIQUE WITH (lsm) DEFERRABLE, w int UNIQUE WITH (lsm));
INSERT INTO at9 VALUES ('1', 1);
CREATE FUNCTION at_before() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE command text := current_setting('at.command', true);
BEGIN
	IF command <> '' THEN
		PERFORM set_config('at.command', '', false);
		EXECUTE command;
	END IF;
END $$;
CREATE EVENT TRIGGER at_start ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION at_before();
SET at.command = $$INSERT INTO at9 VALUES ('1', 2)$$;
SELECT t.error_of('ALTER TABLE at9 ALTER v TYPE text');
SET at.command = 'ALTER INDEX at9_w_key RENAME TO at9_renamed';
ALTER TABLE at9 ALTER w TYPE bigint;
SET at.command = 'DROP INDEX at9_w_key';
ALTER TABLE at9 ALTER w TYPE int;
SET at.command = 'ALTER TABLE at9 ALTER v TYPE varchar(20)';
ALTER TABLE at9 ALTER v TYPE varchar(10);
SHOW at.command;
RESET at.command;
DROP EVENT TRIGGER at_start;
DROP FUNCTION at_before;
SELECT conname, amname, definition, condeferrable FROM at_keys WHERE "table" = 'at9'::regclass ORDER BY 1;
SELECT t.error_of($$INSERT INTO at9 VALUES ('1', 3)$$);
DROP TABLE at9;
-- Who owns the table needs no privilege to create objects.
CREATE ROLE regress_at_key;
CREATE SCHEMA at_other;
GRANT ALL ON SCHEMA at_other TO regress_at_key;
SET ROLE regress_at_key;
CREATE TABLE at_other.key (a int PRIMARY KEY WITH (lsm));
RESET ROLE;
REVOKE CREATE ON SCHEMA at_other FROM regress_at_key;
SET ROLE regress_at_key;
ALTER TABLE at_other.key ALTER a TYPE bigint;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA at_other CASCADE;
RESET client_min_messages;
DROP ROLE regress_at_key;

-- From 18 on, partitioned tables have lsm keys. The partitions keep their marks.
DO $$
BEGIN
	IF current_setting('server_version_num')::int < 180000 THEN
		RETURN;
	END IF;
	CREATE TABLE at9 (a int NOT NULL, b int NOT NULL, PRIMARY KEY (a) WITH (lsm), CONSTRAINT at9_ab UNIQUE (a, b) WITH (lsm)) PARTITION BY RANGE (a);
	CREATE TABLE at9_1 PARTITION OF at9 FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (a);
	CREATE TABLE at9_1_1 PARTITION OF at9_1 DEFAULT;
	CREATE TABLE at9_2 PARTITION OF at9 DEFAULT;
	ALTER TABLE at9_1_1 REPLICA IDENTITY USING INDEX at9_1_1_a_b_key;
	ALTER TABLE at9_1_1 CLUSTER ON at9_1_1_pkey;
	ALTER TABLE at9_2 REPLICA IDENTITY USING INDEX at9_2_pkey;
	ALTER TABLE at9 ALTER b TYPE bigint;
	ASSERT (SELECT string_agg(i.indexrelid::regclass || ' ' || indisclustered || ' ' || indisreplident, ', ' ORDER BY i.indexrelid::regclass::text)
		FROM pg_index i WHERE indrelid IN ('at9_1_1'::regclass, 'at9_2'::regclass))
		= 'at9_1_1_a_b_key false true, at9_1_1_pkey true false, at9_2_a_b_key false false, at9_2_pkey false true';
	DROP TABLE at9;
	-- A partition whose key was attached keeps its name and comment. Foreign keys refer to all of them.
	CREATE TABLE at9 (a int, b int, PRIMARY KEY (a, b) WITH (lsm)) PARTITION BY RANGE (a);
	CREATE TABLE at9_1 PARTITION OF at9 FOR VALUES FROM (0) TO (10);
	CREATE TABLE at9_2 (b int, x int, a int, CONSTRAINT odd PRIMARY KEY (a, b) WITH (lsm));
	ALTER TABLE at9_2 DROP x;
	ALTER TABLE at9 ATTACH PARTITION at9_2 DEFAULT;
	COMMENT ON CONSTRAINT odd ON at9_2 IS 'odd';
	CREATE TABLE at9_fk (x int, y int, FOREIGN KEY (x, y) REFERENCES at9) PARTITION BY RANGE (x);
	CREATE TABLE at9_fk1 PARTITION OF at9_fk DEFAULT;
	INSERT INTO at9 SELECT i, i FROM generate_series(1, 20) i;
	INSERT INTO at9_fk SELECT i, i FROM generate_series(5, 15) i;
	ALTER TABLE at9 ALTER b TYPE bigint;
	ASSERT (SELECT string_agg(conrelid::regclass || ' ' || conname || ' ' || conislocal, ', ' ORDER BY conname) FROM pg_constraint WHERE conrelid::regclass::text LIKE 'at9%' AND contype = 'p')
		= 'at9_1 at9_1_pkey false, at9 at9_pkey true, at9_2 odd false';
	ASSERT (SELECT obj_description(oid, 'pg_constraint') = 'odd' FROM pg_constraint WHERE conname = 'odd');
	ASSERT t.error_of('INSERT INTO at9_fk VALUES (1, 2)') = '23503' AND t.error_of('DELETE FROM at9 WHERE a = 12') = '23503' AND t.error_of('INSERT INTO at9 VALUES (12, 12)') = '23505';
	PERFORM lsm_check(indexrelid::regclass, true) FROM pg_index WHERE indrelid IN ('at9_1'::regclass, 'at9_2'::regclass);
	DROP TABLE at9_fk;
	ALTER TABLE at9 DETACH PARTITION at9_2;
	DROP TABLE at9, at9_2;
END $$;

-- From 18 on: keys of partitions that belong to no key, to one of ONLY the parent, and to one that had another name.
DO $$
BEGIN
	IF current_setting('server_version_num')::int < 180000 THEN
		RETURN;
	END IF;
	CREATE TABLE at9 (a int, b int) PARTITION BY RANGE (a);
	CREATE TABLE at9_1 PARTITION OF at9 FOR VALUES FROM (0) TO (10);
	ALTER TABLE at9_1 ADD CONSTRAINT at9_1_k PRIMARY KEY (a, b) WITH (lsm);
	CREATE UNIQUE INDEX at9_i ON at9 USING lsm (a, b);
	ASSERT t.error_of('ALTER TABLE at9 ALTER b TYPE bigint') = '2BP01';
	SET LOCAL client_min_messages = warning;
	DROP INDEX at9_i CASCADE;
	ALTER TABLE ONLY at9 ADD CONSTRAINT at9_k UNIQUE (a, b) WITH (lsm);
	ALTER TABLE at9 ALTER b TYPE bigint;
	ASSERT (SELECT conparentid > 0 AND NOT conislocal AND coninhcount = 1 FROM pg_constraint WHERE conrelid = 'at9_1'::regclass AND contype = 'u');
	ALTER TABLE at9 ALTER b TYPE int;
	ALTER INDEX at9_1_a_b_key RENAME TO at9_1_a_b_idx;
	CREATE INDEX ON at9 (a, b);
	ALTER TABLE at9 ALTER b TYPE bigint;
	ALTER TABLE at9 DROP CONSTRAINT at9_k;
	DROP TABLE at9;

	-- Foreign keys to a new key.
	CREATE TABLE at9 (a int, b int);
	CREATE UNIQUE INDEX at9_i ON at9 USING lsm (a);
	ASSERT t.error_of('ALTER TABLE at9 ALTER a TYPE bigint, ADD UNIQUE USING INDEX at9_i DEFERRABLE, ADD FOREIGN KEY (b) REFERENCES at9 (a)') = '55000';
	ALTER TABLE at9 ALTER a TYPE bigint, ADD PRIMARY KEY USING INDEX at9_i, ADD FOREIGN KEY (b) REFERENCES at9;
	DROP TABLE at9;
	-- NOT NULL constraints, as with B-trees.
	CREATE TABLE at9 (a int);
	CREATE TABLE at9_1 () INHERITS (at9);
	CREATE UNIQUE INDEX at9_i ON at9 USING lsm (a);
	ASSERT t.error_of('ALTER TABLE ONLY at9 ADD PRIMARY KEY USING INDEX at9_i') = '42P16';
	EXECUTE 'ALTER TABLE at9 ADD CONSTRAINT at9_nn NOT NULL a, ADD PRIMARY KEY USING INDEX at9_i';
	ASSERT (SELECT string_agg(conname, ' ') FROM pg_constraint WHERE conrelid = 'at9'::regclass AND contype = 'n') = 'at9_nn';
	DROP TABLE at9, at9_1;
	CREATE TABLE at9 (a int);
	CREATE UNIQUE INDEX at9_i ON at9 USING lsm (a) NULLS NOT DISTINCT;
	ASSERT t.error_of('ALTER TABLE at9 ADD PRIMARY KEY USING INDEX at9_i, ALTER a TYPE bigint') = '42P16';
	DROP TABLE at9;
END $$;

-- From 18 on, the owner of a key need not own the tables that refer to it.
CREATE ROLE regress_at_key;
CREATE ROLE regress_at_reference;
CREATE SCHEMA at_other;
GRANT ALL ON SCHEMA at_other TO regress_at_key, regress_at_reference;
DO $$
BEGIN
	IF current_setting('server_version_num')::int < 180000 THEN
		RETURN;
	END IF;
	-- Names of the search_path are still found.
	SET LOCAL search_path = at_other, public;
	SET ROLE regress_at_key;
	CREATE TABLE at_other.key (a int PRIMARY KEY WITH (lsm));
	GRANT REFERENCES ON at_other.key TO regress_at_reference;
	SET ROLE regress_at_reference;
	CREATE TABLE at_other.reference (a int REFERENCES at_other.key);
	SET ROLE regress_at_key;
	REVOKE REFERENCES ON at_other.key FROM regress_at_reference;
	ALTER TABLE at_other.key ALTER a TYPE bigint;
	ASSERT current_user = 'regress_at_key';
	ASSERT (SELECT count(*) = 1 FROM pg_constraint WHERE conrelid = 'at_other.reference'::regclass AND contype = 'f');
END $$;
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA at_other CASCADE;
RESET client_min_messages;
DROP ROLE regress_at_key, regress_at_reference;

-- ADD CONSTRAINT ... USING INDEX.
CREATE TABLE at4 (id int, a int, b int NOT NULL);
INSERT INTO at4 SELECT i, i, i FROM generate_series(1, 300) i;
CREATE UNIQUE INDEX at4_id ON at4 USING lsm (id) INCLUDE (b);
CREATE UNIQUE INDEX at4_ab ON at4 USING lsm (a, b);
ALTER TABLE at4 ADD CONSTRAINT at4_pkey PRIMARY KEY USING INDEX at4_id, ADD COLUMN c int;
ALTER TABLE at4 ADD UNIQUE USING INDEX at4_ab DEFERRABLE INITIALLY DEFERRED;
SELECT conname, contype, condeferrable, amname, reloptions, definition FROM at_keys WHERE "table" = 'at4'::regclass ORDER BY 1;
SELECT attname FROM pg_attribute WHERE attrelid = 'at4'::regclass AND attnotnull AND attnum > 0 ORDER BY 1;
INSERT INTO at4 VALUES (1, 301, 301);
INSERT INTO at4 VALUES (301, 1, 1);
INSERT INTO at4 VALUES (1, 1, 1) ON CONFLICT ON CONSTRAINT at4_pkey DO UPDATE SET a = excluded.a + 1000 RETURNING a;
SELECT id, b FROM at4 WHERE id < 3 GROUP BY id ORDER BY id;
-- The usual way to replace a key: the new one in the same command.
CREATE UNIQUE INDEX CONCURRENTLY at4_new ON at4 USING lsm (id);
ALTER TABLE at4 DROP CONSTRAINT at4_pkey, ADD CONSTRAINT at4_pkey PRIMARY KEY USING INDEX at4_new;
SELECT definition FROM at_keys WHERE conname = 'at4_pkey';
SELECT lsm_check('at4_pkey', true), lsm_check('at4_ab', true);
CREATE TABLE at5 (LIKE at4 INCLUDING ALL);
SELECT conname, amname FROM at_keys WHERE "table" = 'at5'::regclass ORDER BY 1;
-- Indexes that would be refused if they were B-trees, too.
CREATE UNIQUE INDEX at4_u ON at4 USING lsm (a);
CREATE INDEX at4_n ON at4 USING lsm (a);
CREATE UNIQUE INDEX at4_p ON at4 USING lsm (a) WHERE a > 0;
CREATE UNIQUE INDEX at4_e ON at4 USING lsm ((a + 1));
CREATE UNIQUE INDEX at4_d ON at4 USING lsm (a DESC);
CREATE UNIQUE INDEX at1_u ON at1 USING lsm (id);
SELECT q, t.error_of('ALTER TABLE ' || q) FROM unnest(ARRAY['at4 ADD PRIMARY KEY USING INDEX at4_u', 'at4 ADD UNIQUE USING INDEX at4_n', 'at4 ADD UNIQUE USING INDEX at4_p', 'at4 ADD UNIQUE USING INDEX at4_e',
	'at4 ADD UNIQUE USING INDEX at4_d', 'at4 ADD UNIQUE USING INDEX at1_u', 'at4 ADD UNIQUE USING INDEX at4_ab', 'at4 ADD UNIQUE USING INDEX nothing', 'at2 ADD UNIQUE USING INDEX at4_u',
	'nothing ADD UNIQUE USING INDEX at4_u']) q;
ALTER TABLE IF EXISTS at_nothing ADD UNIQUE USING INDEX at4_u;
INSERT INTO at4 VALUES (1000, NULL, 1);
ALTER TABLE at4 DROP CONSTRAINT at4_pkey;
ALTER TABLE at4 ADD PRIMARY KEY USING INDEX at4_u;
-- Only the owner may do this.
CREATE ROLE at_other;
GRANT USAGE ON SCHEMA t TO at_other;
SET ROLE at_other;
SELECT t.error_of('ALTER TABLE at4 ADD UNIQUE USING INDEX at4_u'), t.error_of('ALTER TABLE at1 ALTER id TYPE bigint');
RESET ROLE;
REVOKE USAGE ON SCHEMA t FROM at_other;
DROP ROLE at_other;
DROP VIEW at_keys;
DROP FUNCTION at_retype;
DROP TABLE at1, at1_before, at2, at3, at3_1, at4, at5;
