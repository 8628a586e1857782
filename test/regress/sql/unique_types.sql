-- Unique indexes and ON CONFLICT over types whose equal values may look different: values
-- that are equal by the type's own operator are duplicates, and no others.
SET client_min_messages = warning;
CREATE FUNCTION check_unique(typ text, vals text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	distinct_values int;
	refused int := 0;
	v text;
	layout text;
BEGIN
	CREATE TEMP TABLE w AS SELECT i, x FROM unnest(vals) WITH ORDINALITY u (x, i);
	EXECUTE format('SELECT count(DISTINCT x::%s) FROM w', typ) INTO distinct_values;
	FOREACH layout IN ARRAY '{k,k DESC,"k NULLS FIRST, g","g, k DESC"}'::text[] LOOP
		DROP TABLE IF EXISTS v;
		EXECUTE format('CREATE TABLE v (k %s, g int, n int)', typ);
		EXECUTE format('CREATE UNIQUE INDEX v_idx ON v USING lsm (%s) INCLUDE (n)', layout);
		-- A batch of new keys, and duplicates within it.
		EXECUTE format('INSERT INTO v SELECT x::%s, 1, i FROM w ORDER BY md5(x) ON CONFLICT DO NOTHING', typ);
		IF (SELECT count(*) FROM v) <> distinct_values THEN
			RETURN format('(%s): %s rows, should be %s', layout, (SELECT count(*) FROM v), distinct_values);
		END IF;
		-- Each key exists now.  An updated row gets the new representation.
		EXECUTE format('INSERT INTO v SELECT DISTINCT ON (x::%1$s) x::%1$s, 1, -i FROM w ORDER BY x::%1$s, i
			ON CONFLICT (%2$s) DO UPDATE SET n = excluded.n, k = excluded.k', typ, regexp_replace(layout, ' (DESC|NULLS FIRST)', '', 'g'));
		IF (SELECT count(*) FROM v WHERE n < 0) <> distinct_values THEN
			RETURN format('(%s): %s rows updated, should be %s', layout, (SELECT count(*) FROM v WHERE n < 0), distinct_values);
		END IF;
		FOREACH v IN ARRAY vals LOOP
			BEGIN
				EXECUTE format('INSERT INTO v VALUES ($1::%s, 1)', typ) USING v;
				RETURN format('(%s): %s is no duplicate', layout, v);
			EXCEPTION WHEN unique_violation THEN
				refused := refused + 1;
			END;
			EXECUTE format('INSERT INTO v VALUES ($1::%s, 1, 0) ON CONFLICT DO NOTHING', typ) USING v;
		END LOOP;
		-- All values, and a statement that must fail as a whole.
		BEGIN
			EXECUTE format('INSERT INTO v SELECT x::%s, 1, i FROM w', typ);
			RETURN format('(%s): no duplicate', layout);
		EXCEPTION WHEN unique_violation THEN
			NULL;
		END;
		PERFORM lsm_check('v_idx', true);
		EXECUTE 'DELETE FROM v WHERE n % 2 = 0';
		EXECUTE format('INSERT INTO v SELECT x::%s, 1, i FROM w ON CONFLICT DO NOTHING', typ);
		PERFORM lsm_check('v_idx', true);
		-- CREATE INDEX on duplicates.
		DROP INDEX v_idx;
		EXECUTE format('INSERT INTO v SELECT x::%s, 1, i FROM w LIMIT 1', typ);
		BEGIN
			EXECUTE format('CREATE UNIQUE INDEX v_idx ON v USING lsm (%s)', layout);
			RETURN format('(%s): built over duplicates', layout);
		EXCEPTION WHEN unique_violation THEN
			NULL;
		END;
	END LOOP;
	DROP TABLE v, w;
	RETURN format('%s different of %s, %s refused', distinct_values, cardinality(vals), refused);
END $$;
SELECT check_unique('numeric', '{0,0.0,-0.00,1,1.0,1.00,10,1e1,0.1,0.10,-1,-1.0,NaN,Infinity,-Infinity,1e100}');
SELECT check_unique('numeric(8,2)', '{0,0.001,1,1.001,-1,1.01,NaN}');
SELECT check_unique('float8', '{0,-0,1,NaN,-1,Infinity}');
SELECT check_unique('interval', '{1 mon,30 days,720:00,29 days 24:00,2 mons -30 days,-1 mon,-30 days,-720:00,0,1 day -24:00,00:00:00.000001,1 year,360 days,12 mons,178000000 years}');
SELECT check_unique('timetz', '{00:00+00,01:00+01,00:00+01,12:00+00,24:00+00,23:00-01}');
SELECT check_unique('inet', '{10.0.0.1,10.0.0.1/32,10.0.0.1/24,10.0.0.0/24,10.0.0.0/8,10.0.0.0/9,::,::/0,::1,0.0.0.0,0.0.0.0/0,::10.0.0.1}');
SELECT check_unique('cidr', '{10.0.0.0/8,10.0.0.0/9,10.0.0.0/32,10.0.0.0,::/0,0.0.0.0/0}');
SELECT check_unique('macaddr', '{08:00:2b:01:02:03,08-00-2b-01-02-03,08002b010203,08:00:2b:01:02:04}');
SELECT check_unique('varbit', '{"",0,00,1,10,100,1000000000,00000000,000000000,11111111}');
SELECT check_unique('bit(9)', '{000000000,000000001,100000000,111111111}');
SELECT check_unique('tid', '{"(0,1)","(0,01)","(0,2)","(1,1)","(4294967294,65535)"}');
SELECT check_unique('bytea', ARRAY['', '\x00', '\x0000', '\x00ff', '\xff', '\x0001']);
SELECT check_unique('char(4)', '{a,"a ","a   ",b,""," ",é,"é ","a b"}');
SELECT check_unique('bpchar', '{a,"a ","a       ",b,""," ",é,"é ","a b"}');
SELECT check_unique('varchar(4)', '{a,"a ","a   ",b,""," ",é,"é ","a b"}');
SELECT check_unique('jsonb', '{1,1.0,1.00,"\"a\"",[1],[1.0],"{\"a\": 1}","{\"a\": 1.0}"}');
-- Row by row, in other transactions, in both orders: the result does not depend on which
-- comes second.
CREATE TABLE both_ways (k interval, n numeric);
CREATE UNIQUE INDEX both_ways_k ON both_ways USING lsm (k, n);
INSERT INTO both_ways VALUES ('1 mon', 1);
SELECT t.error_of('INSERT INTO both_ways VALUES (''30 days'', 1.00)', 'both_ways_k');
DELETE FROM both_ways;
INSERT INTO both_ways VALUES ('30 days', 1.0);
SELECT t.error_of('INSERT INTO both_ways VALUES (''1 mon'', 1.00)', 'both_ways_k');
INSERT INTO both_ways VALUES ('1 mon', 1.000) ON CONFLICT (k, n) DO UPDATE SET k = excluded.k, n = excluded.n RETURNING *;
DROP TABLE both_ways;
DROP FUNCTION check_unique;
