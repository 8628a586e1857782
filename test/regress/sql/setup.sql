-- Functions for all other scripts: a query must return the same rows with an index and without.
CREATE SCHEMA t;
ALTER DATABASE contrib_regression SET search_path = public, t;
SET search_path = public, t;

-- The rows of a query in the order in which it returns them.
CREATE FUNCTION t.rows_of(query text) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
	result text[];
BEGIN
	EXECUTE format('SELECT array_agg(q::text) FROM (%s) q', query) INTO result;
	RETURN coalesce(result, '{}');
END $$;

-- Allow the planner certain scans only.  Sorting is a last resort, so that
-- the order of an index is used where it can be.
CREATE FUNCTION t.allow(scans text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('enable_seqscan', (scans = 'seq')::text, true);
	-- An index-only scan needs both settings.
	PERFORM set_config('enable_indexscan', (scans LIKE 'index%')::text, true);
	PERFORM set_config('enable_indexonlyscan', (scans = 'index only')::text, true);
	PERFORM set_config('enable_bitmapscan', (scans = 'bitmap')::text, true);
	PERFORM set_config('enable_sort', (scans = 'seq')::text, true);
END $$;

-- The kind of index scan that a query would use now.
CREATE FUNCTION t.scan_of(query text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	line text;
	result text := 'seq';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		result := CASE
			WHEN line ~ 'Index Only Scan' THEN 'index only'
			WHEN line ~ 'Bitmap Index Scan' THEN 'bitmap'
			WHEN line ~ 'Index Scan' THEN 'index'
			ELSE result END;
	END LOOP;
	RETURN result;
END $$;

-- Does the plan of a query have a matching line?
CREATE FUNCTION t.plan_has(query text, pattern text) RETURNS bool
LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ pattern THEN RETURN true; END IF;
	END LOOP;
	RETURN false;
END $$;

-- Runs a query in every way that the planner has for it.  The oracle, if given, is a query for the expected rows;
-- otherwise they are those of a sequential scan. Without ORDER BY the order is not compared.
CREATE FUNCTION t.same(query text, oracle text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
	scans text;
	want text[];
	got text[];
	used text[] := '{}';
	ordered bool := query ~* 'order by';
BEGIN
	PERFORM t.allow('seq');
	want := t.rows_of(coalesce(oracle, query));
	IF NOT ordered THEN
		want := ARRAY(SELECT unnest(want) COLLATE "C" ORDER BY 1);
	END IF;
	FOREACH scans IN ARRAY '{index,index only,bitmap}'::text[] LOOP
		PERFORM t.allow(scans);
		-- A bitmap has no order, and the sort above it is not under test.
		CONTINUE WHEN t.scan_of(query) <> scans OR scans = 'bitmap' AND ordered;
		used := used || scans;
		got := t.rows_of(query);
		IF NOT ordered THEN
			got := ARRAY(SELECT unnest(got) COLLATE "C" ORDER BY 1);
		END IF;
		IF got IS DISTINCT FROM want THEN
			RETURN format('DIFFERENT by %s scan: %s rows, should be %s: %s, should be %s',
				scans, cardinality(got), cardinality(want), left(got::text, 2000), left(want::text, 2000));
		END IF;
	END LOOP;
	RETURN format('%s rows by %s scan', cardinality(want),
		coalesce(nullif(array_to_string(used, ', '), ''), 'NO INDEX'));
END $$;

-- Reverses an ORDER BY.
CREATE FUNCTION t.reverse(orderby text) RETURNS text
LANGUAGE sql AS $$
	SELECT string_agg(m[1] || CASE WHEN m[2] IS NULL THEN ' DESC' ELSE '' END
		|| CASE m[3] WHEN ' NULLS FIRST' THEN ' NULLS LAST' WHEN ' NULLS LAST' THEN ' NULLS FIRST' ELSE '' END,
		', ' ORDER BY i)
	FROM regexp_split_to_table(orderby, ' *, *') WITH ORDINALITY term(term, i),
		regexp_match(term, '^(.*?)( DESC)?( NULLS FIRST| NULLS LAST)?$') m
$$;

-- The whole index of a table in both directions, against a sort.  The order
-- among equal keys is that of the TIDs.  (A btree in place of lsm does not reverse that order within a posting
-- list.)
CREATE FUNCTION t.same_order(tab text, cols text, orderby text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	forward text := orderby;
	backward text := t.reverse(orderby);
	ctid_back text := 'ctid DESC';
BEGIN
	IF NOT EXISTS (SELECT FROM pg_am WHERE amname = 'lsm') THEN
		backward := forward;
		ctid_back := 'ctid';
	END IF;
	RETURN t.same(
			format('SELECT %s FROM %s ORDER BY %s', cols, tab, forward),
			format('SELECT %s FROM %s ORDER BY %s, ctid', cols, tab, forward))
		|| '; backward: ' || t.same(
			format('SELECT %s FROM %s ORDER BY %s', cols, tab, backward),
			format('SELECT %s FROM %s ORDER BY %s, %s', cols, tab, backward, ctid_back));
END $$;

-- The SQLSTATE and, on request, whether the message names something.
CREATE FUNCTION t.error_of(command text, names text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	hint text;
BEGIN
	EXECUTE command;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	IF names IS NOT NULL AND position(names IN sqlerrm) = 0 THEN
		RETURN format('%s, but does not name %s: %s', sqlstate, names, sqlerrm);
	END IF;
	RETURN sqlstate;
END $$;

-- Unfinished merges, and what they have written.  (In plpgsql: with btree in place of lsm there is no lsm_runs.)
CREATE FUNCTION t.jobs(index regclass, OUT jobs bigint, OUT segments bigint)
LANGUAGE plpgsql AS $$
BEGIN
	SELECT count(*), coalesce(sum(r.segments), 0) INTO jobs, segments
		FROM lsm_runs(index) r WHERE r.state = 'merging';
END $$;

-- The number of pages that a query has read, from shared buffers or not.
CREATE FUNCTION t.buffers(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ' || query INTO plan;
	RETURN (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
END $$;
-- Fails at a point of the next step, if there is one.
CREATE FUNCTION t.try_to_compact(index regclass, at text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('pg_lsm.debug_stop_at', format('merge-%s:error', at), true);
	PERFORM lsm_compact(index);
	RETURN 'settled';
EXCEPTION WHEN internal_error THEN
	PERFORM set_config('pg_lsm.debug_stop_at', '', true);
	RETURN 'failed';
END $$;
-- What all sessions have read from each lsm index since this session last asked: the increase of the counters of
-- pg_stat_lsm_indexes. Planners, unique checks and lsm_check count, too. Temporary indexes have no counters.
CREATE TYPE t.index_reads AS (index regclass, seeks int8, runs_read int8, segments_read int8, pages_read int8,
	entries_read int8, restarts int8, entries_removed int8, filter_checks int8, filter_skips int8, filter_misses int8,
	pages_prefetched int8);
CREATE FUNCTION t.reads() RETURNS SETOF t.index_reads
LANGUAGE plpgsql AS $$
DECLARE
	old jsonb := coalesce(nullif(current_setting('t.reads', true), ''), '{}');
	new jsonb := (SELECT coalesce(jsonb_object_agg(indexrelid, to_jsonb(s)), '{}') FROM pg_stat_lsm_indexes s);
BEGIN
	PERFORM set_config('t.reads', new::text, false);
	RETURN QUERY
	SELECT r.*
	FROM jsonb_each(new) n, LATERAL (
		SELECT jsonb_object_agg(key, value::numeric - coalesce((old -> n.key ->> key)::numeric, 0)) AS added
		FROM jsonb_each(n.value) WHERE jsonb_typeof(value) = 'number') a,
		jsonb_populate_record(NULL::t.index_reads, added || jsonb_build_object('index', n.key::oid::regclass)) r
	WHERE r.seeks > 0 OR r.pages_read > 0 OR r.entries_removed > 0;
END $$;
-- Makes the next call of t.reads() count from here.
CREATE PROCEDURE t.note_reads()
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM t.reads();
END $$;
