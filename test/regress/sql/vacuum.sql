-- VACUUM removes entries of dead rows, whose line pointers are then reused.
CREATE TABLE v (k int, tag text, f float8) WITH (autovacuum_enabled = off, fillfactor = 100);
CREATE INDEX v_k ON v USING lsm (k);
CREATE INDEX v_tag ON v USING lsm (tag DESC, k) INCLUDE (f);
INSERT INTO v SELECT (i * 37) % 200, 'old' || i % 5, i FROM generate_series(1, 1000) i;
DELETE FROM v WHERE k % 2 = 0;
VACUUM v;
SELECT lsm_check('v_k', true), lsm_check('v_tag', true);
SELECT t.same_order('v', 'k', 'k'), t.same('SELECT * FROM v WHERE k = 10'), t.same('SELECT tag, k, f FROM v WHERE tag = ''old3''');
-- New rows in place of the old ones must not be found by an old key.
INSERT INTO v SELECT 1000 + i, 'new', i FROM generate_series(1, 500) i;
SELECT t.same('SELECT * FROM v WHERE k BETWEEN 0 AND 199'), t.same('SELECT * FROM v WHERE k >= 1000'), t.same('SELECT tag, k, f FROM v ORDER BY tag DESC, k', 'SELECT tag, k, f FROM v ORDER BY tag DESC, k, ctid');
SELECT lsm_check('v_k', true), lsm_check('v_tag', true);

-- Many rounds, with rows that are updated, rolled back and kept.
CREATE PROCEDURE rounds(n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		DELETE FROM v WHERE k % 7 = i % 7;
		UPDATE v SET k = k + 10000 WHERE k % 5 = i % 5 AND k < 10000;
		UPDATE v SET f = -f WHERE k % 11 = i % 11;
		INSERT INTO v SELECT i * 100 + j, 'round' || i % 3, j FROM generate_series(1, 150) j;
		BEGIN
			INSERT INTO v SELECT -j, 'aborted', j FROM generate_series(1, 100) j;
			RAISE EXCEPTION 'abort';
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
END $$;
CALL rounds(5);
VACUUM v;
SELECT lsm_check('v_k', true), lsm_check('v_tag', true), t.same('SELECT * FROM v WHERE k < 0');
CALL rounds(5);
VACUUM (INDEX_CLEANUP off) v;
SELECT lsm_check('v_k', true), lsm_check('v_tag', true), t.same('SELECT * FROM v WHERE k < 0');
CALL rounds(2);
VACUUM (INDEX_CLEANUP on, FREEZE) v;
CALL rounds(3);
VACUUM (PARALLEL 2) v;
SELECT lsm_check('v_k', true), lsm_check('v_tag', true), t.same('SELECT * FROM v WHERE k < 0');
SELECT t.same_order('v', 'k, tag, f', 'k'), t.same_order('v', 'tag, k, f', 'tag DESC, k');

-- All rows are deleted, from the top, from the bottom, and with them all entries.
DELETE FROM v WHERE k < 5000;
VACUUM v;
SELECT lsm_check('v_k', true), t.same('SELECT k FROM v ORDER BY k LIMIT 3');
DELETE FROM v;
VACUUM v;
SELECT lsm_check('v_k', true), t.same('SELECT k FROM v ORDER BY k');
VACUUM v;
INSERT INTO v SELECT i % 10, 'again', i FROM generate_series(1, 300) i;
SELECT lsm_check('v_k', true), t.same_order('v', 'k, f', 'k');
VACUUM ANALYZE v;
-- Statistics of the index are those of the table.
SELECT relname, reltuples FROM pg_class WHERE relname IN ('v', 'v_k', 'v_tag') ORDER BY 1;
-- A partial index has its own number of rows.
CREATE INDEX v_part ON v USING lsm (f) WHERE k < 3;
DELETE FROM v WHERE f > 200;
VACUUM ANALYZE v;
SELECT relname, reltuples FROM pg_class WHERE relname IN ('v', 'v_k', 'v_part') ORDER BY 1;

-- Keys that are compared by functions, long keys, and many equal keys.
CREATE TABLE w (n numeric, t text COLLATE "C", same int) WITH (autovacuum_enabled = off);
CREATE INDEX w_n ON w USING lsm (n, t);
CREATE INDEX w_t ON w USING lsm (t) INCLUDE (n);
CREATE INDEX w_same ON w USING lsm (same);
INSERT INTO w SELECT i / 3.0, repeat('t', i % 400) || i, 1 FROM generate_series(1, 800) i;
DELETE FROM w WHERE n > 50 AND n < 200;
VACUUM w;
INSERT INTO w SELECT i / 7.0, repeat('u', i % 300) || i, 1 FROM generate_series(1, 400) i;
DELETE FROM w WHERE t LIKE '%3';
VACUUM w;
SELECT lsm_check('w_n', true), lsm_check('w_t', true), lsm_check('w_same', true);
SELECT t.same_order('w', 'n, t', 'n, t'), t.same_order('w', 't, n', 't'), t.same_order('w', 'same, n', 'same');
-- A VACUUM with very little memory scans the index many times.
SET maintenance_work_mem = '1MB';
CREATE TABLE many (k int) WITH (autovacuum_enabled = off);
CREATE INDEX many_k ON many USING lsm (k);
INSERT INTO many SELECT (i * 7919) % 3000 FROM generate_series(1, 3000) i;
DELETE FROM many WHERE k % 4 <> 0;
VACUUM many;
SELECT lsm_check('many_k', true), t.same_order('many', 'k', 'k');
RESET maintenance_work_mem;
DROP TABLE v, w, many;
DROP PROCEDURE rounds;
