-- Cursors that change direction, move, and reach the ends.
CREATE TABLE c (k int, id serial);
CREATE INDEX c_k ON c USING lsm (k) INCLUDE (id);
INSERT INTO c (k) SELECT (i * 7) % 30 FROM generate_series(1, 60) i;
INSERT INTO c (k) VALUES (NULL);
VACUUM ANALYZE c;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;

-- An index-only scan and a plain one return the same rows.
CREATE FUNCTION walk(query text, moves text[]) RETURNS TABLE (move text, answer text)
LANGUAGE plpgsql AS $$
DECLARE
	cur refcursor := 'walk';
	r record;
BEGIN
	EXECUTE 'DECLARE walk SCROLL CURSOR FOR ' || query;
	FOREACH move IN ARRAY moves LOOP
		answer := '';
		IF move LIKE 'MOVE%' THEN
			EXECUTE move || ' IN walk';
		ELSE
			FOR i IN 1 .. coalesce(substring(move FROM '\d+')::int, 100) LOOP
				EXECUTE format('FETCH %s FROM walk', CASE WHEN move ~ 'BACKWARD' THEN 'PRIOR' WHEN move ~ 'FIRST|LAST' THEN substring(move FROM 'FIRST|LAST') ELSE 'NEXT' END) INTO r;
				EXIT WHEN r IS NULL;
				answer := answer || ' ' || r::text;
				EXIT WHEN move ~ 'FIRST|LAST';
			END LOOP;
		END IF;
		RETURN NEXT;
	END LOOP;
	CLOSE cur;
END $$;
\set moves '{FETCH 3,FETCH BACKWARD 2,FETCH 5,MOVE 4,FETCH 2,MOVE BACKWARD 3,FETCH 1,FETCH BACKWARD 100,FETCH 2,FETCH BACKWARD 100,FETCH 100,FETCH BACKWARD 3,FETCH FIRST,FETCH LAST,FETCH BACKWARD 2,FETCH 3,FETCH BACKWARD 1,MOVE FIRST,FETCH BACKWARD 1,FETCH 1,MOVE LAST,FETCH 1,FETCH BACKWARD 1,FETCH BACKWARD 1,FETCH 1}'
SELECT * FROM walk('SELECT k, id FROM c WHERE k BETWEEN 5 AND 14 ORDER BY k', :'moves');
CREATE TEMP TABLE index_only AS SELECT * FROM walk('SELECT k, id FROM c WHERE k BETWEEN 5 AND 14 ORDER BY k', :'moves');
SET enable_indexonlyscan = off;
SELECT * FROM walk('SELECT k, id FROM c WHERE k BETWEEN 5 AND 14 ORDER BY k', :'moves') EXCEPT SELECT * FROM index_only;
-- From high to low.
SELECT * FROM walk('SELECT k, id FROM c WHERE k BETWEEN 5 AND 9 ORDER BY k DESC', '{FETCH 3,FETCH BACKWARD 2,FETCH 3,FETCH BACKWARD 100,FETCH 100,FETCH BACKWARD 2,FETCH 1}') WHERE answer !~ '\(';
SELECT * FROM walk('SELECT k FROM c WHERE k BETWEEN 5 AND 9 ORDER BY k DESC', '{FETCH 3,FETCH BACKWARD 2,FETCH 3,FETCH BACKWARD 100,FETCH 100,FETCH BACKWARD 2,FETCH 1}');
-- The whole index, with its NULL, starting in the wrong direction.
SELECT move, length(answer), md5(answer) FROM walk('SELECT k FROM c ORDER BY k', '{FETCH BACKWARD 1,FETCH 100,FETCH BACKWARD 100,FETCH 100,FETCH BACKWARD 1,FETCH 1}');
RESET enable_indexonlyscan;

-- A cursor does not see changes made after it was opened. It continues across merges and,
-- if held, after the commit.
BEGIN;
DECLARE x CURSOR FOR SELECT k FROM c WHERE k < 3 ORDER BY k;
FETCH 2 FROM x;
INSERT INTO c (k) SELECT i % 3 FROM generate_series(1, 500) i;
FETCH ALL FROM x;
DECLARE y SCROLL CURSOR FOR SELECT k FROM c WHERE k = 1;
MOVE 100 IN y;
DELETE FROM c WHERE k = 1;
MOVE FORWARD ALL IN y;
MOVE BACKWARD ALL IN y;
FETCH 1 FROM y;
ROLLBACK;
BEGIN;
DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT k FROM c WHERE k < 3 ORDER BY k;
FETCH 3 FROM h;
COMMIT;
DELETE FROM c WHERE k < 3;
VACUUM c;
FETCH ALL FROM h;
FETCH BACKWARD 2 FROM h;
CLOSE h;

-- UPDATE and DELETE at a cursor's position.
BEGIN;
DECLARE u CURSOR FOR SELECT k, id FROM c WHERE k BETWEEN 10 AND 12 ORDER BY k FOR UPDATE;
FETCH 2 FROM u;
UPDATE c SET k = k + 1000 WHERE CURRENT OF u;
FETCH 1 FROM u;
DELETE FROM c WHERE CURRENT OF u;
FETCH ALL FROM u;
COMMIT;
SELECT k, count(*) FROM c WHERE k BETWEEN 10 AND 12 OR k > 900 GROUP BY k ORDER BY k;
-- An update that moves rows ahead of the scan does not find them again.
UPDATE c SET k = k + 5 WHERE k >= 20;
UPDATE c SET k = k + 5 WHERE k >= 20;
SELECT k, count(*) FROM c WHERE k >= 20 GROUP BY k ORDER BY k;
-- Many cursors at once, on the same index.
BEGIN;
DECLARE c1 SCROLL CURSOR FOR SELECT k FROM c ORDER BY k;
DECLARE c2 SCROLL CURSOR FOR SELECT k FROM c ORDER BY k DESC;
DECLARE c3 SCROLL CURSOR FOR SELECT k FROM c WHERE k > 7 ORDER BY k;
FETCH 2 FROM c1;
FETCH 3 FROM c2;
FETCH 2 FROM c3;
SAVEPOINT s;
INSERT INTO c (k) SELECT 3 FROM generate_series(1, 100);
FETCH 2 FROM c1;
ROLLBACK TO s;
FETCH BACKWARD 1 FROM c1;
FETCH BACKWARD 1 FROM c2;
CLOSE c2;
FETCH 1 FROM c3;
COMMIT;
SELECT lsm_check('c_k', true);
DROP TABLE c, index_only;
DROP FUNCTION walk;
