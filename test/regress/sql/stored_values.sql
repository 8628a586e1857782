-- Values that are equal but not identical must be returned as they were stored.
SET client_min_messages = warning;
-- The table's values by row and in the order of the index, as bytes.
CREATE FUNCTION check_stored(typ text, vals text[], direction text DEFAULT '') RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	said text;
	forward text;
	orderby text := 'k' || direction;
BEGIN
	DROP TABLE IF EXISTS v;
	EXECUTE format('CREATE TABLE v (id serial, k %s) WITH (autovacuum_enabled = off)', typ);
	-- Inserted twice before the index exists, three times afterwards.
	EXECUTE format('INSERT INTO v (k) SELECT x::%s FROM generate_series(1, 2), unnest($1) x', typ) USING vals;
	EXECUTE format('CREATE INDEX v_idx ON v USING lsm (k %s) INCLUDE (id)', direction);
	EXECUTE format('INSERT INTO v (k) SELECT x::%s FROM generate_series(1, 3), unnest($1) x', typ) USING vals;
	PERFORM lsm_check('v_idx', true);
	said := t.same_order('v', 'id, k', orderby);
	IF said ~ 'DIFFERENT' OR said !~ 'by index, index only scan.*by index, index only scan' THEN
		RETURN said;
	END IF;
	-- text hides signs of NaNs and the like
	PERFORM t.allow('index only');
	EXECUTE 'SELECT string_agg(pg_catalog.encode(s, ''hex''), '' '' ORDER BY id) FROM (SELECT id, record_send((k, 1)) AS s FROM v ORDER BY k) x' INTO forward;
	PERFORM t.allow('seq');
	EXECUTE 'SELECT string_agg(pg_catalog.encode(record_send((k, 1)), ''hex''), '' '' ORDER BY id) FROM v' INTO said;
	IF forward IS DISTINCT FROM said THEN
		RETURN format('DIFFERENT bytes: %s, should be %s', forward, said);
	END IF;
	RETURN (SELECT count(*) FROM v) || ' rows as stored';
END $$;
SELECT check_stored('float4', '{0,-0,1,-1,NaN,Infinity,-Infinity,1e-45,-1e-45}');
SELECT check_stored('float8', '{0,-0,1,-1,NaN,Infinity,-Infinity,5e-324,-5e-324}');
SELECT check_stored('float8', '{0,-0,NaN,NULL,0}', ' DESC');
SELECT check_stored('numeric', '{0,0.0,0.000,-0.0,1,1.0,1.00,100,1e2,100.0000000000,NaN,-1,-1.0,NULL}');
SELECT check_stored('numeric', '{1,1.0,1.00,2.0,2}', ' DESC');
SELECT check_stored('interval', '{1 day,24:00:00,1 mon,30 days,720:00:00,29 days 24:00,0,-1 day 24:00}');
SELECT check_stored('interval', ARRAY['infinity', '-infinity', '178000000 years', '-178000000 years', '2147483646 mons 2147483647 days 2562047788:00:54.775807',
	'-2147483647 mons -2147483647 days -2562047788:00:54.775807', '100 mons -100 days', '1 day -00:00:00.000001', '-1 day 00:00:00.000001', '36 hours',
	'-36 hours', '2000000000 days', '1000000000 days 2562047788:00:54.775807', '2 mons -1 day 24:00', '0 mons 30 days', '1 mon -30 days'])
	WHERE current_setting('server_version_num')::int >= 170000
UNION ALL SELECT check_stored('interval', ARRAY['1 s', '-1 s', '178000000 years', '-178000000 years', '2147483646 mons 2147483647 days 2562047788:00:54.775807',
	'-2147483647 mons -2147483647 days -2562047788:00:54.775807', '100 mons -100 days', '1 day -00:00:00.000001', '-1 day 00:00:00.000001', '36 hours',
	'-36 hours', '2000000000 days', '1000000000 days 2562047788:00:54.775807', '2 mons -1 day 24:00', '0 mons 30 days', '1 mon -30 days'], ' DESC')
	WHERE current_setting('server_version_num')::int < 170000;
SELECT check_stored('timetz', '{00:00+00,00:00+01,01:00+01}');
SELECT check_stored('timestamptz', '{2000-01-01 00:00+00,2000-01-01 01:00+01}');
SELECT check_stored('char(10)', '{a,"a ","",b}');
SELECT check_stored('char(3)', '{a,"a ","  ",b,NULL,é,é中}', ' DESC');
SELECT check_stored('bpchar', ARRAY['a', 'a ', 'a  ', '', ' ', 'b', repeat('c', 200) || repeat(' ', 200)]);
SELECT check_stored('varchar(5)', '{a,"a ","a  ",b}');
SELECT check_stored('jsonb', ARRAY['1', '1.0', '1.00', '{"a": 1}', '{"a": 1.0}', '[1, 2.50]', '[1.0, 2.5]']);
SELECT check_stored('numeric[]', '{"{1,2}","{1.0,2.00}","{1.00}","{1}"}');
SELECT check_stored('float8[]', '{"{0}","{-0}","{0,-0}","{-0,0}"}');
SELECT check_stored('numrange', '{"[1,2]","[1.0,2.00]","[1.00,2]"}');
SELECT check_stored('inet', '{10.0.0.1,10.0.0.1/32,::1,::1/128}');
SELECT check_stored('cidr', '{10.0.0.0/8,10.0.0.0/9,::/0,2001:db8::/33}', ' DESC');
SELECT check_stored('tid', '{"(0,0)","(0,1)","(4294967294,65535)","(1,1)"}');
SELECT check_stored('bit(3)', '{000,001,101}', ' DESC');
SELECT check_stored('name', '{a,b,"",abc}');
SELECT check_stored('"char"', '{a,b,""}');
SELECT check_stored('bool', '{t,f,NULL}');
SELECT check_stored('text', ARRAY['', 'a', repeat('b', 300)]);
SELECT check_stored('bytea', ARRAY['', '\x00', '\x0001', '\xff']);
SELECT check_stored('varbit', '{0,00,000000000,1}');
SELECT check_stored('money', '{0,-0.01,0.01}');
SELECT check_stored('uuid', '{00000000-0000-0000-0000-000000000000,12345678-9abc-def0-1234-56789abcdef0}');
CREATE TYPE pair AS (n numeric, f float8);
SELECT check_stored('pair', '{"(1,0)","(1.0,-0)","(1.00,0)","(,)","(NaN,NaN)"}');
CREATE DOMAIN amount AS numeric CHECK (value >= 0);
SELECT check_stored('amount', '{1,1.0,1.00}');

-- A NaN with the sign bit set can result from arithmetic.  It equals any other NaN.
CREATE TABLE nans (f float8, id int);
CREATE INDEX nans_f ON nans USING lsm (f) INCLUDE (id);
INSERT INTO nans SELECT CASE i % 3 WHEN 0 THEN 'NaN'::float8 WHEN 1 THEN -'NaN'::float8 ELSE 'NaN'::float8 * -1 END, i FROM generate_series(1, 30) i;
SELECT t.same('SELECT id, f FROM nans ORDER BY f');
SELECT t.same('SELECT id, float8send(f) FROM nans WHERE f = ''NaN''');

-- The same holds for several columns and for included ones.
CREATE TABLE many (id serial, a numeric, b float8, c text, d numeric, e float4);
INSERT INTO many (a, b, c, d, e)
SELECT (ARRAY[1, 1.0, 1.00])[1 + i % 3], (ARRAY['0', '-0'])[1 + i % 2]::float8, repeat('c', i % 7),
	(ARRAY[2, 2.0, NULL])[1 + i % 3], (ARRAY['0', '-0', 'NaN', NULL])[1 + i % 4]::float4
FROM generate_series(1, 60) i;
CREATE INDEX many_idx ON many USING lsm (b, a DESC, c) INCLUDE (d, e, id);
INSERT INTO many (a, b, c, d, e) SELECT a, b, c, d, e FROM many;
SELECT t.same('SELECT b, a, c, d, e, id FROM many ORDER BY b, a DESC, c', 'SELECT b, a, c, d, e, id FROM many ORDER BY b, a DESC, c, ctid');
SELECT t.same('SELECT b, a, c, d, e, id FROM many WHERE b = 0 AND a = 1.000 AND c >= ''cc''');
SELECT lsm_check('many_idx', true);

-- The value of an expression is stored only in the index.
CREATE TABLE expr (a numeric);
CREATE INDEX expr_idx ON expr USING lsm ((a * 1.0), (-a));
INSERT INTO expr VALUES (1), (1.0), (2.50), (NULL), (2.5);
SELECT t.same('SELECT a, a * 1.0, -a FROM expr WHERE a * 1.0 >= 1 ORDER BY a * 1.0, -a', 'SELECT a, a * 1.0, -a FROM expr WHERE a * 1.0 >= 1 ORDER BY a * 1.0, -a, ctid');
DROP TABLE v, nans, many, expr;
DROP FUNCTION check_stored;
DROP TYPE pair;
DROP DOMAIN amount;
