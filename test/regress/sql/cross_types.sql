-- Operators between the types of a family, in quals and in joins.
SET client_min_messages = warning;

-- A column of one type against values of another: all operators.
CREATE FUNCTION check_cross(ltyp text, rtyp text, vals text[]) RETURNS text
LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off SET enable_memoize = off AS $$
DECLARE
	layout text;
	op text;
	said text;
	rows bigint := 0;
BEGIN
	DROP TABLE IF EXISTS l, r;
	EXECUTE format('CREATE TABLE l (id serial, k %s, g int)', ltyp);
	EXECUTE format('CREATE TABLE r (n int, k %s)', rtyp);
	EXECUTE format('INSERT INTO l (k, g) SELECT x::%s, i FROM generate_series(1, 3) i, unnest($1) x', ltyp) USING vals || NULL::text;
	-- The other type may have a wider range, or a narrower one.
	EXECUTE format('INSERT INTO r SELECT n, x::%s FROM unnest($1) WITH ORDINALITY u(x, n)', rtyp) USING vals || NULL::text;
	FOREACH layout IN ARRAY '{k,k DESC,"g, k","k, g"}'::text[] LOOP
		EXECUTE format('CREATE INDEX l_idx ON l USING lsm (%s) INCLUDE (id)', layout);
		FOREACH op IN ARRAY '{<,<=,=,>=,>}'::text[] LOOP
			said := t.same(format('SELECT n, l.* FROM r, LATERAL (SELECT id, k FROM l WHERE k %s r.k AND %s) l',
				op, CASE WHEN layout = 'g, k' THEN 'g = 2' ELSE 'true' END));
			IF said ~ 'DIFFERENT|NO INDEX' THEN
				RETURN format('(%s): %s: %s', layout, op, said);
			END IF;
			rows := rows + split_part(said, ' ', 1)::int;
		END LOOP;
		said := t.same(format('SELECT id, k FROM l WHERE k > %L::%s AND k <= %L::%s', vals[2], rtyp, vals[4], rtyp));
		IF said ~ 'DIFFERENT|NO INDEX' THEN
			RETURN format('(%s): range: %s', layout, said);
		END IF;
		DROP INDEX l_idx;
	END LOOP;
	RETURN rows || ' rows, all the same';
END $$;

SELECT l, r, check_cross(l, r, '{-32768,-300,-1,0,1,255,256,32767}')
FROM unnest('{int2,int4,int8}'::text[]) l, unnest('{int2,int4,int8}'::text[]) r WHERE l <> r;
SELECT l, r, check_cross(l, r, '{-Infinity,-1.5,-0.0,0,0.1,1,3,Infinity,NaN}')
FROM unnest('{float4,float8}'::text[]) l, unnest('{float4,float8}'::text[]) r WHERE l <> r;
SET TimeZone = 'America/New_York';
SELECT l, r, check_cross(l, r, '{-infinity,1999-12-31,2000-01-01,2000-01-02,2024-03-10,2024-07-01,infinity}')
FROM unnest('{date,timestamp,timestamptz}'::text[]) l, unnest('{date,timestamp,timestamptz}'::text[]) r WHERE l <> r;
SELECT l, r, check_cross(l, r, '{a,b,bb,"",Z,_,aaaaaaaa,aaaaaaaab}')
FROM unnest('{name,"text COLLATE \"C\""}'::text[]) l, unnest('{name,"text COLLATE \"C\""}'::text[]) r WHERE l <> r;

-- Outside the column type's range on either side.
CREATE TABLE small (k int2, id int);
CREATE INDEX small_k ON small USING lsm (k);
INSERT INTO small SELECT i - 100, i FROM generate_series(1, 200) i;
SELECT q, t.same('SELECT * FROM small WHERE k ' || q) FROM unnest(ARRAY['< 100000', '> 100000', '= 100000', '>= -100000', '< -100000',
	'= 65537', '> -9223372036854775808', '= 9223372036854775807', '<= 9223372036854775807', 'BETWEEN -100000 AND 9223372036854775807']) q;
CREATE TABLE moments (at timestamptz, d date);
CREATE INDEX moments_at ON moments USING lsm (at, d);
CREATE INDEX moments_d ON moments USING lsm (d);
INSERT INTO moments SELECT ts, ts FROM generate_series('2024-03-09', '2024-03-12', interval '1 hour') ts;
SELECT q, t.same('SELECT * FROM moments WHERE ' || q) FROM unnest(ARRAY['at = date ''2024-03-10''', 'at >= date ''2024-03-11''',
	'at < timestamp ''2024-03-10 02:30''', 'd > timestamp ''2024-03-10 12:00''', 'd <= timestamptz ''2024-03-10 12:00+00''',
	'd = timestamp ''2024-03-10''', 'd > timestamptz ''infinity''', 'd < timestamp ''-infinity''',
	'at > timestamp ''infinity''', 'd < timestamptz ''294276-12-31 00:00+00''']) q;
-- The zones that are farthest from UTC, where the dates differ.
SET TimeZone = 167;
SELECT q, t.same('SELECT * FROM moments WHERE ' || q) FROM unnest(ARRAY['at = timestamp ''2024-03-17 12:00''',
	'at >= date ''2024-03-17''', 'at < timestamp ''2024-03-17 12:00''', 'd = timestamptz ''2024-03-10 00:00''',
	'd > timestamptz ''2024-03-03 00:00+00''', '(at, d) > (timestamp ''2024-03-17 12:00'', date ''2024-03-01'')']) q;
SET TimeZone = -167;
SELECT q, t.same('SELECT * FROM moments WHERE ' || q) FROM unnest(ARRAY['at = timestamp ''2024-03-03 12:00''',
	'at <= date ''2024-03-04''', 'at > timestamp ''2024-03-03 12:00''', 'd = timestamptz ''2024-03-10 00:00''',
	'd < timestamptz ''2024-03-17 00:00+00''', '(at, d) < (timestamp ''2024-03-03 12:00'', date ''2024-03-31'')']) q;
RESET TimeZone;
-- The same float literal is a different value in the other width.
CREATE TABLE floats (k float4);
CREATE INDEX floats_k ON floats USING lsm (k);
INSERT INTO floats VALUES (0.1), (0.5), (1e38), ('NaN'), ('Infinity');
SELECT q, t.same('SELECT * FROM floats WHERE k ' || q) FROM unnest(ARRAY['= 0.1::float8', '= 0.5::float8', '> 0.1::float8', '< 1e300::float8',
	'> 1e300::float8', '= ''NaN''::float8', '< ''NaN''::float8', '>= ''-Infinity''::float8']) q;

-- Two bounds of different types on a column, where the types' order decides.
SELECT t.same('SELECT * FROM small WHERE k > 5::int4 AND k >= 7::int8 AND k < 20::int2 AND k <= 15::int4');
SELECT t.same('SELECT * FROM small WHERE k = 5::int4 AND k = 5::int8');
SELECT t.same('SELECT * FROM small WHERE k = 5::int4 AND k > 7::int8');
SELECT t.same('SELECT * FROM small WHERE k = ANY (''{3,5,100000,NULL,9000000000}''::int8[])');
SELECT t.same('SELECT * FROM small WHERE k = ANY (''{3,5,-7}''::int4[]) AND k > 2::int8');

-- Joins: each plan gives the same rows.
CREATE TABLE big (k int8, id int);
INSERT INTO big SELECT i - 50, i FROM generate_series(1, 100) i, generate_series(1, 2);
CREATE INDEX big_k ON big USING lsm (k);
ANALYZE small, big;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
SELECT count(*), sum(s.id), sum(b.id) FROM small s JOIN big b ON s.k = b.k;
EXPLAIN (COSTS OFF) SELECT s.k, b.id FROM small s JOIN big b ON s.k = b.k;
SET enable_nestloop = on;
SET enable_mergejoin = off;
SELECT count(*), sum(s.id), sum(b.id) FROM small s JOIN big b ON s.k = b.k;
SET enable_hashjoin = on;
SET enable_nestloop = off;
RESET enable_seqscan;
SELECT count(*), sum(s.id), sum(b.id) FROM small s JOIN big b ON s.k = b.k;
DROP TABLE l, r, small, big, moments, floats;
DROP FUNCTION check_cross;
