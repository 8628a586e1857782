-- Joins over the index: merge joins that mark and restore, nested loops.
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

-- Full join: needs mark and restore with rows on both sides left over.
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
