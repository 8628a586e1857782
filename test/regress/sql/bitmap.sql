-- Bitmap scans: one index, several combined by AND and OR, with other methods, lossy,
-- with rechecks. Pages have their normal size, for the planner.
SET pg_lsm.debug_buffer_entries = 0;
SET pg_lsm.debug_page_entries = 0;
SET pg_lsm.debug_merge_fanout = 8;
CREATE TABLE b (a int, b int, c text COLLATE "C", filler text);
INSERT INTO b SELECT i % 100, (i * 7) % 50, 'c' || i % 30, repeat('f', 50) FROM generate_series(1, 3000) i;
CREATE INDEX b_a ON b USING lsm (a);
CREATE INDEX b_b ON b USING lsm (b);
CREATE INDEX b_c ON b USING lsm (c);
CREATE INDEX b_bt ON b (b, a);
INSERT INTO b SELECT i % 100, (i * 7) % 50, 'c' || i % 30, repeat('g', 50) FROM generate_series(1, 300) i;
VACUUM ANALYZE b;
SET enable_seqscan = off;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
-- Newer servers turn an OR on one column into an array, which an index scan can use as
-- well.
SELECT q, replace(t.same('SELECT * FROM b WHERE ' || q), 'index, ', '') FROM unnest(ARRAY['a = 5', 'a < 3', 'a = 5 OR a = 7', 'a = 5 AND c = ''c5''', 'a = 5 OR b = 5', '(a = 5 OR b = 5) AND c = ''c5''',
	'a < 10 AND c > ''c2'' AND b < 20', 'a IN (1, 5, 9) AND b IN (7, 35)', 'a IN (1, 5, 9) OR c IN (''c1'', ''c2'')', 'a IS NULL', 'a IS NULL OR b = 3', 'a = 5 OR a > 97 OR c = ''c9''']) q;
DROP INDEX b_bt;
SELECT t.plan_has('SELECT * FROM b WHERE a = 5 OR b = 5', 'BitmapOr'), t.plan_has('SELECT * FROM b WHERE a < 5 AND c = ''c5''', 'BitmapAnd');
SELECT count(*) FROM b WHERE a = 5 OR b = 5;
SELECT count(*) FROM b WHERE a < 5 AND c = 'c5';
-- Little memory makes the bitmap lossy, so rows are rechecked.
SET work_mem = '64kB';
CREATE TABLE wide (k int, filler text);
ALTER TABLE wide ALTER filler SET STORAGE plain;
INSERT INTO wide SELECT i % 10, repeat('w', 1500) FROM generate_series(1, 6000) i;
CREATE INDEX wide_k ON wide USING lsm (k);
SELECT count(*), sum(k) FROM wide WHERE k = 3;
SELECT count(*), sum(k) FROM wide WHERE k < 4 OR k > 8;
RESET work_mem;
DROP TABLE b, wide;
