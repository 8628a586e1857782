-- INSERT ... ON CONFLICT DO NOTHING of many rows into a vacuumed table: most conflicting rows need
-- not be read.  What the executor does with such rows still happens.
CREATE TABLE ov (id int NOT NULL, v int CHECK (v < 1000), c text COLLATE "C" DEFAULT 'first', n int);
CREATE UNIQUE INDEX ov_id ON ov USING lsm (id);
INSERT INTO ov SELECT i, 0 FROM generate_series(1, 2000) i;
VACUUM ov;
-- New rows among existing ones; keys that occur twice in the statement; rows of a page that is not
-- all-visible.
INSERT INTO ov SELECT i, 1, 'second' FROM generate_series(1001, 3000) i ON CONFLICT DO NOTHING;
INSERT INTO ov SELECT i % 500, 2, 'third' FROM generate_series(0, 999) i ON CONFLICT (id) DO NOTHING;
UPDATE ov SET v = 3 WHERE id = 10;
DELETE FROM ov WHERE id = 11;
INSERT INTO ov SELECT i, 4, 'fourth' FROM generate_series(5, 2500) i ON CONFLICT DO NOTHING RETURNING id, v;
SELECT c, v, count(*), sum(id) FROM ov GROUP BY c, v ORDER BY c, v;
SELECT count(*), count(DISTINCT id) FROM ov;
VACUUM ov;
-- A row that the transaction has deleted is inserted again; one whose deletion was rolled back is
-- not.
BEGIN;
DELETE FROM ov WHERE id BETWEEN 700 AND 710;
SAVEPOINT s;
DELETE FROM ov WHERE id BETWEEN 720 AND 730;
ROLLBACK TO s;
INSERT INTO ov SELECT i, 5, 'fifth' FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING;
SELECT c, count(*) FROM ov GROUP BY c ORDER BY c;
ROLLBACK;
INSERT INTO ov SELECT i, 5, 'fifth' FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING;
SELECT c, count(*) FROM ov GROUP BY c ORDER BY c;
-- Isolation levels.
BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO ov SELECT i, 6 FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO ov SELECT i, 6 FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING;
COMMIT;
-- Constraints are checked in row order: for a row that exists, before and after a new one.
INSERT INTO ov SELECT i, CASE i WHEN 100 THEN 1000 ELSE 1 END FROM generate_series(1, 200) i ON CONFLICT DO NOTHING;
INSERT INTO ov SELECT 4000 - i, CASE i WHEN 1990 THEN 1001 WHEN 100 THEN 1002 END FROM generate_series(1, 2000) i ON CONFLICT DO NOTHING;
INSERT INTO ov SELECT nullif(i, 150), 1 FROM generate_series(1, 200) i ON CONFLICT DO NOTHING;
ALTER TABLE ov ALTER n SET DEFAULT 0;
UPDATE ov SET n = 0;
ALTER TABLE ov ALTER n SET NOT NULL;
VACUUM ov;
INSERT INTO ov SELECT i, 1, 'not null', nullif(i, 150) FROM generate_series(1, 200) i ON CONFLICT DO NOTHING;
-- A check that calls a function calls it as often as without look-ahead.
CREATE SEQUENCE ov_checked;
CREATE FUNCTION ov_check(int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN PERFORM nextval(''ov_checked''); RETURN true; END';
ALTER TABLE ov ADD CONSTRAINT called CHECK (ov_check(v)) NOT VALID;
ALTER TABLE ov ADD CONSTRAINT of_table CHECK (tableoid = 'ov'::regclass) NOT VALID;
INSERT INTO ov SELECT i, 7 FROM generate_series(1, 600) i ON CONFLICT DO NOTHING;
SELECT last_value FROM ov_checked;
ALTER TABLE ov DROP CONSTRAINT called, DROP CONSTRAINT of_table;
-- What EXPLAIN counts.
CREATE FUNCTION ov_explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    IF line ~ 'Tuples|Function Scan|Conflict' THEN
      RETURN NEXT regexp_replace(line, 'rows=(\d+)(\.00)?', 'rows=\1');
    END IF;
  END LOOP;
END $$;
SELECT ov_explain('INSERT INTO ov SELECT i, 8 FROM generate_series(2801, 3200) i ON CONFLICT DO NOTHING');
SELECT ov_explain('INSERT INTO ov SELECT i, 8 FROM generate_series(1, 300) i ON CONFLICT (id) DO NOTHING');
SELECT ov_explain('INSERT INTO ov SELECT i, 8 FROM generate_series(1, 300) i ON CONFLICT (id) DO UPDATE SET v = 9 WHERE ov.id = 5');
-- A plan that sorts by something that is not a column, and a table with dropped columns.
INSERT INTO ov SELECT i, CASE i WHEN 100 THEN 1000 ELSE 1 END FROM generate_series(1, 200) i ORDER BY -i ON CONFLICT DO NOTHING;
ALTER TABLE ov DROP c;
VACUUM ov;
INSERT INTO ov SELECT i, CASE i WHEN 100 THEN 1000 ELSE 1 END FROM generate_series(1, 200) i ON CONFLICT DO NOTHING;
INSERT INTO ov SELECT i, 1, nullif(i, 120) FROM generate_series(1, 200) i ORDER BY -i ON CONFLICT DO NOTHING;
-- The conflict is in another index, which is an arbiter or not.
CREATE UNIQUE INDEX ov_n ON ov USING lsm (n) WHERE n > 0;
CREATE TABLE ow (a int, b int, c int);
CREATE UNIQUE INDEX ow_a ON ow USING lsm (a);
CREATE UNIQUE INDEX ow_b ON ow USING lsm (b);
INSERT INTO ow SELECT i, i, 0 FROM generate_series(1, 1000) i;
VACUUM ow;
INSERT INTO ow SELECT i, i + 2000, 1 FROM generate_series(901, 1100) i ON CONFLICT (a) DO NOTHING;
INSERT INTO ow SELECT i + 5000, i, 2 FROM generate_series(1, 200) i ON CONFLICT (a) DO NOTHING;
INSERT INTO ow SELECT i + 5000, i, 2 FROM generate_series(1, 200) i ON CONFLICT (b) DO NOTHING;
INSERT INTO ow SELECT i, i + 5000, 2 FROM generate_series(1, 200) i ON CONFLICT (b) DO NOTHING;
INSERT INTO ow SELECT i, i + 5000, 3 FROM generate_series(1, 200) i ON CONFLICT DO NOTHING;
INSERT INTO ow SELECT i + 5000, i, 4 FROM generate_series(1, 200) i ON CONFLICT DO NOTHING;
SELECT c, count(*), min(a), max(b) FROM ow GROUP BY c ORDER BY c;
-- A deferred constraint is not an arbiter.
ALTER TABLE ow ADD d int, ADD CONSTRAINT ow_d UNIQUE (d) DEFERRABLE;
INSERT INTO ow SELECT i, i, 5, i FROM generate_series(1, 200) i ON CONFLICT (a) DO NOTHING;
INSERT INTO ow SELECT i, i, 5, i FROM generate_series(1, 200) i ON CONFLICT DO NOTHING;
-- An index that core checks first raises an error for a row that exists in another one.
CREATE TABLE oz (id int, d int);
CREATE UNIQUE INDEX oz_d ON oz USING lsm ((100 / d));
CREATE UNIQUE INDEX oz_id ON oz USING lsm (id);
INSERT INTO oz SELECT i, CASE WHEN i < 50 THEN i END FROM generate_series(-99, 99) i WHERE i NOT IN (-99, 0) ON CONFLICT DO NOTHING;
VACUUM oz;
INSERT INTO oz SELECT i, 50 - i FROM generate_series(1, 99) i ON CONFLICT DO NOTHING;
INSERT INTO oz SELECT i, 50 - i FROM generate_series(1, 99) i ON CONFLICT (id) DO NOTHING;
-- Generated columns, policies, triggers, and the count of the statement.
CREATE TABLE og (id int, d int, q int GENERATED ALWAYS AS (100 / d) STORED);
CREATE UNIQUE INDEX og_id ON og USING lsm (id);
INSERT INTO og SELECT i, 1 FROM generate_series(1, 300) i;
VACUUM og;
INSERT INTO og SELECT i, i - 20 FROM generate_series(1, 30) i ON CONFLICT DO NOTHING;
INSERT INTO og SELECT i, 1 FROM generate_series(1, 30) i ON CONFLICT DO NOTHING;
CREATE TABLE op (id int, v int);
CREATE UNIQUE INDEX op_id ON op USING lsm (id);
INSERT INTO op SELECT i, 0 FROM generate_series(1, 300) i;
VACUUM op;
CREATE FUNCTION op_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% rows were inserted', (SELECT count(*) FROM new_rows);
  RETURN NULL;
END $$;
CREATE TRIGGER op_inserted AFTER INSERT ON op REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION op_inserted();
INSERT INTO op SELECT i, 1 FROM generate_series(201, 400) i ON CONFLICT DO NOTHING;
DO $$
DECLARE n bigint;
BEGIN
  INSERT INTO op SELECT i, 2 FROM generate_series(1, 410) i ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS n = ROW_COUNT;
  RAISE NOTICE 'the statement counts %', n;
  INSERT INTO op SELECT i, 2 FROM generate_series(1, 300) i ON CONFLICT DO NOTHING;
  RAISE NOTICE 'found: %', FOUND;
END $$;
CREATE ROLE regress_lsm_visible;
GRANT SELECT, INSERT ON op TO regress_lsm_visible;
ALTER TABLE op ENABLE ROW LEVEL SECURITY;
CREATE POLICY op_small ON op USING (true) WITH CHECK (v < 100);
SET ROLE regress_lsm_visible;
INSERT INTO op SELECT i, CASE i WHEN 20 THEN 100 ELSE 1 END FROM generate_series(1, 30) i ON CONFLICT DO NOTHING;
INSERT INTO op SELECT i, 1 FROM generate_series(1, 30) i ON CONFLICT DO NOTHING;
RESET ROLE;
-- A partition, and a row that does not belong to it.
CREATE TABLE oq (id int, v int) PARTITION BY RANGE (id);
CREATE TABLE oq_1 PARTITION OF oq FOR VALUES FROM (1) TO (500);
CREATE UNIQUE INDEX oq_1_id ON oq_1 USING lsm (id);
CREATE UNIQUE INDEX oq_1_v ON oq_1 USING lsm (v);
INSERT INTO oq_1 SELECT i, i FROM generate_series(1, 300) i;
VACUUM oq_1;
INSERT INTO oq_1 SELECT i, i + 1000 FROM generate_series(201, 400) i ON CONFLICT DO NOTHING;
INSERT INTO oq_1 SELECT i + 450, i FROM generate_series(1, 100) i ON CONFLICT (v) DO NOTHING;
SELECT count(*), sum(id), sum(v) FROM oq_1;
-- Numbers and keys from defaults: a row that has a conflict takes one, too.
CREATE TABLE os (id bigserial, k int, made uuid DEFAULT gen_random_uuid(), at timestamptz DEFAULT clock_timestamp(), n int GENERATED BY DEFAULT AS IDENTITY);
CREATE UNIQUE INDEX os_id ON os USING lsm (id);
CREATE UNIQUE INDEX os_made ON os USING lsm (made);
CREATE UNIQUE INDEX os_k ON os USING lsm (k);
INSERT INTO os (k) SELECT i FROM generate_series(1, 500) i;
VACUUM os;
INSERT INTO os (k) SELECT i FROM generate_series(301, 800) i ON CONFLICT DO NOTHING;
INSERT INTO os (k) SELECT i FROM generate_series(701, 900) i ON CONFLICT (k) DO NOTHING;
INSERT INTO os (k) VALUES (1), (901), (2), (902), (3), (903), (903), (904) ON CONFLICT DO NOTHING RETURNING k, id, n;
INSERT INTO os (k) SELECT i FROM generate_series(895, 910) i ON CONFLICT (k) DO NOTHING RETURNING k, id - currval('os_id_seq') AS same;
INSERT INTO os (k) SELECT i FROM generate_series(890, 920) i ON CONFLICT (k) DO UPDATE SET n = currval('os_id_seq') - excluded.id;
-- A trigger may ask for the last number taken.
CREATE FUNCTION os_last() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.n := NEW.id - currval(''os_id_seq''); RETURN NEW; END';
CREATE TRIGGER os_last BEFORE UPDATE ON os FOR EACH ROW EXECUTE FUNCTION os_last();
INSERT INTO os (k) SELECT i FROM generate_series(900, 930) i ON CONFLICT (k) DO UPDATE SET id = excluded.id;
SELECT k, n FROM os WHERE k >= 900 AND n = 0 ORDER BY k;
DROP TRIGGER os_last ON os;
-- Policies may, too.
GRANT SELECT, INSERT ON os TO regress_lsm_visible;
GRANT USAGE ON SEQUENCE os_id_seq, os_n_seq TO regress_lsm_visible;
ALTER TABLE os ENABLE ROW LEVEL SECURITY;
CREATE POLICY os_own ON os USING (true) WITH CHECK (id = currval('os_id_seq'));
SET ROLE regress_lsm_visible;
INSERT INTO os (k) SELECT i FROM generate_series(920, 950) i ON CONFLICT DO NOTHING;
RESET ROLE;
SELECT count(*), count(made), min(id), max(id), sum(id), sum(n) FROM os;
SELECT last_value, (SELECT last_value FROM os_n_seq) FROM os_id_seq;
-- So may CHECK constraints.
CREATE SEQUENCE ot_seq;
CREATE TABLE ot (k int, n bigint DEFAULT nextval('ot_seq'), CHECK (n = currval('ot_seq')));
CREATE UNIQUE INDEX ot_k ON ot USING lsm (k);
INSERT INTO ot (k) SELECT g FROM generate_series(1, 20) g ON CONFLICT DO NOTHING;
INSERT INTO ot (k) SELECT g FROM generate_series(11, 40) g ON CONFLICT (k) DO UPDATE SET n = excluded.n;
SELECT count(*), max(n) FROM ot;
DROP TABLE ot;
DROP SEQUENCE ot_seq;
DROP TABLE ov, ow, og, op, oq, os, oz;
DROP SEQUENCE ov_checked;
DROP FUNCTION ov_check, ov_explain, op_inserted, os_last;
DROP ROLE regress_lsm_visible;
