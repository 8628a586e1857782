-- Several open pages of the write buffer.  Rows are inserted one by one.
SET pg_lsm.batch_inserts = off;
SET pg_lsm.debug_buffer_entries = 20;
SET pg_lsm.debug_open_pages = 4;
CREATE FUNCTION open_pages(index regclass) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s open with %s entries, %s in all', count(*) FILTER (WHERE state = 'open'), sum(entries) FILTER (WHERE state = 'open'), sum(entries)) FROM lsm_runs(index);
$$;
CREATE TABLE o (k int, v text COLLATE "C", n numeric) WITH (autovacuum_enabled = off);
CREATE INDEX o_k ON o USING lsm (k, v);
CREATE INDEX o_n ON o USING lsm (n);
SELECT open_pages('o_k');
INSERT INTO o VALUES (1, 'one', 1);
SELECT open_pages('o_k');
INSERT INTO o SELECT i * 7 % 40, 'v' || i, i / 10.0 FROM generate_series(2, 40) i;
SELECT open_pages('o_k'), open_pages('o_n');
SELECT lsm_check('o_k', true), lsm_check('o_n', true);
SELECT t.same('SELECT * FROM o WHERE k = 7'), t.same('SELECT k, v FROM o WHERE k BETWEEN 10 AND 20 ORDER BY k, v DESC'), t.same_order('o', 'k, v', 'k, v'), t.same('SELECT n FROM o WHERE n < 2');
-- Full pages are replaced by new ones, as long as that many are wanted.
INSERT INTO o SELECT i * 7 % 40, 'w' || i, i / 10.0 FROM generate_series(1, 200) i;
SELECT open_pages('o_k'), open_pages('o_n');
SELECT lsm_check('o_k', true), lsm_check('o_n', true);
-- Entries of aborted transactions stay, but their rows are invisible.
BEGIN;
SAVEPOINT a;
INSERT INTO o SELECT i, 'gone', i FROM generate_series(1, 3) i;
ROLLBACK TO a;
INSERT INTO o VALUES (7, 'stays', 7);
COMMIT;
SELECT t.same('SELECT * FROM o WHERE k = 7'), lsm_check('o_k', true);
-- VACUUM visits all of them.
DELETE FROM o WHERE k % 2 = 0;
VACUUM o;
SELECT sum(entries) = (SELECT count(*) FROM o) AS all_removed, count(*) FILTER (WHERE state = 'open') AS open FROM lsm_runs('o_k');
SELECT lsm_check('o_k', true), lsm_check('o_n', true), t.same_order('o', 'k, v', 'k, v');
INSERT INTO o SELECT i, 'after', i FROM generate_series(1, 10) i;
SELECT lsm_check('o_k', true), t.same_order('o', 'k, v', 'k, v');
-- Nobody waits, so one page is enough again. A page that fills up is not replaced.
RESET pg_lsm.debug_open_pages;
INSERT INTO o SELECT i, 'calm', i FROM generate_series(1, 100) i;
SELECT count(*) FILTER (WHERE state = 'open') FROM lsm_runs('o_k');
SELECT lsm_check('o_k', true), lsm_check('o_n', true);
-- More at once.
SET pg_lsm.debug_open_pages = 8;
INSERT INTO o SELECT i, 'many', i FROM generate_series(1, 20) i;
SELECT count(*) FILTER (WHERE state = 'open') FROM lsm_runs('o_k');
-- lsm_compact closes all of them, even those without entries.
SELECT lsm_compact('o_k');
SELECT count(*) FILTER (WHERE state = 'open') AS open, sum(entries) FILTER (WHERE state = 'open') AS in_it, count(*) AS runs, sum(entries) = (SELECT count(*) FROM o) AS entries FROM lsm_runs('o_k');
DELETE FROM o;
VACUUM o;
SELECT count(*) FILTER (WHERE state = 'open'), sum(entries) FROM lsm_runs('o_n');
SELECT lsm_compact('o_n');
SELECT count(*), sum(entries) FROM lsm_runs('o_n');
SELECT lsm_check('o_k', true), lsm_check('o_n', true);
-- The file is truncated, so what the session remembered of its pages is out of date.
INSERT INTO o SELECT i, 'old', i FROM generate_series(1, 50) i;
TRUNCATE o;
INSERT INTO o SELECT i, 'new', i FROM generate_series(1, 3) i;
REINDEX INDEX o_k;
INSERT INTO o SELECT i, 'newer', i FROM generate_series(1, 3) i;
SELECT open_pages('o_k'), lsm_check('o_k', true), lsm_check('o_n', true), t.same_order('o', 'k, v', 'k, v');
BEGIN;
CREATE TABLE now (k int);
CREATE INDEX now_k ON now USING lsm (k);
INSERT INTO now SELECT generate_series(1, 500);
TRUNCATE now;
INSERT INTO now SELECT generate_series(1, 5);
SELECT open_pages('now_k'), lsm_check('now_k', true), t.same('SELECT k FROM now WHERE k > 2');
SAVEPOINT a;
TRUNCATE now;
INSERT INTO now SELECT generate_series(11, 15);
ROLLBACK TO a;
INSERT INTO now SELECT generate_series(6, 9);
SELECT lsm_check('now_k', true), t.same('SELECT k FROM now WHERE k > 2');
COMMIT;
-- Small batches use these pages, too.
SET pg_lsm.batch_inserts = on;
INSERT INTO now SELECT generate_series(21, 29);
SELECT open_pages('now_k'), lsm_check('now_k', true), t.same('SELECT k FROM now WHERE k > 2');
SET pg_lsm.batch_inserts = off;
-- Temporary and unlogged tables.
CREATE TEMP TABLE tmp (k int) ON COMMIT DELETE ROWS;
CREATE INDEX tmp_k ON tmp USING lsm (k);
BEGIN;
INSERT INTO tmp SELECT generate_series(1, 200);
SELECT count(*) FILTER (WHERE state = 'open') AS open, lsm_check('tmp_k', true), t.same('SELECT k FROM tmp WHERE k > 170') FROM lsm_runs('tmp_k');
COMMIT;
INSERT INTO tmp SELECT generate_series(1, 200);
BEGIN;
INSERT INTO tmp SELECT generate_series(1, 20);
SELECT lsm_check('tmp_k', true), t.same('SELECT k FROM tmp WHERE k > 17');
COMMIT;
CREATE UNLOGGED TABLE unl (k int);
CREATE INDEX unl_k ON unl USING lsm (k);
INSERT INTO unl SELECT generate_series(1, 200);
SELECT count(*) FILTER (WHERE state = 'open') AS open, lsm_check('unl_k', true), t.same('SELECT k FROM unl WHERE k > 170') FROM lsm_runs('unl_k');
-- The manifest has room for a merge's output no matter how many pages are open.
SET pg_lsm.debug_buffer_entries = 1;
SET pg_lsm.debug_merge_fanout = 32;
SET pg_lsm.debug_foreground_blocks = 0;
SET pg_lsm.debug_segment_size = 1;
CREATE TABLE full_ (k int);
CREATE INDEX full_k ON full_ USING lsm (k);
INSERT INTO full_ SELECT hashint4(i) FROM generate_series(1, 600) i;
SELECT count(*) <= 118 AS bounded, sum(entries) AS entries, count(*) FILTER (WHERE state = 'open') <= 8 AS open FROM lsm_runs('full_k');
SELECT lsm_check('full_k', true), t.same('SELECT k FROM full_ ORDER BY k');
DROP TABLE o, now, tmp, unl, full_;
DROP FUNCTION open_pages;
