-- Local times that a clock leaves out when daylight saving begins are later, with their zone, than the first ones after
-- them: the order of timestamps is not that of their comparisons with timestamptz.  (A B-tree may miss rows here.)
SET TimeZone = 'America/New_York';
SET statement_timeout = '60s';
SELECT timestamp '2024-03-10 02:30' < timestamp '2024-03-10 03:00' AS local, timestamp '2024-03-10 02:30' < timestamptz '2024-03-10 07:00+00' AS with_zone;
CREATE TABLE zt (dev text COLLATE "C", ts timestamp, at timestamptz, extra numeric) WITH (autovacuum_enabled = off);
INSERT INTO zt SELECT 'd' || i % 3, ts, (ts + interval '5.5 hours') AT TIME ZONE 'UTC'
FROM (SELECT i, timestamp '2024-03-10 01:30' + i * interval '3 s' AS ts FROM generate_series(0, 2999) i) s;
CREATE TABLE ze (LIKE zt);
INSERT INTO ze SELECT * FROM zt;
-- Keys that are tuples, as all with a numeric are, and encoded ones; the time behind an array, before it, and alone.
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
RESET statement_timeout;
DROP TABLE zt, ze;
DROP FUNCTION check_zones;
