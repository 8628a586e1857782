-- Batches of a unique index, against runs of every shape.
-- Segments that are large enough for filters.
SET pg_lsm.segment_size = 12;
-- One key of a batch is there already, wherever it is: in a run of many segments, or of one; first of a segment, or last.
CREATE TABLE ubs (k int, v int);
CREATE UNIQUE INDEX ubs_k ON ubs USING lsm (k);
INSERT INTO ubs SELECT i * 2, 0 FROM generate_series(1, 80000) i;
SELECT lsm_compact('ubs_k');
SELECT max(segments) > 3 AS many_segments FROM lsm_runs('ubs_k');
INSERT INTO ubs SELECT i * 2, 1 FROM generate_series(80001, 83000) i;
INSERT INTO ubs SELECT i * 2, 2 FROM generate_series(83001, 83100) i;
-- `step` may be negative: a reader that is used again stands behind the keys then.
CREATE FUNCTION ubs_try(start int, stop int, step int, size int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	i int;
	caught int := 0;
	missed int := 0;
BEGIN
	FOR i IN SELECT generate_series(start, stop, step) LOOP
		BEGIN
			INSERT INTO ubs SELECT CASE WHEN j = 10 THEN i * 2 ELSE (i * 31 + j * 401) % 160000 * 2 + 1 END, 3
			FROM generate_series(1, size) j;
			missed := missed + 1;
		EXCEPTION WHEN unique_violation THEN
			IF SQLERRM LIKE '%ubs_k%' THEN caught := caught + 1; END IF;
		END;
	END LOOP;
	RETURN format('%s caught, %s missed', caught, missed);
END $$;
SELECT ubs_try(1, 83100, 277, 100), ubs_try(83100, 1, -277, 100);
SELECT ubs_try(1, 83100, 977, 40), ubs_try(83100, 1, -977, 40);
INSERT INTO ubs SELECT i * 2 + 1, 4 FROM generate_series(1, 83000) i;
SELECT count(*), count(DISTINCT k) FROM ubs;
SELECT lsm_check('ubs_k', true);
-- A reader is used again that has sought larger keys before: by a scan, by rows one by one, by another batch.
CREATE TABLE ubr (k text COLLATE "C");
CREATE FUNCTION ubr_key(i int) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT lpad(i::text, 8, '0') || md5(i::text) $$;
INSERT INTO ubr SELECT ubr_key(i * 2) FROM generate_series(1, 20000) i;
CREATE UNIQUE INDEX ubr_k ON ubr USING lsm (k);
SELECT max(segments) > 3 AS many_segments FROM lsm_runs('ubr_k');
SET enable_seqscan = off;
SELECT count(*) FROM ubr WHERE k = ubr_key(40000);
DO $$
DECLARE
	caught int := 0;
BEGIN
	FOR i IN 1 .. 30 LOOP
		INSERT INTO ubr SELECT ubr_key(30001 + 100 * i + 2 * j) FROM generate_series(1, 24) j;
		BEGIN
			INSERT INTO ubr SELECT ubr_key(CASE WHEN j < 20 THEN 100 * i + 2 * j + 1 ELSE 100 * i + 2 * j END) FROM generate_series(1, 24) j;
		EXCEPTION WHEN unique_violation THEN
			caught := caught + 1;
		END;
	END LOOP;
	RAISE NOTICE '% caught', caught;
END $$;
SELECT count(*), count(DISTINCT k) FROM ubr;
-- Filters are turned off, and on again, while there are runs with and without.
ALTER INDEX ubs_k SET (filter_bits = 0);
INSERT INTO ubs SELECT 200000 + i * 2, 5 FROM generate_series(1, 5000) i;
SELECT ubs_try(1, 83100, 977, 100), ubs_try(102500, 100001, -577, 100);
ALTER INDEX ubs_k RESET (filter_bits);
SELECT ubs_try(102500, 100001, -577, 100), ubs_try(1, 83100, 977, 40);
-- Many nulls are no keys, and equal to each other where the index says so.
CREATE TABLE ubn (k int);
CREATE UNIQUE INDEX ubn_k ON ubn USING lsm (k);
INSERT INTO ubn SELECT CASE WHEN i % 5 = 0 THEN i END FROM generate_series(1, 3000) i;
INSERT INTO ubn SELECT CASE WHEN i % 5 = 1 THEN i END FROM generate_series(1, 3000) i;
SELECT count(*), count(k), count(DISTINCT k) FROM ubn;
DROP INDEX ubn_k;
DELETE FROM ubn WHERE k IS NULL;
CREATE UNIQUE INDEX ubn_k ON ubn USING lsm (k) NULLS NOT DISTINCT;
INSERT INTO ubn SELECT nullif(i, 4000) FROM generate_series(3001, 4000) i;
INSERT INTO ubn SELECT nullif(i, 5000) FROM generate_series(4001, 5000) i;
DROP TABLE ubs, ubr, ubn;
DROP FUNCTION ubs_try, ubr_key;
RESET enable_seqscan;
RESET pg_lsm.segment_size;
