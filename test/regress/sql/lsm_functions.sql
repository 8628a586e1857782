-- Comparison functions may take long, catch errors, wait for locks and checkpoints: no page is locked while they run.
CREATE SCHEMA fn;
CREATE FUNCTION fn.cmp(a int, b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
	CASE current_setting('regress.mood', true)
		WHEN 'catch' THEN
			BEGIN
				PERFORM 1 / 0;
			EXCEPTION WHEN division_by_zero THEN
				RETURN btint4cmp(a, b);
			END;
		WHEN 'checkpoint' THEN EXECUTE 'CHECKPOINT';
		WHEN 'sleep' THEN PERFORM pg_sleep(20);
		ELSE NULL;
	END CASE;
	RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS fn.int_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 fn.cmp (int, int);
CREATE TABLE fn.t (k int, n int);
CREATE INDEX t_k ON fn.t USING lsm (k fn.int_ops) INCLUDE (n);
-- Rows one by one, batches, merges, scans and VACUUM.
SET regress.mood = 'catch';
DO $$ BEGIN FOR i IN 1..40 LOOP INSERT INTO fn.t VALUES (i * 7919 % 101, i); END LOOP; END $$;
INSERT INTO fn.t SELECT i * 7919 % 1009, i FROM generate_series(41, 1500) i;
INSERT INTO fn.t SELECT i * 7919 % 1009, i FROM generate_series(1501, 2000) i;
SET enable_seqscan = off;
SET enable_sort = off;
SELECT count(*) FROM fn.t WHERE k = 5;
SELECT k, n FROM fn.t WHERE k > 500 ORDER BY k LIMIT 3;
SELECT k, n FROM fn.t WHERE k < 500 ORDER BY k DESC LIMIT 3;
DELETE FROM fn.t WHERE n % 3 = 0;
VACUUM (PARALLEL 0) fn.t;
SELECT lsm_compact('fn.t_k'), lsm_check('fn.t_k', true);
INSERT INTO fn.t VALUES (5, 0);
DELETE FROM fn.t WHERE n % 5 = 0;
VACUUM (PARALLEL 0) fn.t;
SELECT count(*) FROM fn.t WHERE k BETWEEN 100 AND 200;
SELECT lsm_check('fn.t_k', true);
-- A checkpoint writes the pages of this index.
SET regress.mood = 'checkpoint';
DO $$ BEGIN FOR i IN 1..3 LOOP INSERT INTO fn.t VALUES (i, 0); END LOOP; END $$;
SELECT count(*) FROM fn.t WHERE k = 5;
-- A function that sleeps can be canceled.
\set VERBOSITY terse
SET regress.mood = 'sleep';
SET statement_timeout = '200ms';
SELECT clock_timestamp() AS before \gset
DO $$ BEGIN FOR i IN 1..10 LOOP INSERT INTO fn.t VALUES (i, 0); END LOOP; END $$;
INSERT INTO fn.t SELECT generate_series(1, 100);
SELECT count(*) FROM fn.t WHERE k = 5;
SELECT count(*) FROM (SELECT * FROM fn.t ORDER BY k DESC OFFSET 0) t;
SELECT lsm_compact('fn.t_k');
SELECT lsm_check('fn.t_k');
RESET statement_timeout;
RESET regress.mood;
SELECT clock_timestamp() - :'before' < interval '15 s' AS canceled_soon;
SELECT lsm_check('fn.t_k', true);
-- A function gets another language, does not compile, and gets well.
CREATE OR REPLACE FUNCTION fn.cmp(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT btint4cmp(a, b)';
SELECT count(*) FROM fn.t WHERE k = 5;
SELECT lsm_check('fn.t_k', true);
SET check_function_bodies = off;
CREATE OR REPLACE FUNCTION fn.cmp(a int, b int) RETURNS int LANGUAGE plpgsql AS 'nonsense';
SELECT count(*) FROM fn.t WHERE k = 5;
SELECT count(*) FROM fn.t WHERE k = 5;
CREATE OR REPLACE FUNCTION fn.cmp(a int, b int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN btint4cmp(a, b); END';
SELECT count(*) FROM fn.t WHERE k = 5;
SELECT lsm_check('fn.t_k', true);
-- The same within a transaction, whose batches outlive statements.
BEGIN;
COPY fn.t (k) FROM PROGRAM 'seq 1 100';
CREATE OR REPLACE FUNCTION fn.cmp(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT btint4cmp(a, b)';
COPY fn.t (k) FROM PROGRAM 'seq 1 100';
CREATE OR REPLACE FUNCTION fn.cmp(a int, b int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN btint4cmp(a, b); END';
COPY fn.t (k) FROM PROGRAM 'seq 1 100';
SAVEPOINT s;
CREATE OR REPLACE FUNCTION fn.cmp(a int, b int) RETURNS int LANGUAGE plpgsql AS 'nonsense';
SAVEPOINT t;
COPY fn.t (k) FROM PROGRAM 'seq 1 100';
ROLLBACK TO t;
COPY fn.t (k) FROM PROGRAM 'seq 1 100';
ROLLBACK TO s;
COPY fn.t (k) FROM PROGRAM 'seq 1 100';
COMMIT;
SELECT count(*) FROM fn.t WHERE k = 5;
SELECT lsm_check('fn.t_k', true);
-- Processes of a parallel query must not compact, even if a function is marked as parallel safe.
CREATE FUNCTION fn.compacts(a int) RETURNS bool LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN
	PERFORM lsm_compact('fn.t_k');
	RETURN true;
END $$;
RESET enable_seqscan;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT count(*) FROM fn.t WHERE fn.compacts(n);
SET client_min_messages = warning;
DROP SCHEMA fn CASCADE;
