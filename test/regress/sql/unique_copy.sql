-- An error of COPY names the line of the row.
CREATE TABLE uc (id int, v text) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX uc_id ON uc USING lsm (id);
COPY uc (id) FROM PROGRAM 'seq 1 300; echo 7; seq 301 400';
COPY uc (id) FROM PROGRAM 'seq 1 300';
COPY uc (id) FROM PROGRAM 'seq 301 999; echo 300';
-- Lines without a row: a header, a value of several lines, rows that a condition leaves out.
COPY uc (id, v) FROM PROGRAM 'echo id,v; for i in `seq 301 400`; do echo "$i,\"a\nb\""; done; echo 17,c' WITH (FORMAT csv, HEADER);
COPY uc (id) FROM PROGRAM 'seq 21 400; echo 20' WHERE id > 300 OR id = 20;
-- Free space on many pages.
INSERT INTO uc SELECT i, repeat('x', i % 700) FROM generate_series(2001, 4000) i;
DELETE FROM uc WHERE id > 2000 AND id % 3 > 0;
VACUUM uc;
COPY uc (id) FROM PROGRAM 'seq 5001 7000; echo 5801';
-- Full batches: COPY itself names a line, but not the one that it has read last.
SET pg_lsm.debug_batch_entries = 100;
COPY uc (id) FROM PROGRAM 'seq 9001 9950; echo 9933; seq 9951 12000';
COPY uc (id) FROM PROGRAM 'seq 9001 11000; echo 9005; seq 11001 12000';
RESET pg_lsm.debug_batch_entries;
-- In a function, and in a trigger of another table's COPY.
CREATE FUNCTION uc_copy() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  COPY uc (id) FROM PROGRAM 'seq 1 1; seq 5001 5100';
  RETURN 1;
END $$;
SELECT uc_copy();
CREATE TABLE uc_outer (a int);
CREATE UNIQUE INDEX ON uc_outer USING lsm (a);
CREATE FUNCTION uc_nested() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF new.a = 130 THEN
    COPY uc (id) FROM PROGRAM 'seq 8001 8100; echo 8050';
  END IF;
  RETURN new;
END $$;
CREATE TRIGGER nested BEFORE INSERT ON uc_outer FOR EACH ROW EXECUTE FUNCTION uc_nested();
COPY uc_outer FROM PROGRAM 'seq 101 200';
-- Partitions.
CREATE TABLE uc_parts (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE uc_part1 PARTITION OF uc_parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE uc_part2 PARTITION OF uc_parts FOR VALUES FROM (1000) TO (2000);
CREATE UNIQUE INDEX ON uc_part1 USING lsm (id);
CREATE UNIQUE INDEX ON uc_part2 USING lsm (id);
COPY uc_parts (id) FROM PROGRAM 'for i in `seq 1 500`; do echo $i; echo $((i + 1000)); done; echo 1077';
SELECT count(*) FROM uc;
-- AFTER triggers do not run if there are duplicates. These triggers would hide them.
CREATE TABLE uc_ledger (id int);
CREATE FUNCTION uc_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('WITH gone AS (DELETE FROM %I RETURNING id) INSERT INTO uc_ledger SELECT id FROM gone', tg_argv[0]);
  RETURN NULL;
EXCEPTION WHEN division_by_zero THEN
  RETURN NULL;
END $$;
CREATE TABLE uc_inbox (id int);
CREATE UNIQUE INDEX ON uc_inbox USING lsm (id);
CREATE TRIGGER move AFTER INSERT ON uc_inbox FOR EACH STATEMENT EXECUTE FUNCTION uc_move('uc_inbox');
COPY uc_inbox FROM PROGRAM 'seq 1 300; echo 7';
COPY uc_inbox FROM PROGRAM 'seq 1 300';
DROP TRIGGER move ON uc_inbox;
CREATE TRIGGER move AFTER INSERT ON uc_inbox FOR EACH ROW WHEN (new.id = 300) EXECUTE FUNCTION uc_move('uc_inbox');
COPY uc_inbox FROM PROGRAM 'seq 1 300; echo 7';
COPY uc_inbox FROM PROGRAM 'seq 301 599; echo 300';
TRUNCATE uc_parts;
CREATE TRIGGER move AFTER INSERT ON uc_parts FOR EACH STATEMENT EXECUTE FUNCTION uc_move('uc_parts');
COPY uc_parts (id) FROM PROGRAM 'for i in `seq 1 500`; do echo $i; echo $((i + 1000)); done; echo 1077';
COPY uc_parts (id) FROM PROGRAM 'for i in `seq 1 500`; do echo $i; echo $((i + 1000)); done';
SELECT count(*), count(DISTINCT id) FROM uc_ledger;
DROP TABLE uc, uc_outer, uc_parts, uc_inbox, uc_ledger;
DROP FUNCTION uc_copy, uc_nested, uc_move;
