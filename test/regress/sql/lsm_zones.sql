-- When daylight saving begins, the skipped local times, taken as timestamptz, are later than the first ones after
-- them. So the order of timestamps is not that of their comparisons with timestamptz.  (A B-tree may miss rows
-- here.)
SET TimeZone = 'America/New_York';
SET statement_timeout = '60s';
SELECT timestamp '2024-03-10 02:30' < timestamp '2024-03-10 03:00' AS local, timestamp '2024-03-10 02:30' < timestamptz '2024-03-10 07:00+00' AS with_zone;
CREATE TABLE zt (dev text COLLATE "C", ts timestamp, at timestamptz, extra numeric) WITH (autovacuum_enabled = off);
INSERT INTO zt SELECT 'd' || i % 3, ts, (ts + interval '5.5 hours') AT TIME ZONE 'UTC'
FROM (SELECT i, timestamp '2024-03-10 01:30' + i * interval '3 s' AS ts FROM generate_series(0, 2999) i) s;
CREATE TABLE ze (LIKE zt);
INSERT INTO ze SELECT * FROM zt;
-- Tuple keys, by means of a numeric, and encoded ones; the time after an array, before it, and alone.
CREATE FUNCTION check_zones(layout text) RETURNS TABLE (tab text, query text, said text) LANGUAGE plpgsql AS $$
BEGIN
	FOREACH tab IN ARRAY '{zt,ze}'::text[] LOOP
		EXECUTE format('CREATE INDEX z_idx ON %I USING lsm (%s%s)', tab, layout, CASE tab WHEN 'zt' THEN ', extra' END);
		FOREACH query IN ARRAY ARRAY[
			'dev = ANY (''{d1,zz}'') AND ts >= timestamptz ''2024-03-10 07:30+00''', 'dev = ''d1'' AND ts < timestamptz ''2024-03-10 07:10+00''',
			'dev = ''d2'' AND ts BETWEEN timestamptz ''2024-03-10 07:00+00'' AND ''2024-03-10 07:20+00''', 'ts = timestamptz ''2024-03-10 07:15+00''',
			'dev IN (''d0'', ''d2'') AND ts = ANY (''{2024-03-10 07:15+00,2024-03-10 07:45+00,2024-03-10 08:30:03+00}''::timestamptz[])',
			'(dev, ts) > (''d1'', timestamptz ''2024-03-10 07:30+00'')',
			'at = ANY (''{2024-03-10 02:45,2024-03-10 03:10,2024-03-10 03:45,294276-12-31 23:59,infinity}''::timestamp[])',
			'dev = ''d1'' AND at < ANY (''{2024-03-10 02:45,2024-03-10 03:10}''::timestamp[])', 'dev = ''d1'' AND at > ANY (''{2024-03-10 02:15,2024-03-10 03:10}''::timestamp[])',
			'dev = ANY (''{d1,d2}'') AND at >= ALL (''{2024-03-10 02:45,2024-03-10 03:10}''::timestamp[])'] LOOP
			said := t.same(format('SELECT dev, ts, at FROM %I WHERE %s', tab, query));
			RETURN NEXT;
		END LOOP;
		DROP INDEX z_idx;
	END LOOP;
END $$;
SELECT * FROM check_zones('dev, ts, at');
SELECT * FROM check_zones('ts, dev, at DESC');
SELECT * FROM check_zones('at, dev, ts');
SELECT * FROM check_zones('dev, at DESC, ts DESC');
-- Where offsets do not change, a value of another of these types leads to exactly the matching entries: a row a
-- minute, for 60 days.
CREATE TABLE zm (at timestamptz, ts timestamp, d date) WITH (autovacuum_enabled = off);
INSERT INTO zm SELECT ts, ts, ts FROM (SELECT timestamp '2024-06-01' + i * interval '1 min' AS ts FROM generate_series(0, 60 * 1440 - 1) i) s;
CREATE INDEX ON zm USING lsm (at);
CREATE INDEX ON zm USING lsm (ts DESC);
CREATE INDEX ON zm USING lsm (d);
VACUUM ANALYZE zm;
SET enable_seqscan = off;
CALL t.note_reads();
SELECT count(*) FROM zm WHERE at >= date '2024-06-20' AND at < date '2024-06-22';
SELECT entries_read < 4000 AS few FROM t.reads();
SELECT count(*) FROM zm WHERE at >= timestamp '2024-06-20' AND at < timestamp '2024-06-21 12:00';
SELECT entries_read < 4000 AS few FROM t.reads();
SELECT count(*) FROM zm WHERE ts >= date '2024-06-20' AND ts < date '2024-06-22';
SELECT entries_read < 4000 AS few FROM t.reads();
SELECT count(*) FROM zm WHERE ts > timestamptz '2024-06-20' AND ts <= timestamptz '2024-06-21 12:00';
SELECT entries_read < 4000 AS few FROM t.reads();
SELECT count(*) FROM zm WHERE d = timestamptz '2024-06-20' OR d = timestamp '2024-06-21';
SELECT entries_read < 4000 AS few FROM t.reads();
SELECT count(*) FROM zm WHERE d > timestamptz '2024-06-19 12:00' AND d <= timestamp '2024-06-21 12:00';
SELECT entries_read < 7000 AS few FROM t.reads();
SELECT count(*) FROM zm WHERE at = ANY ('{2024-06-20,2024-06-21,2024-07-20}'::date[]);
SELECT entries_read < 1000 AS few FROM t.reads();
SELECT count(*) FROM zm WHERE ts = ANY ('{2024-06-20,2024-06-21 10:00:30,2024-07-20 11:00}'::timestamptz[]);
SELECT entries_read < 1000 AS few FROM t.reads();
SELECT count(*) FROM zm WHERE d = ANY ('{2024-06-20,2024-06-21 10:00:30,2024-07-20}'::timestamp[]);
SELECT entries_read < 4000 AS few FROM t.reads();
-- Where offsets change, this is almost so.
INSERT INTO zm SELECT ts, ts, ts FROM (SELECT timestamp '2024-10-20' + i * interval '1 min' AS ts FROM generate_series(0, 30 * 1440 - 1) i) s;
CALL t.note_reads();
SELECT count(*) FROM zm WHERE ts >= timestamptz '2024-11-03' AND ts < timestamptz '2024-11-04';
SELECT entries_read < 4000 AS few FROM t.reads();
SELECT t.same('SELECT ts FROM zm WHERE ts BETWEEN timestamptz ''2024-11-03 01:15-04'' AND ''2024-11-03 01:20-04''');
SELECT t.same('SELECT ts FROM zm WHERE ts BETWEEN timestamptz ''2024-11-03 01:15-05'' AND ''2024-11-03 01:20-05''');
SELECT t.same('SELECT d FROM zm WHERE d = timestamptz ''2024-11-03 00:00-04''');
SELECT t.same('SELECT d FROM zm WHERE d = ANY (''{2024-11-03 00:00-04,2024-11-04 00:00-05,2024-11-05 00:00-04}''::timestamptz[])');
-- A day that an island skipped: two dates are the same instant.
SET TimeZone = 'Pacific/Apia';
INSERT INTO zm SELECT timestamp '2011-12-29' + i * interval '1 hour' FROM generate_series(0, 95) i;
SELECT t.same('SELECT at FROM zm WHERE at = ANY (''{2011-12-29,2011-12-30,2011-12-31,2012-01-01}''::date[])');
SELECT t.same('SELECT at FROM zm WHERE at >= date ''2011-12-30'' AND at <= date ''2011-12-31''');
CREATE TABLE zd (d date, n numeric);
CREATE INDEX ON zd USING lsm (d, n);
INSERT INTO zd SELECT '2011-12-30', i FROM generate_series(1, 10) i;
INSERT INTO zd SELECT '2011-12-31', i FROM generate_series(1, 4) i;
SELECT t.same('SELECT d, n FROM zd WHERE d = timestamptz ''2011-12-30 10:00+00'' AND n < 5');
INSERT INTO zd SELECT '2011-12-31', i FROM generate_series(5, 10) i;
SELECT t.same('SELECT d, n FROM zd WHERE d = timestamptz ''2011-12-30 10:00+00'' AND n < 5');
SELECT t.same('SELECT d, n FROM zd WHERE d = timestamptz ''2011-12-30 10:00+00'' AND n > 5');
SELECT t.same('SELECT d, n FROM zd WHERE d = ANY (''{2011-12-30 10:00+00,2012-01-05 10:00+00}''::timestamptz[]) AND n < 5');
-- Invented zones.
SET TimeZone = '<+167>-167<-167>+167,J100,J200';
SELECT t.same('SELECT ts FROM zm WHERE ts BETWEEN timestamptz ''2024-06-20 01:15+00'' AND ''2024-06-20 01:20+00''');
SELECT t.same('SELECT d FROM zm WHERE d BETWEEN timestamptz ''2024-06-20 01:15+00'' AND ''2024-06-20 01:20+00''');
SELECT t.same('SELECT at FROM zm WHERE at BETWEEN timestamp ''2024-06-20 01:15'' AND ''2024-06-20 01:20''');
SELECT t.same('SELECT at FROM zm WHERE at = ANY (''{2024-06-20,2024-06-21,2024-07-11,2024-07-19}''::date[])');
RESET TimeZone;
RESET enable_seqscan;
RESET statement_timeout;
DROP TABLE zt, ze, zm, zd;
DROP FUNCTION check_zones;
