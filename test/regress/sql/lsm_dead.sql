-- Scans remove entries of rows that are dead to everybody, if a page has enough of them.
CREATE TABLE d (k int, s text COLLATE "C", f float8) WITH (autovacuum_enabled = off);
CREATE INDEX d_k ON d USING lsm (k);
CREATE INDEX d_s ON d USING lsm (s, k) INCLUDE (f);
INSERT INTO d SELECT i, 's' || i, i FROM generate_series(1, 6000) i;
-- Single rows: pages of the write buffer.
DO $$ BEGIN FOR i IN -200 .. 0 LOOP INSERT INTO d VALUES (i, 's' || i, i); END LOOP; END $$;
-- The number of table rows that an index-only scan fetches, nearly all of them dead.
CREATE FUNCTION fetches(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan text;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) ' || query INTO plan;
	RETURN (regexp_match(plan, '"Heap Fetches": (\d+)'))[1];
END $$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
DELETE FROM d WHERE k < 4000;
SELECT fetches('SELECT k FROM d ORDER BY k LIMIT 1') > 4000 AS first, fetches('SELECT k FROM d ORDER BY k LIMIT 1') < 40 AS second;
SELECT k FROM d ORDER BY k LIMIT 1;
-- Also backward, and in the other index, but not entries of rows that somebody may still
-- see.
SELECT fetches('SELECT s FROM d ORDER BY s DESC, k DESC') > 4000 AS first, fetches('SELECT s FROM d ORDER BY s DESC, k DESC') < 2100 AS second;
DELETE FROM d WHERE k > 5000;
BEGIN;
SELECT k FROM d ORDER BY k DESC LIMIT 1;
DELETE FROM d WHERE k > 4500;
SELECT k FROM d ORDER BY k DESC LIMIT 1;
ROLLBACK;
SELECT k FROM d ORDER BY k DESC LIMIT 1;
SELECT lsm_check('d_k', true), lsm_check('d_s', true);
RESET enable_sort;
SELECT t.same_order('d', 'k, s, f', 'k'), t.same_order('d', 's, k, f', 's, k');
-- VACUUM counts the removed entries, and TIDs are reused.
VACUUM d;
SELECT sum(entries) AS entries FROM lsm_runs('d_k') WHERE state <> 'open';
INSERT INTO d SELECT i % 500, 'again', i FROM generate_series(1, 3000) i;
SELECT lsm_check('d_k', true), lsm_check('d_s', true), t.same_order('d', 'k, s, f', 'k'), t.same('SELECT * FROM d WHERE s = ''again''');
-- A queue: a scan always finds the first row quickly.
CREATE TABLE q (id int, payload text) WITH (autovacuum_enabled = off);
CREATE INDEX q_id ON q USING lsm (id);
INSERT INTO q SELECT i, 'x' FROM generate_series(1, 300) i;
CREATE PROCEDURE turn(n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		INSERT INTO q SELECT max(id) + 1, 'x' FROM q;
		DELETE FROM q WHERE id = (SELECT id FROM q ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
		COMMIT;
	END LOOP;
END $$;
CALL turn(1500);
SELECT min(id), max(id), count(*) FROM q;
SELECT fetches('SELECT id FROM q ORDER BY id LIMIT 1') < 40 AS near;
SELECT lsm_check('q_id', true), t.same('SELECT * FROM q WHERE id > 0');
-- Without WAL, no conflict horizon is needed.
CREATE UNLOGGED TABLE u (k int) WITH (autovacuum_enabled = off);
CREATE INDEX u_k ON u USING lsm (k);
CREATE TEMP TABLE m (k int);
CREATE INDEX m_k ON m USING lsm (k);
INSERT INTO u SELECT generate_series(1, 2000);
INSERT INTO m SELECT generate_series(1, 2000);
DELETE FROM u WHERE k < 1500;
DELETE FROM m WHERE k < 1500;
SELECT (SELECT k FROM u ORDER BY k LIMIT 1), (SELECT k FROM m ORDER BY k LIMIT 1);
SELECT (SELECT k FROM u ORDER BY k LIMIT 1), (SELECT k FROM m ORDER BY k LIMIT 1), fetches('SELECT k FROM u ORDER BY k LIMIT 1') < 40 AS near;
SELECT lsm_check('u_k', true), lsm_check('m_k', true);
DROP TABLE d, q, u, m;
DROP FUNCTION fetches;
DROP PROCEDURE turn;
