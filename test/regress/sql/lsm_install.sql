-- The objects of the extension.

-- Every operator class of btree exists for lsm, with the same properties.  (A
-- name is stored whole, so that name_ops has no other type to store.)
CREATE VIEW classes AS
SELECT amname, opcname, opcintype::regtype, opcdefault
FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE c.oid < 16384 OR amname = 'lsm';
SELECT opcname, opcintype, opcdefault FROM classes WHERE amname = 'btree'
EXCEPT SELECT opcname, opcintype, opcdefault FROM classes WHERE amname = 'lsm';
SELECT opcname, opcintype, opcdefault FROM classes WHERE amname = 'lsm'
EXCEPT SELECT opcname, opcintype, opcdefault FROM classes WHERE amname = 'btree';

-- ... and every operator of btree's families, cross-type ones included.
CREATE VIEW operators AS
SELECT amname, opfname, amoplefttype::regtype AS lefttype, amoprighttype::regtype AS righttype,
	amopstrategy AS strategy, amopopr::regoperator AS operator, amoppurpose AS purpose
FROM pg_amop o JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a ON a.oid = amopmethod
WHERE f.oid < 16384 OR amname = 'lsm';
SELECT opfname, lefttype, righttype, strategy, operator, purpose FROM operators WHERE amname = 'btree'
EXCEPT SELECT opfname, lefttype, righttype, strategy, operator, purpose FROM operators WHERE amname = 'lsm';
SELECT opfname, lefttype, righttype, strategy, operator, purpose FROM operators WHERE amname = 'lsm'
EXCEPT SELECT opfname, lefttype, righttype, strategy, operator, purpose FROM operators WHERE amname = 'btree';

-- Comparison functions too: support function 1 must be the same.
CREATE VIEW comparisons AS
SELECT amname, opfname, amproclefttype::regtype AS lefttype, amprocrighttype::regtype AS righttype,
	amproc::regprocedure AS function
FROM pg_amproc p JOIN pg_opfamily f ON f.oid = amprocfamily JOIN pg_am a ON a.oid = opfmethod
WHERE (f.oid < 16384 OR amname = 'lsm') AND amprocnum = 1;
SELECT opfname, lefttype, righttype, function FROM comparisons WHERE amname = 'btree'
EXCEPT SELECT opfname, lefttype, righttype, function FROM comparisons WHERE amname = 'lsm';
SELECT opfname, lefttype, righttype, function FROM comparisons WHERE amname = 'lsm'
EXCEPT SELECT opfname, lefttype, righttype, function FROM comparisons WHERE amname = 'btree';
DROP VIEW classes, operators, comparisons;

-- All of them are valid.
SELECT opcname FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE amname = 'lsm' AND NOT amvalidate(c.oid);

-- Properties: those of btree, except for the ones listed here.
CREATE TABLE props (a int, b text, c int);
CREATE INDEX props_btree ON props (a DESC NULLS LAST, b) INCLUDE (c);
CREATE INDEX props_lsm ON props USING lsm (a DESC NULLS LAST, b) INCLUDE (c);
SELECT am.prop, pg_indexam_has_property(b.oid, prop) AS btree, pg_indexam_has_property(l.oid, prop) AS lsm
FROM unnest('{can_order,can_unique,can_multi_col,can_exclude,can_include}'::text[]) am(prop),
	pg_am b, pg_am l
WHERE b.amname = 'btree' AND l.amname = 'lsm'
	AND pg_indexam_has_property(b.oid, prop) IS DISTINCT FROM pg_indexam_has_property(l.oid, prop);
SELECT prop, pg_index_has_property('props_btree', prop) AS btree, pg_index_has_property('props_lsm', prop) AS lsm
FROM unnest('{clusterable,index_scan,bitmap_scan,backward_scan}'::text[]) p(prop)
WHERE pg_index_has_property('props_btree', prop) IS DISTINCT FROM pg_index_has_property('props_lsm', prop);
SELECT col, prop, pg_index_column_has_property('props_btree', col, prop) AS btree,
	pg_index_column_has_property('props_lsm', col, prop) AS lsm
FROM generate_series(1, 3) col, unnest('{asc,desc,nulls_first,nulls_last,orderable,distance_orderable,
	returnable,search_array,search_nulls}'::text[]) p(prop)
WHERE pg_index_column_has_property('props_btree', col, prop)
	IS DISTINCT FROM pg_index_column_has_property('props_lsm', col, prop);
DROP TABLE props;

-- Every object has a comment.
SELECT pg_describe_object(d.classid, d.objid, 0) AS object_without_comment
FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'pg_lsm' AND deptype = 'e'
	AND d.classid IN ('pg_proc'::regclass, 'pg_am'::regclass, 'pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_class'::regclass)
	AND obj_description(d.objid, d.classid::regclass::name) IS NULL
ORDER BY 1;

-- The extension can be dropped, with its indexes if requested, and created again.
BEGIN;
CREATE TABLE gone (a int);
CREATE INDEX gone_a ON gone USING lsm (a);
SAVEPOINT s;
\set VERBOSITY sqlstate
DROP EXTENSION pg_lsm;
\set VERBOSITY default
ROLLBACK TO s;
SET LOCAL client_min_messages = warning;
DROP EXTENSION pg_lsm CASCADE;
SELECT to_regclass('gone_a');
CREATE EXTENSION pg_lsm;
ROLLBACK;

-- Installation runs nothing that another user has put into the extension's schema.
CREATE SCHEMA trap;
BEGIN;
SET LOCAL client_min_messages = warning;
DROP EXTENSION pg_lsm CASCADE;
CREATE FUNCTION trap.spring(int[], int[]) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'the trap has sprung'; END $$;
CREATE FUNCTION trap.format(text, text, text, text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'the trap has sprung'; END $$;
CREATE OPERATOR trap.< (FUNCTION = trap.spring, LEFTARG = int[], RIGHTARG = int[]);
CREATE EXTENSION pg_lsm SCHEMA trap;
ROLLBACK;
DROP SCHEMA trap;
