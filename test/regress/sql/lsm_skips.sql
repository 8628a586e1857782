-- How often scans search: combinations and values that do not exist cost no search, and neither do those that follow
-- immediately.
CREATE TABLE k (a int, b int);
INSERT INTO k SELECT i / 1000, i % 1000 FROM generate_series(0, 99999) i;
CREATE INDEX k_ab ON k USING lsm (a, b);
CREATE TABLE u (a int, b int);
INSERT INTO u SELECT i, i % 1000 FROM generate_series(0, 99999) i;
CREATE INDEX u_ab ON u USING lsm (a, b);
VACUUM ANALYZE k, u;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION seeks() RETURNS int8 LANGUAGE sql VOLATILE AS $$ SELECT sum(seeks)::int8 FROM pg_stat_lsm_indexes $$;
CREATE FUNCTION searched(query text, OUT rows int, OUT seeks int) LANGUAGE plpgsql AS $$
DECLARE
	before int8 := seeks();
BEGIN
	EXECUTE format('SELECT count(*) FROM (%s) q', query) INTO rows;
	seeks := seeks() - before;
END $$;
SELECT q, rows, CASE WHEN seeks <= most THEN 'few' ELSE seeks::text END AS seeks
FROM (VALUES ('SELECT FROM k WHERE a = 5 AND b = 7', 1),
	('SELECT FROM k WHERE a = ANY (ARRAY(SELECT generate_series(1000, 2000))) AND b = ANY (ARRAY(SELECT generate_series(1, 1000)))', 1),
	('SELECT FROM k WHERE a = ANY (ARRAY(SELECT generate_series(-1000, 1000))) AND b = ANY (ARRAY(SELECT generate_series(5000, 6000)))', 110),
	('SELECT FROM k WHERE a = ANY (ARRAY(SELECT generate_series(0, 9))) AND b = ANY (ARRAY(SELECT generate_series(0, 999)))', 3),
	('SELECT FROM k WHERE a IN (3, 30) AND b IN (7, 700)', 4),
	('SELECT FROM k WHERE a = ANY (ARRAY(SELECT generate_series(0, 2000, 2))) AND b = ANY (ARRAY(SELECT generate_series(990, 3000)))', 300),
	('SELECT FROM k WHERE b = 7', 110),
	('SELECT FROM k WHERE a BETWEEN 10 AND 90 AND b = 7', 90),
	('SELECT FROM k WHERE a IN (3, 30) AND b BETWEEN 100 AND 200', 2),
	('SELECT FROM u WHERE b = 7', 10),
	('SELECT FROM u WHERE a BETWEEN 100 AND 90000 AND b = 7', 10)) v (q, most), searched(q);

-- The planner takes this into account, even before 18.
RESET enable_seqscan;
CREATE TABLE wide AS SELECT a, b, repeat('f', 100) AS f FROM k;
CREATE INDEX wide_ab ON wide USING lsm (a, b);
VACUUM ANALYZE wide;
SELECT t.plan_has('SELECT * FROM wide WHERE b = 7', 'wide_ab') AS skips;
SET enable_seqscan = off;
SET enable_bitmapscan = on;
SELECT t.plan_has('SELECT * FROM wide WHERE a = ANY (ARRAY(SELECT generate_series(1, 50))) AND b = ANY (ARRAY(SELECT generate_series(1, 5)))', 'Index Cond: .*a = ANY.*b = ANY') AS both;
-- Nor is an array on a later column left to the executor because of the cost of further descents.
SET enable_bitmapscan = off;
CREATE TABLE close_by AS SELECT i / 100 AS a, i % 100 AS b FROM generate_series(0, 99999) i;
CREATE INDEX close_by_ab ON close_by USING lsm (a, b);
VACUUM ANALYZE close_by;
SELECT t.plan_has('SELECT count(*) FROM close_by WHERE a = ANY (ARRAY(SELECT generate_series(1, 50))) AND b = ANY (ARRAY(SELECT generate_series(1, 500)))', 'Index Cond: .*a = ANY.*b = ANY') AS both;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE k, u, wide, close_by;
DROP FUNCTION searched, seeks;

-- Nor do searches visit what VACUUM has emptied: directory pages without segments are freed.
CREATE TABLE e (k text COLLATE "C", n int);
SET pg_lsm.debug_segment_size = 3;
INSERT INTO e SELECT lpad(i::text, 6, '0') || (SELECT string_agg(md5((i * 30 + j)::text), '') FROM generate_series(1, 25) j), i FROM generate_series(1, 3000) i;
CREATE INDEX e_k ON e USING lsm (k);
INSERT INTO e SELECT 'z' || i, i FROM generate_series(1, 100) i;
SELECT lsm_compact('e_k');
SET enable_seqscan = off;
SET enable_sort = off;
SELECT segments > 100 AS many FROM lsm_runs('e_k') WHERE state = 'packed';
SELECT t.buffers('SELECT k FROM e ORDER BY k LIMIT 1') AS before \gset
DELETE FROM e WHERE n BETWEEN 2 AND 2800 AND length(k) > 100;
VACUUM (INDEX_CLEANUP ON) e;
SELECT lsm_check('e_k', true);
SELECT left(k, 6), n FROM e WHERE k > '0' ORDER BY k LIMIT 3;
SELECT left(k, 6), n FROM e WHERE k < '002801' ORDER BY k DESC LIMIT 3;
SELECT t.buffers('SELECT k FROM e WHERE k > ''000002'' ORDER BY k LIMIT 1') < :before + 20 AS near, t.buffers('SELECT k FROM e WHERE k < ''0028'' ORDER BY k DESC LIMIT 1') < :before + 20 AS backward;
DELETE FROM e WHERE n = 1 OR n > 2990;
VACUUM (INDEX_CLEANUP ON) e;
SELECT lsm_check('e_k', true);
INSERT INTO e SELECT lpad((i * 7 % 3000)::text, 6, '0') || i, i FROM generate_series(1, 5000) i;
SELECT lsm_check('e_k', true);
SELECT lsm_compact('e_k');
SELECT lsm_check('e_k', true), count(*) FROM e;
RESET enable_seqscan;
RESET enable_sort;
RESET pg_lsm.debug_segment_size;
DROP TABLE e;
