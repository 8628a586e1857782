-- Queries return no rows of aborted transactions and subtransactions.
CREATE TABLE s (k int, v text COLLATE "C", id serial);
CREATE INDEX s_k ON s USING lsm (k) INCLUDE (v);
BEGIN;
INSERT INTO s (k, v) SELECT i, 'kept' FROM generate_series(1, 30) i;
SAVEPOINT a;
INSERT INTO s (k, v) SELECT i, 'undone' FROM generate_series(1, 30) i;
SELECT t.same('SELECT k, v FROM s WHERE k < 4');
SAVEPOINT b;
UPDATE s SET k = k + 100;
SELECT t.same('SELECT k, v FROM s WHERE k > 100');
ROLLBACK TO b;
SELECT t.same('SELECT k, v FROM s WHERE k > 100');
ROLLBACK TO a;
SELECT t.same('SELECT k, v FROM s WHERE k < 4'), t.same('SELECT v, k FROM s ORDER BY k', 'SELECT v, k FROM s ORDER BY k, ctid');
INSERT INTO s (k, v) SELECT i, 'after' FROM generate_series(1, 30, 3) i;
RELEASE a;
COMMIT;
SELECT t.same('SELECT k, v FROM s WHERE k < 8');
BEGIN;
INSERT INTO s (k, v) SELECT i, 'rolled back' FROM generate_series(1, 500) i;
DELETE FROM s WHERE v = 'kept';
SELECT t.same('SELECT k, v FROM s WHERE k < 4');
ROLLBACK;
SELECT t.same('SELECT k, v FROM s WHERE k < 4');
SELECT lsm_check('s_k', true);

-- Many of them, caused by exceptions in a function; dead line pointers are reused.
CREATE FUNCTION try(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		BEGIN
			INSERT INTO s (k, v) VALUES (i % 10, 'try ' || i);
			IF i % 3 = 0 THEN
				RAISE EXCEPTION 'no';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			INSERT INTO s (k, v) VALUES (i % 10 + 1000, 'caught ' || i);
		END;
	END LOOP;
END $$;
SELECT try(300);
SELECT t.same('SELECT k, v FROM s WHERE k BETWEEN 3 AND 5'), t.same('SELECT k, v FROM s WHERE k > 1000');
VACUUM s;
SELECT try(300);
BEGIN;
SELECT try(100);
ROLLBACK;
VACUUM s;
SELECT lsm_check('s_k', true), t.same_order('s', 'k, v', 'k');
-- A statement that fails in the middle.
INSERT INTO s (k, v) SELECT 1 / (50 - i), 'fails' FROM generate_series(1, 100) i;
SELECT t.same('SELECT k, v FROM s WHERE v = ''fails'''), lsm_check('s_k', true);
-- ON CONFLICT, with a unique btree next to the lsm index: a row that loses is removed
-- again.
CREATE TABLE u (id int PRIMARY KEY, k int);
CREATE INDEX u_k ON u USING lsm (k);
INSERT INTO u SELECT i, i % 7 FROM generate_series(1, 50) i;
INSERT INTO u SELECT i, i % 5 FROM generate_series(30, 80) i ON CONFLICT DO NOTHING;
INSERT INTO u SELECT i, i % 5 FROM generate_series(60, 100) i ON CONFLICT (id) DO UPDATE SET k = excluded.k + 100;
INSERT INTO u SELECT 200, 1 FROM generate_series(1, 3) ON CONFLICT (id) DO UPDATE SET k = 2;
INSERT INTO u SELECT 201, 1 FROM generate_series(1, 3) ON CONFLICT DO NOTHING;
SELECT t.same('SELECT * FROM u WHERE k < 5'), t.same('SELECT * FROM u WHERE k > 100'), lsm_check('u_k', true);
MERGE INTO u USING (SELECT i FROM generate_series(95, 110) i) x ON u.id = x.i
WHEN MATCHED THEN UPDATE SET k = -1 WHEN NOT MATCHED THEN INSERT VALUES (x.i, -2);
SELECT t.same('SELECT * FROM u WHERE k < 0'), lsm_check('u_k', true);
DROP TABLE s, u;
DROP FUNCTION try;

-- If comparing a key raises an error, the block that inserts the row gets the error. (There are so few rows that they
-- are on the same page.)
CREATE TYPE st_pair AS (a int, j json);
CREATE TABLE st_pairs (v st_pair, id int);
CREATE INDEX st_pairs_v ON st_pairs USING lsm (v);
DO $$
BEGIN
	FOR i IN 1..3 LOOP
		BEGIN
			INSERT INTO st_pairs VALUES (ROW(CASE i WHEN 2 THEN 1 ELSE i END, to_json(i))::st_pair, i);
		EXCEPTION WHEN undefined_function THEN
			RAISE NOTICE 'row % is refused: %', i, sqlerrm;
		END;
	END LOOP;
END $$;
SELECT id FROM st_pairs ORDER BY id;
DROP TABLE st_pairs;
DROP TYPE st_pair;
