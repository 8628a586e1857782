-- Partitioned tables and inheritance.
CREATE TABLE p (k int, v text COLLATE "C", id serial) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200) PARTITION BY LIST (v);
CREATE TABLE p2a PARTITION OF p2 FOR VALUES IN ('v1', 'v2');
CREATE TABLE p2d PARTITION OF p2 DEFAULT;
INSERT INTO p (k, v) SELECT i % 200, 'v' || i % 5 FROM generate_series(1, 500) i;
CREATE INDEX p_kv ON p USING lsm (k, v);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (200) TO (300);
CREATE TABLE p4 (id serial, v text COLLATE "C", k int);
CREATE INDEX p4_own ON p4 USING lsm (k, v);
INSERT INTO p4 (k, v) SELECT 300 + i % 50, 'v' || i % 5 FROM generate_series(1, 100) i;
ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (300) TO (400);
INSERT INTO p (k, v) SELECT i % 400, 'v' || i % 5 FROM generate_series(1, 800) i;
SELECT c.relname, c.relkind FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid WHERE c.relname ~ '^p.*_(kv|k_v_idx|own)' ORDER BY 1;
SELECT lsm_check(i.indexrelid, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE relkind = 'i' AND relname ~ '^p.*_(k_v_idx|own)';
SELECT t.same('SELECT * FROM p WHERE k = 151 AND v = ''v1'''), t.same('SELECT * FROM p WHERE k > 380'), t.same('SELECT k, v FROM p WHERE k BETWEEN 90 AND 310 ORDER BY k, v');
-- In the order of the partitions, or merged.
SELECT t.same('SELECT k, v FROM p ORDER BY k, v'), t.same('SELECT k, v FROM p ORDER BY k DESC, v DESC LIMIT 20');
-- Rows that move from one partition to another.
UPDATE p SET k = k + 100 WHERE k BETWEEN 50 AND 250 AND v = 'v3';
UPDATE p SET v = 'v1' WHERE k BETWEEN 100 AND 199 AND v = 'v4';
SELECT t.same('SELECT * FROM p WHERE k BETWEEN 100 AND 199 AND v = ''v1'''), t.same('SELECT * FROM p WHERE k > 300 AND v = ''v3''');
ALTER TABLE p DETACH PARTITION p4;
SELECT t.same('SELECT * FROM p4 WHERE k = 310');
-- ON ONLY, with indexes attached one by one.
CREATE INDEX p_v ON ONLY p USING lsm (v);
SELECT indisvalid FROM pg_index WHERE indexrelid = 'p_v'::regclass;
CREATE INDEX p1_v ON p1 USING lsm (v);
CREATE INDEX p2_v ON p2 USING lsm (v);
CREATE INDEX p3_v ON p3 USING lsm (v);
ALTER INDEX p_v ATTACH PARTITION p1_v;
ALTER INDEX p_v ATTACH PARTITION p2_v;
ALTER INDEX p_v ATTACH PARTITION p3_v;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'p_v'::regclass;
REINDEX INDEX p_v;
REINDEX TABLE p;
SELECT t.same('SELECT * FROM p WHERE v = ''v2''');
SELECT lsm_check(i.indexrelid, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE relkind = 'i' AND relname ~ '^p\d.*(_v|idx)$';
TRUNCATE p;
SELECT t.same('SELECT * FROM p WHERE v = ''v2''');
DROP TABLE p, p4;
-- Inheritance: each child has its own index, and their order is merged.
CREATE TABLE a (k int);
CREATE TABLE b () INHERITS (a);
CREATE INDEX a_k ON a USING lsm (k);
CREATE INDEX b_k ON b USING lsm (k DESC);
INSERT INTO a SELECT i * 2 FROM generate_series(1, 50) i;
INSERT INTO b SELECT i * 2 + 1 FROM generate_series(1, 50) i;
SELECT t.same('SELECT * FROM a ORDER BY k'), t.same('SELECT * FROM a ORDER BY k DESC LIMIT 10'), t.same('SELECT * FROM a WHERE k IN (4, 5)');
SET enable_seqscan = off;
SELECT min(k), max(k) FROM a;
RESET enable_seqscan;
DROP TABLE a, b;
