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
DROP TABLE uc, uc_outer, uc_parts;
DROP FUNCTION uc_copy, uc_nested;
