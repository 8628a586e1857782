-- Separators on fence pages differ in length. Those at page boundaries may be longer than most,
-- and a segment must not need more pages than it has.  There, tuple keys are complete, with their
-- included columns.
SET client_min_messages = warning;
SET pg_lsm.debug_page_entries = 0;
SET pg_lsm.debug_buffer_entries = 0;
SET pg_lsm.debug_segment_size = 128;
SET pg_lsm.debug_batch_entries = 0;
SET pg_lsm.debug_foreground_blocks = 4096;

CREATE TABLE f (k numeric, t text) WITH (autovacuum_enabled = off);
ALTER TABLE f ALTER t SET STORAGE EXTERNAL;
SELECT setseed(0.5);

-- The first one leads to the first page of each level.
INSERT INTO f SELECT 0, repeat('x', 2600);
INSERT INTO f SELECT i, repeat('y', 1160 + (random() * 120)::int) FROM generate_series(1, 4000) i;
CREATE INDEX f_k ON f USING lsm (k) INCLUDE (t);
SELECT lsm_check('f_k', true);

-- Batches, merges, and leaves after VACUUM, with one long entry in twenty.
TRUNCATE f;
INSERT INTO f SELECT random() * 1e6, repeat('z', CASE WHEN random() < 0.05 THEN 2600 ELSE 600 END) FROM generate_series(1, 10000);
DELETE FROM f WHERE k::int % 3 = 0;
VACUUM f;
INSERT INTO f SELECT random() * 1e6, repeat('z', CASE WHEN random() < 0.05 THEN 2600 ELSE 600 END) FROM generate_series(1, 10000);
SELECT lsm_compact('f_k');
SELECT lsm_check('f_k', true);

-- Entries of any length.
INSERT INTO f SELECT random() * 1e6, repeat('z', (random() * 2500)::int + 100) FROM generate_series(1, 10000);
DELETE FROM f WHERE k::int % 3 = 1;
VACUUM f;
SELECT lsm_compact('f_k');
SELECT lsm_check('f_k', true);
SET enable_seqscan = off;
SELECT count(*) = (SELECT count(*) FROM f WHERE k + 0 >= 0) AS same FROM f WHERE k >= 0;

DROP TABLE f;
