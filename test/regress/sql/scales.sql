-- Numerics: a key does not contain the display scale, but the scale is returned all the
-- same.
SET client_min_messages = warning;
-- Compares the table with what an index-only scan returns, byte by byte.
CREATE FUNCTION as_stored(tab text, col text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	by_index text;
	by_table text;
	query text := format('SELECT string_agg(pg_catalog.encode(s, ''hex''), '' '' ORDER BY s) FROM (SELECT record_send(ROW(%s)) AS s FROM %s WHERE %1$s >= ''-Infinity'') x', col, tab);
BEGIN
	PERFORM t.allow('index only');
	IF t.scan_of(query) <> 'index only' THEN
		RETURN 'no index-only scan';
	END IF;
	EXECUTE query INTO by_index;
	PERFORM t.allow('seq');
	EXECUTE query INTO by_table;
	RETURN CASE WHEN by_index IS DISTINCT FROM by_table THEN 'DIFFERENT: ' || by_index || ', should be ' || by_table ELSE 'as stored' END;
END $$;
CREATE TABLE s (p numeric(12,2), f numeric(12,0), m numeric(5,-2), z numeric(1000,500), n numeric, id serial) WITH (autovacuum_enabled = off);
CREATE INDEX s_p ON s USING lsm (p);
CREATE INDEX s_f ON s USING lsm (f DESC);
CREATE INDEX s_m ON s USING lsm (m NULLS FIRST);
CREATE INDEX s_z ON s USING lsm (z DESC NULLS LAST);
CREATE INDEX s_n ON s USING lsm (n);
INSERT INTO s (p, f, m, z, n) SELECT x, x, x, x, y FROM
	unnest('{0,1,-1,0.5,1.25,99999.99,-0.01,100,1000,NULL,NaN}'::numeric[]) x,
	unnest('{0,0.0,0.000,1,1.0,1.00,10,10.0,100,1e2,0.1,0.10,NaN,Infinity,-Infinity,-1,-1.0,NULL}'::numeric[]) y;
-- Exponents of all sizes, and digits on either side of those of base 100 and 10000.
INSERT INTO s (n) SELECT sign * (digits::numeric * 10::numeric ^ e)
	FROM unnest('{-1,1}'::int[]) sign, unnest('{1,10,12,123,1234,12345,99,100,9999,10000,10001}'::text[]) digits,
		generate_series(-60, 60, 7) e;
INSERT INTO s (n) SELECT (i || 'e' || e)::numeric FROM generate_series(-1, 1, 2) i,
	unnest('{-16383,-16000,-1000,-100,-46,-45,-44,-43,196,197,198,199,200,1000,30000,131071}'::int[]) e;
INSERT INTO s (n) SELECT (i || repeat('0', i * 5 % 90) || '.' || repeat('0', i * 7 % 90) || i % 3)::numeric FROM generate_series(1, 90) i;
SELECT lsm_check(i, true) FROM unnest('{s_p,s_f,s_m,s_z,s_n}'::regclass[]) i;
SELECT c, t.same_order('s', c, c || d) FROM (VALUES ('p', ''), ('f', ' DESC'), ('m', ' NULLS FIRST'), ('z', ' DESC NULLS LAST'), ('n', '')) v (c, d);
VACUUM s;
SELECT c, as_stored('s', c) FROM unnest('{p,f,m,z,n}'::text[]) c;
DROP INDEX s_n, s_p, s_z;
-- Several columns, and included ones.
CREATE INDEX s_all ON s USING lsm (n, p DESC, id, z) INCLUDE (f, m);
CREATE INDEX s_more ON s USING lsm (z, n DESC) INCLUDE (id);
SELECT lsm_check('s_all', true), lsm_check('s_more', true);
SELECT t.same('SELECT n, p, id, z, f, m FROM s WHERE n >= -1 ORDER BY n, p DESC, id');
SELECT t.same('SELECT z, n, id FROM s WHERE z = 100.0 ORDER BY z, n DESC', 'SELECT z, n, id FROM s WHERE z = 100.0 ORDER BY z, n DESC, ctid');
SELECT t.same('SELECT n, p FROM s WHERE n = ANY (''{1.000,10,NaN,0.1}'') AND p = ANY (''{1,100.0}'') ORDER BY n, p DESC, id');
SELECT t.same('SELECT n FROM s WHERE (n, p) > (1.0, 5) AND n < 11');
-- More digits, in a column of a domain type and in an expression, whose type has no typmod.
CREATE DOMAIN price AS numeric(8,3);
CREATE TABLE d (k price, e numeric(8,3));
CREATE INDEX d_k ON d USING lsm (k) INCLUDE (e);
CREATE INDEX d_x ON d USING lsm ((e * 2.0), (e::numeric(20,6)));
INSERT INTO d SELECT i / 8.0, i / 8.0 FROM generate_series(-20, 20) i;
SELECT t.same('SELECT k, e FROM d WHERE k > -1 ORDER BY k');
SELECT t.same('SELECT e * 2.0, e::numeric(20,6), e FROM d WHERE e * 2.0 > -1 ORDER BY e * 2.0');
SELECT lsm_check('d_k', true), lsm_check('d_x', true);
-- The type of the column may change while the index stays.
CREATE TABLE a (k numeric(10,2), id int);
CREATE INDEX a_k ON a USING lsm (k) INCLUDE (id);
INSERT INTO a VALUES (1, 1), (1.5, 2), (0, 3), (NULL, 4), ('NaN', 5);
SELECT pg_relation_filenode('a_k') AS before \gset
ALTER TABLE a ALTER k TYPE numeric(20,2);
INSERT INTO a VALUES (12345678901234.5, 6);
ALTER TABLE a ALTER k TYPE numeric;
SELECT pg_relation_filenode('a_k') = :before AS same_file;
INSERT INTO a VALUES (1, 7), (1.0, 8), (1.00, 9), (1.500, 10), (0, 11), ('Infinity', 12);
VACUUM a;
SELECT t.same('SELECT k, id FROM a ORDER BY k, id', 'SELECT k, id FROM a ORDER BY k, id');
SELECT lsm_check('a_k', true), as_stored('a', 'k');
REINDEX INDEX a_k;
SELECT lsm_check('a_k', true), as_stored('a', 'k');
-- Whatever its scale, a value is the same key.
CREATE TABLE u (k numeric, g int, v int);
CREATE UNIQUE INDEX u_k ON u USING lsm (k, g);
INSERT INTO u SELECT i / 10.0, i % 3, i FROM generate_series(1, 1000) i;
SELECT t.error_of('INSERT INTO u VALUES (1.000, 1)'), t.error_of('INSERT INTO u VALUES (1.000, 2)');
INSERT INTO u VALUES (NULL, 1), (NULL, 1), ('NaN', 1), ('Infinity', 1), ('-Infinity', 1);
SELECT t.error_of('INSERT INTO u VALUES (''NaN'', 1)'), t.error_of('INSERT INTO u VALUES (''Infinity'', 1)');
INSERT INTO u SELECT (i / 10.0)::numeric(10,4), i % 3, -i FROM generate_series(900, 1100) i
	ON CONFLICT (k, g) DO UPDATE SET v = excluded.v, k = excluded.k WHERE u.v % 2 = 0;
INSERT INTO u SELECT (i / 10.0)::numeric(10,5), i % 3, 0 FROM generate_series(1, 1200) i ON CONFLICT DO NOTHING;
SELECT count(*), sum(v), sum(scale(k)) FROM u;
DO $$
BEGIN
	INSERT INTO u VALUES (1.0000, 1);
EXCEPTION WHEN unique_violation THEN
	RAISE WARNING '%', sqlerrm;
END $$;
UPDATE u SET k = k * 1.0 WHERE g = 1;
DELETE FROM u WHERE v % 5 = 0;
VACUUM u;
SELECT lsm_check('u_k', true), t.same_order('u', 'k, g, v', 'k, g'), t.same('SELECT * FROM u WHERE k = 55.500 AND g = 0');
DROP TABLE s, d, a, u;
DROP DOMAIN price;
DROP FUNCTION as_stored;
