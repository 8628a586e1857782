/* pg_lsm--0.1.0--0.2.0.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_lsm UPDATE TO '0.2.0'" to load this file. \quit

--
-- Conversion
--

CREATE FUNCTION lsm_convert_parent(index regclass, method name)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION lsm_convert_parent(regclass, name) IS
'give a partitioned index the method of the indexes attached to it; a step of lsm_convert_plan';

-- Raises an error if the index cannot be moved to the method.  "item" is the row
-- that lsm_convert_plan has read.
CREATE OR REPLACE FUNCTION lsm_convert_refuse(item record, method name)
RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	version		int := current_setting('server_version_num')::int;
	reason		text;
	advice		text;
	missing		text;
BEGIN
	SELECT string_agg(format('%I.%I', n.nspname, c.opcname), ', ') INTO missing
		FROM pg_opclass c JOIN pg_namespace n ON n.oid = c.opcnamespace
		WHERE c.oid = ANY (item.classes) AND NOT EXISTS (
			SELECT FROM pg_opclass o
			WHERE o.opcmethod = item.method AND o.opcname = c.opcname
				AND o.opcnamespace = c.opcnamespace AND o.opcintype = c.opcintype);
	IF method = 'lsm' AND version < 180000 AND item.indisunique
			AND (item.relkind = 'I' OR item.relispartition) THEN
		reason := 'Before PostgreSQL 18, a unique index of a partitioned table must be a btree.';
		advice := 'Keep the btree.';
	ELSIF item.amname NOT IN ('btree', 'lsm') THEN
		reason := format('It uses the method "%s".', item.amname);
		advice := 'Only btree and lsm indexes can be converted.';
	ELSIF NOT item.indisvalid OR NOT item.indisready OR NOT item.indislive THEN
		reason := 'It is not valid.';
		advice := 'Use REINDEX INDEX CONCURRENTLY, or drop the index.';
	ELSIF item.indisexclusion THEN
		reason := 'It belongs to an exclusion constraint.';
		advice := 'Drop the constraint, and add it again with the other method.';
	ELSIF NOT item.indimmediate THEN
		reason := 'It belongs to a deferrable constraint, and the new index would refuse duplicates at once while it is built.';
		advice := 'Drop the constraint and add it again in one ALTER TABLE.';
	ELSIF missing IS NOT NULL THEN
		reason := format('Method "%s" has no operator class %s.', method, missing);
		advice := 'A superuser can create it with lsm_create_opclass.';
	ELSIF EXISTS (SELECT FROM pg_attribute a
				  WHERE a.attrelid = item.indexrelid AND a.attoptions IS NOT NULL) THEN
		reason := 'An operator class has parameters.';
		advice := 'Create the new index yourself.';
	ELSIF method = 'lsm' AND version < 180000 AND EXISTS (
			SELECT FROM pg_constraint
			WHERE conindid = item.indexrelid AND contype = 'f') THEN
		reason := 'Foreign keys refer to it. Before PostgreSQL 18, foreign keys need a btree.';
		advice := 'Keep the btree, or drop the foreign keys.';
	ELSIF method = 'lsm' AND version < 180000 AND item.tablekind = 'm' AND item.indisunique THEN
		reason := 'Before PostgreSQL 18, REFRESH MATERIALIZED VIEW CONCURRENTLY needs a unique btree.';
		advice := 'Keep the btree, and create an lsm index beside it.';
	ELSIF method = 'lsm' AND version / 10000 = 17
			AND (item.indisprimary OR item.indisreplident) AND EXISTS (
			SELECT FROM pg_subscription_rel WHERE srrelid = item.indrelid) THEN
		reason := 'A subscription writes to the table. Subscribers on PostgreSQL 17 find rows through a btree only.';
		advice := 'Keep the btree.';
	ELSE
		RETURN;
	END IF;
	RAISE EXCEPTION 'cannot convert index % to method "%"', item.indexrelid::regclass, method
		USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = reason, HINT = advice;
END
$$;

-- Returns the steps for one index that is not partitioned.
-- The name of the copy contains the OID of the index.  After the swap, the name
-- of the old index contains its own OID.  So the next call recognizes whatever an
-- interrupted conversion has left.
CREATE FUNCTION lsm_convert_steps(
	index regclass,
	method name,
	OUT action text,
	OUT statement text)
RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	item		record;
	left_over	record;
	target		record;
	copy		text := format('lsm_convert_%s', index::oid);
	is_built	boolean := false;
	own_schema	name;
BEGIN
	SELECT n.nspname INTO STRICT own_schema
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
		WHERE e.extname = 'pg_lsm';
	SELECT i.*, i.indclass::oid[] AS classes, i.indcollation::oid[] AS collations,
			i.indoption::int2[] AS directions, i.indkey::int2[] AS columns,
			pg_get_expr(i.indpred, i.indrelid) AS predicate,
			i.indnullsnotdistinct AS nulls_equal,
			c.relkind, c.relispartition, c.reloptions, c.reltablespace, a.amname,
			t.relkind AS tablekind, format('%I.%I', n.nspname, t.relname) AS tablename,
			n.nspname, (SELECT m.oid FROM pg_am m WHERE m.amname = method) AS method,
			EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid
					AND k.conrelid = i.indrelid AND k.contype IN ('p', 'u')) AS is_key
		INTO item
		FROM pg_index i
			JOIN pg_class c ON c.oid = i.indexrelid
			JOIN pg_am a ON a.oid = c.relam
			JOIN pg_class t ON t.oid = i.indrelid
			JOIN pg_namespace n ON n.oid = t.relnamespace
		WHERE i.indexrelid = index;
	IF item.amname <> method THEN
		EXECUTE format('SELECT %I.lsm_convert_refuse($1, $2)', own_schema)
			USING item, method;
	END IF;

	-- 1. What an interrupted conversion has left: old indexes of this table, and
	-- a copy of this index.  A complete copy can be used.
	FOR left_over IN
		SELECT c.oid, format('%I.%I', item.nspname, c.relname) AS name,
				i.indisvalid AND a.amname = method AND item.amname <> method
					AND (method <> 'lsm' OR NOT item.is_key
						OR coalesce(c.reloptions @> '{lsm=true}', false)) AS is_copy
			FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
				JOIN pg_am a ON a.oid = c.relam
			WHERE i.indrelid = item.indrelid
				AND (c.relname = copy
					OR c.relname = format('lsm_convert_%s_old', c.oid) AND NOT i.indisvalid)
			ORDER BY c.oid
	LOOP
		is_built := is_built OR left_over.is_copy;
		CONTINUE WHEN left_over.is_copy;
		action := 'drop';
		statement := format('DROP INDEX CONCURRENTLY %s', left_over.name);
		RETURN NEXT;
	END LOOP;
	IF item.amname = method THEN
		RETURN;
	END IF;

	-- 2. The copy, with the statistics targets of its columns.
	IF NOT is_built THEN
		action := 'build';
		EXECUTE format('SELECT %I.lsm_convert_build($1, $2, $3)', own_schema)
			INTO STRICT statement USING item, method, copy;
		RETURN NEXT;
	END IF;
	FOR target IN
		SELECT a.attnum, a.attstattarget FROM pg_attribute a
			WHERE a.attrelid = index AND a.attstattarget >= 0
			ORDER BY a.attnum
	LOOP
		action := 'statistics';
		statement := format('ALTER INDEX %I.%I ALTER COLUMN %s SET STATISTICS %s',
							item.nspname, copy, target.attnum, target.attstattarget);
		RETURN NEXT;
	END LOOP;

	-- 3. The swap, in one transaction; then the old index is dropped.
	action := 'swap';
	-- The types keep a function of the same name with other ones out.
	-- Somebody may rename the index meanwhile.
	statement := format('SELECT %I.lsm_convert_swap(%L::pg_catalog.regclass, %s::pg_catalog.regclass)',
						own_schema, format('%I.%I', item.nspname, copy), index::oid);
	RETURN NEXT;
	action := 'drop';
	statement := format('DROP INDEX CONCURRENTLY %I.%I', item.nspname, copy || '_old');
	RETURN NEXT;
END
$$;

COMMENT ON FUNCTION lsm_convert_steps(regclass, name) IS
'return the statements that move an index that is not partitioned; called by lsm_convert_plan';

-- The indexes attached to a partitioned index are moved one by one, and the
-- partitioned indexes above them last.
CREATE OR REPLACE FUNCTION lsm_convert_plan(
	index regclass,
	method name DEFAULT 'lsm',
	OUT step integer,
	OUT action text,
	OUT statement text)
RETURNS SETOF record
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	own_schema	name;
	item		record;
	leaf		regclass;
BEGIN
	step := 0;
	SELECT n.nspname INTO STRICT own_schema
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
		WHERE e.extname = 'pg_lsm';
	SELECT c.relkind, c.relispartition, a.amname INTO item
		FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		WHERE c.oid = index AND c.relkind IN ('i', 'I');
	IF NOT FOUND THEN
		RAISE EXCEPTION '"%" is not an index', index
			USING ERRCODE = 'wrong_object_type';
	ELSIF method NOT IN ('btree', 'lsm') THEN
		RAISE EXCEPTION 'cannot convert index % to method "%"', index, method
			USING ERRCODE = 'invalid_parameter_value',
				HINT = 'The method is lsm or btree.';
	ELSIF item.relispartition THEN
		RAISE EXCEPTION 'cannot convert index % to method "%"', index, method
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = 'It is attached to a partitioned index.',
				HINT = format('Convert index %s.', pg_partition_root(index));
	END IF;
	FOR leaf IN
		SELECT c.oid FROM pg_class c
			WHERE c.relkind = 'i'
				AND (c.oid = index OR c.oid IN (SELECT t.relid FROM pg_partition_tree(index) t))
			ORDER BY c.relname, c.oid
	LOOP
		FOR action, statement IN
			EXECUTE format('SELECT action, statement FROM %I.lsm_convert_steps($1, $2)', own_schema)
				USING leaf, method
		LOOP
			step := step + 1;
			RETURN NEXT;
		END LOOP;
	END LOOP;
	IF item.relkind = 'I' AND EXISTS (
			SELECT FROM pg_partition_tree(index) t
				JOIN pg_class c ON c.oid = t.relid JOIN pg_am a ON a.oid = c.relam
				WHERE c.relkind = 'I' AND a.amname <> method) THEN
		step := step + 1;
		action := 'parent';
		statement := format('SELECT %I.lsm_convert_parent(%s::pg_catalog.regclass, %L::pg_catalog.name)',
							own_schema, index::oid, method);
		RETURN NEXT;
	END IF;
END
$$;
