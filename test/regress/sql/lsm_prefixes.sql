-- Filters contain prefixes of keys: scans with conditions on the first columns skip the runs that have no such
-- entry.
SET pg_lsm.debug_buffer_entries = 0;
SET pg_lsm.debug_page_entries = 10;
SET pg_lsm.debug_batch_entries = 0;
SET pg_lsm.debug_batch_min_entries = 48;
SET pg_lsm.debug_foreground_blocks = 1024;
SET pg_lsm.debug_segment_size = 48;
CREATE TABLE p (id int, device int, ts int, name text COLLATE "C", f float8, b bytea, n numeric)
	WITH (autovacuum_enabled = off);
-- Batch i has 20 devices, with others in between, and some rows without a device.
CREATE PROCEDURE p_load(first int, last int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		INSERT INTO p SELECT i * 200 + j, d, (j * 7919 + i * 31) % 1000, repeat('n', d % 3) || d, d * 0.0 - d / 2, int4send(d % 300 * 256), d
		FROM generate_series(1, 200) j, LATERAL (SELECT CASE WHEN j % 41 > 0 THEN j * 7 % 20 * 45 + i % 45 END) AS x(d);
		COMMIT;
	END LOOP;
END $$;
-- All kinds of conditions on leading columns of which `probes` are values.  Unusual results are returned.
CREATE FUNCTION p_shapes(col text, probes text[], next text DEFAULT 'ts') RETURNS TABLE (what text) LANGUAGE plpgsql AS $$
DECLARE
	shape text;
	probe text;
	query text;
	answer text;
	count int := 0;
BEGIN
	FOREACH probe IN ARRAY probes LOOP
		FOREACH shape IN ARRAY ARRAY[
			'SELECT id FROM p WHERE $c = $v',
			'SELECT $c, $n FROM p WHERE $c = $v ORDER BY $n DESC LIMIT 10',
			'SELECT $c, $n FROM p WHERE $c = $v ORDER BY $n LIMIT 3',
			'SELECT $c, $n FROM p WHERE $c = $v AND $n > (SELECT min($n) FROM p) ORDER BY $n',
			'SELECT id FROM p WHERE $c = $v AND $n BETWEEN (SELECT min($n) FROM p) AND (SELECT max($n) FROM p)',
			'SELECT $c, $n FROM p WHERE $c >= $v AND $c <= $v ORDER BY $c, $n',
			'SELECT id FROM p WHERE $c = $v AND $n IS NOT NULL',
			'SELECT id FROM p WHERE $c = ANY (ARRAY[$v, $v, NULL]) AND $n IS NOT NULL',
			'SELECT max($n), min($n) FROM p WHERE $c = $v',
			'SELECT id FROM p WHERE $c = $v AND ($n, $c) > ((SELECT min($n) FROM p), $v)',
			'SELECT v, (SELECT count(*) FROM p WHERE $c = v) FROM (VALUES ($v), (NULL), ($v)) w (v)',
			'SELECT id FROM p WHERE $c IS NULL AND $n IS NOT NULL AND id % 2 = 0'] LOOP
			query := replace(replace(replace(shape, '$c', col), '$n', next), '$v', probe);
			answer := t.same(query);
			count := count + 1;
			IF answer !~ '^\d+ rows by (index|bitmap)' THEN
				what := query || ': ' || answer;
				RETURN NEXT;
			END IF;
		END LOOP;
	END LOOP;
	what := count || ' queries';
	RETURN NEXT;
END $$;
-- Were filters tested, and did they save anything?
CREATE VIEW p_reads AS SELECT index, filter_checks > 0 AS asked, filter_skips > 0 AS spared FROM t.reads();
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;

CREATE INDEX p_dt ON p USING lsm (device, ts) WITH (merge_fanout = 4);
CALL p_load(1, 45);
SELECT lsm_check('p_dt', true);
SELECT count(*) > 5 AS several_runs, max(leaves) > 64 AS large, max(segments) > 1 AS segments FROM lsm_runs('p_dt');
CALL t.note_reads();
SELECT count(*) FROM p WHERE device = 21 AND ts > 0;
SELECT * FROM p_reads;
SELECT ts FROM p WHERE device = 431 ORDER BY ts DESC LIMIT 3;
SELECT * FROM p_reads;
SELECT count(*) FROM p WHERE device IS NULL;
SELECT asked FROM p_reads;
-- For devices that are in no run, hardly any run is read.
SELECT count(*) FROM generate_series(1, 100) i, LATERAL (SELECT FROM p WHERE device = 1000000 + i AND ts > 5 OFFSET 0) x;
SELECT filter_skips > 300 AS mostly, filter_skips >= filter_checks * 0.9 AS nearly_all FROM t.reads();
-- A range of devices, or all of them, tests no filter.
SELECT count(*) FROM p WHERE device BETWEEN 21 AND 22;
SELECT * FROM p_reads;
SELECT count(*) FROM p WHERE device > 21 AND ts = 5;
SELECT * FROM p_reads;
-- Arrays do, if their elements are far apart.
SELECT count(*) FROM p WHERE device = ANY (ARRAY[1000021, 1000400, 1100000, 1200000, 1300000, 1500000]) AND ts > 20;
CALL t.note_reads();
SELECT count(*) FROM p WHERE device = ANY (ARRAY(SELECT i * 2 FROM generate_series(10, 400) i)) AND ts BETWEEN 20 AND 700;
SELECT * FROM p_reads;
-- The rows are the same for all conditions.
SELECT * FROM p_shapes('device', '{21,25::int8,400::int2,919,920,0,-5,100000::int8,10000000000::int8}');
SELECT t.same('SELECT id FROM p WHERE device = ANY (ARRAY(SELECT i * 3 FROM generate_series(1, 400) i)) AND ts < 500');
SELECT t.same('SELECT device, ts FROM p WHERE device = ANY (ARRAY(SELECT i * 7 FROM generate_series(1, 200) i)) AND ts BETWEEN 100 AND 300 ORDER BY device, ts');
SELECT t.same('SELECT device, ts FROM p WHERE device = ANY (''{30,40,900,1000000,NULL}'') AND ts > 3 ORDER BY device DESC, ts DESC');
-- Rows are updated and deleted, and some devices lose all their rows.
UPDATE p SET ts = ts + 1 WHERE device % 5 = 0;
UPDATE p SET device = device + 1 WHERE device % 11 = 0;
DELETE FROM p WHERE device BETWEEN 100 AND 260 OR device % 7 = 3;
SELECT * FROM p_shapes('device', '{21,33,34,77,100,120,261,400,919,920}');
VACUUM p;
SELECT lsm_check('p_dt', true);
SELECT * FROM p_shapes('device', '{21,33,34,77,100,120,261,400,919,920}');
CALL p_load(4, 12);
SELECT * FROM p_shapes('device', '{21,80,81,100,120,261,919}');
-- The parameter applies to segments written from now on. Existing segments say which prefixes their filters
-- contain.
ALTER INDEX p_dt SET (filter_prefix = 0);
SELECT * FROM p_shapes('device', '{21,80,81,100,120,261,919}');
CALL p_load(50, 70);
SELECT * FROM p_shapes('device', '{21,80,81,100,120,261,919,1001,1400}');
SELECT lsm_check('p_dt', true);
SELECT lsm_compact('p_dt');
SELECT lsm_check('p_dt', true);
CALL p_load(71, 80);
CALL t.note_reads();
SELECT count(*) FROM p WHERE device = 21 AND ts > 0;
SELECT * FROM p_reads;
SELECT * FROM p_shapes('device', '{21,80,81,100,120,261,919,1001,1400}');
ALTER INDEX p_dt RESET (filter_prefix);
CALL p_load(81, 110);
CALL t.note_reads();
SELECT count(*) FROM p WHERE device = 21 AND ts > 0;
SELECT * FROM p_reads;
SELECT * FROM p_shapes('device', '{21,80,81,100,120,261,919,1001,1400,2000}');
SELECT lsm_check('p_dt', true);
-- A cursor moves in both directions and beyond the end.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT device, ts FROM p WHERE device = 81 ORDER BY ts;
FETCH 2 FROM c;
FETCH BACKWARD 5 FROM c;
MOVE FORWARD ALL FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FORWARD 5 FROM c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT device, ts FROM p WHERE device = 5000000 ORDER BY ts;
FETCH 2 FROM c;
FETCH BACKWARD 5 FROM c;
COMMIT;
DROP INDEX p_dt;

-- Other types, orders, and columns.
TRUNCATE p;
CREATE INDEX p_x ON p USING lsm (device DESC NULLS LAST, ts DESC) INCLUDE (id) WITH (merge_fanout = 4);
CALL p_load(1, 20);
SELECT * FROM p_shapes('device', '{21,25::int8,400::int2,100000}');
SELECT lsm_check('p_x', true);
DROP INDEX p_x;
TRUNCATE p;
CREATE INDEX p_x ON p USING lsm (name, ts DESC) WITH (merge_fanout = 4);
CALL p_load(1, 20);
SELECT * FROM p_shapes('name', ARRAY['''nn23''', '''n40''', '''63''', '''nn''', '''''']);
SELECT t.same('SELECT name, ts FROM p WHERE name LIKE ''nn23%'' AND ts > 5 ORDER BY name, ts DESC');
SELECT lsm_check('p_x', true);
DROP INDEX p_x;
TRUNCATE p;
CREATE INDEX p_x ON p USING lsm (f DESC, ts) WITH (merge_fanout = 4);
CALL p_load(0, 20);
SELECT * FROM p_shapes('f', '{0.0::float8,-0.0::float8,-5,-5.0::float4,''NaN''::float8}');
SELECT lsm_check('p_x', true);
DROP INDEX p_x;
TRUNCATE p;
CREATE INDEX p_x ON p USING lsm (b, device DESC, ts) WITH (merge_fanout = 4);
CALL p_load(1, 20);
SELECT * FROM p_shapes('b', ARRAY['''\x00001700''::bytea', '''\x000017''::bytea', '''''::bytea', 'int4send(99 * 256)'], 'device');
SELECT t.same('SELECT ts FROM p WHERE b = (SELECT b FROM p WHERE id = 999) AND device = (SELECT device FROM p WHERE id = 999) ORDER BY ts LIMIT 2');
SELECT lsm_check('p_x', true);
DROP INDEX p_x;
-- Several prefixes.  With two columns nearly all keys are different, so that prefix is left out unless
-- requested.
TRUNCATE p;
CREATE INDEX p_x ON p USING lsm (device, ts, id) WITH (merge_fanout = 4);
CREATE INDEX p_2 ON p USING lsm (device, ts, id) WITH (merge_fanout = 4, filter_prefix = 2);
CREATE INDEX p_0 ON p USING lsm (device, ts, id) WITH (merge_fanout = 4, filter_prefix = 0);
CALL p_load(1, 60);
SELECT lsm_check('p_x', true), lsm_check('p_2', true), lsm_check('p_0', true);
SELECT lsm_compact('p_x'), lsm_compact('p_2'), lsm_compact('p_0');
CALL p_load(61, 90);
SELECT lsm_check('p_x', true), lsm_check('p_2', true), lsm_check('p_0', true);
SELECT * FROM p_shapes('device', '{21,400,919,1500,1000000}');
DROP INDEX p_x;
SELECT * FROM p_shapes('device', '{21,400,919,1500,1000000}');
SELECT t.same('SELECT id FROM p WHERE device = 33 AND ts = 5'), t.same('SELECT id FROM p WHERE device = 33 AND ts = ANY (ARRAY(SELECT generate_series(1, 900, 13)))');
DROP INDEX p_2;
SELECT * FROM p_shapes('device', '{21,400,919,1500,1000000}');
DROP INDEX p_0;
-- Numerics, in any scale.
TRUNCATE p;
CREATE INDEX p_x ON p USING lsm (n, ts) WITH (merge_fanout = 4);
CALL p_load(1, 20);
SELECT * FROM p_shapes('n', '{21,25.0,25.00::numeric,100000}');
CALL t.note_reads();
SELECT count(*) FROM p WHERE n = 21.00 AND ts > 0;
SELECT * FROM p_reads;
DROP INDEX p_x;
-- Keys that a function compares.
TRUNCATE p;
CREATE INDEX p_x ON p USING lsm (int4range(device, device + 1), ts) WITH (merge_fanout = 4);
CALL p_load(1, 20);
CALL t.note_reads();
SELECT count(*) FROM p WHERE int4range(device, device + 1) = '[21,22)' AND ts > 0;
SELECT * FROM p_reads;
DROP INDEX p_x;
-- Unique indexes, with NULLS NOT DISTINCT.
TRUNCATE p;
CREATE UNIQUE INDEX p_x ON p USING lsm (device, id) NULLS NOT DISTINCT WITH (merge_fanout = 4);
CALL p_load(1, 30);
INSERT INTO p (id, device) SELECT id, device FROM p WHERE id = 999;
INSERT INTO p (id, device) SELECT id, device FROM p WHERE id % 200 = 41;
INSERT INTO p (id, device) SELECT id, device + 1000000 FROM p WHERE id % 3 = 1;
SELECT lsm_check('p_x', true);
SELECT * FROM p_shapes('device', '{21,400,1000021,1500}', 'id');
DROP INDEX p_x;
-- Small runs get filters in private memory once they were searched often enough.
SET pg_lsm.debug_page_entries = 0;
TRUNCATE p;
CREATE INDEX p_x ON p USING lsm (device, ts) WITH (merge_fanout = 32);
CALL p_load(1, 20);
SELECT count(*) >= 20 AS several_runs, max(leaves) AS leaves FROM lsm_runs('p_x');
CALL t.note_reads();
SELECT count(*) FROM generate_series(1, 200) i, LATERAL (SELECT FROM p WHERE device = i * 2 AND ts > 5 OFFSET 0) x;
SELECT * FROM p_reads;
SELECT * FROM p_shapes('device', '{21,80,81,100,120,261,1000000}');
ALTER INDEX p_x SET (filter_prefix = 0);
CALL t.note_reads();
SELECT count(*) FROM generate_series(1, 200) i, LATERAL (SELECT FROM p WHERE device = i * 2 AND ts > 5 OFFSET 0) x;
SELECT * FROM p_reads;
ALTER INDEX p_x SET (filter_prefix = 31);
CALL t.note_reads();
SELECT count(*) FROM generate_series(1, 200) i, LATERAL (SELECT FROM p WHERE device = i * 2 AND ts > 5 OFFSET 0) x;
SELECT * FROM p_reads;
ALTER INDEX p_x SET (filter_prefix = 32);
ALTER INDEX p_x SET (filter_prefix = -2);
DROP TABLE p;

-- Lookups by one column do not affect those by two: neither what a private filter contains, nor whether it is
-- tested.
CREATE TABLE two (device int, kind int, id int) WITH (autovacuum_enabled = off);
CREATE PROCEDURE two_load(entries int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 12 LOOP
		INSERT INTO two SELECT 1, i * 10 + j % 4, j * 100 + i FROM generate_series(1, entries) j;
		COMMIT;
	END LOOP;
END $$;
CREATE INDEX two_i ON two USING lsm (device, kind, id) WITH (merge_fanout = 32);
CALL two_load(200);
SELECT count(*) >= 12 AS several_runs, max(leaves) AS leaves FROM lsm_runs('two_i');
CALL t.note_reads();
SELECT count(*) FROM generate_series(1, 20) i, LATERAL (SELECT FROM two WHERE device = 1 AND i > 0 OFFSET 0 LIMIT 1) x;
SELECT * FROM p_reads;
SELECT count(*) FROM generate_series(1, 10) i, LATERAL (SELECT FROM two WHERE device = 1 AND kind = 4 + i % 2 AND id > 0 OFFSET 0 LIMIT 1) x;
SELECT filter_skips > 100 AS mostly_spared FROM t.reads();
SELECT lsm_check('two_i', true);
DROP INDEX two_i;
SET pg_lsm.debug_page_entries = 10;
TRUNCATE two;
CREATE INDEX two_i ON two USING lsm (device, kind, id) WITH (merge_fanout = 32);
CALL two_load(200);
SELECT count(*) >= 12 AS several_runs, max(leaves) AS leaves FROM lsm_runs('two_i');
CALL t.note_reads();
SELECT count(*) FROM generate_series(1, 20) i, LATERAL (SELECT FROM two WHERE device = 1 AND i > 0 OFFSET 0 LIMIT 1) x;
SELECT * FROM p_reads;
SELECT count(*) FROM generate_series(1, 10) i, LATERAL (SELECT FROM two WHERE device = 1 AND kind = 4 + i % 2 AND id > 0 OFFSET 0 LIMIT 1) x;
SELECT filter_skips > 100 AS mostly_spared FROM t.reads();
SELECT lsm_check('two_i', true);
DROP TABLE two;
DROP PROCEDURE two_load;
DROP VIEW p_reads;
DROP FUNCTION p_shapes;
DROP PROCEDURE p_load;
