-- Each type that has a btree operator class: all operators with all values,
-- in four kinds of index order, alone and with a column before or after.
SET client_min_messages = warning;
CREATE TYPE color AS ENUM ('red', 'green', 'blue');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN small AS int CHECK (value < 1000000);
CREATE TYPE textrange AS RANGE (subtype = text, collation = "C");

-- A table with each value three times, with NULLs and other rows in between, half of it
-- filled before the index exists.
CREATE FUNCTION fill(typ text, vals text[], columns text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE IF EXISTS v;
	EXECUTE format('CREATE TABLE v (id serial, g int, k %s)', typ);
	EXECUTE format('INSERT INTO v (g, k) SELECT i %% 3, x::%s FROM unnest($1) WITH ORDINALITY u(x, i)', typ)
		USING vals || NULL::text;
	EXECUTE format('CREATE INDEX v_idx ON v USING lsm (%s) INCLUDE (id)', columns);
	EXECUTE format('INSERT INTO v (g, k) SELECT i %% 3, x::%s FROM unnest($1) WITH ORDINALITY u(x, i) ORDER BY i DESC', typ)
		USING vals || NULL::text;
	EXECUTE format('INSERT INTO v (g, k) SELECT i %% 3, x::%s FROM unnest($1) WITH ORDINALITY u(x, i) ORDER BY md5(x)', typ)
		USING vals;
END $$;

-- One query tests a qual with all values, each with a rescan of the index.
CREATE FUNCTION check_type(typ text, vals text[], opclass text DEFAULT '', ops text[] DEFAULT '{<,<=,=,>=,>}')
RETURNS TABLE (type text, checks bigint, problems text)
LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off SET enable_memoize = off AS $$
DECLARE
	layout text;
	directions text;
	op text;
	said text;
BEGIN
	type := concat_ws(' ', typ, nullif(opclass, ''));
	checks := 0;
	EXECUTE format('CREATE TEMP TABLE x AS SELECT n, x::%s AS x FROM unnest($1) WITH ORDINALITY u(x, n)', typ) USING vals || NULL::text;
	FOREACH layout IN ARRAY '{k,k DESC,k NULLS FIRST,k DESC NULLS LAST,"g, k","k DESC, g"}'::text[] LOOP
		directions := layout;
		PERFORM fill(typ, vals, regexp_replace(layout, 'k', 'k ' || opclass));
		PERFORM lsm_check('v_idx', true);
		-- The order, if the type's own operators are those of the class.
		IF opclass = '' THEN
			said := t.same_order('v', 'id, k', directions);
			IF said ~ 'DIFFERENT|NO INDEX' THEN
				problems := concat_ws(E'\n', problems, format('order by %s: %s', directions, said));
			END IF;
			checks := checks + 2;
		END IF;
		FOREACH op IN ARRAY ops LOOP
			said := t.same(format('SELECT n, v.* FROM x, LATERAL (SELECT id, k FROM v WHERE k %s x AND %s) v',
				op, CASE WHEN layout = 'g, k' THEN 'g = 1' ELSE 'true' END));
			IF said ~ 'DIFFERENT|NO INDEX' THEN
				problems := concat_ws(E'\n', problems, format('(%s): k %s: %s', layout, op, said));
			END IF;
			checks := checks + 1;
		END LOOP;
	END LOOP;
	-- A qual that the planner knows.
	said := t.same(format('SELECT id, k FROM v WHERE k %s %L::%s ORDER BY k DESC, g',
		ops[array_upper(ops, 1)], vals[array_upper(vals, 1) / 2], typ),
		format('SELECT id, k FROM v WHERE k %s %L::%s ORDER BY k DESC, g, ctid',
		ops[array_upper(ops, 1)], vals[array_upper(vals, 1) / 2], typ));
	IF opclass = '' AND said ~ 'DIFFERENT|NO INDEX' THEN
		problems := concat_ws(E'\n', problems, format('constant: %s', said));
	END IF;
	DROP TABLE x;
	problems := coalesce(problems, 'none');
	RETURN NEXT;
END $$;

-- integers, at byte boundaries
SELECT * FROM check_type('int2', '{-32768,-257,-256,-255,-1,0,1,127,128,255,256,32767}');
SELECT * FROM check_type('int4', '{-2147483648,-65537,-65536,-256,-1,0,1,255,256,65535,65536,16777216,2147483647}');
SELECT * FROM check_type('int8', '{-9223372036854775808,-4294967297,-4294967296,-1,0,1,4294967295,4294967296,9223372036854775807}');
SELECT * FROM check_type('oid', '{0,1,255,256,2147483647,2147483648,4294967295}');
SELECT * FROM check_type('xid8', '{0,1,4294967295,4294967296,9223372036854775807,18446744073709551615}');
-- From 19 on, there is oid8, too.
SELECT checks, problems FROM check_type(coalesce(to_regtype('oid8')::text, 'xid8'), '{0,1,4294967295,4294967296,9223372036854775807,18446744073709551615}');
SELECT * FROM check_type('"char"', ARRAY['', 'a', 'z', 'A', '~', '0', E'\\200', E'\\377']);
SELECT * FROM check_type('bool', '{f,t}');
SELECT * FROM check_type('pg_lsn', '{0/0,0/1,0/FF,1/0,FFFFFFFF/FFFFFFFF,7FFFFFFF/0,80000000/0}');
SELECT * FROM check_type('tid', '{"(0,1)","(0,2)","(1,1)","(4294967294,65535)","(256,3)"}');
-- floats
SELECT * FROM check_type('float4', '{-Infinity,-3.4e38,-1,-1e-45,-0.0,0,1e-45,1e-38,0.1,1,1.5,2,3.4e38,Infinity,NaN}');
SELECT * FROM check_type('float8', '{-Infinity,-1.7e308,-1,-5e-324,-0.0,0,5e-324,1e-300,0.1,1,1.5,2,1.7e308,Infinity,NaN}');
SELECT * FROM check_type('numeric', '{-Infinity,-1e100,-1.50,-1.5,-1,-0.001,0,0.0,0.00,1e-100,0.001,1,1.0,1.00,9.99,10,12345678901234567890.123,1e100,Infinity,NaN}');
SELECT * FROM check_type('numeric(10,2)', '{-1.5,0,0.01,0.10,99.99,12345678.90}');
SELECT * FROM check_type('money', '{-92233720368547758.08,-1.00,-0.01,0,0.01,1.00,92233720368547758.07}');
-- dates and times
SELECT * FROM check_type('date', '{-infinity,4713-01-01 BC,1999-12-31,2000-01-01,2000-01-02,2024-02-29,5874897-12-31,infinity}');
SELECT * FROM check_type('time', '{00:00,00:00:00.000001,12:00,23:59:59.999999,24:00}');
SELECT * FROM check_type('timetz', '{00:00+00,00:00+01,00:00-01,01:00+01,12:00+00,13:00+01,24:00+00,11:00-01}');
SELECT * FROM check_type('timestamp', '{-infinity,4713-01-01 00:00 BC,1999-12-31 23:59:59.999999,2000-01-01,2000-01-01 00:00:00.000001,294276-12-31,infinity}');
SELECT * FROM check_type('timestamptz', '{-infinity,4713-01-01 00:00+00 BC,1999-12-31 23:59:59.999999+00,2000-01-01 00:00+00,2000-01-01 02:00+02,2000-01-01 02:00+00,294276-12-31 00:00+00,infinity}');
SELECT * FROM check_type('interval', '{-178000000 years,-1 day,-24:00,0,00:00:01,1 day,24:00,23:00,30 days,1 mon,720:00,1 year,360 days,178000000 years}');
-- network
SELECT * FROM check_type('inet', '{0.0.0.0,10.0.0.0/8,10.0.0.0/9,10.0.0.1/8,10.0.0.1,10.0.0.255,192.168.1.0/24,255.255.255.255,::,::1,fe80::/10,2001:db8::1/64,2001:db8::1}');
SELECT * FROM check_type('cidr', '{0.0.0.0/0,10.0.0.0/8,10.0.0.0/9,10.1.0.0/16,192.168.1.0/24,::/0,fe80::/10,2001:db8::/64}');
SELECT * FROM check_type('macaddr', '{00:00:00:00:00:00,00:00:00:00:00:01,08:00:2b:01:02:03,7f:ff:ff:ff:ff:ff,80:00:00:00:00:00,ff:ff:ff:ff:ff:ff}');
SELECT * FROM check_type('macaddr8', '{00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,08:00:2b:01:02:03:04:05,80:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff}');
SELECT * FROM check_type('uuid', '{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,7fffffff-ffff-ffff-ffff-ffffffffffff,80000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff}');
-- bytes and bits
SELECT * FROM check_type('bytea', ARRAY['', '\x00', '\x0000', '\x0001', '\x00ff', '\x01', '\x0100', '\x01ff', '\x02', '\x61', '\x6100', '\x6162', '\xfe', '\xff', '\xff00', '\xffff']);
SELECT * FROM check_type('bit(10)', '{0000000000,0000000001,0111111111,1000000000,1111111111}');
SELECT * FROM check_type('varbit', '{"",0,00,01,1,10,11,00000000,000000000,11111111,111111110}');
-- containers
SELECT * FROM check_type('int4[]', '{"{}","{NULL}","{1}","{1,NULL}","{1,2}","{2}","{2,1}","{{1,2}}","[0:1]={1,2}","{-1}"}');
SELECT * FROM check_type('text[]', '{"{}","{a}","{a,a}","{b}","{NULL}","{\"\"}","{a,b,c}"}');
SELECT * FROM check_type('float8[]', '{"{0}","{-0}","{NaN}","{1,2}","{-1}"}');
SELECT * FROM check_type('oidvector', '{"","1","1 2","2","4294967295","0 0 0"}');
SELECT * FROM check_type('pair', '{"(,)","(1,)","(1,a)","(1,b)","(2,a)","(-1,z)","(,a)"}');
SELECT * FROM check_type('int4range', '{empty,"(,)","[1,2)","[1,3)","[2,3)","(,1)","[1,)","[-5,5)"}');
SELECT * FROM check_type('numrange', '{empty,"[1,2)","[1.0,2.00)","(1,2]","[1.0,)"}');
SELECT * FROM check_type('textrange', '{empty,"[a,b)","[a,b]","(,z)","[b,)"}');
SELECT * FROM check_type('int4multirange', ARRAY['{}', '{[1,2)}', '{[1,2),[3,4)}', '{[2,3)}', '{(,)}']);
SELECT * FROM check_type('jsonb', ARRAY['null', 'true', 'false', '0', '1', '1.0', '1.50', '-1', '"a"', '"b"', '""', '[]', '[1]', '[1,2]', '{}', '{"a": 1}', '{"a": 1.0}', '{"b": 1}']);
SELECT * FROM check_type('tsvector', ARRAY['', 'a', 'a:1', 'b', 'a b', 'a:1A']);
SELECT * FROM check_type('tsquery', ARRAY['', 'a', 'b', 'a & b', 'a | b', '!a']);
-- the user's own
SELECT * FROM check_type('color', '{red,green,blue}');
SELECT * FROM check_type('small', '{-5,0,7,999999}');
-- classes that are not the default one
SELECT * FROM check_type('pair', '{"(,)","(1,)","(1,a)","(1,b)","(2,a)","(-1,z)","(,a)"}', 'record_image_ops', '{*<,*<=,*=,*>=,*>}');

-- An enum value added between others.
SELECT fill('color', '{red,green,blue,red,blue}', 'k');
ALTER TYPE color ADD VALUE 'orange' AFTER 'red';
INSERT INTO v (g, k) SELECT 1, k FROM unnest('{orange,green,orange,NULL}'::color[]) k;
SELECT t.same_order('v', 'id, k', 'k');
SELECT t.same($$SELECT * FROM v WHERE k > 'red' AND k < 'blue'$$);
SELECT lsm_check('v_idx', true);

-- A name is a string of up to 63 bytes.
SELECT * FROM check_type('name', ARRAY['', 'a', 'ab', 'b', 'A', '_', repeat('x', 63), repeat('x', 62), E'\u00e9']);
DROP TABLE v;
DROP FUNCTION check_type;
DROP FUNCTION fill;
DROP TYPE color, pair, textrange;
DROP DOMAIN small;
