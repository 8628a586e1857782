-- lsm_convert, called by a superuser: functions of the table's owner run as
-- the owner, and event triggers may run queries.

SET client_min_messages = warning;
CREATE ROLE regress_hostile;
CREATE SCHEMA hostile AUTHORIZATION regress_hostile;
SET ROLE regress_hostile;
CREATE FUNCTION hostile.who() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF current_user <> 'regress_hostile' THEN
		RAISE EXCEPTION 'runs as %', current_user;
	END IF;
	RETURN 1;
END $$;
CREATE FUNCTION hostile.one(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN hostile.who(); END $$;
CREATE TABLE hostile.t (a int);
INSERT INTO hostile.t SELECT i FROM generate_series(1, 100) i;
CREATE INDEX t_i ON hostile.t ((a + hostile.one(1)));
RESET ROLE;
CALL lsm_convert('hostile.t_i');
SELECT lsm_check('hostile.t_i');
CALL lsm_convert('hostile.t_i', 'btree');

-- So does the check of a domain, which runs when the condition is analyzed.
SET ROLE regress_hostile;
CREATE FUNCTION hostile.is_fine(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN hostile.who() = 1; END $$;
CREATE DOMAIN hostile.checked AS int CHECK (hostile.is_fine(VALUE));
CREATE INDEX t_d ON hostile.t (a) WHERE '{1}'::hostile.checked[] IS NOT NULL;
RESET ROLE;
CALL lsm_convert('hostile.t_d');
SELECT lsm_check('hostile.t_d', true);

-- As with REINDEX, the owner needs no right to use the schemas of functions and types.
CREATE SCHEMA hostile_closed;
CREATE FUNCTION hostile_closed.f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1';
CREATE DOMAIN hostile_closed.d AS int;
CREATE INDEX t_closed ON hostile.t (hostile_closed.f(a), (a * 2)) WHERE a > 5::hostile_closed.d;
CALL lsm_convert('hostile.t_closed');
SELECT pg_get_indexdef('hostile.t_closed'::regclass), array_agg(attname ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'hostile.t_closed'::regclass;
SELECT lsm_check('hostile.t_closed', true);
DROP INDEX hostile.t_closed;
DROP SCHEMA hostile_closed CASCADE;

-- A function that always fails keeps lsm_check_all neither from going on, nor
-- does it make the index look damaged.
CREATE TABLE hostile.u (a int);
CREATE INDEX u_a ON hostile.u USING lsm (a);
SET ROLE regress_hostile;
CREATE FUNCTION hostile.plus(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN $1 + 1; END $$;
CREATE INDEX t_f ON hostile.t USING lsm (hostile.plus(a));
CREATE OR REPLACE FUNCTION hostile.plus(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	RAISE 'no' USING ERRCODE = 'lock_not_available';
END $$;
RESET ROLE;
SELECT * FROM lsm_check_all('hostile', true);
DROP INDEX hostile.t_f;

-- Event triggers that run a query, at the end of a command and for each drop.
CREATE TABLE hostile.log (tag text);
CREATE FUNCTION hostile.note() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO hostile.log VALUES (tg_tag); END $$;
CREATE EVENT TRIGGER regress_end ON ddl_command_end EXECUTE FUNCTION hostile.note();
CREATE EVENT TRIGGER regress_drop ON sql_drop EXECUTE FUNCTION hostile.note();
CALL lsm_convert('hostile.t_i');
CALL lsm_convert('hostile.t_i', 'btree');
DROP EVENT TRIGGER regress_end;
DROP EVENT TRIGGER regress_drop;
SELECT tag, count(*) FROM hostile.log GROUP BY tag ORDER BY tag;
SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE indrelid = 'hostile.t'::regclass;

-- What does not exist, and methods that are not ours.
CALL lsm_convert(4294967295);
CREATE INDEX t_hash ON hostile.t USING hash (a);
CREATE INDEX t_btree ON hostile.t (a);
SELECT lsm_convert_swap('hostile.t_hash', 'hostile.t_btree');

-- A partitioned index without partitions has a method, too. A whole row cannot be compared.
CREATE TABLE hostile.parts (k int, p jsonb) PARTITION BY RANGE (k);
CREATE INDEX parts_p ON hostile.parts USING gin (p);
CALL lsm_convert('hostile.parts_p');
CREATE INDEX t_row ON hostile.t (a) WHERE t IS NOT NULL;
CALL lsm_convert('hostile.t_row');

DROP SCHEMA hostile CASCADE;
DROP ROLE regress_hostile;
