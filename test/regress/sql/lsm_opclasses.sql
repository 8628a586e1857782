-- Operator classes that are not copies of the system's: made by hand, or from a btree
-- class with lsm_create_opclass. Rows are inserted one by one, so that each insert
-- searches.
SET pg_lsm.batch_inserts = off;
CREATE SCHEMA oc;
SET search_path = oc, public, t;
-- (Not in SQL, because such a function would be inlined and the operator would
-- disappear.)
CREATE FUNCTION abs_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN pg_catalog.btint4cmp(pg_catalog.abs(a), pg_catalog.abs(b)); END';
CREATE FUNCTION abs_lt(a int, b int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN pg_catalog.abs(a) OPERATOR(pg_catalog.<) pg_catalog.abs(b); END';
CREATE FUNCTION abs_le(a int, b int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN pg_catalog.abs(a) OPERATOR(pg_catalog.<=) pg_catalog.abs(b); END';
CREATE FUNCTION abs_eq(a int, b int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN pg_catalog.abs(a) OPERATOR(pg_catalog.=) pg_catalog.abs(b); END';
CREATE FUNCTION abs_ge(a int, b int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN pg_catalog.abs(a) OPERATOR(pg_catalog.>=) pg_catalog.abs(b); END';
CREATE FUNCTION abs_gt(a int, b int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN pg_catalog.abs(a) OPERATOR(pg_catalog.>) pg_catalog.abs(b); END';
CREATE OPERATOR |< (LEFTARG = int, RIGHTARG = int, FUNCTION = abs_lt, COMMUTATOR = |>);
CREATE OPERATOR |<= (LEFTARG = int, RIGHTARG = int, FUNCTION = abs_le, COMMUTATOR = |>=);
CREATE OPERATOR |= (LEFTARG = int, RIGHTARG = int, FUNCTION = abs_eq, COMMUTATOR = |=);
CREATE OPERATOR |>= (LEFTARG = int, RIGHTARG = int, FUNCTION = abs_ge, COMMUTATOR = |<=);
CREATE OPERATOR |> (LEFTARG = int, RIGHTARG = int, FUNCTION = abs_gt, COMMUTATOR = |<);
CREATE OPERATOR CLASS abs_ops FOR TYPE int USING btree AS
	OPERATOR 1 |<, OPERATOR 2 |<=, OPERATOR 3 |=, OPERATOR 4 |>=, OPERATOR 5 |>, FUNCTION 1 abs_cmp (int, int);

-- By hand.
CREATE OPERATOR CLASS abs_hand_ops FOR TYPE int USING lsm AS
	OPERATOR 1 |<, OPERATOR 2 |<=, OPERATOR 3 |=, OPERATOR 4 |>=, OPERATOR 5 |>, FUNCTION 1 abs_cmp (int, int);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'abs_hand_ops';
-- From the btree class.
SELECT lsm_create_opclass('abs_ops');
SELECT lsm_create_opclass('oc.abs_ops');
SELECT lsm_create_opclass('no_such_ops');
SELECT c.opcname, c.opcintype::regtype, c.opcdefault, f.opfname, n.nspname, amvalidate(c.oid)
FROM pg_opclass c JOIN pg_opfamily f ON f.oid = c.opcfamily JOIN pg_am a ON a.oid = c.opcmethod JOIN pg_namespace n ON n.oid = c.opcnamespace
WHERE a.amname = 'lsm' AND c.opcname = 'abs_ops';
CREATE TABLE a (k int, id serial);
CREATE INDEX a_k ON a USING lsm (k abs_ops) INCLUDE (id);
INSERT INTO a (k) SELECT (i * 37) % 101 - 50 FROM generate_series(1, 300) i;
CREATE INDEX a_hand ON a USING lsm (k abs_hand_ops DESC, id);
SELECT lsm_check('a_k', true), lsm_check('a_hand', true);
SELECT t.same('SELECT k, id FROM a WHERE k |= 7'), t.same('SELECT k, id FROM a WHERE k |< 7'), t.same('SELECT k, id FROM a WHERE k |>= -40 AND k |< -45');
DROP INDEX a_hand;
SELECT t.same('SELECT k, id FROM a ORDER BY k USING |<', 'SELECT k, id FROM a ORDER BY abs(k), ctid');
SELECT t.same('SELECT k, id FROM a WHERE k |= ANY (''{3,-7,7}'')');
DELETE FROM a WHERE k |= 7;
VACUUM a;
SELECT lsm_check('a_k', true), t.same('SELECT k, id FROM a WHERE k |<= 8');

-- A comparison that fails for a new key and, worse, in the middle of a merge. The
-- statement fails; the index stays intact and works again later.
CREATE FUNCTION fail_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	IF current_setting('regress.fail', true) = 'all' OR current_setting('regress.fail', true) = 'key' AND 13 IN (a, b) THEN
		RAISE EXCEPTION 'comparison fails';
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS fail_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 fail_cmp (int, int);
CREATE TABLE f (k int, id serial);
CREATE INDEX f_k ON f USING lsm (k fail_ops);
INSERT INTO f (k) SELECT (i * 37) % 101 FROM generate_series(1, 200) i;
SET regress.fail = 'key';
DO $$
DECLARE
	failed int := 0;
BEGIN
	FOR i IN 1..100 LOOP
		BEGIN
			INSERT INTO f (k) SELECT 14 FROM generate_series(1, 3);
		EXCEPTION WHEN raise_exception THEN
			failed := failed + 1;
		END;
	END LOOP;
	IF failed = 0 THEN
		RAISE 'no comparison failed';
	END IF;
END $$;
SET regress.fail = 'all';
INSERT INTO f (k) SELECT i FROM generate_series(1001, 1010) i;
RESET regress.fail;
SELECT lsm_check('f_k', true);
INSERT INTO f (k) SELECT (i * 37) % 101 FROM generate_series(1, 200) i;
SELECT lsm_check('f_k', true);
SELECT bool_and(k >= before) FROM (SELECT k, lag(k) OVER () AS before FROM (SELECT k FROM f ORDER BY k) x) y;
-- A comparison that uses its own table: an error, which the comparison may catch.
CREATE TABLE own (k int);
CREATE FUNCTION own_cmp(a int, b int) RETURNS int LANGUAGE plpgsql STRICT AS $$
DECLARE
	how text := current_setting('regress.own', true);
BEGIN
	IF how = 'insert' THEN
		INSERT INTO oc.own VALUES (a);
	ELSIF how = 'select' THEN
		PERFORM FROM oc.own WHERE k = a;
	ELSIF how = 'catch' THEN
		BEGIN
			INSERT INTO oc.own VALUES (a);
		EXCEPTION WHEN OTHERS THEN NULL;
		END;
	ELSIF how = 'division' THEN
		BEGIN
			PERFORM 1 / (a - a);
		EXCEPTION WHEN division_by_zero THEN NULL;
		END;
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS own_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 own_cmp (int, int);
CREATE INDEX own_k ON own USING lsm (k own_ops);
INSERT INTO own SELECT i * 10 FROM generate_series(1, 20) i;
SET enable_seqscan = off;
SET statement_timeout = '30s';
SELECT how, set_config('regress.own', how, false) AS now, t.error_of('INSERT INTO oc.own VALUES (55), (66)', 'own_k') AS inserts,
	t.error_of('SELECT FROM oc.own WHERE k = 70', 'own_k') AS selects
FROM unnest('{insert,select,catch,division}'::text[]) how;
RESET regress.own;
-- Everything is as before, in the session as well.
SELECT count(*) FROM own;
INSERT INTO own SELECT i * 10 + 1 FROM generate_series(1, 100) i;
SELECT lsm_check('own_k', true), t.same('SELECT k FROM own WHERE k > 20 AND k < 120');
RESET enable_seqscan;
RESET statement_timeout;
-- A flush that fails halfway, and is completed later: each entry is counted once.
CREATE FUNCTION half_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	IF current_setting('regress.fail', true) = 'pair' AND 40 IN (a, b) AND 50 IN (a, b) THEN
		RAISE EXCEPTION 'comparison fails';
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS half_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 half_cmp (int, int);
CREATE TABLE half (k int);
CREATE INDEX half_k ON half USING lsm (k half_ops);
INSERT INTO half VALUES (50);
SET pg_lsm.batch_inserts = on;
SET pg_lsm.debug_buffer_entries = 0;
SET enable_seqscan = off;
DO $$
BEGIN
	INSERT INTO half SELECT i FROM generate_series(31, 40) i;
	PERFORM set_config('regress.fail', 'pair', false);
	BEGIN
		PERFORM FROM half WHERE k = 31;
		RAISE 'the flush has not failed';
	EXCEPTION WHEN raise_exception THEN
		RAISE NOTICE '%', SQLERRM;
	END;
	PERFORM set_config('regress.fail', '', false);
END $$;
RESET enable_seqscan;
RESET regress.fail;
RESET pg_lsm.debug_buffer_entries;
SET pg_lsm.batch_inserts = off;
SELECT lsm_check('half_k', true), entries_inserted FROM pg_stat_lsm_indexes WHERE indexrelname = 'half_k';
-- A failed step of a large merge has no effect: what was installed before stays, and the
-- step is repeated from there, however often it fails.
CREATE FUNCTION top_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	IF current_setting('regress.fail', true) = 'top' AND 1000 IN (a, b) THEN
		RAISE EXCEPTION 'comparison fails';
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS top_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 top_cmp (int, int);
CREATE TABLE r (k int) WITH (autovacuum_enabled = off);
CREATE INDEX r_k ON r USING lsm (k top_ops);
SET pg_lsm.debug_page_entries = 7;
SET pg_lsm.debug_buffer_entries = 5;
SET pg_lsm.debug_merge_fanout = 3;
SET pg_lsm.debug_foreground_blocks = 8;
SET pg_lsm.debug_segment_size = 4;
INSERT INTO r SELECT (i * 37) % 1001 FROM generate_series(0, 1000) i;
SET regress.fail = 'top';
SELECT lsm_compact('r_k');
CREATE TABLE under_way AS SELECT run_id, segments, entries FROM lsm_runs('r_k') WHERE state = 'merging';
SELECT count(*), bool_and(segments > 10 AND entries > 300) AS much_is_done FROM under_way;
SELECT sum(entries) FROM lsm_runs('r_k');
SELECT lsm_compact('r_k') FROM generate_series(1, 2);
SELECT lsm_compact('r_k');
SELECT bool_and(r.run_id = u.run_id AND r.segments = u.segments AND r.entries = u.entries) AS goes_on_there FROM lsm_runs('r_k') r, under_way u WHERE r.state = 'merging';
RESET regress.fail;
SELECT lsm_check('r_k', true);
SELECT lsm_compact('r_k');
SELECT state, entries FROM lsm_runs('r_k') WHERE state <> 'open';
SELECT lsm_check('r_k', true), t.same('SELECT k FROM r WHERE k > 900');
DELETE FROM r WHERE k < 500;
VACUUM r;
SELECT lsm_check('r_k', true), t.same('SELECT k FROM r WHERE k < 510');
INSERT INTO r SELECT (i * 37) % 1001 FROM generate_series(0, 1000) i;
SELECT lsm_compact('r_k');
SELECT lsm_check('r_k', true), t.same('SELECT k FROM r WHERE k > 900');
DELETE FROM r;
VACUUM r;
SELECT lsm_check('r_k', true), count(*) FROM lsm_runs('r_k') WHERE entries > 0;
-- A comparison that compacts another index while its own is being compacted: both
-- complete, and afterwards nothing keeps workers away.
CREATE TABLE beside (k int);
CREATE INDEX beside_k ON beside USING lsm (k);
CREATE FUNCTION beside_cmp(a int, b int) RETURNS int LANGUAGE plpgsql STRICT AS $$
BEGIN
	IF current_setting('regress.beside', true) = 'on' AND a = 7 THEN
		PERFORM public.lsm_compact('oc.beside_k');
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS beside_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 beside_cmp (int, int);
CREATE TABLE nesting (k int);
CREATE INDEX nesting_k ON nesting USING lsm (k beside_ops);
INSERT INTO nesting SELECT i % 20 FROM generate_series(1, 100) i;
INSERT INTO nesting SELECT i % 20 FROM generate_series(1, 100) i;
INSERT INTO beside SELECT i FROM generate_series(1, 100) i;
SET regress.beside = 'on';
SELECT lsm_compact('nesting_k');
RESET regress.beside;
SELECT count(*) FROM pg_stat_progress_lsm_compaction WHERE pid = pg_backend_pid();
SELECT count(*) FROM lsm_runs('nesting_k') WHERE state = 'packed';
SELECT count(*) FROM lsm_runs('beside_k') WHERE state = 'packed';
SELECT lsm_check('nesting_k', true), lsm_check('beside_k', true);
-- The same index again is refused, and stays claimed until the outer call ends.
CREATE OR REPLACE FUNCTION beside_cmp(a int, b int) RETURNS int LANGUAGE plpgsql STRICT AS $$
BEGIN
	IF current_setting('regress.beside', true) = 'on' AND a = 7 THEN
		BEGIN
			PERFORM public.lsm_compact('oc.nesting_k');
		EXCEPTION WHEN object_in_use THEN
			RAISE 'refused, and claims: %', (SELECT count(*) FROM public.lsm_stat_progress() WHERE pid = pg_backend_pid());
		END;
	END IF;
	RETURN btint4cmp(a, b);
END $$;
INSERT INTO nesting SELECT i % 20 FROM generate_series(1, 100) i;
SET regress.beside = 'on';
SELECT lsm_compact('nesting_k');
RESET regress.beside;
SELECT count(*) FROM pg_stat_progress_lsm_compaction WHERE pid = pg_backend_pid();
SELECT lsm_check('nesting_k', true);
-- A type that has its own class for btree but none for lsm, and is binary-coercible to
-- text: the default would be text_ops, which no query uses.
SET client_min_messages = warning;
CREATE TYPE word;
CREATE FUNCTION word_in(cstring) RETURNS word LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION word_out(word) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
RESET client_min_messages;
CREATE TYPE word (INPUT = word_in, OUTPUT = word_out, LIKE = text, CATEGORY = 'S', COLLATABLE = true);
CREATE CAST (word AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (text AS word) WITHOUT FUNCTION AS ASSIGNMENT;
CREATE FUNCTION word_cmp(a word, b word) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN pg_catalog.bttextcmp(pg_catalog.lower(a::text), pg_catalog.lower(b::text)); END';
CREATE FUNCTION word_lt(a word, b word) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN oc.word_cmp(a, b) < 0; END';
CREATE FUNCTION word_le(a word, b word) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN oc.word_cmp(a, b) <= 0; END';
CREATE FUNCTION word_eq(a word, b word) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN oc.word_cmp(a, b) = 0; END';
CREATE FUNCTION word_ge(a word, b word) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN oc.word_cmp(a, b) >= 0; END';
CREATE FUNCTION word_gt(a word, b word) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN oc.word_cmp(a, b) > 0; END';
CREATE OPERATOR < (LEFTARG = word, RIGHTARG = word, FUNCTION = word_lt, COMMUTATOR = >);
CREATE OPERATOR <= (LEFTARG = word, RIGHTARG = word, FUNCTION = word_le, COMMUTATOR = >=);
CREATE OPERATOR = (LEFTARG = word, RIGHTARG = word, FUNCTION = word_eq, COMMUTATOR = =);
CREATE OPERATOR >= (LEFTARG = word, RIGHTARG = word, FUNCTION = word_ge, COMMUTATOR = <=);
CREATE OPERATOR > (LEFTARG = word, RIGHTARG = word, FUNCTION = word_gt, COMMUTATOR = <);
CREATE OPERATOR CLASS word_ops DEFAULT FOR TYPE word USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 word_cmp (word, word);
CREATE DOMAIN name_of_word AS word;
CREATE TABLE words (id int, w word, d name_of_word, v varchar(10), c cidr, wa word[]);
INSERT INTO words (id, w) SELECT i, chr(65 + i % 26 + i % 2 * 32) FROM generate_series(1, 200) i;
CREATE INDEX words_w ON words USING lsm (id, w);
CREATE INDEX words_d ON words USING lsm (d);
CREATE INDEX CONCURRENTLY words_e ON words USING lsm (upper(v), (v::word));
-- No warning: the class was named, there is no other, or the index is not new.
CREATE INDEX ON words USING lsm (w text_pattern_ops);
CREATE INDEX ON words USING lsm (v, c, wa);
REINDEX INDEX words_w;
TRUNCATE words;
INSERT INTO words (id, w) SELECT i, chr(65 + i % 26 + i % 2 * 32) FROM generate_series(1, 200) i;
SELECT t.allow('index'), t.plan_has('SELECT w, id FROM words WHERE w = ''x''', 'Index Cond: .* = ') AS used;
SELECT lsm_create_opclass('oc.word_ops');
CREATE INDEX ON words USING lsm (w, d);
SELECT t.allow('index'), t.plan_has('SELECT w, id FROM words WHERE w = ''x''', 'Index Cond: .* = ') AS used;
SELECT t.same('SELECT w, id FROM words WHERE w = ''x''');
SET client_min_messages = warning;
DROP SCHEMA oc CASCADE;

-- The planner treats a family like a btree family if and only if the two are alike.
CREATE TABLE odd (f bool, id int);
INSERT INTO odd SELECT i % 3 = 0, i FROM generate_series(1, 600) i;
CREATE OPERATOR FAMILY odd_ops USING lsm;
CREATE OPERATOR CLASS odd_bool_ops FOR TYPE bool USING lsm FAMILY odd_ops AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, FUNCTION 1 btboolcmp(bool, bool);
CREATE INDEX odd_f ON odd USING lsm (f odd_bool_ops, id);
SET enable_seqscan = off;
SELECT t.same('SELECT id FROM odd WHERE f >= true AND (f, id) > (true, 500)'), t.same('SELECT f, id FROM odd ORDER BY f, id'), t.plan_has('SELECT * FROM odd WHERE (f, id) > (true, 500)', 'Index Cond');
ALTER OPERATOR FAMILY odd_ops USING lsm ADD OPERATOR 5 > (bool, bool);
SELECT t.same('SELECT id FROM odd WHERE f'), t.same('SELECT id FROM odd WHERE (f, id) > (true, 500)'), t.plan_has('SELECT * FROM odd WHERE (f, id) > (true, 500)', 'Index Cond');
RESET enable_seqscan;
DROP TABLE odd;
DROP OPERATOR FAMILY odd_ops USING lsm CASCADE;
