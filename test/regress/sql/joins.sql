-- Joins that use the index: merge joins with mark and restore, nested loops.
CREATE TABLE j (k int, t text, id serial);
CREATE TABLE m (k int, t text, id serial);
INSERT INTO j (k, t) SELECT i % 40, 't' || i % 9 FROM generate_series(1, 400) i;
CREATE INDEX j_k ON j USING lsm (k);
CREATE INDEX j_tk ON j USING lsm (t, k);
CREATE INDEX m_k ON m USING lsm (k DESC);
CREATE INDEX m_tk ON m USING lsm (t, k);
INSERT INTO m (k, t) SELECT (i * 3) % 50, 't' || i % 7 FROM generate_series(1, 300) i;
INSERT INTO m (k) VALUES (NULL), (NULL);
INSERT INTO j (k) VALUES (NULL);
VACUUM ANALYZE j, m;

-- The rows of each kind of join; a merge join reads both sides by index.
CREATE FUNCTION check_join(query text) RETURNS TABLE (join_type text, indexes bool, rows bigint, rows_hash text)
LANGUAGE plpgsql SET enable_sort = off SET enable_material = off SET enable_memoize = off SET max_parallel_workers_per_gather = 0 AS $$
DECLARE
	line text;
BEGIN
	FOREACH join_type IN ARRAY '{Hash,Merge,Nested}'::text[] LOOP
		PERFORM set_config('enable_hashjoin', (join_type = 'Hash')::text, true);
		PERFORM set_config('enable_mergejoin', (join_type = 'Merge')::text, true);
		PERFORM set_config('enable_nestloop', (join_type = 'Nested')::text, true);
		PERFORM set_config('enable_seqscan', (join_type = 'Hash')::text, true);
		PERFORM set_config('enable_bitmapscan', 'off', true);
		indexes := true;
		FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
			indexes := indexes AND line !~ 'Seq Scan|Sort$|Materialize';
		END LOOP;
		EXECUTE format('SELECT count(*), md5(string_agg(q::text, '' '' ORDER BY q::text COLLATE "C")) FROM (%s) q', query) INTO rows, rows_hash;
		indexes := indexes OR join_type = 'Hash';
		RETURN NEXT;
	END LOOP;
END $$;
SELECT q.n, count(DISTINCT rows_hash) AS answers, min(rows) AS rows, bool_and(indexes OR q.n = 10) AS by_index
FROM unnest(ARRAY[
	'SELECT j.id, m.id FROM j JOIN m USING (k)',
	'SELECT j.id, m.id FROM j JOIN m USING (t, k)',
	'SELECT j.id, m.id FROM j JOIN m USING (t)',
	'SELECT a.id, b.id FROM j a JOIN j b USING (k)',
	'SELECT j.id, m.id FROM j LEFT JOIN m USING (k)',
	'SELECT j.id FROM j WHERE EXISTS (SELECT FROM m WHERE m.k = j.k)',
	'SELECT j.id FROM j WHERE NOT EXISTS (SELECT FROM m WHERE m.k = j.k)',
	'SELECT j.id, m.id FROM j JOIN m USING (k) WHERE j.k BETWEEN 5 AND 9',
	'SELECT j.k, m.k FROM j JOIN m USING (k) WHERE j.k BETWEEN 5 AND 9',
	'SELECT a.id, b.id, m.id FROM j a JOIN j b USING (k) JOIN m USING (k) WHERE a.k < 4']) WITH ORDINALITY q(query, n), LATERAL check_join(q.query)
GROUP BY q.n ORDER BY q.n;

-- A full join needs mark and restore with unmatched rows on both sides.
SET enable_hashjoin = off;
SET enable_seqscan = off;
SET enable_sort = off;
SELECT count(*), count(j.id), count(m.id), sum(j.id), sum(m.id) FROM j FULL JOIN m USING (k);
SET enable_hashjoin = on;
SET enable_mergejoin = off;
SELECT count(*), count(j.id), count(m.id), sum(j.id), sum(m.id) FROM j FULL JOIN m USING (k);
RESET enable_mergejoin;
RESET enable_seqscan;
RESET enable_sort;

-- Long groups of equal keys: each outer row restores the mark.
CREATE TABLE groups (k int, id serial);
CREATE INDEX groups_k ON groups USING lsm (k);
INSERT INTO groups (k) SELECT i / 50 FROM generate_series(0, 299) i;
VACUUM ANALYZE groups;
SELECT count(DISTINCT rows_hash), min(rows) FROM check_join('SELECT a.id AS x, b.id AS y FROM groups a JOIN groups b USING (k)');
-- The inner side is scanned backward.
SELECT count(DISTINCT rows_hash), min(rows) FROM check_join('SELECT a.id AS x, b.id AS y FROM (SELECT * FROM groups ORDER BY k DESC) a JOIN groups b USING (k)');
DROP TABLE j, m, groups;
DROP FUNCTION check_join;

-- Nested loops return to a leaf of the inner index, mostly if outer rows are sorted.  Meanwhile entries are added
-- and removed.
CREATE TABLE n (k int, d text COLLATE "C", a int, b bigint) WITH (autovacuum_enabled = off);
CREATE INDEX n_k ON n USING lsm (k);
CREATE INDEX n_d ON n USING lsm (d);
CREATE INDEX n_ab ON n USING lsm (a, b DESC);
INSERT INTO n SELECT i * 3 % 2003, 'd' || i * 7 % 501, i % 40, i % 97 FROM generate_series(1, 4000) i;
INSERT INTO n VALUES (NULL, NULL, NULL, NULL), (NULL, 'd5', 3, NULL);
CREATE TEMP TABLE o AS SELECT i, i * 37 % 2003 AS r FROM generate_series(-5, 2010) i;
-- The oracle: a copy of the table, with B-trees.
CREATE TEMP TABLE twin (LIKE n);
CREATE INDEX twin_k ON twin USING btree (k);
CREATE INDEX twin_d ON twin USING btree (d);
CREATE INDEX twin_ab ON twin USING btree (a, b DESC);
CREATE FUNCTION check_lookups() RETURNS TABLE (same bool, rows text) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_material = off SET enable_memoize = off AS $$
DECLARE
	query text;
	want text;
	got text;
BEGIN
	TRUNCATE twin;
	INSERT INTO twin SELECT * FROM n;
	same := true;
	FOREACH query IN ARRAY ARRAY[
		'SELECT i, k FROM o, LATERAL (SELECT k FROM n WHERE k >= i ORDER BY k LIMIT 3) x',
		'SELECT i, k FROM (SELECT i FROM o ORDER BY i DESC) o, LATERAL (SELECT k FROM n WHERE k <= i ORDER BY k DESC LIMIT 3) x',
		'SELECT i, k FROM o, LATERAL (SELECT k FROM n WHERE k < i ORDER BY k DESC LIMIT 1) x',
		'SELECT r, k FROM o, LATERAL (SELECT k FROM n WHERE k > r ORDER BY k LIMIT 2) x',
		'SELECT i, d FROM o, LATERAL (SELECT d FROM n WHERE d >= ''d'' || i ORDER BY d LIMIT 2) x',
		'SELECT i, b FROM o, LATERAL (SELECT b FROM n WHERE a = i / 50 AND b < i % 50 ORDER BY b DESC LIMIT 2) x',
		'SELECT i, (SELECT count(*) FROM n WHERE k = i), (SELECT count(d) FROM n WHERE k = r) FROM o',
		'SELECT i, (SELECT count(*) FROM n WHERE d = ''d'' || i) FROM o',
		'SELECT i, (SELECT count(*) FROM n WHERE a = i / 50 AND b = i % 50) FROM o'] LOOP
		query := format('SELECT md5(string_agg(q::text, '' '' ORDER BY q::text COLLATE "C")), count(*) FROM (%s) q', query);
		EXECUTE query INTO got, rows;
		EXECUTE replace(query, ' FROM n ', ' FROM twin ') INTO want;
		same := same AND got = want;
	END LOOP;
	RETURN NEXT;
END $$;
SELECT * FROM check_lookups();
DELETE FROM n WHERE k BETWEEN 100 AND 300 OR k % 5 = 0;
SELECT * FROM check_lookups();
VACUUM (INDEX_CLEANUP ON) n;
SELECT * FROM check_lookups();
INSERT INTO n SELECT i, 'd' || i, i % 40, i % 97 FROM generate_series(90, 310) i;
SELECT * FROM check_lookups();
-- In one scan, with a cursor that is paused while rows are inserted.
BEGIN;
SET LOCAL enable_seqscan = off;
DECLARE c CURSOR FOR SELECT i, k FROM o, LATERAL (SELECT k FROM n WHERE k >= i ORDER BY k LIMIT 1) x;
MOVE 10 IN c;
INSERT INTO n SELECT i, 'e', 1, 1 FROM generate_series(1, 2000) i;
MOVE ALL IN c;
COMMIT;
SELECT count(*) FROM o WHERE EXISTS (SELECT FROM n WHERE k = i);
DROP TABLE n, o, twin;
DROP FUNCTION check_lookups;
