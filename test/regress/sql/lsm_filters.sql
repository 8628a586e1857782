-- Filters: lookups of a key skip the segments that do not contain it.
SET pg_lsm.debug_segment_size = 64;
CREATE TABLE f (k int, t text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
CREATE INDEX f_k ON f USING lsm (k);
CREATE INDEX f_kt ON f USING lsm (k, t);
CREATE INDEX f_none ON f USING lsm (k) WITH (filter_bits = 0);
CREATE INDEX f_n ON f USING lsm (n);
CREATE PROCEDURE load(batches int) LANGUAGE plpgsql AS $$
BEGIN
	FOR b IN 1 .. batches LOOP
		INSERT INTO f SELECT (b * 137 + i * 101) % 4001 * 2, 'x' || i, b * 1000 + i FROM generate_series(1, 100) i;
		COMMIT;
	END LOOP;
END $$;
CALL load(30);
INSERT INTO f SELECT NULL, NULL, NULL FROM generate_series(1, 3);
SELECT lsm_check('f_k', true), lsm_check('f_kt', true), lsm_check('f_none', true), lsm_check('f_n', true);
-- What the filters saved while a query was repeated. "asked" says whether they were tested at all.
CREATE FUNCTION skips(index regclass, query text, OUT asked bool, OUT spared bool) LANGUAGE plpgsql AS $$
DECLARE
	checks bigint;
	skips bigint;
BEGIN
	SELECT filter_checks, filter_skips INTO checks, skips FROM pg_stat_lsm_indexes WHERE indexrelid = index;
	-- Backends publish their counts from time to time.
	FOR i IN 1 .. 64 LOOP
		EXECUTE query;
	END LOOP;
	SELECT filter_checks - checks > 0, filter_skips - skips > 0 INTO asked, spared FROM pg_stat_lsm_indexes WHERE indexrelid = index;
END $$;
SET enable_seqscan = off;
BEGIN;
DROP INDEX f_none, f_kt;
SELECT * FROM skips('f_k', 'SELECT count(*) FROM f WHERE k BETWEEN 1 AND 2');
SELECT * FROM skips('f_k', 'SELECT count(*) FROM f WHERE k = 4001');
SELECT * FROM skips('f_k', 'SELECT count(*) FROM f WHERE k = ANY (''{1,2,3}'')');
SELECT * FROM skips('f_k', 'SELECT count(*) FROM f WHERE k = ANY (ARRAY(SELECT generate_series(1, 4001, 50)))');
SELECT * FROM skips('f_k', 'SELECT count(*) FROM f WHERE k IS NULL');
SELECT * FROM skips('f_n', 'SELECT count(*) FROM f WHERE n = 12345.6');
ROLLBACK;
BEGIN;
DROP INDEX f_k, f_kt;
SELECT * FROM skips('f_none', 'SELECT count(*) FROM f WHERE k = 4001');
ROLLBACK;
BEGIN;
DROP INDEX f_k, f_none;
SELECT * FROM skips('f_kt', 'SELECT count(*) FROM f WHERE k = 4001');
SELECT * FROM skips('f_kt', 'SELECT count(*) FROM f WHERE k = 4001 AND t = ''x1''');
ROLLBACK;
RESET enable_seqscan;
-- False positives are counted: there are few with ten bits a key, and many with one.
CREATE TABLE fm (k int, b int) WITH (autovacuum_enabled = off);
SET pg_lsm.debug_page_entries = 0;
SET pg_lsm.debug_batch_entries = 0;
SET pg_lsm.debug_batch_min_entries = 1;
INSERT INTO fm SELECT i * 2, i * 2 FROM generate_series(1, 20000) i;
CREATE INDEX fm_k ON fm USING lsm (k);
CREATE UNIQUE INDEX fm_b ON fm USING lsm (b) WITH (filter_bits = 1);
SET enable_seqscan = off;
CALL t.note_reads();
SELECT sum((SELECT count(*) FROM fm WHERE k = i * 7919 % 20000 * 2 + 1)) FROM generate_series(1, 2000) i;
SELECT filter_checks > 1500 AS asked, filter_misses > 0 AS some, filter_misses < 0.03 * filter_checks AS few, filter_checks = filter_skips + filter_misses AS are_all FROM t.reads();
SELECT sum((SELECT count(*) FROM fm WHERE b = i * 7919 % 20000 * 2 + 1)) FROM generate_series(1, 2000) i;
SELECT filter_misses > 0.2 * filter_checks AS many FROM t.reads();
SELECT sum((SELECT count(*) FROM fm WHERE k = i * 20)) FROM generate_series(1, 2000) i;
SELECT filter_checks > 0 AS asked, filter_misses FROM t.reads();
-- A batch of keys, too.
SELECT filter_misses AS before FROM pg_stat_lsm_indexes WHERE indexrelname = 'fm_b' \gset
INSERT INTO fm SELECT i * 2, i * 2 + 1 FROM generate_series(1, 10000) i;
SELECT filter_misses - :before BETWEEN 1000 AND 9000 AS many FROM pg_stat_lsm_indexes WHERE indexrelname = 'fm_b';
RESET pg_lsm.debug_page_entries;
RESET pg_lsm.debug_batch_entries;
RESET pg_lsm.debug_batch_min_entries;
RESET enable_seqscan;
DROP TABLE fm;
-- Every key is found, by every index, before and after VACUUM and all merges.
CREATE FUNCTION all_found(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	r record;
	other bigint;
	wrong bigint := 0;
BEGIN
	SET LOCAL enable_seqscan = off;
	FOR r IN SELECT k, t, n, count(*) OVER (PARTITION BY k) AS same_k, count(*) OVER (PARTITION BY k, t) AS same_kt, count(*) OVER (PARTITION BY n) AS same_n FROM f LOOP
		EXECUTE query INTO other USING r.k, r.t, r.n, r.same_k, r.same_kt, r.same_n;
		wrong := wrong + other;
	END LOOP;
	RETURN wrong;
END $$;
CREATE PROCEDURE check_all() LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE 'wrong: % % %',
		all_found('SELECT (count(*) <> $4)::int FROM f WHERE k = $1 OR (k IS NULL AND $1 IS NULL)'),
		all_found('SELECT (count(*) <> $5)::int FROM f WHERE k = $1 AND t = $2 HAVING $1 IS NOT NULL UNION ALL SELECT 0'),
		all_found('SELECT (count(*) <> $6)::int FROM f WHERE n = $3 HAVING $3 IS NOT NULL UNION ALL SELECT 0');
END $$;
CALL check_all();
DELETE FROM f WHERE k % 3 = 0;
VACUUM f;
CALL check_all();
SELECT lsm_check('f_k', true), lsm_check('f_kt', true), lsm_check('f_n', true);
CALL load(10);
SELECT lsm_compact('f_k'), lsm_compact('f_kt'), lsm_compact('f_n');
CALL check_all();
SELECT lsm_check('f_k', true), lsm_check('f_kt', true), lsm_check('f_n', true);
REINDEX TABLE f;
CALL check_all();
SELECT lsm_check('f_k', true), lsm_check('f_kt', true), lsm_check('f_n', true);
-- The parameter applies to pages written from now on.
ALTER INDEX f_none SET (filter_bits = 33);
ALTER INDEX f_none SET (filter_bits = 32);
ALTER INDEX f_k SET (filter_bits = 0);
CALL load(10);
SELECT lsm_compact('f_none'), lsm_compact('f_k');
SELECT lsm_check('f_none', true), lsm_check('f_k', true);
CALL check_all();
SELECT pg_relation_size('f_k') < pg_relation_size('f_none') AS smaller_without;
DROP TABLE f;
DROP FUNCTION all_found, skips;
DROP PROCEDURE check_all, load;
-- The output may be larger than its inputs because of its filters. All its segments, up to the last, have the same
-- size.
SET pg_lsm.debug_segment_size = 128;
CREATE TABLE f (k int) WITH (autovacuum_enabled = off);
CREATE INDEX f_k ON f USING lsm (k) WITH (filter_bits = 0);
INSERT INTO f SELECT hashint4(i) FROM generate_series(1, 150000) i;
SELECT lsm_compact('f_k');
INSERT INTO f SELECT hashint4(i) FROM generate_series(150001, 300000) i;
ALTER INDEX f_k SET (filter_bits = 32);
SELECT lsm_compact('f_k');
SELECT count(*) AS runs, sum(segments) <= sum(blocks) / 64 AS large_segments FROM lsm_runs('f_k') WHERE state = 'packed';
SELECT lsm_check('f_k', true);
DROP TABLE f;
RESET pg_lsm.debug_segment_size;
-- A scan that mixes lookups and ranges. Filters of all segments are tested first, which must not move the scan from the
-- segment whose leaf it remembers.
SET pg_lsm.debug_page_entries = 128;
SET pg_lsm.debug_segment_size = 13;
SET pg_lsm.debug_buffer_entries = 0;
SET pg_lsm.debug_batch_entries = 0;
SET pg_lsm.debug_batch_min_entries = 1;
SET pg_lsm.debug_merge_fanout = 16;
SET pg_lsm.debug_foreground_blocks = 128;
CREATE TABLE mixed (k int) WITH (autovacuum_enabled = off);
CREATE INDEX mixed_k ON mixed USING lsm (k);
INSERT INTO mixed SELECT i * 2 FROM generate_series(1, 4200, 2) i;
INSERT INTO mixed SELECT i * 2 FROM generate_series(2, 4200, 2) i;
SELECT lsm_compact('mixed_k');
INSERT INTO mixed SELECT i * 2 FROM generate_series(4201, 4220) i;
CREATE TABLE asked AS SELECT row_number() OVER (ORDER BY p, step, i) AS n, lo, hi
FROM generate_series(0, 90) p, LATERAL (
	SELECT 1, 0, 6200, 6202 UNION ALL
	SELECT 2, 0, 6200, 6202 UNION ALL
	SELECT 3, i, 6200, 6200 FROM generate_series(1, p) i UNION ALL
	SELECT 4, i, 1001 + i * 20, 1001 + i * 20 FROM generate_series(1, 3) i UNION ALL
	SELECT 5, 0, 6201, 10000) q (step, i, lo, hi);
VACUUM ANALYZE mixed, asked;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_memoize = off;
SELECT count(*) AS wrong
FROM (SELECT * FROM asked ORDER BY n OFFSET 0) a, LATERAL (SELECT count(*) AS c FROM mixed WHERE k BETWEEN lo AND hi) i
WHERE c <> GREATEST(LEAST(hi / 2, 4220) - (lo + 1) / 2 + 1, 0);
DROP TABLE mixed, asked;
