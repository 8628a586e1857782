-- Statement batches: entries wait in memory until their statement ends. Tests each rule that makes this correct.
CREATE TABLE b (k int, v text COLLATE "C", n numeric, id serial) WITH (autovacuum_enabled = off);
CREATE INDEX b_k ON b USING lsm (k) INCLUDE (v);
CREATE INDEX b_n ON b USING lsm (n, k);
CREATE FUNCTION by_index(q text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE c bigint;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE q INTO c;
	RETURN c;
END $$;
-- The end of the statement: INSERT, COPY, UPDATE, MERGE, a function with several of them.
INSERT INTO b (k, v, n) SELECT i * 7919 % 1000, 'v' || i, i / 10.0 FROM generate_series(1, 500) i;
SELECT t.same('SELECT k, v FROM b WHERE k BETWEEN 100 AND 120'), t.same_order('b', 'k, v', 'k');
COPY b (k, v) FROM stdin;
1	copied
2	copied
3	copied
1	copied
2	copied
\.
SELECT t.same('SELECT k, v FROM b WHERE k < 4');
UPDATE b SET k = k + 2000 WHERE k % 2 = 0;
SELECT t.same('SELECT k, v FROM b WHERE k > 2100 AND k < 2300'), t.same('SELECT k, v FROM b WHERE k < 100');
MERGE INTO b USING generate_series(0, 60) g ON b.k = g WHEN MATCHED THEN UPDATE SET k = k + 5000 WHEN NOT MATCHED THEN INSERT (k, v) VALUES (g, 'merged');
SELECT t.same('SELECT k, v FROM b WHERE k < 70'), t.same('SELECT k, v FROM b WHERE k > 4000');
WITH gone AS (DELETE FROM b WHERE k < 100 RETURNING k, v), new AS (INSERT INTO b (k, v) SELECT k + 10000, v FROM gone RETURNING k) SELECT count(*) > 0 FROM new;
SELECT t.same('SELECT k, v FROM b WHERE k > 9000'), t.same('SELECT k, v FROM b WHERE k < 100');
-- A scan of the same session within the statement sees the rows of the statement's earlier commands, and no others.
CREATE FUNCTION insert_and_count(n int) RETURNS TABLE (own bigint, all_rows bigint) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		INSERT INTO b (k, v) VALUES (-i, 'loop'), (-i, 'loop');
	END LOOP;
	SELECT by_index('SELECT count(*) FROM b WHERE k < 0') INTO own;
	SELECT by_index('SELECT count(*) FROM b WHERE n IS NULL AND k < 0') INTO all_rows;
	DELETE FROM b WHERE k < 0;
	RETURN NEXT;
END $$;
SELECT * FROM insert_and_count(1);
SELECT * FROM insert_and_count(100);
CREATE FUNCTION seen(k int) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN by_index('SELECT count(*) FROM b WHERE v = ''self'' AND k >= 20000'); END $$;
INSERT INTO b (k, v, n) SELECT 20000 + i, 'self', seen(i) FROM generate_series(1, 80) i;
SELECT min(n), max(n), by_index('SELECT count(*) FROM b WHERE k >= 20000') FROM b WHERE v = 'self';
-- A trigger looks for each row, before and after its insertion.
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.n := by_index(format('SELECT count(*) FROM tr WHERE k = %s', NEW.k));
	RETURN NEW;
END $$;
CREATE FUNCTION look_after() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF by_index(format('SELECT count(*) FROM tr WHERE k = %s', NEW.k)) = 0 THEN
		RAISE EXCEPTION 'row % is not found', NEW;
	END IF;
	RETURN NULL;
END $$;
CREATE TABLE tr (k int, n bigint);
CREATE INDEX tr_k ON tr USING lsm (k);
CREATE TRIGGER look BEFORE INSERT ON tr FOR EACH ROW EXECUTE FUNCTION look();
CREATE TRIGGER look_after AFTER INSERT ON tr FOR EACH ROW EXECUTE FUNCTION look_after();
INSERT INTO tr SELECT i % 10 FROM generate_series(1, 100) i;
SELECT count(*), min(n), max(n) FROM tr;
SELECT t.same('SELECT k, n FROM tr WHERE k = 3');
-- A cursor that is open while the statement inserts, and one opened between.
CREATE FUNCTION cursors() RETURNS TABLE (before bigint, between_rows bigint) LANGUAGE plpgsql AS $$
DECLARE
	a CURSOR FOR SELECT b.k FROM b WHERE b.k BETWEEN 30000 AND 31000 ORDER BY b.k;
	z CURSOR FOR SELECT b.k FROM b WHERE b.k BETWEEN 30000 AND 31000 ORDER BY b.k;
	x int;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	before := 0;
	between_rows := 0;
	INSERT INTO b (k) SELECT 30000 + i FROM generate_series(1, 90) i;
	OPEN a;
	FETCH a INTO x;
	INSERT INTO b (k) SELECT 30500 + i FROM generate_series(1, 90) i;
	OPEN z;
	WHILE FOUND LOOP before := before + 1; FETCH a INTO x; END LOOP;
	FETCH z INTO x;
	WHILE FOUND LOOP between_rows := between_rows + 1; FETCH z INTO x; END LOOP;
	RETURN NEXT;
END $$;
SELECT * FROM cursors();
-- Subtransactions: rows of an aborted one never become visible, those of others do, no matter which of them
-- flushes.
CREATE TABLE s2 (k int, v text) WITH (autovacuum_enabled = off);
CREATE INDEX s2_k ON s2 USING lsm (k);
CREATE FUNCTION nest(depth int, fail text, look boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO s2 SELECT i, fail || depth FROM generate_series(1, 20) i;
	BEGIN
		INSERT INTO s2 SELECT i, fail || depth || 'in' FROM generate_series(1, 15) i;
		IF look AND by_index('SELECT count(*) FROM s2 WHERE k = 1') = 0 THEN RAISE 'nothing found'; END IF;
		IF depth > 1 THEN PERFORM nest(depth - 1, fail, look); END IF;
		INSERT INTO s2 SELECT i, fail || depth || 'late' FROM generate_series(1, 15) i;
		IF substr(fail, depth, 1) = 'x' THEN RAISE EXCEPTION 'undo'; END IF;
	EXCEPTION WHEN raise_exception THEN
		INSERT INTO s2 SELECT i, fail || depth || 'caught' FROM generate_series(1, 5) i;
	END;
	INSERT INTO s2 SELECT i, fail || depth || 'end' FROM generate_series(1, 10) i;
END $$;
SELECT nest(3, f, l) FROM unnest('{ooo,oox,oxo,xoo,oxx,xox,xxo,xxx}'::text[]) f, unnest('{f,t}'::bool[]) l;
SELECT t.same('SELECT k, v FROM s2 WHERE k = 1'), t.same('SELECT k, v FROM s2 WHERE k = 12'), t.same_order('s2', 'k, v', 'k');
-- The line pointers of aborted rows are reused at once: no entry may point to them.
VACUUM s2;
DO $$
BEGIN
	FOR i IN 1..30 LOOP
		BEGIN
			INSERT INTO s2 SELECT 7000 + j, 'aborted' FROM generate_series(1, 40) j;
			RAISE EXCEPTION 'undo';
		EXCEPTION WHEN raise_exception THEN NULL;
		END;
		PERFORM count(*) FROM s2;
		INSERT INTO s2 SELECT 8000 + i, 'kept' FROM generate_series(1, 40) j;
	END LOOP;
END $$;
SELECT t.same('SELECT k, v FROM s2 WHERE k >= 7000'), by_index('SELECT count(*) FROM s2 WHERE k BETWEEN 7000 AND 7999');
VACUUM s2;
SELECT t.same('SELECT k, v FROM s2 WHERE k >= 7000');
-- An error in the middle of a statement, with and without a savepoint.
INSERT INTO s2 SELECT 9000 + 1 / (70 - i), 'fails' FROM generate_series(1, 100) i;
BEGIN;
INSERT INTO s2 SELECT 9000 + i, 'first' FROM generate_series(1, 60) i;
SAVEPOINT a;
INSERT INTO s2 SELECT 9000 + 1 / (70 - i), 'fails' FROM generate_series(1, 100) i;
ROLLBACK TO a;
INSERT INTO s2 SELECT 9000 + i, 'second' FROM generate_series(1, 60) i;
COMMIT;
SELECT t.same('SELECT k, v FROM s2 WHERE k > 8999');
-- Utility commands in between, and transactions that end within a procedure.
CREATE FUNCTION with_ddl() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE d (k int);
	CREATE INDEX d_k ON d USING lsm (k);
	INSERT INTO d SELECT generate_series(1, 100);
	TRUNCATE d;
	INSERT INTO d SELECT generate_series(1, 90);
	REINDEX INDEX d_k;
	INSERT INTO d SELECT generate_series(1, 90);
	ALTER TABLE d ADD COLUMN w int;
	INSERT INTO d SELECT generate_series(1, 90);
	DROP INDEX d_k;
	INSERT INTO d SELECT generate_series(1, 10);
	CREATE INDEX d_k ON d USING lsm (k);
	RETURN by_index('SELECT count(*) FROM d WHERE k = 7');
END $$;
SELECT with_ddl();
CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..6 LOOP
		INSERT INTO d (k) SELECT 500 FROM generate_series(1, 50 * i) j;
		IF i % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
	END LOOP;
	INSERT INTO d (k) SELECT 500 FROM generate_series(1, 7) j;
END $$;
CALL commits();
SELECT by_index('SELECT count(*) FROM d WHERE k = 500'), t.same('SELECT k FROM d WHERE k >= 90');
-- ON CONFLICT inserts speculatively; exclusion constraints and serializable transactions need the entries at once.
CREATE TABLE oc2 (id int PRIMARY KEY, k int);
CREATE INDEX oc2_k ON oc2 USING lsm (k);
INSERT INTO oc2 SELECT i, i % 7 FROM generate_series(1, 100) i ON CONFLICT DO NOTHING;
INSERT INTO oc2 SELECT i % 200, i % 5 FROM generate_series(50, 400) i ON CONFLICT DO NOTHING;
WITH x AS (INSERT INTO oc2 SELECT i, i % 5 FROM generate_series(50, 300) i ON CONFLICT (id) DO UPDATE SET k = oc2.k + 50 RETURNING id) INSERT INTO tr SELECT id FROM x WHERE id < 60;
SELECT t.same('SELECT id, k FROM oc2 WHERE k >= 50'), t.same('SELECT id, k FROM oc2 WHERE k = 3'), t.same('SELECT k FROM tr WHERE k BETWEEN 40 AND 70');
CREATE TABLE ex (k int, EXCLUDE USING lsm (k WITH =));
INSERT INTO ex SELECT i FROM generate_series(1, 100) i;
INSERT INTO ex SELECT i FROM generate_series(200, 50, -1) i;
INSERT INTO ex SELECT i % 3 + 1000 FROM generate_series(1, 100) i;
SELECT count(*) FROM ex;
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO b (k) SELECT 40000 + i FROM generate_series(1, 100) i;
SELECT by_index('SELECT count(*) FROM b WHERE k > 40000');
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO b (k) SELECT 41000 + i FROM generate_series(1, 100) i;
SELECT by_index('SELECT count(*) FROM b WHERE k > 41000');
COMMIT;
SELECT t.same('SELECT k FROM b WHERE k >= 40000');
-- Prepared transactions, temporary tables, partitions, several batches at once.
BEGIN;
INSERT INTO b (k) SELECT 50000 + i FROM generate_series(1, 100) i;
PREPARE TRANSACTION 'regress_batches';
COMMIT PREPARED 'regress_batches';
SELECT by_index('SELECT count(*) FROM b WHERE k > 50000');
CREATE TEMP TABLE tt (k int) ON COMMIT DELETE ROWS;
CREATE INDEX tt_k ON tt USING lsm (k);
BEGIN;
INSERT INTO tt SELECT i FROM generate_series(1, 100) i;
SELECT by_index('SELECT count(*) FROM tt WHERE k > 50');
COMMIT;
SELECT by_index('SELECT count(*) FROM tt WHERE k > 50');
CREATE TABLE pt (k int, v int) PARTITION BY HASH (k);
SELECT format('CREATE TABLE pt%s PARTITION OF pt FOR VALUES WITH (MODULUS 10, REMAINDER %s)', i, i) FROM generate_series(0, 9) i \gexec
CREATE INDEX pt_k ON pt USING lsm (k);
CREATE INDEX pt_v ON pt USING lsm (v);
INSERT INTO pt SELECT i, -i FROM generate_series(1, 2000) i;
UPDATE pt SET k = k + 1 WHERE k % 5 = 0;
SELECT t.same('SELECT k, v FROM pt WHERE k < 50'), t.same('SELECT k, v FROM pt WHERE v < -1950');
-- All batches together take at most work_mem.
SET work_mem = '64kB';
SET pg_lsm.debug_batch_entries = 0;
INSERT INTO pt SELECT i, -i FROM generate_series(5001, 15000) i;
RESET work_mem;
RESET pg_lsm.debug_batch_entries;
SELECT t.same('SELECT k, v FROM pt WHERE k BETWEEN 7000 AND 7100'), t.same('SELECT k, v FROM pt WHERE v < -14950'), t.same_order('pt', 'k, v', 'k');
-- Foreign keys use this index to look for referencing rows.
CREATE TABLE pk (id int PRIMARY KEY);
CREATE TABLE fk (id int REFERENCES pk ON DELETE CASCADE);
CREATE INDEX fk_id ON fk USING lsm (id);
INSERT INTO pk SELECT i FROM generate_series(1, 100) i;
WITH i AS (INSERT INTO fk SELECT i % 10 + 1 FROM generate_series(1, 100) i RETURNING id) SELECT count(*) FROM i;
DO $$ BEGIN SET LOCAL enable_seqscan = off; INSERT INTO fk SELECT 50 FROM generate_series(1, 60); DELETE FROM pk WHERE id IN (3, 50); END $$;
SELECT t.same('SELECT id FROM fk WHERE id < 100'), count(*) FROM fk;
-- Commands that run triggers, or expressions that insert, and then rebuild, empty or drop the table.
CREATE TABLE a (k int);
CREATE INDEX a_k ON a USING lsm (k);
INSERT INTO a SELECT generate_series(1, 1000);
CREATE FUNCTION before_truncate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO a VALUES (7), (8); INSERT INTO a SELECT generate_series(1, 100); RETURN NULL; END $$;
CREATE TRIGGER before_truncate BEFORE TRUNCATE ON a FOR EACH STATEMENT EXECUTE FUNCTION before_truncate();
TRUNCATE a;
SELECT by_index('SELECT count(*) FROM a WHERE k = 7');
INSERT INTO a VALUES (1), (2);
SELECT by_index('SELECT count(*) FROM a WHERE k = 7'), t.same('SELECT k FROM a WHERE k < 10');
CREATE TABLE dl (id int, k int);
CREATE INDEX dl_k ON dl USING lsm (k);
INSERT INTO dl SELECT i, i FROM generate_series(1, 1000) i;
DELETE FROM dl WHERE k < 900;
CREATE FUNCTION at_command() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO dl VALUES (5, 5555); INSERT INTO dl SELECT i, 6000 FROM generate_series(1, 60) i; END $$;
CREATE EVENT TRIGGER regress_batches ON ddl_command_start EXECUTE FUNCTION at_command();
ALTER TABLE dl ALTER COLUMN id TYPE bigint;
ALTER EVENT TRIGGER regress_batches DISABLE;
INSERT INTO dl SELECT 1, 7777 FROM generate_series(1, 2000);
SELECT t.same('SELECT id, k FROM dl WHERE k = 5555'), t.same('SELECT id, k FROM dl WHERE k = 6000');
ALTER EVENT TRIGGER regress_batches ENABLE;
DROP TABLE dl;
DROP EVENT TRIGGER regress_batches;
CREATE TABLE p (g int, k int, x text) PARTITION BY LIST (g);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
CREATE INDEX p_k ON p USING lsm (k);
INSERT INTO p SELECT 1 + i % 2, i, 'x' FROM generate_series(1, 10) i;
CREATE FUNCTION inserts(v text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$ BEGIN IF v = 'x' THEN INSERT INTO p2 (g, k, x) VALUES (2, 100, 'new'); END IF; RETURN v; END $$;
ALTER TABLE p ALTER COLUMN x TYPE varchar(20) USING inserts(x);
SELECT by_index('SELECT count(*) FROM p WHERE k = 100'), t.same('SELECT g, k, x FROM p WHERE k = 100');
-- A cursor over a bitmap that is opened early and read late within the statement.
CREATE TABLE q (k int, n bigint);
CREATE INDEX q_k ON q USING lsm (k);
CREATE FUNCTION late_cursor() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	c refcursor := 'late';
BEGIN
	IF NEW.k = 1 THEN
		SET LOCAL enable_seqscan = off;
		SET LOCAL enable_indexscan = off;
		SET LOCAL enable_indexonlyscan = off;
		INSERT INTO q SELECT 1000 + i FROM generate_series(1, 50) i;
		OPEN c FOR SELECT count(*) FROM q WHERE k > 1000;
	ELSIF NEW.k = 60 THEN
		FETCH c INTO NEW.n;
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER late_cursor BEFORE INSERT ON q FOR EACH ROW WHEN (NEW.k < 1000) EXECUTE FUNCTION late_cursor();
BEGIN;
INSERT INTO q SELECT i FROM generate_series(1, 60) i;
COMMIT;
SELECT n FROM q WHERE k = 60;
-- COPY with FREEZE: even a function that does not see the command's own changes sees its rows.
CREATE TABLE fz (k int, n bigint);
CREATE INDEX fz_k ON fz USING lsm (k);
CREATE FUNCTION looks_back() RETURNS trigger LANGUAGE plpgsql STABLE AS $$
BEGIN
	NEW.n = (SELECT count(*) FROM fz WHERE k < 100);
	RETURN NEW;
END $$;
CREATE TRIGGER looks_back BEFORE INSERT ON fz FOR EACH ROW EXECUTE FUNCTION looks_back();
BEGIN;
SET LOCAL enable_seqscan = off;
TRUNCATE fz;
COPY fz (k) FROM stdin WITH (FREEZE);
1
2
3
4
5
6
\.
COMMIT;
SELECT k, n FROM fz ORDER BY k;
-- The same within the first command of a transaction, by functions.
CREATE FUNCTION copies() RETURNS int LANGUAGE plpgsql VOLATILE AS $$
BEGIN
	EXECUTE 'CREATE TABLE fz0 (k int)';
	EXECUTE 'CREATE INDEX fz0_k ON fz0 USING lsm (k)';
	EXECUTE 'COPY fz0 FROM PROGRAM ''seq 100'' (FREEZE)';
	RETURN 1;
END $$;
CREATE FUNCTION counts() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE 'SELECT count(*) FROM fz0 WHERE k > 0' INTO n;
	RETURN n;
END $$;
SET enable_seqscan = off;
SELECT copies(), counts();
RESET enable_seqscan;
DROP TABLE a, p, q, fz, fz0;
DROP FUNCTION before_truncate(), at_command(), inserts(text), late_cursor(), looks_back(), copies(), counts();
DROP TABLE fk, pk, pt, ex, oc2, d, s2, tr, b CASCADE;
DROP PROCEDURE commits();
DROP FUNCTION with_ddl(), nest(int, text, bool), cursors(), look(), look_after(), seen(int), insert_and_count(int), by_index(text);
