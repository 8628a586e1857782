-- Random values of each type whose keys are compared as bytes, and of some whose
-- keys are tuples: an index stores them in the order of the type's own operators, and returns them unchanged.
-- test/unit (t_keys) does the same with many more values, but has its own definition of each type's order.
SET client_min_messages = warning;
SELECT setseed(0.5);

-- Random bits: small numbers of them, whatever their sign, or all.
CREATE FUNCTION some_bits(bits int) RETURNS numeric LANGUAGE sql VOLATILE AS $$
	SELECT trunc((random() - 0.5) * 2 ^ (1 + random() * bits)::int)::numeric + trunc(random() * 3)::int - 1
$$;

-- An integer within the range of a type.
CREATE FUNCTION some_int(bits int) RETURNS numeric LANGUAGE sql VOLATILE AS $$
	SELECT greatest(-(2::numeric ^ (bits - 1)), least(2::numeric ^ (bits - 1) - 1, some_bits(bits)))
$$;

CREATE FUNCTION some_unsigned(bits int) RETURNS numeric LANGUAGE sql VOLATILE AS $$
	SELECT mod(some_bits(bits) + 2::numeric ^ bits, 2::numeric ^ bits)
$$;

-- Bytes, many of them 00, 01, 7f, 80 or ff, as hexadecimal digits.
CREATE FUNCTION some_hex(bytes int) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT coalesce(string_agg(CASE WHEN random() < 0.7 THEN (ARRAY['00', '01', '7f', '80', 'ff'])[1 + trunc(random() * 5)::int]
		ELSE lpad(to_hex(trunc(random() * 256)::int), 2, '0') END, ''), '')
	FROM generate_series(1, bytes)
$$;

CREATE FUNCTION some_string(letters int) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT repeat('a', trunc(random() * 10)::int) || coalesce(string_agg((ARRAY['a', 'A', 'b', ' ', '_', '~', E'\x01', E'\x7f', 'é', '中'])
		[1 + trunc(random() * 10)::int], ''), '')
	FROM generate_series(1, letters)
$$;

CREATE FUNCTION some_float(most int) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT CASE WHEN random() < 0.2 THEN (ARRAY['-0', '0', 'NaN', 'Infinity', '-Infinity', '1', '-1'])[1 + trunc(random() * 7)::int]
		ELSE round(random()::numeric - 0.5, 4) || 'e' || ((random() - 0.5) * 2 * most)::int END
$$;

-- Values of a type, made by an expression, with nulls, in indexes of either direction and after another column.
CREATE FUNCTION check_random(type text, expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	layout text;
	said text;
	different int;
BEGIN
	DROP TABLE IF EXISTS v;
	EXECUTE format('CREATE TABLE v (g int, k %s)', type);
	EXECUTE format('INSERT INTO v SELECT i %% 3, CASE WHEN i %% 50 > 0 THEN (%s)::%s END FROM generate_series(1, 400) i',
		expression, type);
	SELECT count(DISTINCT k::text) INTO different FROM v;
	IF different < 30 AND type <> 'bool' THEN
		RETURN format('only %s values', different);
	END IF;
	INSERT INTO v SELECT g + 1, k FROM v WHERE g = 1 LIMIT 50;
	FOREACH layout IN ARRAY '{k,k DESC,"g, k","k DESC NULLS LAST, g"}'::text[] LOOP
		EXECUTE format('CREATE INDEX v_idx ON v USING lsm (%s)', layout);
		PERFORM lsm_check('v_idx', true);
		said := t.same_order('v', 'g, k', layout);
		IF said ~ 'DIFFERENT|NO INDEX' THEN
			RETURN format('(%s): %s', layout, said);
		END IF;
		DROP INDEX v_idx;
	END LOOP;
	RETURN 'the same order';
END $$;

SELECT type, check_random(type, expression) FROM (VALUES
	('bool', 'random() < 0.5'),
	('"char"', 'some_int(8)::int'),
	('int2', 'some_int(16)'),
	('int4', 'some_int(32)'),
	('int8', 'some_int(64)'),
	('oid', 'some_unsigned(32)::int8'),
	('xid8', 'some_unsigned(64)::text'),
	('pg_lsn', $$to_hex(some_unsigned(32)::int8) || '/' || to_hex(some_unsigned(32)::int8)$$),
	('float4', 'some_float(37)'),
	('float8', 'some_float(300)'),
	('money', '''$0.01''::money * some_int(31)::int8'),
	('date', '''2000-01-01''::date + least(some_int(32), 2000000000)::int % 2000000'),
	('time', '''00:00''::time + some_int(37)::int8 * interval ''1 microsecond'''),
	('timestamp', '''2000-01-01''::timestamp + some_int(57)::int8 * interval ''0.000001 seconds'''),
	('timestamptz', '''2000-01-01''::timestamptz + some_int(57)::int8 * interval ''0.000001 seconds'''),
	('uuid', 'some_hex(16)'),
	('macaddr', 'some_hex(6)'),
	('macaddr8', 'some_hex(8)'),
	('bytea', 'decode(some_hex(trunc(random() * 6)::int), ''hex'')'),
	('text COLLATE "C"', 'some_string(trunc(random() * 5)::int)'),
	('varchar COLLATE "C"', 'some_string(trunc(random() * 5)::int)'),
	('name', 'some_string(trunc(random() * 5)::int)'),
	('numeric', 'some_bits(80) / 10 ^ (random() * 9)::int'),
	('interval', 'make_interval(months => some_int(5)::int, days => some_int(9)::int, hours => some_int(10)::int)'),
	('numeric(20,2)', 'some_bits(60) / 10 ^ (random() * 9)::int'),
	('numeric(1000,300)', 'some_bits(1000) / 10::numeric ^ (random() * 300)::int'),
	('interval', 'make_interval(0, some_int(31)::int, 0, some_int(31)::int / 2, 0, 0, some_int(30)::float8)'),
	('timetz', '''00:00''::time + some_int(37)::int8 * interval ''1 microsecond'''),
	('inet', '''0.0.0.0''::inet + some_unsigned(32)::int8'),
	('inet', $$set_masklen('::'::inet + some_unsigned(62)::int8, trunc(random() * 129)::int)$$),
	('cidr', $$set_masklen('10.0.0.0'::cidr, trunc(random() * 33)::int)::cidr$$),
	('cidr', $$network(set_masklen('255.255.255.255'::inet - some_unsigned(31)::int8, trunc(random() * 33)::int))$$),
	('tid', $$'(' || some_unsigned(32)::int8 % 4294967295 || ',' || 1 + some_unsigned(16)::int8 % 65535 || ')'$$),
	('bit(17)', $$some_int(17)::int::bit(17)$$),
	('varbit', $$substr(some_unsigned(40)::int8::bit(70)::text, 1 + trunc(random() * 40)::int, trunc(random() * 71)::int)$$),
	('bpchar', 'some_string(trunc(random() * 5)::int)'),
	('varbit', $$substr(some_unsigned(16)::int::bit(16)::text, 1, trunc(random() * 17)::int)$$),
	('bpchar COLLATE "C"', 'some_string(trunc(random() * 5)::int) || repeat('' '', trunc(random() * 5)::int)'),
	('char(12) COLLATE "C"', 'left(some_string(trunc(random() * 5)::int), 12)'),
	('int8[]', 'ARRAY[some_int(64), some_int(3)]')
) types (type, expression);

DROP TABLE v;
DROP FUNCTION check_random, some_string, some_float, some_hex, some_unsigned, some_int, some_bits;
