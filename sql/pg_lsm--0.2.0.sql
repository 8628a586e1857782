/* pg_lsm--0.2.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_lsm" to load this file. \quit

-- The library that is in memory may be older than this script.
DO $$
DECLARE
	needed CONSTANT text := '0.2.0';
	loaded text;
BEGIN
	BEGIN
		CREATE FUNCTION lsm_library_version()
		RETURNS text
		AS 'MODULE_PATHNAME'
		LANGUAGE C STABLE STRICT PARALLEL SAFE;
		loaded := lsm_library_version();
	EXCEPTION WHEN undefined_function THEN
		loaded := '0.1.0';			-- has no such function
	END;
	-- Qualified names: the extension's schema may have objects of other users.
	IF pg_catalog.string_to_array(loaded, '.')::int[]
		OPERATOR(pg_catalog.<) pg_catalog.string_to_array(needed, '.')::int[] THEN
		RAISE object_not_in_prerequisite_state
			USING MESSAGE = pg_catalog.format('pg_lsm %s needs version %s of the library, but the server has loaded version %s', needed, needed, loaded),
			HINT = 'Restart the server. A preloaded library stays in memory until then, whatever is installed.';
	END IF;
END
$$;

COMMENT ON FUNCTION lsm_library_version() IS
'version of the library that serves this session; pg_extension has the version of the SQL objects';

-- Only a warning, because a dump may be restored before its server is configured.
DO $$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_catalog.pg_shmem_allocations
				   WHERE name OPERATOR(pg_catalog.=) 'pg_lsm') THEN
		RAISE WARNING 'pg_lsm is not loaded via shared_preload_libraries, so its indexes cannot be written'
			USING HINT = 'Add "shared_preload_libraries = ''pg_lsm''" to postgresql.conf and restart the server.';
	END IF;
END
$$;

--
-- Access method
--

CREATE FUNCTION lsm_handler(internal)
RETURNS index_am_handler
AS 'MODULE_PATHNAME'
LANGUAGE C;

COMMENT ON FUNCTION lsm_handler(internal) IS
'lsm index access method handler';

CREATE ACCESS METHOD lsm TYPE INDEX HANDLER lsm_handler;

COMMENT ON ACCESS METHOD lsm IS
'lsm index access method: a write-optimized ordered index (LSM tree)';

--
-- Inspection
--

CREATE FUNCTION lsm_check(index regclass, heapallindexed boolean DEFAULT false)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION lsm_check(regclass, boolean) IS
'verify the structure of an lsm index and, if heapallindexed is true, that every table row has its entry; raises an error at the first fault';

CREATE FUNCTION lsm_check_all(
	schema regnamespace DEFAULT NULL,
	heapallindexed boolean DEFAULT false,
	OUT index regclass,
	OUT problem text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION lsm_check_all(regnamespace, boolean) IS
'verify all lsm indexes of a schema, or of the database; returns a row for each index with a fault';

CREATE FUNCTION lsm_runs(
	index regclass,
	OUT run_id bigint,
	OUT state text,
	OUT level integer,
	OUT blocks bigint,
	OUT leaves bigint,
	OUT entries bigint,
	OUT bytes bigint,
	OUT segments bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION lsm_runs(regclass) IS
'list the runs of an lsm index with their state, level and size';

CREATE FUNCTION lsm_index_columns(
	index regclass,
	OUT ordinal integer,
	OUT column_name name,
	OUT type text,
	OUT opclass text,
	OUT collation regcollation,
	OUT storage text,
	OUT filtered boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION lsm_index_columns(regclass) IS
'list the key columns of an lsm index: type, operator class, collation, whether keys compare as bytes or by function, and whether filters cover the column';

--
-- Compaction
--

CREATE FUNCTION lsm_compact(index regclass)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION lsm_compact(regclass) IS
'merge all runs of an lsm index into one; holds RowExclusiveLock on the table and the index, as an insert does';

--
-- Conversion
--

CREATE FUNCTION lsm_convert_swap(new_index regclass, old_index regclass)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION lsm_convert_swap(regclass, regclass) IS
'replace old_index with new_index, which differs only in its method; a step of lsm_convert_plan';

CREATE FUNCTION lsm_convert_parent(index regclass, method name)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;

COMMENT ON FUNCTION lsm_convert_parent(regclass, name) IS
'give a partitioned index the method of the indexes attached to it; a step of lsm_convert_plan';

-- Raises an error if the index cannot be converted to the method.  "item" is the row
-- that lsm_convert_plan has read.
CREATE FUNCTION lsm_convert_refuse(item record, method name)
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
	ELSIF EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
				  WHERE t.tgrelid = item.indrelid AND p.proname = 'citus_truncate_trigger') THEN
		reason := 'Citus distributes the table, and the conversion would not reach the shards.';
		advice := 'Create the new index with CREATE INDEX CONCURRENTLY and drop the old one, or drop the constraint and add it again WITH (lsm = true).';
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
	ELSIF concat(item.indexprs, item.indpred) LIKE '%:varattno 0 %' THEN
		reason := 'Its condition or an expression refers to a whole row.';
		advice := 'Create the new index yourself.';
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

COMMENT ON FUNCTION lsm_convert_refuse(record, name) IS
'raise an error if lsm_convert cannot convert an index; called by lsm_convert_plan';

-- Returns the command that builds the copy of the index.
CREATE FUNCTION lsm_convert_build(item record, method name, copy text)
RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	keys		text;
	included	text;
	options		text;
	space		name;
BEGIN
	SELECT string_agg(
			pg_get_indexdef(item.indexrelid, k, false)
			|| CASE WHEN item.collations[k - 1] <> 0
					AND item.collations[k - 1] IS DISTINCT FROM a.attcollation
				THEN format(' COLLATE %s', item.collations[k - 1]::regcollation) ELSE '' END
			|| CASE WHEN NOT o.opcdefault OR o.opcintype <> b.atttypid
				THEN format(' %I.%I', n.nspname, o.opcname) ELSE '' END
			|| CASE item.directions[k - 1]
				WHEN 0 THEN '' WHEN 1 THEN ' DESC NULLS LAST'
				WHEN 2 THEN ' NULLS FIRST' ELSE ' DESC' END,
			', ' ORDER BY k)
		INTO STRICT keys
		FROM generate_series(1, item.indnkeyatts) k
			JOIN pg_opclass c ON c.oid = item.classes[k - 1]
			JOIN pg_opclass o ON o.opcmethod = item.method AND o.opcname = c.opcname
				AND o.opcnamespace = c.opcnamespace AND o.opcintype = c.opcintype
			JOIN pg_namespace n ON n.oid = o.opcnamespace
			JOIN pg_attribute b ON b.attrelid = item.indexrelid AND b.attnum = k
			LEFT JOIN pg_attribute a ON a.attrelid = item.indrelid
				AND a.attnum = item.columns[k - 1] AND a.attnum <> 0;
	SELECT string_agg(pg_get_indexdef(item.indexrelid, k, false), ', ' ORDER BY k)
		INTO included
		FROM generate_series(item.indnkeyatts + 1, item.indnatts) k;

	-- Only the parameters that both methods have, and the mark of a key.
	SELECT string_agg(p.setting, ', ') INTO options FROM (
		SELECT format('%I = %L', o.option_name, o.option_value) AS setting
			FROM pg_options_to_table(item.reloptions) o
			WHERE o.option_name IN ('fillfactor', 'deduplicate_items')
		UNION ALL
		SELECT 'lsm = true' WHERE method = 'lsm' AND item.is_key) p;

	-- default_tablespace must not decide.
	SELECT s.spcname INTO space FROM pg_tablespace s
		WHERE s.oid = item.reltablespace;
	IF space IS NULL AND current_setting('default_tablespace') <> '' THEN
		SELECT s.spcname INTO STRICT space
			FROM pg_database d JOIN pg_tablespace s ON s.oid = d.dattablespace
			WHERE d.datname = current_database();
	END IF;

	RETURN format('CREATE %sINDEX CONCURRENTLY %I ON %s USING %I (%s)',
				  CASE WHEN item.indisunique THEN 'UNIQUE ' ELSE '' END, copy,
				  item.tablename, method, keys)
		|| coalesce(' INCLUDE (' || included || ')', '')
		|| CASE WHEN item.nulls_equal THEN ' NULLS NOT DISTINCT' ELSE '' END
		|| coalesce(' WITH (' || options || ')', '')
		|| coalesce(' TABLESPACE ' || quote_ident(space), '')
		|| coalesce(' WHERE ' || item.predicate, '');
END
$$;

COMMENT ON FUNCTION lsm_convert_build(record, name, text) IS
'return the command that builds an index with another method; called by lsm_convert_plan';

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
'return the statements that convert an index that is not partitioned; called by lsm_convert_plan';

-- The indexes attached to a partitioned index are converted one by one, and the
-- partitioned indexes above them last.
CREATE FUNCTION lsm_convert_plan(
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
	ELSIF item.amname NOT IN ('btree', 'lsm') THEN
		RAISE EXCEPTION 'cannot convert index % to method "%"', index, method
			USING ERRCODE = 'object_not_in_prerequisite_state',
				DETAIL = format('It uses the method "%s".', item.amname),
				HINT = 'Only btree and lsm indexes can be converted.';
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
	-- The call must not fail at a later partition.
	SELECT c.oid INTO leaf
		FROM pg_class c
		WHERE NOT pg_has_role(c.relowner, 'USAGE')
			AND (c.oid = index OR c.relkind = 'i'
				AND c.oid IN (SELECT t.relid FROM pg_partition_tree(index) t))
		ORDER BY c.relname, c.oid LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'must be owner of index %', leaf
			USING ERRCODE = 'insufficient_privilege';
	END IF;
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

COMMENT ON FUNCTION lsm_convert_plan(regclass, name) IS
'return the statements with which lsm_convert converts an index to another method, or finishes an interrupted conversion';

CREATE PROCEDURE lsm_convert(
	index regclass,
	method name DEFAULT 'lsm',
	dry_run boolean DEFAULT false)
AS 'MODULE_PATHNAME'
LANGUAGE C;

COMMENT ON PROCEDURE lsm_convert(regclass, name, boolean) IS
'convert an index or key from btree to lsm, or back, while the table is in use; with dry_run, only show the statements';

--
-- Advice
--

-- The figures are those of docs/performance.md.  "pages" are the pages to which new
-- entries go: one for each combination of values that precede a column in ascending
-- or descending order, but not more than the index has.
CREATE FUNCTION lsm_advise(
	OUT index regclass,
	OUT relation regclass,
	OUT reason text,
	OUT gain text,
	OUT loss text,
	OUT statements text)
RETURNS SETOF record
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
	memory		bigint := pg_size_bytes(current_setting('effective_cache_size'));
	block		bigint := current_setting('block_size');
	own_schema	name;
	batch		numeric;	-- rows that an average transaction of this database writes
	since		timestamptz;
	unknown		bigint;
	item		record;
	topmost		regclass;
	why			text;
	way_out		text;
BEGIN
	SELECT n.nspname INTO STRICT own_schema
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
		WHERE e.extname = 'pg_lsm';
	SELECT (d.tup_inserted + d.tup_updated) / greatest(d.xact_commit, 1)::numeric, d.stats_reset
		INTO STRICT batch, since
		FROM pg_stat_database d WHERE d.datname = current_database();
	IF since > now() - interval '1 day' THEN
		RAISE NOTICE 'statistics were reset less than a day ago'
			USING HINT = 'Call lsm_advise again when the statistics cover a typical day.';
	END IF;
	SELECT count(*) INTO STRICT unknown
		FROM pg_stat_user_tables s
		WHERE s.n_tup_ins + s.n_tup_upd >= 1000 AND NOT EXISTS (
			SELECT FROM pg_stats p
			WHERE p.schemaname = s.schemaname AND p.tablename = s.relname);
	IF unknown > 0 THEN
		RAISE NOTICE 'left out % tables without statistics of their columns', unknown
			USING HINT = 'Run ANALYZE, as a user who may read the tables.';
	END IF;

	FOR item IN
		WITH trees AS (
			SELECT i.indexrelid, i.indrelid, i.indnkeyatts, i.indkey::int2[] AS columns,
					n.nspname, t.relname AS tablename, c.relname AS indexname,
					greatest(c.reltuples, 1)::float8 AS entries,
					pg_relation_size(c.oid) / block AS index_pages,
					s.n_tup_ins, s.n_tup_del,
					-- A partial index gets its share of the rows.
					(s.n_tup_ins + s.n_tup_upd - s.n_tup_hot_upd)
					* CASE WHEN i.indpred IS NULL THEN 1
						ELSE least(c.reltuples / greatest(t.reltuples, 1), 1) END AS writes,
					x.idx_scan, x.idx_tup_read, b.idx_blks_read
				FROM pg_index i
					JOIN pg_class c ON c.oid = i.indexrelid
					JOIN pg_am a ON a.oid = c.relam
					JOIN pg_class t ON t.oid = i.indrelid
					JOIN pg_namespace n ON n.oid = t.relnamespace
					JOIN pg_stat_user_tables s ON s.relid = i.indrelid
					JOIN pg_stat_user_indexes x ON x.indexrelid = i.indexrelid
					JOIN pg_statio_user_indexes b ON b.indexrelid = i.indexrelid
				WHERE a.amname = 'btree' AND c.relkind = 'i' AND i.indisvalid
					AND c.relpersistence <> 't'),
		key_columns AS (
			SELECT t.indexrelid,
					-- Is this column, or one before it, in the order of the table?
					bool_or(abs(coalesce(p.correlation, 0)) >= 0.9)
						OVER (PARTITION BY t.indexrelid ORDER BY k.number) AS ordered,
					greatest(CASE WHEN p.n_distinct < 0 THEN -p.n_distinct * t.entries
								ELSE p.n_distinct END, 1) AS distinct_values,
					p.n_distinct IS NOT NULL AS known
				FROM trees t
					CROSS JOIN LATERAL generate_series(1, t.indnkeyatts) k(number)
					JOIN pg_attribute a ON a.attnum = k.number AND a.attrelid = t.indexrelid
					LEFT JOIN pg_attribute o ON o.attnum = t.columns[k.number - 1]
						AND o.attrelid = t.indrelid
					LEFT JOIN pg_stats p ON p.schemaname = t.nspname AND NOT p.inherited
						AND p.tablename = CASE WHEN o.attnum IS NULL THEN t.indexname ELSE t.tablename END
						AND p.attname = coalesce(o.attname, a.attname)),
		spread AS (
			SELECT t.*, least(t.index_pages, exp(least(k.magnitude, 50))) AS pages,
					t.writes + t.idx_scan + t.idx_tup_read / (t.entries / t.index_pages) AS accesses
				FROM trees t JOIN (
					SELECT indexrelid, coalesce(sum(ln(distinct_values))
												FILTER (WHERE NOT ordered), 0) AS magnitude
						FROM key_columns GROUP BY indexrelid HAVING bool_and(known)) k USING (indexrelid)
				WHERE t.writes >= 1000 AND t.index_pages > 1),
		-- Those that read pages in order to write.  They compete for the memory.
		readers AS (
			SELECT s.*, s.writes / s.accesses AS write_share, s.idx_blks_read / s.accesses AS read_share,
					s.idx_blks_read / s.accesses >= 0.1 AS reads
				FROM spread s
				WHERE s.writes / s.accesses >= 0.2 AND s.pages * 10 >= s.index_pages)
		SELECT q.*, q.reads AND q.total_pages * block > memory AS is_beyond
			FROM (SELECT r.*, sum(pages) FILTER (WHERE reads) OVER () AS total_pages FROM readers r) q
			WHERE q.reads AND q.total_pages * block > memory
				-- In memory, only statements with many rows gain, and queries lose.
				OR batch >= 48 AND q.write_share >= 0.9 AND q.index_pages * block >= (8 << 20)
					AND q.n_tup_ins * 2 >= q.writes AND q.n_tup_del * 2 <= q.n_tup_ins
			ORDER BY q.idx_blks_read DESC, q.writes DESC
	LOOP
		index := item.indexrelid;
		relation := item.indrelid;
		reason := 'Keys arrive in random order. '
			|| format('Of 100 accesses to the index, %s write, and %s read a page that is not in shared_buffers. ',
					  round(100 * item.write_share), round(100 * item.read_share))
			|| CASE WHEN item.is_beyond
				THEN format('New entries go to all of its %s. With other such indexes it needs %s, but the memory is %s (effective_cache_size).',
							pg_size_pretty(item.index_pages * block),
							pg_size_pretty((item.total_pages * block)::bigint), pg_size_pretty(memory))
				ELSE format('Transactions write %s rows on average.', round(batch)) END;
		gain := CASE WHEN item.is_beyond
			THEN 'Inserts of many rows: 6 to 20 times the rows/s; of single rows: 1.6 times (docs/performance.md, "Loads", "Single rows and ON CONFLICT").'
			ELSE 'Inserts of many rows: 1.9 times the rows/s; 5 times if the table has eight such indexes (docs/performance.md, "Loads").' END;
		loss := 'While rows arrive, lookups run at 0.6 to 0.8 of the speed, and short ranges at 0.7 (docs/performance.md, "What it loses"). pg_lsm must be preloaded, on standbys too.'
			|| CASE WHEN item.index_pages * block / item.entries > 80
				THEN ' Entries are long, so there is not less WAL.' ELSE '' END;
		topmost := coalesce(pg_partition_root(index), index);
		statements := format('CALL %I.lsm_convert(%L)', own_schema, topmost);
		BEGIN
			EXECUTE format('SELECT FROM %I.lsm_convert_plan($1, $2)', own_schema)
				USING topmost, 'lsm'::name;
		EXCEPTION
			WHEN insufficient_privilege THEN
				NULL;	-- The owner can run the statement.
			WHEN object_not_in_prerequisite_state THEN
				GET STACKED DIAGNOSTICS why = PG_EXCEPTION_DETAIL, way_out = PG_EXCEPTION_HINT;
				-- No comment in "statements": a name in it could end it with a newline.
				statements := NULL;
				loss := format('lsm_convert refuses the index: %s %s %s', why, way_out, loss);
		END;
		RETURN NEXT;
	END LOOP;
END
$$;

COMMENT ON FUNCTION lsm_advise() IS
'return the B-trees of this database that would gain from lsm, judging by the statistics, with the reason, the gain, the loss and the statements to run';

--
-- Statistics
--

CREATE FUNCTION lsm_stat_index(
	index oid,
	-- generated: function
	OUT entries_inserted bigint,
	OUT batches bigint,
	OUT pages_flushed bigint,
	OUT merges bigint,
	OUT bytes_read bigint,
	OUT bytes_merged bigint,
	OUT pages_copied bigint,
	OUT write_amplification double precision,
	OUT runs integer,
	OUT debt_bytes bigint,
	OUT throttled_time double precision,
	OUT seeks bigint,
	OUT runs_read bigint,
	OUT segments_read bigint,
	OUT pages_read bigint,
	OUT entries_read bigint,
	OUT restarts bigint,
	OUT entries_removed bigint,
	OUT filter_checks bigint,
	OUT filter_skips bigint,
	OUT filter_misses bigint,
	OUT pages_prefetched bigint,
	OUT bytes_loaded bigint,
	OUT last_compaction timestamptz,
	OUT stats_reset timestamptz
	-- generated: end
)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION lsm_stat_index(oid) IS
'counters of an lsm index of this database; see pg_stat_lsm_indexes';

CREATE FUNCTION lsm_stat_progress(
	OUT pid integer,
	OUT datid oid,
	OUT indexrelid oid,
	OUT phase text,
	OUT level integer,
	OUT inputs integer,
	OUT blocks_total bigint,
	OUT blocks_done bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION lsm_stat_progress() IS
'processes that merge an lsm index; see pg_stat_progress_lsm_compaction';

CREATE FUNCTION lsm_stat_check_progress(
	OUT pid integer,
	OUT datid oid,
	OUT indexrelid oid,
	OUT phase text,
	OUT blocks_total bigint,
	OUT blocks_done bigint,
	OUT heap_blks_total bigint,
	OUT heap_blks_scanned bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION lsm_stat_check_progress() IS
'processes that verify an lsm index; see pg_stat_progress_lsm_check';

CREATE FUNCTION lsm_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION lsm_stat_reset() IS
'set the counters of pg_stat_lsm_indexes in this database to zero';

REVOKE ALL ON FUNCTION lsm_stat_reset() FROM PUBLIC;

CREATE VIEW pg_stat_lsm_indexes AS
SELECT
	i.indrelid AS relid,
	i.indexrelid,
	n.nspname AS schemaname,
	t.relname,
	c.relname AS indexrelname,
	-- generated: view
	s.entries_inserted,
	s.batches,
	s.pages_flushed,
	s.merges,
	s.bytes_read,
	s.bytes_merged,
	s.pages_copied,
	s.write_amplification,
	s.runs,
	s.debt_bytes,
	s.throttled_time,
	s.seeks,
	s.runs_read,
	s.segments_read,
	s.pages_read,
	s.entries_read,
	s.restarts,
	s.entries_removed,
	s.filter_checks,
	s.filter_skips,
	s.filter_misses,
	s.pages_prefetched,
	s.bytes_loaded,
	s.last_compaction,
	s.stats_reset
	-- generated: end
FROM pg_catalog.pg_index i
	JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
	JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
	JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
	JOIN pg_catalog.pg_am a ON a.oid = c.relam
	CROSS JOIN LATERAL lsm_stat_index(i.indexrelid) s
WHERE a.amname = 'lsm' AND c.relkind = 'i';

COMMENT ON VIEW pg_stat_lsm_indexes IS
'one row for each lsm index of this database, with its cumulative statistics';
-- generated: comments
COMMENT ON COLUMN pg_stat_lsm_indexes.entries_inserted IS 'entries inserted';
COMMENT ON COLUMN pg_stat_lsm_indexes.batches IS 'runs written at once from batches of entries, without the write buffer';
COMMENT ON COLUMN pg_stat_lsm_indexes.pages_flushed IS 'pages that became runs: sealed pages of the write buffer, and pages of batches';
COMMENT ON COLUMN pg_stat_lsm_indexes.merges IS 'merges completed';
COMMENT ON COLUMN pg_stat_lsm_indexes.bytes_read IS 'bytes of the runs that were merged';
COMMENT ON COLUMN pg_stat_lsm_indexes.bytes_merged IS 'bytes written by merges';
COMMENT ON COLUMN pg_stat_lsm_indexes.pages_copied IS 'pages that merges copied whole from a run';
COMMENT ON COLUMN pg_stat_lsm_indexes.write_amplification IS 'pages written by flushes and merges for each flushed page; NULL if no page was flushed';
COMMENT ON COLUMN pg_stat_lsm_indexes.runs IS 'runs as of the latest flush or merge; NULL if there has been neither since the server started';
COMMENT ON COLUMN pg_stat_lsm_indexes.debt_bytes IS 'bytes waiting to be merged, as of the latest flush or merge';
COMMENT ON COLUMN pg_stat_lsm_indexes.throttled_time IS 'milliseconds that writers spent on large merges, or waiting for them';
COMMENT ON COLUMN pg_stat_lsm_indexes.seeks IS 'searches of the index, by scans, unique checks, lsm_check and the planner';
COMMENT ON COLUMN pg_stat_lsm_indexes.runs_read IS 'runs that the searches looked into';
COMMENT ON COLUMN pg_stat_lsm_indexes.segments_read IS 'segments read';
COMMENT ON COLUMN pg_stat_lsm_indexes.pages_read IS 'pages of segments, directories and the write buffer read, from memory or disk';
COMMENT ON COLUMN pg_stat_lsm_indexes.entries_read IS 'entries decoded';
COMMENT ON COLUMN pg_stat_lsm_indexes.restarts IS 'times that a scan had to switch to a newer version of the index';
COMMENT ON COLUMN pg_stat_lsm_indexes.entries_removed IS 'entries removed by scans and unique checks because their rows were dead to all transactions';
COMMENT ON COLUMN pg_stat_lsm_indexes.filter_checks IS 'filters of segments and write buffer pages that were checked for a key or its first columns';
COMMENT ON COLUMN pg_stat_lsm_indexes.filter_skips IS 'filters that ruled out a key, so that the segment or the page was not searched';
COMMENT ON COLUMN pg_stat_lsm_indexes.filter_misses IS 'filters that did not rule out a key although it was absent: mostly false positives';
COMMENT ON COLUMN pg_stat_lsm_indexes.pages_prefetched IS 'pages prefetched because they were not in shared buffers';
COMMENT ON COLUMN pg_stat_lsm_indexes.bytes_loaded IS 'bytes of index pages that were not in shared buffers: read from disk or the kernel''s cache';
COMMENT ON COLUMN pg_stat_lsm_indexes.last_compaction IS 'when the last merge completed; NULL if none has since the counters were reset';
COMMENT ON COLUMN pg_stat_lsm_indexes.stats_reset IS 'when the counters were last set to zero; NULL if never';
-- generated: end

CREATE VIEW pg_stat_progress_lsm_compaction AS
SELECT
	s.pid,
	s.datid,
	d.datname,
	i.indrelid AS relid,
	s.indexrelid,
	s.phase,
	s.level,
	s.inputs,
	s.blocks_total,
	s.blocks_done
FROM lsm_stat_progress() s
	LEFT JOIN pg_catalog.pg_database d ON d.oid = s.datid
	LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = s.indexrelid
		AND d.datname = pg_catalog.current_database();

COMMENT ON VIEW pg_stat_progress_lsm_compaction IS
'one row for each process that merges an lsm index: background workers and callers of lsm_compact';
COMMENT ON COLUMN pg_stat_progress_lsm_compaction.pid IS 'the process';
COMMENT ON COLUMN pg_stat_progress_lsm_compaction.datid IS 'the database of the process';
COMMENT ON COLUMN pg_stat_progress_lsm_compaction.datname IS 'name of the database';
COMMENT ON COLUMN pg_stat_progress_lsm_compaction.relid IS 'the table';
COMMENT ON COLUMN pg_stat_progress_lsm_compaction.indexrelid IS 'the index';
COMMENT ON COLUMN pg_stat_progress_lsm_compaction.phase IS '"sealing write buffer", "merging" or "between steps"; between steps, another process may take the next step';
COMMENT ON COLUMN pg_stat_progress_lsm_compaction.level IS 'level of the run being written';
COMMENT ON COLUMN pg_stat_progress_lsm_compaction.inputs IS 'number of runs being merged';
COMMENT ON COLUMN pg_stat_progress_lsm_compaction.blocks_total IS 'blocks of the runs being merged; the run being written gets about as many blocks, or fewer';
COMMENT ON COLUMN pg_stat_progress_lsm_compaction.blocks_done IS 'blocks written so far';

CREATE VIEW pg_stat_progress_lsm_check AS
SELECT
	s.pid,
	s.datid,
	d.datname,
	i.indrelid AS relid,
	s.indexrelid,
	s.phase,
	s.blocks_total,
	s.blocks_done,
	s.heap_blks_total,
	s.heap_blks_scanned
FROM lsm_stat_check_progress() s
	LEFT JOIN pg_catalog.pg_database d ON d.oid = s.datid
	LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = s.indexrelid
		AND d.datname = pg_catalog.current_database();

COMMENT ON VIEW pg_stat_progress_lsm_check IS
'one row for each process that runs lsm_check or lsm_check_all, with the index that it verifies';
COMMENT ON COLUMN pg_stat_progress_lsm_check.pid IS 'the process';
COMMENT ON COLUMN pg_stat_progress_lsm_check.datid IS 'the database of the process';
COMMENT ON COLUMN pg_stat_progress_lsm_check.datname IS 'name of the database';
COMMENT ON COLUMN pg_stat_progress_lsm_check.relid IS 'the table';
COMMENT ON COLUMN pg_stat_progress_lsm_check.indexrelid IS 'the index';
COMMENT ON COLUMN pg_stat_progress_lsm_check.phase IS '"checking manifest", "checking segments", "comparing with table", "checking for duplicate entries" or "checking unique keys"';
COMMENT ON COLUMN pg_stat_progress_lsm_check.blocks_total IS 'blocks of the index to read in this phase; 0 if the phase reads few or none';
COMMENT ON COLUMN pg_stat_progress_lsm_check.blocks_done IS 'blocks of the index read so far in this phase';
COMMENT ON COLUMN pg_stat_progress_lsm_check.heap_blks_total IS 'blocks of the table; 0 until the comparison with the table begins';
COMMENT ON COLUMN pg_stat_progress_lsm_check.heap_blks_scanned IS 'blocks of the table scanned so far';

GRANT SELECT ON pg_stat_lsm_indexes, pg_stat_progress_lsm_compaction, pg_stat_progress_lsm_check TO PUBLIC;

CREATE FUNCTION lsm_stat_merging(
	index oid,
	OUT has_launcher boolean,
	OUT workers integer,
	OUT jobs integer,
	OUT failures integer,
	OUT refusals integer,
	OUT late_time double precision)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION lsm_stat_merging(oid) IS
'merge status of an lsm index of this database; null if the library is not preloaded; see lsm_health';

-- Reads the catalogs, shared memory, and the meta page and open pages of each index.
CREATE FUNCTION lsm_health(
	OUT index regclass,
	OUT problem text,
	OUT detail text,
	OUT action text)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
#variable_conflict use_column
DECLARE
	own_schema	name;
	in_memory	bigint := pg_size_bytes(current_setting('shared_buffers'));
	max_workers	int;
	item		record;
	merging		record;
	runs		record;
	filtered	boolean;
	size		bigint;
	changed		text;
BEGIN
	SELECT n.nspname INTO STRICT own_schema
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
		WHERE e.extname = 'pg_lsm';
	FOR item IN
		SELECT c.oid, c.relname, i.indisvalid, i.indcollation::oid[] AS collations,
				CASE WHEN i.indisexclusion THEN 'REINDEX INDEX %s'
					ELSE 'REINDEX INDEX CONCURRENTLY %s' END AS rebuild,
				-- Is somebody perhaps at work on the table's indexes?  A standby cannot tell.
				pg_is_in_recovery() OR EXISTS (
					SELECT FROM pg_locks l
					WHERE l.relation = i.indrelid AND l.mode = 'ShareUpdateExclusiveLock' AND l.granted
						AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) AS is_busy,
				c.relname ~ '^lsm_convert_[0-9]+(_old)?$' AS is_left_over,
				EXISTS (SELECT FROM pg_options_to_table(c.reloptions) o
						WHERE o.option_name = 'filter_bits' AND o.option_value = '0') AS is_off,
				EXISTS (SELECT FROM pg_options_to_table(c.reloptions) o
						WHERE o.option_name = 'merge_fanout') AS has_fanout
			FROM pg_index i
				JOIN pg_class c ON c.oid = i.indexrelid
				JOIN pg_am a ON a.oid = c.relam
			WHERE (a.amname = 'lsm' OR c.relname ~ '^lsm_convert_[0-9]+(_old)?$')
				AND c.relkind = 'i' AND c.relpersistence <> 't'
				AND NOT (c.relpersistence = 'u' AND pg_is_in_recovery())
				AND (pg_has_role(c.relowner, 'USAGE') OR pg_has_role('pg_stat_scan_tables', 'USAGE'))
			ORDER BY c.oid::regclass::text
	LOOP
		-- 1. What lsm_convert has left, if it was interrupted: an index of either method.
		IF item.is_left_over THEN
			CONTINUE WHEN item.is_busy;
			index := item.oid;
			problem := 'left over';
			detail := 'An interrupted lsm_convert has left the index. Writers maintain it.';
			action := format('DROP INDEX CONCURRENTLY %s', index);
			RETURN NEXT;
			CONTINUE;
		END IF;
		EXECUTE format('SELECT * FROM %I.lsm_stat_merging($1)', own_schema)
			INTO STRICT merging USING item.oid;

		-- 2. The server, once.
		IF max_workers IS NULL THEN
			max_workers := current_setting('pg_lsm.max_workers');
			problem := CASE
				WHEN merging.has_launcher IS NULL THEN 'library not preloaded'
				WHEN pg_is_in_recovery() THEN NULL
				WHEN max_workers = 0 THEN 'no workers allowed'
				WHEN NOT merging.has_launcher THEN 'launcher not running' END;
			detail := CASE problem
				WHEN 'library not preloaded' THEN 'Indexes can be read, but not written. A standby cannot replay their WAL.'
				WHEN 'no workers allowed' THEN 'pg_lsm.max_workers is 0, so writers do all merging.'
				ELSE 'Nobody starts workers, so writers do all merging.' END;
			action := CASE problem
				WHEN 'library not preloaded' THEN 'Add pg_lsm to shared_preload_libraries in postgresql.conf, and restart the server.'
				WHEN 'no workers allowed' THEN 'ALTER SYSTEM RESET pg_lsm.max_workers; SELECT pg_reload_conf()'
				ELSE format('ALTER SYSTEM SET max_worker_processes = %s, and restart the server.',
							current_setting('max_worker_processes')::int + 8) END;
			IF problem IS NOT NULL THEN
				index := NULL;
				RETURN NEXT;
			END IF;
		END IF;

		-- 3. An index that is of no use.
		index := item.oid;
		IF NOT item.indisvalid THEN
			CONTINUE WHEN item.is_busy;
			problem := 'invalid';
			detail := 'Queries do not use the index, but writers maintain it.';
			action := format(CASE WHEN item.relname ~ '(_ccnew|_ccold)[0-9]*$'
							 THEN 'DROP INDEX CONCURRENTLY %s' ELSE item.rebuild END, index);
			RETURN NEXT;
			CONTINUE;
		END IF;
		BEGIN
			EXECUTE format('SELECT count(*) AS number, coalesce(sum(bytes), 0) AS live FROM %I.lsm_runs($1)', own_schema)
				INTO STRICT runs USING index;
			EXECUTE format('SELECT bool_or(filtered) FROM %I.lsm_index_columns($1)', own_schema)
				INTO STRICT filtered USING index;
			size := pg_relation_size(index);
		EXCEPTION
			WHEN lock_not_available OR undefined_table THEN
				CONTINUE;
			WHEN OTHERS THEN
				problem := 'unreadable';
				detail := SQLERRM;
				action := format(item.rebuild, index);
				RETURN NEXT;
				CONTINUE;
		END;

		-- 4. Merges.
		problem := CASE
			WHEN merging.failures > 0 THEN 'merges fail'
			WHEN merging.refusals > 8 THEN 'workers locked out'
			WHEN merging.jobs > 0 AND merging.workers = 0 AND merging.refusals = 0
				AND merging.has_launcher AND max_workers > 0 THEN 'no worker'
			WHEN runs.number > 86 OR merging.late_time >= 1000 THEN 'merges are late' END;
		detail := CASE problem
			WHEN 'merges fail' THEN format('Attempts that have failed since a worker last finished all merges: %s. The server log has the errors.', merging.failures)
			WHEN 'workers locked out' THEN 'For a minute, workers could not lock the table.'
			WHEN 'no worker' THEN format('%s merges are due, and no worker runs.', merging.jobs)
			ELSE format('The index has %s runs. Merges cost its writers %s ms in this minute.',
						runs.number, round(merging.late_time)) END;
		action := CASE problem
			WHEN 'merges fail' THEN 'Remove the cause. Workers try again within 5 minutes.'
			WHEN 'workers locked out' THEN format(
				'SELECT pid, mode FROM pg_locks WHERE granted AND relation IN (SELECT indrelid FROM pg_index WHERE indexrelid = %s)',
				item.oid)
			WHEN 'no worker' THEN format('ALTER SYSTEM SET max_worker_processes = %s, and restart the server.',
										 current_setting('max_worker_processes')::int + 8)
			ELSE format('ALTER SYSTEM SET pg_lsm.max_workers = %s; SELECT pg_reload_conf()', least(max_workers + 2, 64)) END;
		IF problem IS NOT NULL THEN
			RETURN NEXT;
		END IF;

		-- 5. The file.
		IF size > 2 * runs.live + (64 << 20) THEN
			problem := 'file too large';
			detail := format('The file has %s, but only %s are in use.',
							 pg_size_pretty(size), pg_size_pretty(runs.live));
			action := format(item.rebuild, index);
			RETURN NEXT;
		END IF;
		IF (item.is_off OR NOT filtered AND NOT item.has_fanout) AND runs.number > 1 AND runs.live > in_memory THEN
			problem := 'no filters';
			detail := CASE WHEN item.is_off THEN 'filter_bits is 0' ELSE 'No column has a type with a hash' END
				|| format(', so each lookup searches %s runs.', runs.number);
			action := format(CASE WHEN item.is_off
				THEN 'ALTER INDEX %1$s RESET (filter_bits); ' || replace(item.rebuild, '%s', '%1$s')
				ELSE 'ALTER INDEX %s SET (merge_fanout = 4)' END, index);
			RETURN NEXT;
		END IF;
		SELECT format('ALTER COLLATION %s REFRESH VERSION', k.oid::regcollation) INTO changed
			FROM pg_collation k
			WHERE k.oid = ANY (item.collations) AND k.collversion <> pg_collation_actual_version(k.oid)
		UNION ALL
		SELECT format('ALTER DATABASE %I REFRESH COLLATION VERSION', d.datname)
			FROM pg_database d
			WHERE d.datname = current_database() AND 'default'::regcollation = ANY (item.collations)
				AND d.datcollversion <> pg_database_collation_actual_version(d.oid);
		IF changed IS NOT NULL THEN
			problem := 'collation changed';
			detail := 'The operating system may now sort strings differently, so the index may be out of order.';
			action := format(item.rebuild || '; then, after all indexes: %s', index, changed);
			RETURN NEXT;
		END IF;
	END LOOP;

	-- 6. Keys that a tool has built for a child table.  The definition of a key does not name its method.
	RETURN QUERY
		SELECT DISTINCT c.conindid::regclass, 'key is a B-tree',
			format('The parent table %s has an lsm index for this key. Perhaps a tool has lost the method.', p.conrelid::regclass),
			format('CALL %I.lsm_convert(%L)', own_schema, c.conindid::regclass)
		FROM pg_constraint p
			JOIN pg_inherits h ON h.inhparent = p.conrelid
			JOIN pg_constraint c ON c.conrelid = h.inhrelid AND c.contype = p.contype
			JOIN pg_class pi ON pi.oid = p.conindid
			JOIN pg_class ci ON ci.oid = c.conindid
			JOIN pg_am pa ON pa.oid = pi.relam
			JOIN pg_am ca ON ca.oid = ci.relam
		WHERE p.contype IN ('p', 'u') AND pa.amname = 'lsm' AND ca.amname = 'btree'
			AND (SELECT array_agg(attname ORDER BY attname) FROM pg_attribute WHERE attrelid = p.conrelid AND attnum = ANY (p.conkey))
				= (SELECT array_agg(attname ORDER BY attname) FROM pg_attribute WHERE attrelid = c.conrelid AND attnum = ANY (c.conkey))
			AND (pg_has_role(ci.relowner, 'USAGE') OR pg_has_role('pg_stat_scan_tables', 'USAGE'))
		ORDER BY 1;
END
$$;

COMMENT ON FUNCTION lsm_health() IS
'return the problems of the lsm indexes that the caller owns or may monitor, and what to do; index is null if the server is the problem';

--
-- Operator classes
--
-- An lsm index has the strategies and support functions of a B-tree.  So each
-- operator class is copied from a B-tree's, as the catalogs describe it.  That
-- covers every class of the server, whatever its version, and works for the
-- types of other extensions too.
--

CREATE FUNCTION lsm_create_opclass(btree_opclass text)
RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	parts		text[] := parse_ident(btree_opclass);
	btree_am	oid;
	lsm_am		oid;
	candidates	oid[];
	source		record;
	own			record;
	lsm_family	oid;
	family_sql	text;
	class_sql	text;
	items		text;
	clash		text;
BEGIN
	SELECT a.oid INTO STRICT btree_am FROM pg_am a WHERE a.amname = 'btree';
	SELECT a.oid INTO STRICT lsm_am FROM pg_am a WHERE a.amname = 'lsm';

	-- 1. Find the B-tree's class.  A name without schema must be unique in the
	-- database, so that the result does not depend on search_path.
	IF cardinality(parts) > 2 THEN
		RAISE EXCEPTION 'improper operator class name: %', btree_opclass
			USING ERRCODE = 'syntax_error',
				HINT = 'Write it as name or schema.name.';
	END IF;
	candidates := ARRAY(
		SELECT c.oid
		FROM pg_opclass c JOIN pg_namespace n ON n.oid = c.opcnamespace
		WHERE c.opcmethod = btree_am
			AND c.opcname = parts[cardinality(parts)]
			AND (cardinality(parts) = 1 OR n.nspname = parts[1]));
	IF cardinality(candidates) = 0 THEN
		RAISE EXCEPTION 'operator class % does not exist for access method btree',
			btree_opclass
			USING ERRCODE = 'undefined_object';
	ELSIF cardinality(candidates) > 1 THEN
		RAISE EXCEPTION 'operator class name % is ambiguous', btree_opclass
			USING ERRCODE = 'ambiguous_alias',
				HINT = 'Write it as schema.name.';
	END IF;
	SELECT c.*, f.opfname, f.opfnamespace INTO STRICT source
		FROM pg_opclass c JOIN pg_opfamily f ON f.oid = c.opcfamily
		WHERE c.oid = candidates[1];

	-- 2. Name the new class.  It gets the name and the schema of its model, so
	-- that an index definition finds both in the same way.
	class_sql := format('%s.%I', source.opcnamespace::regnamespace,
						source.opcname);
	family_sql := format('%s.%I', source.opfnamespace::regnamespace,
						 source.opfname);

	-- 3. The family.
	SELECT f.oid INTO lsm_family
		FROM pg_opfamily f
		WHERE f.opfmethod = lsm_am AND f.opfname = source.opfname
			AND f.opfnamespace = source.opfnamespace;
	IF lsm_family IS NULL THEN
		EXECUTE format('CREATE OPERATOR FAMILY %s USING lsm', family_sql);
		EXECUTE format('COMMENT ON OPERATOR FAMILY %s USING lsm IS %L',
					   family_sql, 'lsm counterpart of btree operator family '
					   || source.opfname);
		SELECT f.oid INTO STRICT lsm_family
			FROM pg_opfamily f
			WHERE f.opfmethod = lsm_am AND f.opfname = source.opfname
				AND f.opfnamespace = source.opfnamespace;
	END IF;

	-- An existing family must agree, or queries would return wrong results.
	SELECT b.amopopr::regoperator::text INTO clash
		FROM pg_amop b JOIN pg_amop l USING (amoplefttype, amoprighttype,
											 amopstrategy)
		WHERE b.amopfamily = source.opcfamily AND l.amopfamily = lsm_family
			AND b.amopopr <> l.amopopr
		LIMIT 1;
	IF clash IS NULL THEN
		SELECT b.amproc::oid::regprocedure::text INTO clash
			FROM pg_amproc b JOIN pg_amproc l USING (amproclefttype,
													 amprocrighttype, amprocnum)
			WHERE b.amprocfamily = source.opcfamily
				AND l.amprocfamily = lsm_family
				AND b.amproc <> l.amproc
			LIMIT 1;
	END IF;
	IF clash IS NOT NULL THEN
		RAISE EXCEPTION 'operator family % for access method lsm differs from that of btree',
			family_sql
			USING ERRCODE = 'duplicate_object',
				DETAIL = format('It has another member in place of %s.', clash);
	END IF;

	-- 4. The class.  It gets the operators and functions of its own type, unless
	-- another class of the family has them (as text_ops has those of
	-- varchar_ops).  The list must not be empty, so STORAGE fills it then.
	SELECT c.opcintype, c.opcfamily INTO own
		FROM pg_opclass c
		WHERE c.opcmethod = lsm_am AND c.opcname = source.opcname
			AND c.opcnamespace = source.opcnamespace;
	IF NOT FOUND THEN
		SELECT string_agg(m.item, ', ' ORDER BY m.kind, m.number) INTO items
			FROM (
				SELECT 1 AS kind, o.amopstrategy AS number,
						format('OPERATOR %s %s', o.amopstrategy,
							   o.amopopr::regoperator) AS item
					FROM pg_amop o
					WHERE o.amopfamily = source.opcfamily
						AND o.amoplefttype = source.opcintype
						AND o.amoprighttype = source.opcintype
				UNION ALL
				SELECT 2, p.amprocnum,
						format('FUNCTION %s (%s, %s) %s', p.amprocnum,
							   p.amproclefttype::regtype,
							   p.amprocrighttype::regtype,
							   p.amproc::oid::regprocedure)
					FROM pg_amproc p
					WHERE p.amprocfamily = source.opcfamily
						AND p.amproclefttype = source.opcintype
						AND p.amprocrighttype = source.opcintype
			) m
			WHERE NOT EXISTS (
				SELECT FROM pg_amproc p
				WHERE p.amprocfamily = lsm_family AND p.amprocnum = 1
					AND p.amproclefttype = source.opcintype
					AND p.amprocrighttype = source.opcintype);
		EXECUTE format('CREATE OPERATOR CLASS %s %s FOR TYPE %s USING lsm FAMILY %s AS %s',
					   class_sql,
					   CASE WHEN source.opcdefault THEN 'DEFAULT' ELSE '' END,
					   source.opcintype::regtype, family_sql,
					   coalesce(items, format('STORAGE %s',
											  source.opcintype::regtype)));
		EXECUTE format('COMMENT ON OPERATOR CLASS %s USING lsm IS %L',
					   class_sql, 'lsm counterpart of btree operator class '
					   || source.opcname);
	ELSIF own.opcintype <> source.opcintype OR own.opcfamily <> lsm_family THEN
		RAISE EXCEPTION 'operator class % for access method lsm already exists with another type or family',
			class_sql
			USING ERRCODE = 'duplicate_object';
	ELSE
		RAISE NOTICE 'operator class % for access method lsm already exists',
			class_sql
			USING DETAIL = 'Only members missing from its family are added.';
	END IF;

	-- 5. The rest of the family: members that compare different types, and those
	-- that the B-tree's family got after ours was created.  Skip members of a
	-- type that has no lsm class yet; its class will add them.
	SELECT string_agg(m.item, ', ') INTO items
		FROM (
			SELECT o.amoplefttype AS lefttype, o.amoprighttype AS righttype,
					format('OPERATOR %s %s', o.amopstrategy,
						   o.amopopr::regoperator) AS item
				FROM pg_amop o
				WHERE o.amopfamily = source.opcfamily AND NOT EXISTS (
					SELECT FROM pg_amop l
					WHERE l.amopfamily = lsm_family
						AND l.amoplefttype = o.amoplefttype
						AND l.amoprighttype = o.amoprighttype
						AND l.amopstrategy = o.amopstrategy)
			UNION ALL
			SELECT p.amproclefttype, p.amprocrighttype,
					format('FUNCTION %s (%s, %s) %s', p.amprocnum,
						   p.amproclefttype::regtype, p.amprocrighttype::regtype,
						   p.amproc::oid::regprocedure)
				FROM pg_amproc p
				WHERE p.amprocfamily = source.opcfamily AND NOT EXISTS (
					SELECT FROM pg_amproc l
					WHERE l.amprocfamily = lsm_family
						AND l.amproclefttype = p.amproclefttype
						AND l.amprocrighttype = p.amprocrighttype
						AND l.amprocnum = p.amprocnum)
		) m
		WHERE NOT EXISTS (
			SELECT FROM pg_opclass c
			WHERE c.opcfamily = source.opcfamily
				AND c.opcintype IN (m.lefttype, m.righttype)
				AND NOT EXISTS (
					SELECT FROM pg_amproc l
					WHERE l.amprocfamily = lsm_family AND l.amprocnum = 1
						AND l.amproclefttype = c.opcintype
						AND l.amprocrighttype = c.opcintype));
	IF items IS NOT NULL THEN
		EXECUTE format('ALTER OPERATOR FAMILY %s USING lsm ADD %s',
					   family_sql, items);
	END IF;
END
$$;

COMMENT ON FUNCTION lsm_create_opclass(text) IS
'create the lsm counterpart of a btree operator class, so that its type can be indexed with lsm';

-- Copy the classes that B-tree has on this server.  A type's default class comes
-- first, so that the type's operators become part of that class.
DO $$
DECLARE
	class		text;
BEGIN
	FOR class IN
		SELECT pg_catalog.format('pg_catalog.%I', c.opcname)
		FROM pg_catalog.pg_opclass c
			JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) c.opcmethod
		WHERE a.amname OPERATOR(pg_catalog.=) 'btree'
			AND c.opcnamespace OPERATOR(pg_catalog.=)
				'pg_catalog'::pg_catalog.regnamespace
		ORDER BY c.opcdefault DESC, c.oid
	LOOP
		PERFORM lsm_create_opclass(class);
	END LOOP;
END
$$;
