/* pg_lsm--0.1.0--0.2.0.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pg_lsm UPDATE TO '0.2.0'" to load this file. \quit

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
			THEN 'Inserts of many rows: 8 to 13 times the rows/s; of single rows: 1.6 times (docs/performance.md, "Loads", "Single rows and ON CONFLICT").'
			ELSE 'Inserts of many rows: 1.8 times the rows/s; 7 times if the table has eight such indexes (docs/when-to-use.md, "UUIDv7"; docs/performance.md, "Loads").' END;
		loss := 'While rows arrive, lookups run at 0.6 to 0.8 of the speed, and short ranges at 0.7 (docs/performance.md, "What it loses"). pg_lsm must be preloaded, on standbys too.'
			|| CASE WHEN item.index_pages * block / item.entries > 80
				THEN ' Entries are long, so there is not less WAL.' ELSE '' END;
		statements := format('CALL %I.lsm_convert(%L)', own_schema, index);
		BEGIN
			EXECUTE format('SELECT FROM %I.lsm_convert_plan($1)', own_schema) USING index;
		EXCEPTION WHEN object_not_in_prerequisite_state THEN
			DECLARE
				why		text;
				way_out	text;
			BEGIN
				GET STACKED DIAGNOSTICS why = PG_EXCEPTION_DETAIL, way_out = PG_EXCEPTION_HINT;
				statements := format('-- lsm_convert refuses: %s %s', why, way_out);
			END;
		END;
		RETURN NEXT;
	END LOOP;
END
$$;

COMMENT ON FUNCTION lsm_advise() IS
'return the B-trees of this database that would gain from lsm, judging by the statistics, with the reason, the gain, the loss and the statements to run';
