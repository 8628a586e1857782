-- Batches of a unique index, against runs of every shape.
-- Segments that are large enough for filters.
SET pg_lsm.debug_segment_size = 12;
-- One key of a batch exists already, at different places: in a run of many segments or of one, as the first
-- of a segment or the last.
CREATE TABLE ubs (k int, v int);
CREATE UNIQUE INDEX ubs_k ON ubs USING lsm (k);
INSERT INTO ubs SELECT i * 2, 0 FROM generate_series(1, 80000) i;
SELECT lsm_compact('ubs_k');
SELECT max(segments) > 3 AS many_segments FROM lsm_runs('ubs_k');
INSERT INTO ubs SELECT i * 2, 1 FROM generate_series(80001, 83000) i;
INSERT INTO ubs SELECT i * 2, 2 FROM generate_series(83001, 83100) i;
-- `step` may be negative. Then a reused reader stands after the keys.
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
-- VACUUM has emptied segments in the middle, and even whole directory pages.
SELECT lsm_compact('ubs_k');
DELETE FROM ubs WHERE k BETWEEN 40001 AND 120000;
VACUUM ubs;
DO $$
DECLARE
	caught int := 0;
BEGIN
	FOR i IN 0 .. 19 LOOP
		BEGIN
			INSERT INTO ubs
			SELECT CASE WHEN i % 2 = 0 OR j <> 60 THEN 40001 + (j * 20 + i) * 33
						WHEN i % 4 = 1 THEN 120001 + i
						ELSE 40000 - i END, 6
			FROM generate_series(0, 119) j;
		EXCEPTION WHEN unique_violation THEN
			caught := caught + 1;
		END;
	END LOOP;
	RAISE NOTICE '% of 10 caught', caught;
END $$;
SELECT count(*), count(DISTINCT k), count(*) FILTER (WHERE v = 6) AS new FROM ubs;
INSERT INTO ubs SELECT i, 7 FROM generate_series(40001, 120000) i WHERE NOT EXISTS (SELECT FROM ubs WHERE k = i);
SELECT lsm_check('ubs_k', true);
-- VACUUM has emptied the ends of segments, whose filters still contain the keys. A batch of removed keys does
-- not make the check miss an existing key.  The batch is larger than a round of lookups.
SET pg_lsm.debug_batch_entries = 0;
CREATE FUNCTION ube_key(i int) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT md5(i::text) || md5((i + 1)::text) || md5((i + 2)::text) || md5((i + 3)::text) $$;
CREATE TABLE ube (k text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO ube SELECT lpad(i::text, 8, '0') || ube_key(i) FROM generate_series(1, 20999) i;
CREATE UNIQUE INDEX ube_k ON ube USING lsm (k);
SELECT max(segments) > 3 AS many_segments FROM lsm_runs('ube_k');
DELETE FROM ube WHERE left(k, 8)::int % 1000 >= 300;
VACUUM ube;
DO $$
DECLARE
	caught int := 0;
BEGIN
	FOR i IN 0 .. 79 LOOP
		BEGIN
			INSERT INTO ube
			SELECT lpad(n::text, 8, '0') || ube_key(n)
			FROM (SELECT CASE WHEN j < 300 THEN i / 4 * 1000 + 300 + i % 4 * 100 + j
							  ELSE (i / 4 + 1 + i % 2) * 1000 - i % 2 * 1000 + i * 3 END
				  FROM generate_series(0, 300) j) x(n);
		EXCEPTION WHEN unique_violation THEN
			caught := caught + 1;
		END;
	END LOOP;
	RAISE NOTICE '% of 80 caught', caught;
END $$;
SELECT lsm_check('ube_k', true);
DROP TABLE ube;
-- A key continues in the next segment, and its first entry, at the end of the first segment, was removed.
CREATE TABLE ube (k text COLLATE "C") WITH (autovacuum_enabled = off);
INSERT INTO ube SELECT ube_key(i) FROM generate_series(1, 4000) i;
CREATE UNIQUE INDEX ube_k ON ube USING lsm (k);
UPDATE ube SET k = k;
SELECT lsm_compact('ube_k');
SELECT max(segments) > 3 AS many_segments FROM lsm_runs('ube_k');
VACUUM ube;
DO $$
DECLARE
	caught int := 0;
BEGIN
	FOR i IN 1 .. 4000 BY 3 LOOP
		BEGIN
			INSERT INTO ube
			SELECT CASE WHEN j = 30 THEN ube_key(i) ELSE ube_key(10000 + i + j * 4000) END FROM generate_series(0, 30) j;
			RAISE NOTICE 'key of % came in twice', i;
		EXCEPTION WHEN unique_violation THEN
			caught := caught + 1;
		END;
	END LOOP;
	RAISE NOTICE '% of 1334 caught', caught;
END $$;
SELECT lsm_check('ube_k', true);
DROP TABLE ube;
DROP FUNCTION ube_key;
RESET pg_lsm.debug_batch_entries;
-- A reader that has searched for larger keys is reused: by a scan, by single rows, by another batch.
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
-- Filters are turned off and on again, while there are runs with and without filters.
ALTER INDEX ubs_k SET (filter_bits = 0);
INSERT INTO ubs SELECT 200000 + i * 2, 5 FROM generate_series(1, 5000) i;
SELECT ubs_try(1, 83100, 977, 100), ubs_try(102500, 100001, -577, 100);
ALTER INDEX ubs_k RESET (filter_bits);
SELECT ubs_try(102500, 100001, -577, 100), ubs_try(1, 83100, 977, 40);
-- Many nulls, which are not equal to each other, unless the index has NULLS NOT DISTINCT.
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
RESET pg_lsm.debug_segment_size;
