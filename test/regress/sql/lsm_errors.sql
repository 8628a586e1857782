-- What is refused, and with which error. Rows are inserted one by one, so that each insert searches.
SET pg_lsm.batch_inserts = off;
CREATE TABLE t1 (k int, v text, p point);
CREATE INDEX t1_point ON t1 USING lsm (p);
CREATE INDEX t1_class ON t1 USING lsm (k text_ops);
CREATE INDEX t1_k ON t1 USING lsm (k);
SELECT t.error_of('ALTER TABLE t1 ADD CONSTRAINT t1_pk PRIMARY KEY USING INDEX t1_k');
SELECT t.error_of('CREATE INDEX ON t1 USING lsm (k) WITH (no_such_parameter = 1)'), t.error_of('ALTER INDEX t1_k SET (no_such_parameter = 1)');
SELECT t.error_of('SET pg_lsm.debug_merge_fanout = 1'), t.error_of('SET pg_lsm.debug_buffer_entries = -1'), t.error_of('SET pg_lsm.debug_segment_size = -1');
ALTER SYSTEM SET pg_lsm.max_workers = 65;
SET pg_lsm.prefetch_depth = -1;
SELECT t.error_of('SET pg_lsm.no_such_setting = 1');
-- The limit on columns is PostgreSQL's.
SELECT t.error_of('CREATE INDEX ON t1 USING lsm (' || (SELECT string_agg('k', ', ') FROM generate_series(1, 33)) || ')');

-- Keys over the size limit: a clear error, and the index remains usable.
ALTER TABLE t1 ALTER v SET STORAGE plain;
CREATE INDEX t1_v ON t1 USING lsm (v);
CREATE INDEX t1_k_v ON t1 USING lsm (k) INCLUDE (v);
INSERT INTO t1 SELECT i, 'short' FROM generate_series(1, 20) i;
SELECT t.error_of('INSERT INTO t1 VALUES (100, repeat(''x'', 5000))', 't1_v');
DROP INDEX t1_v;
SELECT t.error_of('INSERT INTO t1 VALUES (100, repeat(''x'', 5000))', 't1_k_v');
DROP INDEX t1_k_v;
INSERT INTO t1 SELECT 100, string_agg(md5(i::text), '') FROM generate_series(1, 150) i;
INSERT INTO t1 VALUES (101, repeat('x', 2000));
SELECT t.error_of('CREATE INDEX t1_v ON t1 USING lsm (v)', 't1_v');
SELECT t.error_of('CREATE INDEX t1_kv ON t1 USING lsm (k) INCLUDE (v)', 't1_kv');
SELECT t.error_of('CREATE INDEX t1_tuple ON t1 USING lsm ((ARRAY[v]))', 't1_tuple');
SELECT to_regclass('t1_v'), to_regclass('t1_kv'), to_regclass('t1_tuple');
DELETE FROM t1 WHERE k = 100;
-- Each size is either accepted or refused, and never breaks a page.
CREATE TABLE sizes (k bytea, n int);
ALTER TABLE sizes ALTER k SET STORAGE plain;
CREATE INDEX sizes_k ON sizes USING lsm (k);
CREATE INDEX sizes_n ON sizes USING lsm ((n % 2), (ARRAY[k]));
DO $$
DECLARE
	refused int := 0;
BEGIN
	FOR i IN 1200..2800 BY 5 LOOP
		BEGIN
			-- A zero takes two bytes in an encoded key.
			INSERT INTO sizes VALUES (decode(repeat(CASE WHEN i % 2 = 0 THEN '00' ELSE '78' END, i), 'hex'), i);
		EXCEPTION WHEN program_limit_exceeded THEN
			refused := refused + 1;
		END;
	END LOOP;
	IF refused = 0 THEN
		RAISE 'no key was refused';
	END IF;
END $$;
SELECT lsm_check('sizes_k', true), lsm_check('sizes_n', true);
SELECT count(*) FILTER (WHERE get_byte(k, 0) = 0) > 10 AS zeroes, count(*) FILTER (WHERE get_byte(k, 0) > 0) > 250 / 2 AS others FROM sizes;
SELECT split_part(t.same('SELECT n FROM sizes WHERE k > ''\x00'''), ' by ', 2);
SELECT split_part(t.same('SELECT n FROM sizes WHERE n % 2 = 1'), ' by ', 2);
-- A key of 2000 bytes is within all limits.
SELECT t.error_of('INSERT INTO sizes SELECT decode(repeat(''ff'', 2000), ''hex''), 0');

-- The functions accept only lsm indexes.
CREATE INDEX t1_btree ON t1 (k);
CREATE VIEW view1 AS SELECT 1 AS k;
CREATE SEQUENCE seq1;
CREATE TABLE parts (k int) PARTITION BY RANGE (k);
CREATE INDEX parts_k ON parts USING lsm (k);
SELECT f, r, t.error_of(format('SELECT * FROM %s(%L)', f, r)) FROM unnest('{lsm_check,lsm_runs}'::text[]) f,
	unnest('{t1,t1_btree,view1,seq1,pg_class,pg_class_oid_index,parts,parts_k}'::text[]) r;
SELECT f, t.error_of(format('SELECT * FROM %s(''nothing'')', f)), t.error_of(format('SELECT * FROM %s(1::regclass)', f)) <> 'no error' AS refused FROM unnest('{lsm_check,lsm_runs}'::text[]) f;
SELECT lsm_check(NULL), lsm_check('t1_k', NULL);
SELECT count(*) FROM lsm_runs(NULL);

-- Privileges: the owner may call them, others may not.
CREATE ROLE regress_lsm_owner;
CREATE SCHEMA owned AUTHORIZATION regress_lsm_owner;
SET ROLE regress_lsm_owner;
CREATE TABLE owned.mine (k int);
INSERT INTO owned.mine SELECT generate_series(1, 20);
CREATE INDEX mine_k ON owned.mine USING lsm (k);
SELECT lsm_check('owned.mine_k'), lsm_check('owned.mine_k', true);
SELECT sum(entries) FROM lsm_runs('owned.mine_k');
RESET ROLE;
GRANT USAGE ON SCHEMA owned TO regress_lsm_nobody;
GRANT USAGE ON SCHEMA t, public TO regress_lsm_nobody;
SET ROLE regress_lsm_nobody;
SELECT f, t.error_of(format('SELECT * FROM %s(''owned.mine_k'')', f)) FROM unnest('{lsm_check,lsm_runs}'::text[]) f;
SELECT t.error_of('SELECT lsm_check(''owned.mine_k'', true)');
RESET ROLE;
-- Others may not change the settings that affect the index for everybody, unless granted.
SET ROLE regress_lsm_nobody;
SELECT s, t.error_of(format('SET pg_lsm.%s = DEFAULT', s)) FROM unnest('{debug_merge_fanout,debug_buffer_entries,debug_open_pages,debug_page_entries,debug_foreground_blocks,debug_segment_size,debug_batch_entries,debug_batch_min_entries,batch_inserts}'::text[]) s;
RESET ROLE;
GRANT SET ON PARAMETER pg_lsm.debug_merge_fanout TO regress_lsm_nobody;
SET ROLE regress_lsm_nobody;
SET pg_lsm.debug_merge_fanout = 5;
SHOW pg_lsm.debug_merge_fanout;
RESET pg_lsm.debug_merge_fanout;
RESET ROLE;
REVOKE SET ON PARAMETER pg_lsm.debug_merge_fanout FROM regress_lsm_nobody;
DROP SCHEMA owned CASCADE;
DROP ROLE regress_lsm_owner;

-- A merge and lsm_check call the owner's functions with the owner's privileges, not with those of the user who
-- inserts or checks.
CREATE ROLE regress_lsm_owner;
CREATE SCHEMA owned AUTHORIZATION regress_lsm_owner;
CREATE TYPE owned.spy AS (v int);
-- The comparison records who calls it, and only the owner may call it.
CREATE SEQUENCE owned.seen_regress_lsm_owner;
CREATE SEQUENCE owned.seen_regress_lsm_nobody;
GRANT USAGE ON SEQUENCE owned.seen_regress_lsm_owner TO regress_lsm_owner;
GRANT USAGE ON SEQUENCE owned.seen_regress_lsm_nobody TO regress_lsm_nobody;
CREATE FUNCTION owned.spy_cmp(a owned.spy, b owned.spy) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	PERFORM nextval('owned.seen_' || current_user);
	RETURN a.v - b.v;
END $$;
CREATE FUNCTION owned.spy_lt(a owned.spy, b owned.spy) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT a.v < b.v';
CREATE FUNCTION owned.spy_le(a owned.spy, b owned.spy) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT a.v <= b.v';
CREATE FUNCTION owned.spy_eq(a owned.spy, b owned.spy) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT a.v = b.v';
CREATE FUNCTION owned.spy_ge(a owned.spy, b owned.spy) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT a.v >= b.v';
CREATE FUNCTION owned.spy_gt(a owned.spy, b owned.spy) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT a.v > b.v';
CREATE OPERATOR owned.<< (LEFTARG = owned.spy, RIGHTARG = owned.spy, FUNCTION = owned.spy_lt, COMMUTATOR = OPERATOR(owned.>>));
CREATE OPERATOR owned.<<= (LEFTARG = owned.spy, RIGHTARG = owned.spy, FUNCTION = owned.spy_le);
CREATE OPERATOR owned.== (LEFTARG = owned.spy, RIGHTARG = owned.spy, FUNCTION = owned.spy_eq, COMMUTATOR = OPERATOR(owned.==));
CREATE OPERATOR owned.>>= (LEFTARG = owned.spy, RIGHTARG = owned.spy, FUNCTION = owned.spy_ge);
CREATE OPERATOR owned.>> (LEFTARG = owned.spy, RIGHTARG = owned.spy, FUNCTION = owned.spy_gt, COMMUTATOR = OPERATOR(owned.<<));
CREATE OPERATOR CLASS owned.spy_ops FOR TYPE owned.spy USING lsm AS
	OPERATOR 1 owned.<<, OPERATOR 2 owned.<<=, OPERATOR 3 owned.==, OPERATOR 4 owned.>>=, OPERATOR 5 owned.>>, FUNCTION 1 owned.spy_cmp (owned.spy, owned.spy);
CREATE TABLE owned.spied (s owned.spy);
CREATE INDEX spied_s ON owned.spied USING lsm (s owned.spy_ops);
ALTER TABLE owned.spied OWNER TO regress_lsm_owner;
GRANT USAGE ON SCHEMA owned TO regress_lsm_nobody;
GRANT INSERT ON owned.spied TO regress_lsm_nobody;
SET pg_lsm.debug_buffer_entries = 2;
SET pg_lsm.debug_merge_fanout = 2;
SET pg_lsm.debug_foreground_blocks = 128;
SET ROLE regress_lsm_nobody;
-- Each statement's batch makes a run, and the runs are merged.
INSERT INTO owned.spied SELECT ROW((i * 7919) % 1000)::owned.spy FROM generate_series(1, 60) i;
INSERT INTO owned.spied SELECT ROW((i * 7919) % 1000)::owned.spy FROM generate_series(61, 120) i;
INSERT INTO owned.spied SELECT ROW((i * 7919) % 1000)::owned.spy FROM generate_series(121, 180) i;
INSERT INTO owned.spied SELECT ROW((i * 7919) % 1000)::owned.spy FROM generate_series(181, 240) i;
INSERT INTO owned.spied SELECT ROW((i * 7919) % 1000)::owned.spy FROM generate_series(241, 300) i;
RESET ROLE;
SELECT is_called AS owner_has_merged FROM owned.seen_regress_lsm_owner;
SELECT is_called AS inserter_has_searched FROM owned.seen_regress_lsm_nobody;
SELECT setval('owned.seen_regress_lsm_owner', 1, false), setval('owned.seen_regress_lsm_nobody', 1, false);
-- The session's own user would fail here.
SELECT lsm_check('owned.spied_s', true);
REINDEX INDEX owned.spied_s;
VACUUM FULL owned.spied;
SELECT is_called FROM owned.seen_regress_lsm_owner UNION ALL SELECT is_called FROM owned.seen_regress_lsm_nobody;
-- SQL functions need a snapshot. None is left when the rows that a cursor's query inserted are written.
CREATE FUNCTION owned.sql_cmp(a owned.spy, b owned.spy) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN a.v < b.v THEN -1 WHEN a.v > b.v THEN 1 ELSE 0 END';
CREATE OPERATOR CLASS owned.sql_ops FOR TYPE owned.spy USING lsm AS
	OPERATOR 1 owned.<<, OPERATOR 2 owned.<<=, OPERATOR 3 owned.==, OPERATOR 4 owned.>>=, OPERATOR 5 owned.>>, FUNCTION 1 owned.sql_cmp (owned.spy, owned.spy);
CREATE TABLE owned.fetched (s owned.spy);
CREATE INDEX fetched_s ON owned.fetched USING lsm (s owned.sql_ops);
CREATE FUNCTION owned.put(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO owned.fetched VALUES (ROW(i)); RETURN i; END $$;
BEGIN;
DECLARE c CURSOR FOR SELECT owned.put(i) FROM generate_series(1, 100) i;
FETCH 5 FROM c;
MOVE ALL FROM c;
COMMIT;
SELECT lsm_check('owned.fetched_s', true), (SELECT count(*) FROM owned.fetched);
-- A function of an index inspects the index while this session rebuilds it. The old index does not fit the new table.
CREATE TABLE rebuilt (k int);
CREATE FUNCTION look(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF current_setting('look.at', true) <> '' THEN
		EXECUTE current_setting('look.at');
	END IF;
	RETURN i;
END $$;
CREATE INDEX rebuilt_look ON rebuilt USING lsm (look(k));
CREATE INDEX rebuilt_k ON rebuilt USING lsm (k);
INSERT INTO rebuilt SELECT generate_series(1, 2000);
DELETE FROM rebuilt WHERE k > 10;
\set VERBOSITY terse
SET look.at = $$SELECT public.lsm_compact('public.rebuilt_look')$$;
REINDEX INDEX rebuilt_look;
SET look.at = $$SELECT public.lsm_check('public.rebuilt_look')$$;
VACUUM FULL rebuilt;
SET look.at = $$SELECT public.lsm_check('public.rebuilt_k')$$;
VACUUM FULL rebuilt;
SET look.at = $$SELECT public.lsm_compact('public.rebuilt_k')$$;
VACUUM FULL rebuilt;
\set VERBOSITY default
RESET look.at;
VACUUM FULL rebuilt;
SELECT lsm_check('rebuilt_look', true), lsm_check('rebuilt_k', true);
DROP TABLE rebuilt;
DROP FUNCTION look;
SET client_min_messages = warning;
DROP SCHEMA owned CASCADE;
DROP ROLE regress_lsm_owner;
REVOKE ALL ON SCHEMA t, public FROM regress_lsm_nobody;
DROP TABLE t1, sizes, parts;
DROP VIEW view1;
DROP SEQUENCE seq1;
