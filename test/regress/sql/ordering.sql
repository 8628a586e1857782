-- ORDER BY in any mixture of directions, against a sort.
CREATE TABLE o (a int, b text COLLATE "C", c timestamptz, d numeric, id serial);
INSERT INTO o (a, b, c, d)
SELECT NULLIF(i % 7, 3), NULLIF(chr(97 + i % 5), 'c'), timestamptz '2024-01-01 00:00+00' + (i % 11) * interval '1 hour', NULLIF(i % 3, 1) / 2.0
FROM generate_series(1, 300) i;

-- Every direction and NULLS placement of two columns, after one and before one.
CREATE FUNCTION check_orders() RETURNS TABLE (index_columns text, result text)
LANGUAGE plpgsql AS $$
DECLARE
	d1 text;
	d2 text;
BEGIN
	FOREACH d1 IN ARRAY ARRAY['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'] LOOP
		FOREACH d2 IN ARRAY ARRAY['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'] LOOP
			-- Encoded keys in one index, tuple keys in the other.
			FOREACH index_columns IN ARRAY ARRAY[format('a%s, b%s, c DESC', d1, d2), format('d%s, a%s, b', d1, d2)] LOOP
				EXECUTE format('CREATE INDEX o_idx ON o USING lsm (%s) INCLUDE (id)', index_columns);
				INSERT INTO o (a, b, c, d) SELECT a, b, c, d FROM o WHERE id <= 10;
				PERFORM lsm_check('o_idx', true);
				result := t.same_order('o', 'a, b, c, d, id', index_columns);
				DROP INDEX o_idx;
				RETURN NEXT;
			END LOOP;
		END LOOP;
	END LOOP;
END $$;
SELECT index_columns, result FROM check_orders() WHERE result !~ '^\d+ rows by index(, index only)? scan; backward: \d+ rows by index(, index only)? scan$';
SELECT count(*) FROM o;
DROP FUNCTION check_orders;

-- An index order that covers only a part of ORDER BY.
CREATE INDEX o_ab ON o USING lsm (a, b DESC);
ANALYZE o;
SELECT q, t.same('SELECT a, b, c, d, id FROM o ORDER BY ' || q) FROM unnest(ARRAY[
	'a, b DESC, id', 'a DESC, b, id', 'a, b, id', 'a, id', 'a, b DESC, c, d, id']) q;
SELECT q, t.same('SELECT a, b FROM o WHERE ' || q) FROM unnest(ARRAY[
	'a = 5 ORDER BY b DESC', 'a = 5 ORDER BY b', 'a = 5 ORDER BY a, b', 'a IS NULL ORDER BY b', 'a IS NULL ORDER BY b DESC', 'b = ''a'' ORDER BY a', 'a > 2 ORDER BY a, b DESC LIMIT 13', 'a > 2 ORDER BY a DESC, b LIMIT 13']) q;

-- DISTINCT, GROUP BY, window functions and merge appends that rely on it.
SELECT t.same('SELECT DISTINCT a FROM o ORDER BY a'), t.same('SELECT DISTINCT ON (a) a, b FROM o ORDER BY a, b DESC');
SELECT t.same('SELECT a, count(*), min(b) FROM o GROUP BY a ORDER BY a');
SELECT t.same('SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b DESC) FROM o ORDER BY a, b DESC, 3');
SELECT t.same('SELECT a, rank() OVER (ORDER BY a) FROM o ORDER BY a, 2');
SELECT t.same('SELECT a, count(*) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM o WHERE a IS NOT NULL ORDER BY a, 2');
SELECT t.same('SELECT * FROM (SELECT a FROM o WHERE a < 3 UNION ALL SELECT a FROM o WHERE a > 4) x ORDER BY a LIMIT 50');
DROP TABLE o;
