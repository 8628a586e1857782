-- lsm_convert moves indexes and keys to lsm and back.  The names of copies
-- contain OIDs, so plans are shown without them.

SET client_min_messages = warning;

CREATE FUNCTION plan(index regclass, method name DEFAULT 'lsm')
RETURNS TABLE (step int, action text, statement text)
LANGUAGE sql AS $$
	SELECT step, action, regexp_replace(
		regexp_replace(statement, 'lsm_convert_\d+', 'lsm_convert_N', 'g'), '\d+::', 'N::')
	FROM lsm_convert_plan(index, method)
$$;

CREATE FUNCTION indexes(t regclass)
RETURNS TABLE (definition text, kind text, note text)
LANGUAGE sql AS $$
	SELECT pg_get_indexdef(i.indexrelid),
		concat_ws(' ', CASE WHEN i.indisprimary THEN 'primary' END,
			CASE WHEN NOT i.indisvalid THEN 'invalid' END,
			CASE WHEN i.indisclustered THEN 'clustered' END,
			CASE WHEN i.indisreplident THEN 'identity' END,
			(SELECT 'of constraint ' || k.conname || ' ' || k.contype::text || ' ' ||
				coalesce(obj_description(k.oid, 'pg_constraint'), '')
				FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.conrelid = i.indrelid)),
		obj_description(i.indexrelid, 'pg_class')
	FROM pg_index i WHERE i.indrelid = t ORDER BY 1
$$;

-- An index with every possible property.
CREATE SCHEMA conv;
CREATE TABLE conv."T t" (id int PRIMARY KEY, a int, b text COLLATE "C", c text, d int, e int);
INSERT INTO conv."T t" SELECT i, i % 7, 'b' || i, 'c' || i % 11, i, i FROM generate_series(1, 500) i;
CREATE INDEX plain ON conv."T t" (a DESC, e, b COLLATE "POSIX" text_pattern_ops NULLS FIRST, c DESC NULLS LAST)
	INCLUDE (d) WITH (fillfactor = 70, deduplicate_items = off) WHERE d > 10;
CREATE UNIQUE INDEX "Un'iq" ON conv."T t" ((a + id), lower(b)) NULLS NOT DISTINCT;
ALTER INDEX conv."Un'iq" ALTER COLUMN 1 SET STATISTICS 17;
COMMENT ON INDEX conv."Un'iq" IS 'of the index';
COMMENT ON INDEX conv."T t_pkey" IS 'of the key';
COMMENT ON CONSTRAINT "T t_pkey" ON conv."T t" IS 'of the constraint';
ALTER TABLE conv."T t" CLUSTER ON "Un'iq";
ALTER TABLE conv."T t" REPLICA IDENTITY USING INDEX "T t_pkey";
ALTER TABLE conv."T t" ADD CONSTRAINT two UNIQUE (d) INCLUDE (a);
CREATE VIEW conv.grouped AS SELECT id, a FROM conv."T t" GROUP BY id;
ANALYZE conv."T t";

SELECT * FROM plan('conv.plain');
SELECT * FROM plan('conv."Un''iq"');
SELECT * FROM plan('conv."T t_pkey"');
SELECT * FROM plan('conv.two');
SELECT * FROM plan('conv.two', 'btree');
SET default_tablespace = pg_default;
SELECT statement FROM plan('conv.plain') WHERE action = 'build';
RESET default_tablespace;

SELECT * FROM indexes('conv."T t"');
CALL lsm_convert('conv.plain');
CALL lsm_convert('conv."Un''iq"');
CALL lsm_convert('conv."T t_pkey"');
CALL lsm_convert('conv.two');
SELECT * FROM indexes('conv."T t"');
SELECT attnum, coalesce(attstattarget, -1) AS target FROM pg_attribute
	WHERE attrelid = 'conv."Un''iq"'::regclass ORDER BY 1;
SELECT count(*) FROM pg_stats WHERE tablename = 'Un''iq';
SELECT lsm_check(indexrelid, true) FROM pg_index WHERE indrelid = 'conv."T t"'::regclass;

-- The keys still work.
INSERT INTO conv."T t" VALUES (1);
INSERT INTO conv."T t" VALUES (1) ON CONFLICT ON CONSTRAINT "T t_pkey" DO UPDATE SET c = 'new' RETURNING *;
INSERT INTO conv."T t" (id, d) VALUES (501, 1);
SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
	WHERE refclassid = 'pg_constraint'::regclass
	AND refobjid = (SELECT oid FROM pg_constraint WHERE conname = 'T t_pkey')
	AND classid <> 'pg_class'::regclass;
-- The indexes depend on the extension.
SELECT count(*) FROM pg_depend d JOIN pg_opclass o ON o.oid = d.refobjid
	WHERE d.refclassid = 'pg_opclass'::regclass AND d.classid = 'pg_class'::regclass
	AND d.objid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'conv."T t"'::regclass)
	AND o.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'lsm');

-- Nothing is left to convert.
SET client_min_messages = notice;
CALL lsm_convert('conv.plain');
SET client_min_messages = warning;

-- Back.  Parameters that only lsm has are dropped.
ALTER INDEX conv.plain SET (merge_fanout = 8);
SELECT * FROM plan('conv.plain', 'btree');
CALL lsm_convert('conv.plain', 'btree');
CALL lsm_convert('conv."Un''iq"', 'btree');
CALL lsm_convert('conv."T t_pkey"', method => 'btree');
CALL lsm_convert('conv.two', 'btree');
SELECT * FROM indexes('conv."T t"');
SELECT count(*) FROM pg_depend d JOIN pg_opclass o ON o.oid = d.refobjid
	WHERE d.refclassid = 'pg_opclass'::regclass AND d.classid = 'pg_class'::regclass
	AND d.objid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'conv."T t"'::regclass);

-- Names in a plan do not depend on search_path.
CREATE FUNCTION conv.lower(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT 'wrong' $$;
SET search_path = conv, pg_catalog, public;
CALL lsm_convert('"Un''iq"');
SHOW search_path;
RESET search_path;
SELECT pg_get_indexdef('conv."Un''iq"'::regclass);

-- What an interrupted conversion leaves.  A complete copy is used; converting back drops
-- it.
CREATE TABLE conv.r (k int, CONSTRAINT r_key UNIQUE (k));
INSERT INTO conv.r SELECT generate_series(1, 100);
SELECT statement AS build FROM lsm_convert_plan('conv.r_key') WHERE action = 'build' \gset
:build;
SELECT * FROM plan('conv.r_key');
SELECT * FROM plan('conv.r_key', 'btree');
CALL lsm_convert('conv.r_key', 'btree');
SELECT count(*) FROM pg_index WHERE indrelid = 'conv.r'::regclass;
-- A copy whose build failed because of a duplicate is built again.
SELECT 'CREATE UNIQUE INDEX CONCURRENTLY lsm_convert_' || 'conv.r_key'::regclass::oid ||
	' ON conv.r ((k / 2))' AS broken \gset
\set VERBOSITY sqlstate
:broken;
\set VERBOSITY default
SELECT * FROM plan('conv.r_key');
-- After the swap, only the old index is left.
SELECT statement AS build FROM lsm_convert_plan('conv.r_key') WHERE action = 'build' \gset
SELECT statement AS clear FROM lsm_convert_plan('conv.r_key') WHERE action = 'drop' LIMIT 1 \gset
SELECT statement AS swap FROM lsm_convert_plan('conv.r_key') WHERE action = 'swap' \gset
:clear;
:build;
:swap;
SELECT regexp_replace(definition, 'lsm_convert_\d+', 'lsm_convert_N') AS definition, kind
	FROM indexes('conv.r');
SELECT * FROM plan('conv.r_key');
CALL lsm_convert('conv.r_key');
SELECT * FROM indexes('conv.r');
SELECT lsm_check('conv.r_key', true);

-- The statements of a plan, run by psql.
\set ECHO none
SELECT statement FROM lsm_convert_plan('conv.r_key', 'btree') \gexec
\set ECHO all
SELECT * FROM indexes('conv.r');

-- Temporary and unlogged tables.
CREATE TEMP TABLE tt (k int PRIMARY KEY);
CALL lsm_convert('tt_pkey');
CREATE UNLOGGED TABLE conv.u (k int PRIMARY KEY);
CALL lsm_convert('conv.u_pkey');
SELECT indexrelid::regclass, am.amname FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am am ON am.oid = relam
	WHERE indrelid IN ('tt'::regclass, 'conv.u'::regclass) ORDER BY 1;

-- Foreign keys are moved to the new index, from 18 on.
CREATE TABLE conv.f (k int PRIMARY KEY);
CREATE TABLE conv.g (k int REFERENCES conv.f, CONSTRAINT g_k UNIQUE (k));
DO $$
BEGIN
	PERFORM lsm_convert_plan('conv.f_pkey');
	ASSERT current_setting('server_version_num')::int >= 180000;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
	ASSERT current_setting('server_version_num')::int < 180000 AND sqlerrm ~ 'cannot convert index conv.f_pkey';
END
$$;
CALL lsm_convert('conv.g_k');
INSERT INTO conv.g VALUES (1);

-- Partitioned indexes: the attached indexes one by one, then their parents.
CREATE TABLE conv.p (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE conv.p1 PARTITION OF conv.p FOR VALUES FROM (1) TO (100);
CREATE TABLE conv.p2 PARTITION OF conv.p FOR VALUES FROM (100) TO (200) PARTITION BY LIST (b);
CREATE TABLE conv.p2x PARTITION OF conv.p2 FOR VALUES IN ('x');
CREATE TABLE conv.p2y PARTITION OF conv.p2 FOR VALUES IN ('y');
CREATE INDEX p_ab ON conv.p (a DESC, b text_pattern_ops) WITH (fillfactor = 70);
INSERT INTO conv.p SELECT i, CASE WHEN i % 2 = 0 THEN 'x' ELSE 'y' END FROM generate_series(1, 199) i;
CREATE FUNCTION tree() RETURNS TABLE (definition text, level int, valid bool, classes bigint)
LANGUAGE sql AS $$
	SELECT pg_get_indexdef(relid), level, indisvalid,
		(SELECT count(*) FROM pg_depend d JOIN pg_opclass o ON o.oid = d.refobjid
			WHERE d.objid = relid AND d.refclassid = 'pg_opclass'::regclass
			AND o.opcmethod = (SELECT relam FROM pg_class WHERE oid = relid))
	FROM pg_partition_tree('conv.p_ab') JOIN pg_index ON indexrelid = relid
	ORDER BY level, relid::regclass::text
$$;
SELECT lsm_convert_parent('conv.p_ab', 'lsm');
SELECT * FROM plan('conv.p_ab');
SELECT * FROM plan('conv.p_ab', 'btree');
CALL lsm_convert('conv.p_ab');
SELECT * FROM tree();
SELECT lsm_check(relid, true) FROM pg_partition_tree('conv.p_ab') WHERE isleaf;
-- A new partition gets an lsm index, and a matching index is attached.
CREATE TABLE conv.p3 PARTITION OF conv.p FOR VALUES FROM (200) TO (300);
CREATE TABLE conv.p4 (a int, b text);
CREATE INDEX p4_index ON conv.p4 USING lsm (a DESC, b text_pattern_ops);
ALTER TABLE conv.p ATTACH PARTITION conv.p4 FOR VALUES FROM (300) TO (400);
SELECT definition FROM tree() WHERE level = 1;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT * FROM conv.p ORDER BY a DESC LIMIT 3;
RESET enable_seqscan;
RESET enable_bitmapscan;
CALL lsm_convert('conv.p_ab', 'btree');
SELECT * FROM tree();
-- The topmost index is locked as those below.
BEGIN;
SELECT lsm_convert_parent('conv.p_ab', 'btree');
SELECT count(*) FROM pg_locks WHERE relation = 'conv.p_ab'::regclass AND mode = 'ShareUpdateExclusiveLock';
ROLLBACK;
-- Unique ones, from 18 on.
CREATE TABLE conv.pk (a int PRIMARY KEY) PARTITION BY RANGE (a);
CREATE TABLE conv.pk1 PARTITION OF conv.pk FOR VALUES FROM (1) TO (100);
DO $$
BEGIN
	PERFORM lsm_convert_plan('conv.pk_pkey');
	ASSERT current_setting('server_version_num')::int >= 180000;
EXCEPTION WHEN object_not_in_prerequisite_state THEN
	ASSERT current_setting('server_version_num')::int < 180000 AND sqlerrm ~ 'cannot convert index conv.pk1_pkey';
END
$$;

-- Refusals.
\set SHOW_CONTEXT never
CREATE TABLE conv.x (a int, b int4range, EXCLUDE USING btree (a WITH =), UNIQUE (a) DEFERRABLE);
CREATE INDEX x_hash ON conv.x USING hash (a);
CREATE FUNCTION conv.cmp(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT btint4cmp($1, $2)';
CREATE OPERATOR CLASS conv.my_ops FOR TYPE int USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 conv.cmp(int, int);
CREATE INDEX x_my ON conv.x (a conv.my_ops);
CALL lsm_convert('conv.x_a_excl');
CALL lsm_convert('conv.x_a_key');
CALL lsm_convert('conv.x_hash');
CALL lsm_convert('conv.x_my');
CALL lsm_convert('conv.p1_a_b_idx');
CALL lsm_convert('conv.x');
CALL lsm_convert('conv.two', 'hash');
CALL lsm_convert(NULL);
-- The calls leave no locks.
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'ShareUpdateExclusiveLock';
BEGIN;
CALL lsm_convert('conv.two');
ROLLBACK;
SELECT 1 \; CALL lsm_convert('conv.two');
DO $$ BEGIN CALL lsm_convert('conv.two'); END $$;
CREATE PROCEDURE conv.wrapper() LANGUAGE plpgsql AS $$ BEGIN COMMIT; CALL public.lsm_convert('conv.two'); END $$;
CALL conv.wrapper();
CREATE ROLE regress_convert;
GRANT USAGE ON SCHEMA conv TO regress_convert;
-- A caller who does not own all partitions gets the error before the first step.
CREATE TABLE conv.o (a int) PARTITION BY RANGE (a);
CREATE TABLE conv.o1 PARTITION OF conv.o FOR VALUES FROM (1) TO (2);
CREATE TABLE conv.o2 PARTITION OF conv.o FOR VALUES FROM (2) TO (3);
CREATE INDEX o_a ON conv.o (a);
ALTER TABLE conv.o OWNER TO regress_convert;
ALTER TABLE conv.o1 OWNER TO regress_convert;
SET ROLE regress_convert;
CALL lsm_convert('conv.two');
SELECT lsm_convert_swap('conv.two', 'conv.plain');
SELECT lsm_convert_plan('conv.two');
CALL lsm_convert('conv.o_a', dry_run => true);
CALL lsm_convert('conv.o_a');
RESET ROLE;
DROP TABLE conv.o;
SELECT lsm_convert_swap('conv.two', 'conv.plain');
SELECT lsm_convert_swap('conv.two', 'conv.r_key');
CREATE UNIQUE INDEX other ON conv."T t" USING lsm (d);
SELECT lsm_convert_swap('conv.other', 'conv.two');
-- Another parameter does not stand for this one.
ALTER INDEX conv.other SET (fillfactor = 70);
SELECT lsm_convert_swap('conv.other', 'conv.two');
ALTER INDEX conv.other SET (lsm = true);
SELECT lsm_convert_swap('conv.other', 'conv.two');
SELECT lsm_convert_swap('conv.other', 'conv.other');
SELECT t.error_of($$SELECT lsm_convert_swap('conv."T t"', 'conv.two')$$);

REVOKE USAGE ON SCHEMA conv FROM regress_convert;
DROP ROLE regress_convert;
DROP SCHEMA conv CASCADE;
DROP FUNCTION plan, indexes, tree;
