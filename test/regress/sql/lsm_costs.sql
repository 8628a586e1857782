-- A search descends every run, and the planner takes this into account: with many runs it
-- prefers a btree on the same column, but still prefers lsm to no index.
SET pg_lsm.debug_buffer_entries = 0;
SET pg_lsm.debug_page_entries = 0;
SET pg_lsm.debug_merge_fanout = 32;
SET pg_lsm.debug_batch_entries = 300;
CREATE TABLE costs (a int, filler text);
CREATE INDEX costs_l ON costs USING lsm (a);
INSERT INTO costs SELECT (i * 7919) % 20011, repeat('f', 50) FROM generate_series(1, 20000) i;
CREATE INDEX costs_b ON costs (a);
VACUUM ANALYZE costs;
CREATE FUNCTION cost(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Total Cost';
END $$;
SELECT count(*) > 20 AS many_runs FROM lsm_runs('costs_l');
SELECT q, t.plan_has(q, 'costs_b') AS btree FROM unnest(ARRAY['SELECT * FROM costs WHERE a = 5', 'SELECT * FROM costs WHERE a IN (5, 7, 9)', 'SELECT a FROM costs WHERE a < 100', 'SELECT * FROM costs ORDER BY a LIMIT 1', 'SELECT min(a) FROM costs',
	'SELECT * FROM costs x JOIN costs y ON x.a = y.a + 1 WHERE x.a = 9']) q;
CREATE TABLE before AS SELECT cost('SELECT * FROM costs WHERE a = 5') AS btree;
DROP INDEX costs_b;
SELECT q, t.plan_has(q, 'costs_l') AS lsm FROM unnest(ARRAY['SELECT * FROM costs WHERE a = 5', 'SELECT * FROM costs WHERE a IN (5, 7, 9)', 'SELECT a FROM costs WHERE a < 100', 'SELECT * FROM costs ORDER BY a LIMIT 1', 'SELECT min(a) FROM costs',
	'SELECT * FROM costs x JOIN costs y ON x.a = y.a + 1 WHERE x.a = 9']) q;
ALTER TABLE before ADD many numeric;
UPDATE before SET many = cost('SELECT * FROM costs WHERE a = 5');
SELECT lsm_compact('costs_l');
SELECT many > btree AS more, cost('SELECT * FROM costs WHERE a = 5') < many AS less_again, cost('SELECT * FROM costs WHERE a = 5') - btree < 1 AS like_btree FROM before;
-- A small index costs as much as a B-tree: its fixed and free pages are not read.
CREATE TABLE small (k int, v text);
CREATE INDEX small_l ON small USING lsm (k);
INSERT INTO small SELECT i, md5(i::text) FROM generate_series(1, 264) i;
VACUUM ANALYZE small;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TABLE small_costs AS SELECT q, cost(q) AS lsm FROM unnest(ARRAY['SELECT * FROM small ORDER BY k', 'SELECT k FROM small WHERE k < 1000', 'SELECT * FROM small WHERE k = 5']) q;
DROP INDEX small_l;
CREATE INDEX small_b ON small (k);
SELECT q, lsm <= cost(q) + 4.2 AS like_btree FROM small_costs;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- A new table grows in small transactions. Without statistics, its plans are those with a B-tree.
SET pg_lsm.debug_batch_entries = 30;
CREATE TABLE fresh (k int8 PRIMARY KEY WITH (lsm), a text, b text, c text, d text, e text, f text, g text, h text, i text, j text, l text);
DO $$
BEGIN
	FOR b IN 0 .. 7 LOOP
		INSERT INTO fresh SELECT b * 30 + i FROM generate_series(1, 30) i;
		RAISE NOTICE '%', t.plan_has('SELECT FROM fresh WHERE k = 5 FOR KEY SHARE', 'fresh_pkey');
		COMMIT;
	END LOOP;
END $$;
SELECT count(*) > 4 AS many_runs FROM lsm_runs('fresh_pkey');
-- A search costs hardly more than with a B-tree, 8.2.
SELECT cost('SELECT FROM fresh WHERE k = 5') < 8.5 AS like_btree;
DROP TABLE fresh;
-- A session keeps a plan that it makes while the tables are empty. So it must be the B-tree's plan.
CREATE TABLE customers (id int, name text);
CREATE UNIQUE INDEX customers_id ON customers USING lsm (id);
CREATE TABLE orders (id int, customer int, state text);
CREATE INDEX orders_customer ON orders USING lsm (customer);
CREATE INDEX orders_state ON orders USING lsm (state);
SELECT t.plan_has('SELECT name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.state = ''new''', 'customers_id') AS by_index;
PREPARE below(int) AS SELECT count(*) FROM customers WHERE id < $1;
SET plan_cache_mode = force_generic_plan;
SELECT t.plan_has('EXECUTE below(1)', 'customers_id') AS by_index;
RESET plan_cache_mode;
DROP TABLE customers, orders;
-- A scan that skips reads few pages of the index. A scan by page does not save the cost of the others.
CREATE TABLE skipped AS SELECT i % 5 AS a, i % 1009 AS b, (repeat(md5(i::text), 4) COLLATE "C") AS f FROM generate_series(1, 40000) i;
CREATE INDEX skipped_abf ON skipped USING lsm (a, b, f);
VACUUM ANALYZE skipped;
SELECT cost('SELECT ctid, f FROM skipped WHERE b = 7') > 20 AS not_free, cost('SELECT ctid, f FROM skipped WHERE a > 1 AND b = 7') > 20 AS nor_a_range;
DROP TABLE skipped;
DROP TABLE costs, before, small, small_costs;
DROP FUNCTION cost;
