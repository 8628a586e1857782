-- Index-only scans: included columns, the visibility map, expressions.
CREATE TABLE io (k int, a text, b numeric, c int[], d char(8), e name, id int) WITH (autovacuum_enabled = off);
CREATE INDEX io_k ON io USING lsm (k) INCLUDE (a, b, c, d, e, id);
INSERT INTO io SELECT i % 50, 'a' || i, i / 4.0, ARRAY[i, NULL, -i], 'd' || i, 'e' || i, i FROM generate_series(1, 400) i;
INSERT INTO io (k, id) SELECT i % 50, i FROM generate_series(401, 450) i;
SELECT lsm_check('io_k', true);
SET enable_bitmapscan = off;
SET enable_indexscan = on;
-- Before VACUUM, the heap decides what is visible; after VACUUM, the visibility map does.
SELECT t.same('SELECT * FROM io ORDER BY k', 'SELECT * FROM io ORDER BY k, ctid'), t.same('SELECT * FROM io WHERE k = 7'), t.same('SELECT id, e, a FROM io WHERE k > 45');
VACUUM io;
SELECT t.same('SELECT * FROM io ORDER BY k', 'SELECT * FROM io ORDER BY k, ctid'), t.same('SELECT * FROM io WHERE k = 7'), t.same('SELECT id, e, a FROM io WHERE k > 45');
DELETE FROM io WHERE id % 3 = 0;
UPDATE io SET a = 'changed' WHERE id % 7 = 0;
SELECT t.same('SELECT * FROM io ORDER BY k', 'SELECT * FROM io ORDER BY k, ctid'), t.same('SELECT * FROM io WHERE k = 7'), t.same('SELECT id, e, a FROM io WHERE k > 45');
VACUUM io;
INSERT INTO io (k, id, a) SELECT i % 50, i, 'new' FROM generate_series(1000, 1100) i;
SELECT t.same('SELECT * FROM io ORDER BY k', 'SELECT * FROM io ORDER BY k, ctid'), t.same('SELECT * FROM io WHERE k = 7'), t.same('SELECT id, e, a FROM io WHERE k > 45');
SELECT lsm_check('io_k', true);
-- A qual on an included column is checked within the index-only scan.
SELECT t.same('SELECT id FROM io WHERE k < 10 AND id > 200 AND a LIKE ''a%''');
-- count(*) with the index.
SET enable_seqscan = off;
VACUUM io;
SELECT count(*) FROM io;
SELECT count(*) FROM io WHERE k BETWEEN 10 AND 20;
EXPLAIN (COSTS OFF) SELECT count(*) FROM io WHERE k BETWEEN 10 AND 20;
RESET enable_seqscan;

-- All heap pages are all-visible: no row of the table is read.
CREATE FUNCTION heap_fetches(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Heap Fetches' THEN RETURN trim(line); END IF;
	END LOOP;
	RETURN 'not an index-only scan';
END $$;
SET enable_seqscan = off;
SELECT heap_fetches('SELECT k, id FROM io WHERE k = 7');
SELECT heap_fetches('SELECT k FROM io ORDER BY k DESC');
RESET enable_seqscan;

-- Several key columns, some of them included again in another index.
CREATE TABLE io2 (a int, b text COLLATE "C", c date);
CREATE INDEX io2_idx ON io2 USING lsm (b DESC, a) INCLUDE (c);
INSERT INTO io2 SELECT i % 10, chr(97 + i % 26), date '2024-01-01' + i FROM generate_series(1, 200) i;
INSERT INTO io2 VALUES (NULL, NULL, NULL), (1, NULL, NULL), (NULL, 'a', '-infinity'), (NULL, '', 'infinity');
VACUUM io2;
SELECT t.same('SELECT b, a, c FROM io2 ORDER BY b DESC, a', 'SELECT b, a, c FROM io2 ORDER BY b DESC, a, ctid');
SELECT t.same('SELECT b, a, c FROM io2 WHERE b = ''a''');
SELECT t.same('SELECT c FROM io2 WHERE b IS NULL');
SELECT t.same('SELECT a FROM io2 WHERE a = 5');
-- An included column of a type without an order.
CREATE TABLE io3 (k int, p point, x xml, j json);
CREATE INDEX io3_idx ON io3 USING lsm (k) INCLUDE (p, j);
INSERT INTO io3 SELECT i, point(i, -i), NULL, '{"a": 1}' FROM generate_series(1, 100) i;
VACUUM io3;
SELECT t.same('SELECT k, p, j FROM io3 WHERE k BETWEEN 5 AND 9 ORDER BY k');
-- Included values may be longer than a key, up to a limit.
CREATE TABLE io4 (k int, v text);
ALTER TABLE io4 ALTER v SET STORAGE plain;
CREATE INDEX io4_idx ON io4 USING lsm (k) INCLUDE (v);
INSERT INTO io4 SELECT i % 5, repeat(chr(97 + i % 26), i * 20) FROM generate_series(0, 100) i;
VACUUM io4;
SELECT t.same('SELECT k, v FROM io4 ORDER BY k', 'SELECT k, v FROM io4 ORDER BY k, ctid');
SELECT lsm_check('io2_idx', true), lsm_check('io3_idx', true), lsm_check('io4_idx', true);
-- Values that a tuple stores compressed are returned in full.
CREATE TABLE io5 (k int, v text[], f text);
CREATE INDEX io5_idx ON io5 USING lsm (v) INCLUDE (k);
CREATE INDEX io5_inc ON io5 USING lsm (k) INCLUDE (f, v);
INSERT INTO io5 SELECT i, ARRAY[repeat('compressible', 400) || i], repeat('compressible', 400) || i FROM generate_series(1, 20) i;
VACUUM io5;
SELECT t.same('SELECT v, k FROM io5 ORDER BY v', 'SELECT v, k FROM io5 ORDER BY v, ctid');
SELECT t.same('SELECT v, k FROM io5 WHERE v = (SELECT max(v) FROM io5)');
SELECT t.same('SELECT k, f, v FROM io5 ORDER BY k'), t.same('SELECT k, f FROM io5 WHERE k = 7');
SELECT lsm_check('io5_idx', true), lsm_check('io5_inc', true);

-- Columns of fixed length: most rows are formed without the executor.  All kinds, and NULLs.
CREATE TABLE io6 (a int, b bigint, c smallint, d bool, e "char", f uuid, g oid, h timestamptz, i macaddr, j float8) WITH (autovacuum_enabled = off);
CREATE INDEX io6_all ON io6 USING lsm (a, b DESC, c, d DESC, e, f DESC, g, h);
CREATE INDEX io6_h ON io6 USING lsm (h DESC NULLS LAST);
CREATE INDEX io6_i ON io6 USING lsm (i, c);
CREATE INDEX io6_j ON io6 USING lsm (j);
INSERT INTO io6 SELECT hashint4(i) % 20, (hashint8(i) - 5)::bigint << (i % 30), hashint4(i + 1) % 300, i % 3 = 0, chr(33 + i % 90)::"char", md5(i::text)::uuid, abs(hashint4(i + 2)), timestamptz '2000-01-01 UTC' + hashint4(i + 3) * interval '1 s', ('08:00:2b:01:' || to_hex(i / 100 + 16) || ':' || to_hex(i % 100 + 16))::macaddr, i / 7.0 FROM generate_series(1, 2000) i;
INSERT INTO io6 SELECT nullif(i % 4, 0), nullif(i % 3, 0), nullif(i % 2, 0) FROM generate_series(1, 24) i;
VACUUM ANALYZE io6;
SELECT lsm_check('io6_all', true);
CREATE FUNCTION io6_same() RETURNS TABLE (result text) LANGUAGE sql AS $$
	SELECT t.same('SELECT a, b, c, d, e, f, g, h FROM io6 ORDER BY a, b DESC, c, d DESC, e, f DESC, g, h', 'SELECT a, b, c, d, e, f, g, h FROM io6 ORDER BY a, b DESC, c, d DESC, e, f DESC, g, h, ctid')
	UNION ALL SELECT t.same('SELECT a, b, c, d, e, f, g, h FROM io6 ORDER BY a DESC, b, c DESC, d, e DESC, f, g DESC, h DESC', 'SELECT a, b, c, d, e, f, g, h FROM io6 ORDER BY a DESC, b, c DESC, d, e DESC, f, g DESC, h DESC, ctid DESC')
	UNION ALL SELECT t.same('SELECT b, f FROM io6 WHERE a BETWEEN -3 AND 12')
	UNION ALL SELECT t.same('SELECT count(*), sum(b), max(f::text) FROM io6 WHERE a > 5')
	UNION ALL SELECT t.same('SELECT b % 10, d FROM io6 WHERE a < 8 AND b % 3 = 1 AND e <> ''x''')
	UNION ALL SELECT t.same('SELECT h FROM io6 WHERE h > ''2010-01-01 UTC''')
	UNION ALL SELECT t.same('SELECT h FROM io6 ORDER BY h DESC NULLS LAST', 'SELECT h FROM io6 ORDER BY h DESC NULLS LAST, ctid')
	UNION ALL SELECT t.same('SELECT i, c FROM io6 WHERE i > ''08:00:2b:01:12:00''')
	UNION ALL SELECT t.same('SELECT j FROM io6 WHERE j BETWEEN 20 AND 200')
	UNION ALL SELECT t.same('SELECT x.c, y.i FROM io6 x, LATERAL (SELECT i, c FROM io6 z WHERE z.i > x.i ORDER BY i LIMIT 3) y WHERE x.i > ''08:00:2b:01:20:00'' ORDER BY x.i, y.i')
	UNION ALL SELECT t.same('SELECT x.h, y.h FROM io6 x, io6 y WHERE x.h = y.h AND x.h > ''2020-01-01 UTC''')
$$;
SELECT result FROM io6_same();
-- Some pages of the table are not all-visible.
UPDATE io6 SET j = -j WHERE c % 50 = 0;
DELETE FROM io6 WHERE c % 40 = 1;
SELECT result FROM io6_same();
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT result FROM io6_same();
COMMIT;
VACUUM io6;
SELECT result FROM io6_same();
-- Cursors: back and forth, and the current row.
CREATE FUNCTION io6_walk() RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	c SCROLL CURSOR FOR SELECT a, b, c, d, e, f, g, h FROM io6 WHERE a BETWEEN -5 AND 5 ORDER BY a, b DESC, c, d DESC, e, f DESC, g, h;
	all_rows text[];
	r record;
	place int := 0;
	wrong int := 0;
	forward bool;
BEGIN
	FOR r IN c LOOP
		all_rows := all_rows || r::text;
	END LOOP;
	PERFORM setseed(0.5);
	OPEN c;
	FOR i IN 1 .. 500 LOOP
		forward := random() < 0.6;
		FOR j IN 1 .. (random() * 10)::int LOOP
			IF forward THEN
				FETCH NEXT FROM c INTO r;
				place := least(place + 1, cardinality(all_rows) + 1);
			ELSE
				FETCH PRIOR FROM c INTO r;
				place := greatest(place - 1, 0);
			END IF;
			wrong := wrong + (FOUND IS DISTINCT FROM (all_rows[place] IS NOT NULL) OR FOUND AND r::text <> all_rows[place])::int;
		END LOOP;
	END LOOP;
	RETURN cardinality(all_rows) > 400 AND wrong = 0;
END $$;
SET enable_seqscan = off;
SET enable_sort = off;
SELECT io6_walk();
BEGIN;
DECLARE x CURSOR FOR SELECT i, c FROM io6 WHERE i > '08:00:2b:01:12:00' ORDER BY i;
MOVE 20 IN x;
FETCH 1 FROM x;
UPDATE io6 SET j = 4711 WHERE CURRENT OF x;
SELECT i, c FROM io6 WHERE j = 4711;
FETCH 1 FROM x;
DELETE FROM io6 WHERE CURRENT OF x RETURNING i, c;
FETCH 2 FROM x;
ROLLBACK;
RESET enable_seqscan;
RESET enable_sort;
-- An INSERT that takes rows ahead puts its own function between the executor and the scan,
-- too. Meanwhile a cursor is open.
CREATE TABLE io7 (k int) WITH (autovacuum_enabled = off);
CREATE INDEX io7_k ON io7 USING lsm (k);
INSERT INTO io7 SELECT hashint4(i) % 100000 FROM generate_series(1, 5000) i;
VACUUM ANALYZE io7;
CREATE TABLE io8 (k int);
CREATE UNIQUE INDEX io8_k ON io8 USING lsm (k);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
BEGIN;
DECLARE x CURSOR FOR SELECT k FROM io7 ORDER BY k;
MOVE 10 IN x;
INSERT INTO io8 SELECT k FROM io7 WHERE k > -50000 ORDER BY k ON CONFLICT DO NOTHING;
SELECT count(*), (SELECT count(DISTINCT k) FROM io7 WHERE k > -50000) FROM io8;
SELECT count(*) FROM (SELECT k < lag(k) OVER (ORDER BY ctid) AS wrong FROM io8) o WHERE wrong;
MOVE 100 IN x;
INSERT INTO io8 SELECT k FROM io7 ORDER BY k DESC ON CONFLICT DO NOTHING;
MOVE ALL IN x;
SELECT count(*), (SELECT count(DISTINCT k) FROM io7) FROM io8;
COMMIT;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
DROP TABLE io7, io8;
DROP TABLE io, io2, io3, io4, io5, io6;
DROP FUNCTION io6_same, io6_walk;
DROP FUNCTION heap_fetches;
