-- NULLs: their place in the order, IS NULL, IS NOT NULL, and conditions that are never
-- true for them.
CREATE TABLE n (a int, b text, c float8, id serial);
INSERT INTO n (a, b, c)
SELECT NULLIF(i % 5, 0), NULLIF('t' || i % 4, 't0'), NULLIF(i % 3, 0) FROM generate_series(1, 120) i;

-- The same queries under each order of the index.
CREATE FUNCTION check_nulls(columns text) RETURNS TABLE (query text, result text)
LANGUAGE plpgsql AS $$
BEGIN
	DROP INDEX IF EXISTS n_idx;
	EXECUTE format('CREATE INDEX n_idx ON n USING lsm (%s) INCLUDE (id)', columns);
	INSERT INTO n (a, b, c) SELECT a, b, c FROM n WHERE id <= 60 ORDER BY md5(id::text);
	PERFORM lsm_check('n_idx', true);
	FOREACH query IN ARRAY ARRAY['a IS NULL', 'a IS NOT NULL', 'a IS NULL AND b IS NULL', 'a IS NULL AND b IS NOT NULL', 'a IS NOT NULL AND b IS NULL',
		'a = 2 AND b IS NULL', 'a = 2 AND b IS NOT NULL', 'a > 2 AND b IS NULL', 'a IS NULL AND b = ''t1''', 'a IS NULL AND b > ''t1''', 'a IS NOT NULL AND b = ''t1''',
		'a IS NULL AND b = ''t1'' AND c IS NULL', 'a = 2 AND b IS NOT NULL AND c > 0', 'a IS NULL AND a = 2', 'a IS NULL AND a > 2', 'a IS NULL AND a IS NOT NULL',
		'a IS NOT NULL AND a > 2', 'a < 3', 'a > 3', 'a = (SELECT NULL::int)', 'a < (SELECT NULL::int)', 'a IN (1, NULL)', 'a = ANY (''{NULL,1,2}'') AND b IS NULL', 'b IS NULL', 'c IS NOT NULL AND b IS NULL'] LOOP
		result := t.same('SELECT a, b, c, id FROM n WHERE ' || query);
		RETURN NEXT;
	END LOOP;
	query := 'order';
	result := t.same_order('n', 'a, b, c, id', columns);
	RETURN NEXT;
END $$;
SELECT * FROM check_nulls('a, b, c');
SELECT * FROM check_nulls('a NULLS FIRST, b NULLS FIRST, c NULLS FIRST') WHERE result ~ 'DIFFERENT|NO INDEX' OR query = 'order';
SELECT * FROM check_nulls('a DESC, b DESC, c DESC') WHERE result ~ 'DIFFERENT|NO INDEX' OR query = 'order';
SELECT * FROM check_nulls('a DESC NULLS LAST, b, c NULLS FIRST') WHERE result ~ 'DIFFERENT|NO INDEX' OR query = 'order';
SELECT * FROM check_nulls('a, b DESC, c DESC NULLS LAST') WHERE result ~ 'DIFFERENT|NO INDEX' OR query = 'order';
DROP TABLE n;
DROP FUNCTION check_nulls;

-- Only NULLs, and a row with NULLs in all columns.
CREATE TABLE only_nulls (a int, b int);
CREATE INDEX only_nulls_idx ON only_nulls USING lsm (a, b);
INSERT INTO only_nulls SELECT NULL, NULL FROM generate_series(1, 50);
SELECT t.same('SELECT * FROM only_nulls WHERE a IS NULL AND b IS NULL'), t.same('SELECT * FROM only_nulls WHERE a IS NOT NULL');
SELECT t.same_order('only_nulls', 'a, b', 'a, b');
SET enable_seqscan = off;
SELECT min(a), max(a), min(b) FROM only_nulls;
SELECT lsm_check('only_nulls_idx', true);
DROP TABLE only_nulls;
