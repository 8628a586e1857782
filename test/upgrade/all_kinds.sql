-- Tables with all kinds of lsm indexes and keys, for tests of dumps and upgrades.
CREATE TABLE t (k int, s text COLLATE "C", n numeric, d timestamptz, id serial PRIMARY KEY);
INSERT INTO t (k, s, n, d) SELECT i % 100, 's' || i % 10, i / 7.0, now() + i * interval '1 minute' FROM generate_series(1, 800) i;
CREATE INDEX t_k ON t USING lsm (k);
CREATE INDEX t_mixed ON t USING lsm (s DESC, n NULLS FIRST, k DESC NULLS LAST) INCLUDE (id);
CREATE INDEX t_part ON t USING lsm (d) WHERE k > 50;
CREATE INDEX t_expr ON t USING lsm (lower(s), (n * 2));
CREATE INDEX t_pattern ON t USING lsm (s text_pattern_ops);
INSERT INTO t (k, s, n, d) SELECT i % 100, 't' || i % 10, i / 3.0, now() FROM generate_series(1, 800) i;
ALTER TABLE t CLUSTER ON t_k;
ALTER INDEX t_expr ALTER COLUMN 2 SET STATISTICS 50;
COMMENT ON INDEX t_k IS 'a comment';
CREATE TABLE e (k int, CONSTRAINT e_k EXCLUDE USING lsm (k WITH =) DEFERRABLE);
INSERT INTO e SELECT i FROM generate_series(1, 100) i;
CREATE TABLE p (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (50);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (50) TO (100);
CREATE INDEX p_k ON p USING lsm (k, v COLLATE "C");
INSERT INTO p SELECT i % 100, 'p' || i FROM generate_series(1, 500) i;
CREATE TABLE c (id int PRIMARY KEY WITH (lsm), a int UNIQUE NULLS NOT DISTINCT WITH (lsm, merge_fanout = 4), CONSTRAINT c_x UNIQUE (a, id) INCLUDE (a) WITH (lsm) DEFERRABLE);
CREATE UNIQUE INDEX c_u ON c USING lsm ((a + 1)) WHERE id > 5;
INSERT INTO c SELECT i, i FROM generate_series(1, 100) i;
CREATE MATERIALIZED VIEW m AS SELECT k, count(*) AS n FROM t GROUP BY k;
CREATE INDEX m_n ON m USING lsm (n, k);
CREATE UNLOGGED TABLE u (k int);
CREATE INDEX u_k ON u USING lsm (k);
INSERT INTO u SELECT i FROM generate_series(1, 100) i;
-- A user-defined operator class.
CREATE FUNCTION back_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS back_ops FOR TYPE int USING lsm AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 back_cmp(int, int);
CREATE INDEX t_back ON t USING lsm (k back_ops);
DELETE FROM t WHERE k % 7 = 0;
