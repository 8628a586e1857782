-- pg_lsm.default_method: the method of indexes and keys whose definition names none.
CREATE FUNCTION d_newer() RETURNS bool LANGUAGE sql AS $$ SELECT current_setting('server_version_num')::int >= 180000 $$;
-- The indexes of a table, their methods, and whether they have the parameter that dumps need.
CREATE FUNCTION d_methods(name text) RETURNS TABLE (index name, method name, parameter bool) LANGUAGE sql AS $$
  SELECT i.relname, m.amname, coalesce(i.reloptions @> '{lsm=true}', false)
  FROM pg_index x JOIN pg_class i ON i.oid = indexrelid JOIN pg_am m ON m.oid = relam
  WHERE indrelid = name::regclass ORDER BY i.relname COLLATE "C" $$;
CREATE FUNCTION d_unsuited() RETURNS text LANGUAGE sql AS $$ SELECT CASE WHEN d_newer() THEN 'lsm' ELSE 'btree' END $$;
SHOW pg_lsm.default_method;
CREATE TABLE d_before (id int PRIMARY KEY, a int);
CREATE INDEX d_before_a ON d_before (a);
SET pg_lsm.default_method = 'hash';
SET pg_lsm.default_method = lsm;
-- CREATE INDEX.
CREATE TABLE d1 (id int PRIMARY KEY, a int UNIQUE, b text, p point, s int4range, CONSTRAINT ab UNIQUE (a, b) INCLUDE (id) WITH (merge_fanout = 4) DEFERRABLE);
CREATE INDEX d1_a ON d1 (a);
CREATE INDEX d1_b ON d1 /* USING btree ( */ (b text_pattern_ops DESC, lower(b)) INCLUDE (id) WITH (fillfactor = 70) WHERE a > 0;
CREATE INDEX d1_btree ON d1 USING btree (a);
CREATE INDEX d1_btree2 ON ONLY public . "d1" -- (a)
  USING BTREE (a);
CREATE UNIQUE INDEX d1_only ON ONLY d1 (id);
CREATE INDEX d1_only2 ON ONLY (d1) (id);
CREATE INDEX d1_star ON d1 * USING btree (id);
CREATE INDEX d1_u ON U&"d\0031" (id);
CREATE INDEX d1_hash ON d1 USING hash (a);
CREATE INDEX d1_gist ON d1 USING gist (p);
CREATE INDEX CONCURRENTLY d1_c ON d1 (a, b);
CREATE INDEX IF NOT EXISTS d1_c ON d1 (a, b);
CREATE INDEX d1_false ON d1 (b) WITH (lsm = false);
SELECT * FROM d_methods('d1');
SELECT pg_get_indexdef('d1_b'::regclass);
-- Errors are those of a B-tree.
\set VERBOSITY sqlstate
CREATE INDEX ON d1 (p);
CREATE INDEX ON d1 (nothing);
CREATE INDEX ON d1 (nothing(a));
CREATE INDEX ON d1 (a nothing_ops);
CREATE INDEX ON d1 (a) WITH (nothing = 1);
CREATE INDEX ON d_nothing (a);
CREATE INDEX ON pg_am (amname);
CREATE TABLE d_error (p point PRIMARY KEY);
\set VERBOSITY default
-- An index for which lsm has no operator class is a B-tree: here on a type that has a class only
-- for btree.
SET client_min_messages = warning;
CREATE TYPE d_text;
CREATE FUNCTION d_in(cstring) RETURNS d_text LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION d_out(d_text) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE d_text (INPUT = d_in, OUTPUT = d_out, LIKE = text);
RESET client_min_messages;
CREATE CAST (d_text AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE FUNCTION d_lt(d_text, d_text) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1::text COLLATE "C" < $2::text $$;
CREATE FUNCTION d_eq(d_text, d_text) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1::text COLLATE "C" = $2::text $$;
CREATE FUNCTION d_cmp(d_text, d_text) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'bttext_pattern_cmp';
CREATE OPERATOR < (FUNCTION = d_lt, LEFTARG = d_text, RIGHTARG = d_text);
CREATE OPERATOR = (FUNCTION = d_eq, LEFTARG = d_text, RIGHTARG = d_text);
CREATE OPERATOR CLASS d_ops DEFAULT FOR TYPE d_text USING btree AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 d_cmp(d_text, d_text);
CREATE TABLE d2 (a int, t d_text PRIMARY KEY);
CREATE INDEX d2_t ON d2 (t);
CREATE INDEX d2_a ON d2 (a) WITH (vacuum_cleanup_index_scale_factor = 1);
SET client_min_messages = debug1;
CREATE INDEX d2_ops ON d2 (a, t d_ops);
RESET client_min_messages;
SELECT * FROM d_methods('d2');
-- Keys in CREATE TABLE and ALTER TABLE.
CREATE TYPE d_composite AS (x int, y text);
CREATE TABLE d3 OF d_composite (PRIMARY KEY (x), UNIQUE NULLS NOT DISTINCT (y));
SELECT * FROM d_methods('d3');
CREATE TABLE d4 (x int);
ALTER TABLE d4 ADD PRIMARY KEY (x), ADD COLUMN y bigserial UNIQUE, ADD COLUMN z text, ADD CONSTRAINT yz UNIQUE (z, y),
  ADD CONSTRAINT b UNIQUE (y, z) WITH (lsm = false), ADD CONSTRAINT p EXCLUDE (x WITH =), ADD COLUMN t d_text UNIQUE;
ALTER TABLE IF EXISTS d_nothing ADD PRIMARY KEY (x);
ALTER TABLE d4 ADD UNIQUE (nothing);
ALTER TABLE d4 ADD COLUMN e d_no_type UNIQUE;
SELECT * FROM d_methods('d4');
CREATE TABLE d5 (x int PRIMARY KEY WITH (lsm = false), y int UNIQUE WITH (lsm = on), z int UNIQUE WITH (fillfactor = 50));
SELECT * FROM d_methods('d5');
-- A column whose type changes in the same command.
CREATE TABLE d6 (x text);
ALTER TABLE d6 ALTER COLUMN x TYPE point USING NULL, ADD UNIQUE (x);
ALTER TABLE d6 ALTER COLUMN x TYPE int USING NULL, ADD UNIQUE (x);
SELECT * FROM d_methods('d6');
-- A column that exists keeps its type.
CREATE TABLE d7 (t d_text);
ALTER TABLE d7 ADD COLUMN IF NOT EXISTS t int, ADD UNIQUE (t);
SELECT * FROM d_methods('d7');
-- Indexes keep their methods.
CREATE TABLE d_like (LIKE d_before INCLUDING ALL);
SELECT * FROM d_methods('d_like');
ALTER TABLE d_before ALTER COLUMN id TYPE bigint, ALTER COLUMN a TYPE bigint;
REINDEX TABLE d_before;
CREATE UNIQUE INDEX d_before_id ON d_before USING btree (id, a);
ALTER TABLE d_before ADD CONSTRAINT d_before_u UNIQUE USING INDEX d_before_id;
SELECT * FROM d_methods('d_before');
SET pg_lsm.default_method = btree;
ALTER TABLE d1 ALTER COLUMN id TYPE bigint;
CREATE TABLE d_like2 (LIKE d1 INCLUDING INDEXES);
SELECT * FROM d_methods('d1') WHERE index ~ 'pkey|d1_only';
SELECT * FROM d_methods('d_like2') WHERE method = 'lsm';
SET pg_lsm.default_method = lsm;
-- Partitions. Before 18, their keys are B-trees, because PostgreSQL demands it.
CREATE TABLE d_p (k int, v int, PRIMARY KEY (k)) PARTITION BY RANGE (k);
CREATE TABLE d_p1 PARTITION OF d_p FOR VALUES FROM (0) TO (10);
CREATE TABLE d_p2 (k int NOT NULL, v int);
ALTER TABLE d_p ATTACH PARTITION d_p2 FOR VALUES FROM (10) TO (20);
CREATE INDEX d_p_v ON d_p (v);
CREATE INDEX d_p_b ON d_p USING btree (v);
CREATE TABLE d_p3 PARTITION OF d_p (UNIQUE (v)) FOR VALUES FROM (20) TO (30);
SET pg_lsm.default_method = btree;
CREATE TABLE d_p4 PARTITION OF d_p FOR VALUES FROM (30) TO (40);
SET pg_lsm.default_method = lsm;
SELECT relname, index, method FROM unnest('{d_p,d_p1,d_p2,d_p3,d_p4}'::text[]) relname, d_methods(relname) WHERE index !~ 'key$' ORDER BY 1, 2;
SELECT relname, bool_and(method = d_unsuited() AND parameter = (method = 'lsm')) AS as_documented, count(*)
FROM unnest('{d_p,d_p1,d_p2,d_p3,d_p4}'::text[]) relname, d_methods(relname) WHERE index ~ 'key$' GROUP BY 1 ORDER BY 1;
INSERT INTO d_p VALUES (1, 1), (15, 2), (25, 3), (35, 4);
INSERT INTO d_p VALUES (1, 2), (25, 4) ON CONFLICT (k) DO UPDATE SET v = excluded.v + 10 RETURNING *;
INSERT INTO d_p VALUES (15, 2), (36, 2) ON CONFLICT DO NOTHING RETURNING *;
CREATE TABLE d_h (k int PRIMARY KEY, v int) PARTITION BY HASH (k);
CREATE TABLE d_h1 PARTITION OF d_h FOR VALUES WITH (MODULUS 1, REMAINDER 0);
SELECT bool_and(method = d_unsuited()) AS as_documented FROM unnest('{d_h,d_h1}'::text[]) relname, d_methods(relname);
INSERT INTO d_h VALUES (1, 1);
INSERT INTO d_h VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING *;
-- A key of an inheritance child is a B-tree if the parent's key is one. TimescaleDB needs that.
CREATE TABLE d_parent (a int, b int, c int UNIQUE, PRIMARY KEY (a, b) WITH (lsm = false));
CREATE TABLE d_child (d int, PRIMARY KEY (b, a), UNIQUE (a)) INHERITS (d_parent);
CREATE TABLE d_child2 () INHERITS (d_parent);
ALTER TABLE d_child2 ADD PRIMARY KEY (a, b), ADD UNIQUE (c);
SELECT relname, index, method FROM unnest('{d_child,d_child2}'::text[]) relname, d_methods(relname);
DROP TABLE d_child, d_child2, d_parent;
-- Materialized views.
CREATE MATERIALIZED VIEW d_m AS SELECT id, a FROM d1;
CREATE INDEX d_m_a ON d_m (a);
CREATE UNIQUE INDEX d_m_id ON d_m (id);
SELECT index, method = CASE WHEN index = 'd_m_id' THEN d_unsuited() ELSE 'lsm' END AS as_documented FROM d_methods('d_m');
REFRESH MATERIALIZED VIEW CONCURRENTLY d_m;
-- The setting does not apply to temporary tables.
CREATE TEMP TABLE d_temp (id int PRIMARY KEY, a int);
CREATE INDEX d_temp_a ON d_temp (a);
CREATE TABLE pg_temp.d_temp2 (id int PRIMARY KEY);
ALTER TABLE d_temp ADD UNIQUE (a);
SELECT DISTINCT method FROM (SELECT * FROM d_methods('d_temp') UNION ALL SELECT * FROM d_methods('d_temp2')) m;
-- Nor does it apply to keys WITHOUT OVERLAPS, which are GiST indexes.
DO $$ BEGIN
  IF d_newer() THEN
    CREATE TABLE d_over (a int4range, r int4range);
    EXECUTE 'ALTER TABLE d_over ADD PRIMARY KEY (a, r WITHOUT OVERLAPS)';
    EXECUTE 'CREATE TABLE d_over2 (a int4range, r int4range, UNIQUE (a, r WITHOUT OVERLAPS))';
    IF (SELECT min(method) <> 'gist' OR max(method) <> 'gist' FROM (SELECT * FROM d_methods('d_over') UNION ALL SELECT * FROM d_methods('d_over2')) m) THEN
      RAISE 'another method';
    END IF;
    DROP TABLE d_over, d_over2;
  END IF;
END $$;
-- It does apply to unlogged tables.
CREATE UNLOGGED TABLE d_unlogged (id int PRIMARY KEY);
SELECT * FROM d_methods('d_unlogged');
-- Foreign keys. Before 18, a key is a B-tree if the same command refers to it.
CREATE TABLE d_self (id int PRIMARY KEY, parent int REFERENCES d_self, a int UNIQUE, b int, c int, UNIQUE (b, c),
  FOREIGN KEY (a, b) REFERENCES d_self (c, b), UNIQUE (c));
SELECT index, method = CASE WHEN index IN ('d_self_pkey', 'd_self_b_c_key') THEN d_unsuited() ELSE 'lsm' END AS as_documented FROM d_methods('d_self');
CREATE SCHEMA d_schema
  CREATE TABLE parent (id int PRIMARY KEY, a int UNIQUE, b int)
  CREATE TABLE child (id int PRIMARY KEY, a int REFERENCES parent)
  CREATE INDEX parent_b ON parent (b)
  CREATE INDEX parent_btree ON parent USING btree (b);
SELECT index, method = CASE index WHEN 'parent_pkey' THEN d_unsuited() WHEN 'parent_btree' THEN 'btree' ELSE 'lsm' END AS as_documented
FROM unnest('{d_schema.parent,d_schema.child}'::text[]) relname, d_methods(relname);
CREATE TABLE d_alter (id int, a int);
ALTER TABLE d_alter ADD PRIMARY KEY (id), ADD FOREIGN KEY (a) REFERENCES d_alter (id);
SELECT index, method = d_unsuited() AS as_documented FROM d_methods('d_alter');
-- A later foreign key gets an error with a hint before 18.
CREATE TABLE d_key (id int PRIMARY KEY);
CREATE FUNCTION d_hint(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  hint text;
  detail text;
BEGIN
  EXECUTE command;
  RETURN d_newer();
EXCEPTION WHEN feature_not_supported THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT, detail = PG_EXCEPTION_DETAIL;
  RETURN NOT d_newer() AND hint ~ 'WITH \(lsm = false\)' AND detail ~ 'PostgreSQL 18';
END $$;
SELECT d_hint('CREATE TABLE d_ref (id int REFERENCES d_key)'), d_hint('ALTER TABLE d1 ADD FOREIGN KEY (a) REFERENCES d_key'),
  d_hint('ALTER TABLE d1 ADD COLUMN fk int REFERENCES d_key');
SET client_min_messages = warning;
ALTER TABLE d_key DROP CONSTRAINT d_key_pkey CASCADE, ADD PRIMARY KEY (id) WITH (lsm = false);
RESET client_min_messages;
SELECT * FROM d_methods('d_key');
CREATE TABLE d_ref2 (id int REFERENCES d_key);
-- Functions, DO, EXECUTE, cached plans.
CREATE FUNCTION d_make(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DROP TABLE IF EXISTS d_made, d_made2;
  CREATE TABLE d_made (id int PRIMARY KEY, a int);
  CREATE INDEX d_made_a ON d_made (a);
  CREATE INDEX d_made_b ON d_made USING btree (a);
  ALTER TABLE d_made ADD UNIQUE (a);
  EXECUTE format('CREATE TABLE d_made2 (id int PRIMARY KEY); CREATE INDEX d_made2_a ON d_made2 (id); CREATE INDEX d_made2_b ON d_made2 USING btree (id)');
END $$;
SET client_min_messages = warning;
DO $$ BEGIN PERFORM d_make(1); PERFORM d_make(2); END $$;
RESET client_min_messages;
SELECT relname, m.* FROM unnest('{d_made,d_made2}'::text[]) relname, d_methods(relname) m;
SET pg_lsm.default_method = btree;
SET client_min_messages = warning;
SELECT d_make(3);
RESET client_min_messages;
SELECT DISTINCT method FROM d_methods('d_made');
SET pg_lsm.default_method = lsm;
CREATE TABLE d_sql (a int);
CREATE FUNCTION d_sql() RETURNS void LANGUAGE sql AS $$
  CREATE INDEX d_sql_a ON d_sql (a);
  CREATE INDEX d_sql_b ON d_sql USING btree (a);
  ALTER TABLE d_sql ADD UNIQUE (a);
$$;
SELECT d_sql();
SELECT * FROM d_methods('d_sql');
-- Several commands in one message.
CREATE TABLE d_multi (a int)\; CREATE INDEX d_multi_a ON d_multi (a)\; CREATE INDEX d_multi_b ON d_multi USING btree (a)\; CREATE INDEX d_multi_c ON public.d_multi (a);
SELECT * FROM d_methods('d_multi');
-- The user of a function does not determine the methods for other users' tables.
CREATE ROLE d_role;
GRANT CREATE ON SCHEMA public TO d_role;
SET ROLE d_role;
CREATE INDEX ON d1 (a);
ALTER TABLE d1 ADD UNIQUE (b);
CREATE TABLE d_own (a int PRIMARY KEY);
SELECT * FROM d_methods('d_own');
RESET ROLE;
DROP TABLE d_own;
REVOKE CREATE ON SCHEMA public FROM d_role;
DROP ROLE d_role;
-- The storage parameters contain what a dump needs.
SELECT pg_get_indexdef('d4_pkey'::regclass), pg_get_indexdef('ab'::regclass);
SELECT DISTINCT lsm_check(indexrelid::regclass, true) IS NULL AS failed FROM pg_index x JOIN pg_class i ON i.oid = indexrelid
WHERE relkind = 'i' AND relname ~ '^d_?[0-9p]' AND relam = (SELECT oid FROM pg_am WHERE amname = 'lsm');
RESET pg_lsm.default_method;
SET client_min_messages = warning;
DROP SCHEMA d_schema CASCADE;
DROP MATERIALIZED VIEW d_m;
DROP TABLE IF EXISTS d_ref, d_ref2, d_key, d_alter, d_self, d_unlogged, d_temp, d_temp2, d_h, d_p, d_like, d_like2, d1, d2, d3, d4, d5, d6, d_before,
  d_made, d_made2, d_sql, d_multi;
DROP TYPE d_composite;
DROP TYPE d_text CASCADE;
DROP FUNCTION d_methods, d_hint, d_make, d_sql, d_unsuited, d_newer;
