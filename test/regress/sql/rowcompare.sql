-- Row comparisons as index conditions. The expected rows come from a sequential scan of a copy of the table, sorted.
-- (The copy has the same indexes as B-trees. If lsm is wrong, the number of rows that they return is shown, too. nbtree
-- of 17.11 itself returns rows for (a, b, c) < (0, 2, 'b') AND a IS NULL, so it cannot be the oracle.)
CREATE TABLE rb (a int4, b int8, c text COLLATE "C", d numeric, e date, id serial);
INSERT INTO rb (a, b, c, d, e)
SELECT nullif((i * 7919) % 7, 6), nullif((i * 104729) % 6, 5), nullif(chr(97 + (i * 31) % 5), 'e'), nullif((i * 17) % 9, 8) / 4.0,
	nullif(date '2024-01-01' + (i * 13) % 6, '2024-01-06')
FROM generate_series(1, 500) i;
CREATE TABLE rl (LIKE rb);
INSERT INTO rl SELECT * FROM rb;

-- Runs a query with TAB as each of the two tables.  Returns the number of rows, or the
-- difference.
CREATE FUNCTION twins(query text, scans text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	want text[];
	b text[];
	l text[];
BEGIN
	PERFORM t.allow('seq');
	want := t.rows_of(replace(query, 'TAB', 'rb'));
	PERFORM t.allow(scans);
	b := t.rows_of(replace(query, 'TAB', 'rb'));
	l := t.rows_of(replace(query, 'TAB', 'rl'));
	IF query !~ 'ORDER BY' THEN
		want := ARRAY(SELECT unnest(want) COLLATE "C" ORDER BY 1);
		b := ARRAY(SELECT unnest(b) COLLATE "C" ORDER BY 1);
		l := ARRAY(SELECT unnest(l) COLLATE "C" ORDER BY 1);
	END IF;
	IF l IS DISTINCT FROM want THEN
		RETURN format('DIFFERENT: %s by %s scan: %s rows: %s; table: %s: %s; btree: %s', query, scans, cardinality(l), left(l::text, 500), cardinality(want), left(want::text, 500), cardinality(b));
	END IF;
	RETURN format('%s rows', cardinality(l));
END $$;

-- Random comparisons. Values of several types, NULLs, columns on either side of the operator, further conditions.
CREATE FUNCTION one_of(VARIADIC items text[]) RETURNS text LANGUAGE sql VOLATILE AS
	'SELECT items[1 + floor(random() * cardinality(items))::int]';
CREATE FUNCTION some_value(col text) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT CASE WHEN random() < 0.08 THEN 'NULL' ELSE CASE col
		WHEN 'a' THEN one_of('-1', '0', '1', '2', '3', '4', '5', '6', '2::int8', '3::int2', '3000000000', '-3000000000')
		WHEN 'b' THEN one_of('-1', '0', '1', '2', '3', '4', '5', '2::int4', '3::int2', '4::int8')
		WHEN 'c' THEN one_of('''''', '''a''', '''b''', '''c''', '''cc''', '''z''', '''b''::name')
		WHEN 'd' THEN one_of('-1', '0', '0.25', '0.5', '0.50', '1', '1.3', '2')
		WHEN 'e' THEN one_of('''2024-01-01''', '''2024-01-03''::date', '''2024-01-04''::timestamp', '''2024-01-02 12:00+00''::timestamptz')
		WHEN '(a+1)' THEN one_of('1', '2', '3', '4::int8', '7')
		ELSE '1' END END
$$;
CREATE FUNCTION some_condition(cols text[]) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	used text[] := cols[1:2 + floor(random() * (cardinality(cols) - 1))::int];
	col text;
	columns text;
	vals text;
BEGIN
	IF cardinality(cols) > 2 AND random() < 0.25 THEN used := cols[2:3]; END IF;
	IF random() < 0.1 THEN used := ARRAY(SELECT unnest(used) ORDER BY random()); END IF;
	IF random() < 0.1 THEN used := used || one_of('a', 'b', 'c', 'd'); END IF;
	IF random() < 0.1 THEN used := one_of('a', 'b', 'c', 'd') || used; END IF;
	columns := array_to_string(used, ', ');
	vals := (SELECT string_agg(some_value(u), ', ') FROM unnest(used) u);
	IF random() < 0.8 THEN
		RETURN format('(%s) %s (%s)', columns, one_of('<', '<=', '>', '>='), vals);
	END IF;
	RETURN format('(%s) %s (%s)', vals, one_of('<', '<=', '>', '>='), columns);
END $$;
CREATE FUNCTION some_extra(cols text[]) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT CASE floor(random() * 8)::int
		WHEN 0 THEN ' AND ' || some_condition(cols)
		WHEN 1 THEN format(' AND %s = %s', cols[1], some_value(cols[1]))
		WHEN 2 THEN format(' AND %s %s %s', cols[1], one_of('<', '<=', '>', '>='), some_value(cols[1]))
		WHEN 3 THEN format(' AND %s %s %s', cols[2], one_of('<', '=', '>'), some_value(cols[2]))
		WHEN 4 THEN format(' AND %s IN (%s, %s, %s)', cols[1], some_value(cols[1]), some_value(cols[1]), some_value(cols[1]))
		WHEN 5 THEN format(' AND %s IS %s', one_of(cols[1], cols[2]), one_of('NULL', 'NOT NULL'))
		ELSE '' END
$$;
CREATE FUNCTION try_index(definition text, queries int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	items text[] := regexp_split_to_array(regexp_replace(definition, '^\((.*?)\)( INCLUDE.*)?$', '\1'), ', ');
	cols text[] := ARRAY(SELECT split_part(u, ' ', 1) FROM unnest(items) u);
	forward text := array_to_string(items, ', ');
	condition text;
	query text;
	result text;
	matches int := 0;
	indexed int := 0;
BEGIN
	EXECUTE 'CREATE INDEX rb_x ON rb ' || definition;
	EXECUTE 'CREATE INDEX rl_x ON rl USING lsm ' || definition;
	FOR i IN 1 .. queries LOOP
		condition := some_condition(cols) || some_extra(cols);
		FOREACH query IN ARRAY ARRAY[
			format('index SELECT * FROM TAB WHERE %s', condition),
			format('bitmap SELECT * FROM TAB WHERE %s', condition),
			format('index only SELECT %s FROM TAB WHERE %s', array_to_string(cols, ', '), condition),
			format('index SELECT %s FROM TAB WHERE %s ORDER BY %s LIMIT 20', array_to_string(cols, ', '), condition, forward),
			format('index only SELECT %s FROM TAB WHERE %s ORDER BY %s', array_to_string(cols, ', '), condition, t.reverse(forward))]
		LOOP
			result := twins(substring(query from 'SELECT.*'), substring(query from '^[a-z ]*[a-z]'));
			IF result ~ 'DIFFERENT' THEN
				DROP INDEX rb_x, rl_x;
				RETURN result;
			END IF;
			IF result <> '0 rows' THEN matches := matches + 1; END IF;
			IF query ~ '^index SELECT \*' AND t.plan_has(replace(substring(query from 'SELECT.*'), 'TAB', 'rl'), 'Index Cond') THEN indexed := indexed + 1; END IF;
		END LOOP;
	END LOOP;
	DROP INDEX rb_x, rl_x;
	RETURN CASE WHEN matches > queries AND indexed > queries / 2 THEN 'same'
		ELSE format('%s matches, %s with an index condition, of %s queries', matches, indexed, queries) END;
END $$;
SELECT setseed(0.42);
SELECT d, try_index(d, 60) FROM unnest(ARRAY['(a, b)', '(a, b, c)', '(a DESC, b DESC)', '(a, b DESC)', '(a NULLS FIRST, b NULLS FIRST)', '(a DESC NULLS LAST, b DESC, c DESC)', '(b, a NULLS FIRST, c)',
	'(c, a)', '(c DESC, b)', '(d, a)', '(d DESC, c DESC, a DESC)', '(a, d NULLS FIRST, b)', '(a, d DESC)', '(e, a)', '(e DESC, e DESC, b DESC)', '((a+1), b)', '(a, b) INCLUDE (c, d)', '(a, b, c, d, e)']) d;

-- Pages and rows that the scan need not read.
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_incremental_sort = off;
CREATE FUNCTION removed(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Rows Removed|Sort' THEN RETURN line; END IF;
	END LOOP;
	RETURN t.scan_of(query) || ', nothing removed';
END $$;
CREATE INDEX rb_abc ON rb (a, b, c);
CREATE INDEX rb_ad ON rb (a DESC, d DESC);
CREATE INDEX rb_xb ON rb ((a + 1), b);
CREATE INDEX rl_abc ON rl USING lsm (a, b, c);
CREATE INDEX rl_ad ON rl USING lsm (a DESC, d DESC);
CREATE INDEX rl_xb ON rl USING lsm ((a + 1), b);
SELECT q, removed(q) FROM unnest(ARRAY[
	'SELECT * FROM rl WHERE (a, b) > (2, 3) ORDER BY a, b LIMIT 10', 'SELECT * FROM rl WHERE (a, b) < (2, 3) ORDER BY a DESC, b DESC LIMIT 10', 'SELECT * FROM rl WHERE (2, 3) < (a, b) ORDER BY a, b LIMIT 10',
	'SELECT a, b, c FROM rl WHERE (a, b, c) >= (2, 3, ''b'') ORDER BY a, b, c LIMIT 10', 'SELECT * FROM rl WHERE (a, b) > ((SELECT 2), (SELECT 3)) ORDER BY a, b LIMIT 10', 'SELECT * FROM rl WHERE (a, b) > (2, 3) AND (a, b) <= (3, 1) ORDER BY a, b',
	'SELECT * FROM rl WHERE (a + 1, b) > (2, 3) ORDER BY a + 1, b LIMIT 10', 'SELECT * FROM rl WHERE (a, d) > (3, 1) ORDER BY a, d LIMIT 10', 'SELECT * FROM rl WHERE a = 3 AND (b, c) > (2, ''b'') ORDER BY b, c LIMIT 10']) q;
-- Starting far inside a range of equal first values costs little.
CREATE TABLE far (a int, b int);
INSERT INTO far SELECT 1, i FROM generate_series(1, 20000) i;
CREATE INDEX far_ab ON far USING lsm (a, b);
VACUUM ANALYZE far;
SELECT q, t.buffers(q) < 150 AS few FROM unnest(ARRAY['SELECT * FROM far WHERE (a, b) > (1, 15000) ORDER BY a, b LIMIT 10', 'SELECT * FROM far WHERE (a, b) < (1, 5000) ORDER BY a DESC, b DESC LIMIT 10', 'SELECT * FROM far WHERE (a, b) >= (1, 19990)', 'SELECT * FROM far WHERE (a, b) > (1, NULL)']) q;
DROP TABLE far;

-- Parameters from joins, prepared statements and subplans.
CREATE TABLE starts (x int, y int8);
INSERT INTO starts VALUES (1, 2), (3, NULL), (NULL, 1), (4, 4), (0, 0);
ANALYZE starts, rb, rl;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT q, twins(q, s) FROM unnest(ARRAY['index', 'index only', 'bitmap']) s, unnest(ARRAY[
	'SELECT x, y, r.a, r.b FROM starts JOIN TAB r ON (r.a, r.b) > (x, y)',
	'SELECT x, y, r.a, r.b FROM starts JOIN TAB r ON (x, y) >= (r.a, r.b) AND r.a = 1',
	'SELECT x, y, r.* FROM starts LEFT JOIN TAB r ON r.a = x AND (r.b, r.c) > (y, ''b'')',
	'SELECT x, y, r.a, r.b FROM starts, LATERAL (SELECT * FROM TAB WHERE (a, b) > (x, y) ORDER BY a, b LIMIT 3) r ORDER BY x, y, a, b',
	'SELECT x, y, r.a, r.b FROM starts, LATERAL (SELECT * FROM TAB WHERE (a, b) < (x, y) ORDER BY a DESC, b DESC LIMIT 3) r ORDER BY x, y, a, b',
	'SELECT * FROM TAB WHERE (a, b) > (SELECT x, y FROM starts WHERE x = 4)',
	'SELECT * FROM TAB WHERE (a, b) > (5, 1) OR (a, b) < (1, 1) OR (a, d) = (3, 1)',
	'SELECT * FROM TAB WHERE (a, b) > (4, 1) AND (a, d) < (5, 1)',
	'SELECT * FROM starts WHERE EXISTS (SELECT FROM TAB r WHERE (r.a, r.b, r.c) > (x, y, ''b'') AND r.a <= 3)']) q;
RESET enable_hashjoin;
RESET enable_material;
SET plan_cache_mode = force_generic_plan;
PREPARE pages_b(int, int8) AS SELECT a, b, c FROM rb WHERE (a, b, c) > ($1, $2, 'b') ORDER BY a, b, c LIMIT 5;
PREPARE pages_l(int, int8) AS SELECT a, b, c FROM rl WHERE (a, b, c) > ($1, $2, 'b') ORDER BY a, b, c LIMIT 5;
EXECUTE pages_l(2, 3);
EXECUTE pages_b(2, 3);
EXECUTE pages_l(2, NULL);
EXECUTE pages_l(NULL, 3);
EXECUTE pages_l(5, 4);
SELECT t.plan_has('EXECUTE pages_l(2, 3)', 'Sort'), removed('EXECUTE pages_l(2, 3)');
RESET plan_cache_mode;

-- Mark and restore under a merge join.
SET enable_mergejoin = on;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT q, twins(q, 'index'), t.plan_has(replace(q, 'TAB', 'rl'), 'Merge Join') FROM unnest(ARRAY[
	'SELECT x.id, y.id FROM TAB x JOIN TAB y ON x.a = y.a WHERE (x.a, x.b) > (1, 2) AND (y.a, y.b) < (4, 1)',
	'SELECT x.a, y.a FROM TAB x JOIN TAB y USING (a) WHERE (y.a, y.b, y.c) > (3, 1, ''b'') ORDER BY x.a DESC']) q;
RESET enable_mergejoin;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;

-- A cursor that changes direction.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b, c FROM rl WHERE (a, b) >= (5, 3) ORDER BY a, b, c;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH 4 FROM c;
MOVE LAST FROM c;
FETCH BACKWARD 3 FROM c;
FETCH FIRST FROM c;
COMMIT;

-- Writing, locking.
BEGIN;
SELECT count(*) FROM (SELECT * FROM rl WHERE (a, b) > (4, 2) FOR UPDATE) r;
UPDATE rl SET b = b + 1 WHERE (a, b) > (4, 2);
DELETE FROM rl WHERE (a, b, c) <= (0, 2, 'b');
UPDATE rb SET b = b + 1 WHERE (a, b) > (4, 2);
DELETE FROM rb WHERE (a, b, c) <= (0, 2, 'b');
SELECT twins('SELECT a, b, c, id FROM TAB WHERE (a, b) >= (0, 0)', 'index');
ROLLBACK;

-- Partitions; a partial index; two usable indexes.
CREATE TABLE pb (a int, b int, c int) PARTITION BY RANGE (a);
CREATE TABLE pb1 PARTITION OF pb FOR VALUES FROM (MINVALUE) TO (50);
CREATE TABLE pb2 PARTITION OF pb FOR VALUES FROM (50) TO (MAXVALUE);
CREATE TABLE pl (LIKE pb) PARTITION BY RANGE (a);
CREATE TABLE pl1 PARTITION OF pl FOR VALUES FROM (MINVALUE) TO (50);
CREATE TABLE pl2 (c int, b int, a int);
ALTER TABLE pl ATTACH PARTITION pl2 FOR VALUES FROM (50) TO (MAXVALUE);
CREATE INDEX pb_ab ON pb (a, b);
CREATE INDEX pl_ab ON pl USING lsm (a, b);
INSERT INTO pb SELECT i % 100, i % 7, i FROM generate_series(1, 1000) i;
INSERT INTO pl SELECT * FROM pb;
CREATE FUNCTION parts(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	b text[] := t.rows_of(replace(query, 'TAB', 'pb'));
	l text[] := t.rows_of(replace(query, 'TAB', 'pl'));
BEGIN
	RETURN CASE WHEN b = l THEN format('%s rows by %s scan', cardinality(l), t.scan_of(replace(query, 'TAB', 'pl'))) ELSE 'DIFFERENT' END;
END $$;
SELECT q, parts(q), t.plan_has(replace(q, 'TAB', 'pl'), 'Sort') AS sorts FROM unnest(ARRAY[
	'SELECT a, b FROM TAB WHERE (a, b) > (48, 3) ORDER BY a, b LIMIT 30', 'SELECT a, b FROM TAB WHERE (a, b) < (51, 3) ORDER BY a DESC, b DESC LIMIT 30', 'SELECT count(*), sum(c) FROM TAB WHERE (a, b) >= (20, 3) AND (a, b) < (70, 5)']) q;
CREATE INDEX rl_part ON rl USING lsm (b, d) WHERE c = 'b';
CREATE INDEX rb_part ON rb (b, d) WHERE c = 'b';
SELECT twins('SELECT b, d FROM TAB WHERE c = ''b'' AND (b, d) > (2, 1) ORDER BY b, d', 'index'), t.plan_has('SELECT * FROM rl WHERE c = ''b'' AND (b, d) > (2, 1) ORDER BY b, d', 'rl_part');

-- Row-level security: index conditions return only rows that the policy allows.
CREATE ROLE rowcompare_reader;
ALTER TABLE rl ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON rl USING (id % 2 = 0);
GRANT SELECT ON rl TO rowcompare_reader;
SET ROLE rowcompare_reader;
SELECT count(*), bool_and(id % 2 = 0) FROM rl WHERE (a, b) > (3, 2);
SELECT count(*), bool_and(id % 2 = 0) FROM rl WHERE (d, a) > (1, 2);
RESET ROLE;
DROP TABLE rb, rl, pb, pl, starts;
DROP FUNCTION twins, one_of, some_value, some_condition, some_extra, try_index, removed, parts;
DROP ROLE rowcompare_reader;
