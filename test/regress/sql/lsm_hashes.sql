-- A server may have been built without ICU: lsm_hashes_1.out.
SELECT NOT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') AS skip \gset
\if :skip
\quit
\endif
-- Filters of types that are compared by functions: equal values have equal hashes, so no row is missed.
SET client_min_messages = warning;
SET pg_lsm.debug_segment_size = 64;
SET pg_lsm.debug_foreground_blocks = 128;
SET pg_lsm.debug_page_entries = 0;
SET pg_lsm.debug_batch_entries = 0;
SET pg_lsm.debug_batch_min_entries = 1;
CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION icu_en (provider = icu, locale = 'en');
CREATE TYPE odd AS (n numeric, f float8, i interval, c char(4), t text COLLATE no_case, m name COLLATE icu_en);
CREATE TYPE nested AS (id int, odds odd[], prices numrange);
CREATE DOMAIN few AS numeric[] CHECK (cardinality(VALUE) < 9);
CREATE TYPE caseless_range AS RANGE (subtype = text, collation = no_case);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');

-- 1. Values that are equal but look different.
CREATE TABLE oddities (typ text, coll text, opclass text, vals text[]);
INSERT INTO oddities VALUES
	('numeric', NULL, '', '{1,1.0,1.00,0,0.000,-0,100,1e2,NaN,Infinity,1e-20}'),
	('text', 'no_case', '', '{a,A,ab,aB,AB,b,"",ä,Ä,"a "}'),
	('text', 'icu_en', '', '{a,A,ab,aB,AB,b,"",ä,Ä,"a "}'),
	('char(4)', 'no_case', '', '{a,"a ",A,"A  ",ab,b,"", " "}'),
	('char(4)', 'icu_en', '', '{a,"a ",A,"A  ",ab,b,"", " "}'),
	('char(600)', 'no_case', '', ARRAY['a', 'A', '', E'\x01', E'a\x01', ' ', 'ab']),
	('varchar(9)', 'no_case', '', '{a,A,ab,aB,b}'),
	('name', 'no_case', '', '{a,A,ab,aB,b}'),
	('interval', NULL, '', '{"1 mon","30 days","720 hours","1 day","24 hours","1 year","360 days","12 mons","-1 mon","-30 days"}'),
	('timetz', NULL, '', '{"12:00+00","12:00+01","13:00+01","12:00-08"}'),
	('inet', NULL, '', '{10.0.0.1,10.0.0.1/32,10.0.0.1/24,::1,::1/128}'),
	('jsonb', NULL, '', '{1,1.0,1.00,"[1]","[1.0]","{\"a\": 1}","{\"a\": 1.0}","[]","{}","\"a\"","null"}'),
	('int4range', NULL, '', '{"[1,3)","[1,2]","(0,2]","empty","(5,5)","(,)"}'),
	('numrange', NULL, '', '{"[1,2)","[1.0,2.00)","[1,2]","empty","(1,1)"}'),
	('nummultirange', NULL, '', '{"{[1,2)}","{[1.0,1.5),[1.5,2.0)}","{}","{empty}"}'),
	('caseless_range', NULL, '', '{"[a,b)","[A,B)","[a,B)","(a,b)","empty"}'),
	('numeric[]', NULL, '', '{"{1,2}","{1.0,2.00}","{1,2,NULL}","{}","{{1,2}}"}'),
	('few', NULL, '', '{"{1,2}","{1.0,2.00}","{1,2,NULL}","{}"}'),
	('float8[]', NULL, '', '{"{0}","{-0}","{NaN}","{1,-0}","{1,0}"}'),
	('text[]', 'no_case', '', '{"{a,b}","{A,B}","{a,B}","{}","{NULL,a}","{NULL,A}"}'),
	('name[]', 'no_case', '', '{"{a,b}","{A,B}","{a,B}"}'),
	('char(3)[]', NULL, '', '{"{a,b}","{\"a \",\"b  \"}","{A,b}"}'),
	('interval[]', NULL, '', '{"{1 mon}","{30 days}","{24:00}","{1 day}"}'),
	('odd', NULL, '', '{"(1,0,1 mon,a,a,a)","(1.0,-0,30 days,\"a \",A,a)","(1,0,1 mon,A,a,a)","(,,,,,)","(1.00,NaN,1 day,,,)","(1,NaN,24:00,,,)","(1,0,1 mon,a,a,A)"}'),
	('odd[]', NULL, '', '{"{\"(1,0,1 mon,a,a,a)\"}","{\"(1.0,-0,30 days,a,A,a)\"}","{}","{NULL}"}'),
	('nested', NULL, '', '{"(1,\"{\"\"(1,0,1 mon,a,a,a)\"\"}\",\"[1,2)\")","(1,\"{\"\"(1.0,-0,30 days,a,A,a)\"\"}\",\"[1.0,2.0)\")","(2,,empty)"}'),
	('mood', NULL, '', '{sad,ok,happy}'),
	('odd', NULL, 'record_image_ops', '{"(1,0,1 mon,a,a,a)","(1.0,-0,30 days,\"a \",A,a)"}'),
	('tsvector', NULL, '', '{a,"a b","b a",""}');
-- Looks up each value, and inserts all of them into a unique lsm index and into a B-tree.
CREATE FUNCTION check_oddity(o oddities, OUT lookups text, OUT rows bigint, OUT unique_as_btree bool) LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off SET enable_memoize = off AS $$
DECLARE
	col text := o.typ || coalesce(' COLLATE ' || o.coll, '');
BEGIN
	EXECUTE format('CREATE TABLE h (k %s, id serial, pad text DEFAULT repeat(md5(''x''), 12)) WITH (autovacuum_enabled = off)', col);
	EXECUTE format('CREATE TABLE sought (k %s)', col);
	EXECUTE format('CREATE INDEX h_k ON h USING lsm (k %s) INCLUDE (pad) WITH (filter_bits = 32)', o.opclass);
	EXECUTE format('INSERT INTO sought SELECT v::%s FROM unnest($1) v', o.typ) USING o.vals;
	FOR i IN 1 .. 4 LOOP
		-- A filter on disk needs a few leaves.
		EXECUTE format('INSERT INTO h SELECT ($1[1 + (i + %s) %% 2])::%s FROM generate_series(1, 100) i', i, o.typ) USING o.vals;
		INSERT INTO h SELECT k FROM sought;
		PERFORM lsm_compact('h_k') WHERE i = 2;
	END LOOP;
	PERFORM lsm_check('h_k', true);
	lookups := t.same(format('SELECT h.id FROM sought s, h WHERE h.k %s s.k', CASE o.opclass WHEN '' THEN '=' ELSE '*=' END));
	DROP TABLE h;
	EXECUTE format('CREATE TABLE h (id int, l %s, b %1$s) WITH (autovacuum_enabled = off)', col);
	EXECUTE format('CREATE UNIQUE INDEX h_l ON h USING lsm (l %s)', o.opclass);
	FOR i IN 1 .. 2 LOOP
		INSERT INTO h (id, l) SELECT row_number() OVER (), k FROM (SELECT k FROM sought ORDER BY k::text COLLATE "C" DESC) x
			ON CONFLICT DO NOTHING;
		EXECUTE format('INSERT INTO h (id, l) SELECT row_number() OVER (), v::%s FROM unnest($1) v ON CONFLICT DO NOTHING', o.typ)
			USING o.vals;
	END LOOP;
	SELECT count(*) INTO rows FROM h;
	EXECUTE format('CREATE UNIQUE INDEX h_b ON h (b %s)', o.opclass);
	INSERT INTO h (id, b) SELECT row_number() OVER (), k FROM (SELECT k FROM sought ORDER BY k::text COLLATE "C" DESC) x
		ON CONFLICT DO NOTHING;
	unique_as_btree := rows = (SELECT count(*) FROM h WHERE b::text IS NOT NULL) AND
		(SELECT count(*) = 0 FROM (SELECT l::text FROM h EXCEPT SELECT b::text FROM h) x);
	PERFORM lsm_check('h_l', true);
	DROP TABLE h, sought;
END $$;
SELECT typ, coll, r.* FROM oddities o, check_oddity(o) r;
-- Which of the types have filters.
CREATE FUNCTION is_filtered(o oddities) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	result bool;
BEGIN
	EXECUTE format('CREATE TABLE h (k %s)', o.typ || coalesce(' COLLATE ' || o.coll, ''));
	EXECUTE format('CREATE INDEX h_k ON h USING lsm (k %s)', o.opclass);
	SELECT filtered INTO result FROM lsm_index_columns('h_k');
	DROP TABLE h;
	RETURN result;
END $$;
SELECT string_agg(concat_ws(' ', typ, coll, nullif(opclass, '')), ', ') AS without_filters FROM oddities o WHERE NOT is_filtered(o);

-- 2. Filters skip all runs but one: a lookup enters only the one of eight runs that has the key, and none if the
-- key is absent.
CREATE FUNCTION count_entered(typ text, value text, OUT runs bigint, OUT present numeric, OUT absent numeric) LANGUAGE plpgsql
SET pg_lsm.debug_buffer_entries = 0 SET pg_lsm.debug_merge_fanout = 8 SET pg_lsm.debug_foreground_blocks = 0
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
	before record;
	found bigint;
BEGIN
	EXECUTE format('CREATE TABLE h (k %s) WITH (autovacuum_enabled = off)', typ);
	-- Each statement makes a run.
	CREATE UNIQUE INDEX h_k ON h USING lsm (k) WITH (merge_fanout = 32);
	FOR b IN 0 .. 7 LOOP
		EXECUTE format('INSERT INTO h SELECT %s FROM generate_series(1, 1000) n, LATERAL (SELECT (n * 8 + %s) * 2 AS i) x', value, b);
	END LOOP;
	SELECT count(*) INTO runs FROM lsm_runs('h_k') WHERE entries > 0;
	FOR odd IN 0 .. 1 LOOP
		-- The first lookups make filters of small runs in private memory.
		FOR turn IN 1 .. 2 LOOP
			SELECT seeks, filter_skips AS skips INTO before FROM pg_stat_lsm_indexes WHERE indexrelid = 'h_k'::regclass;
			EXECUTE format('SELECT sum((SELECT count(*) FROM h WHERE k = %s)) FROM generate_series(1, 320) n, LATERAL (SELECT (n * 24 + n %% 8) * 2 + %s AS i) x',
				value, odd) INTO found;
			IF (found > 0) = (odd = 1) THEN RAISE 'found %', found; END IF;
		END LOOP;
		SELECT round(count_entered.runs - (s.filter_skips - before.skips)::numeric / (s.seeks - before.seeks), 0) INTO absent
			FROM pg_stat_lsm_indexes s WHERE indexrelid = 'h_k'::regclass;
		present := coalesce(present, absent);
	END LOOP;
	DROP TABLE h;
END $$;
SELECT typ, runs, present, absent FROM (VALUES
	('numeric', '(i / 100.0)::numeric'),
	('text COLLATE icu_en', 'md5(i::text) COLLATE icu_en'),
	('text COLLATE no_case', 'md5(i::text) COLLATE no_case'),
	('char(40) COLLATE icu_en', 'md5(i::text)::char(40) COLLATE icu_en'),
	('char(40) COLLATE no_case', 'md5(i::text)::char(40) COLLATE no_case'),
	('interval', 'make_interval(hours => i)'),
	('timetz', 'make_time(i / 3600, i / 60 % 60, i % 60)::timetz'),
	('inet', '''10.0.0.0''::inet + i'),
	('jsonb', 'jsonb_build_object(''a'', i)'),
	('int4range', 'int4range(i, i + 5)'),
	('nummultirange', 'nummultirange(numrange(i, i + 5))'),
	('int4[]', 'ARRAY[1, i]'),
	('odd', '(i, 0, ''1 day'', ''a'', md5(i::text), ''a'')::odd'),
	('odd[]', 'ARRAY[(i, 0, ''1 day'', ''a'', md5(i::text), ''a'')::odd]'),
	('bytea', 'decode(md5(i::text), ''hex'')')) v(typ, value), count_entered(typ, value) r;

-- 3. Prefixes of keys, and values of another type.
CREATE TABLE p (name text COLLATE icu_en, at bigint, n numeric, id serial) WITH (autovacuum_enabled = off);
CREATE INDEX p_k ON p USING lsm (name, at DESC, n) WITH (merge_fanout = 32, filter_prefix = 2);
DO $$
BEGIN
	FOR b IN 0 .. 7 LOOP
		INSERT INTO p SELECT 'name' || (i % 10 * 8 + b), i, i / 10.0 FROM generate_series(1, 2000) i;
		COMMIT;
	END LOOP;
END $$;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION entered(query text, OUT entered numeric) LANGUAGE plpgsql AS $$
DECLARE
	all_runs numeric := (SELECT count(*) FROM lsm_runs('p_k') WHERE entries > 0);
	before record;
BEGIN
	FOR turn IN 1 .. 2 LOOP
		SELECT seeks, filter_skips AS skips INTO before FROM pg_stat_lsm_indexes WHERE indexrelid = 'p_k'::regclass;
		FOR i IN 1 .. 64 LOOP
			EXECUTE query USING 'name' || i;
		END LOOP;
	END LOOP;
	SELECT round(all_runs - (s.filter_skips - before.skips)::numeric / (s.seeks - before.seeks)) INTO entered
	FROM pg_stat_lsm_indexes s WHERE indexrelid = 'p_k'::regclass;
	-- All, or few.
	entered := CASE entered WHEN all_runs THEN 99 ELSE entered END;
END $$;
SELECT query, e.*
FROM unnest(ARRAY['name = $1', 'name = $1 AND at > 1990', 'name = $1 AND at = 77', 'name = $1 AND at = 77::int8',
	'name = $1 AND at = 77 AND n = 7.70', 'name = $1 AND at IS NULL', 'name = $1 AND at = 99999999999', 'name > $1 AND name < $1 || ''a''']) query,
	entered('SELECT count(*) FROM p WHERE ' || query) e;
SELECT t.same('SELECT id FROM p WHERE name = ''name7'' AND at = 110'), t.same('SELECT id FROM p WHERE name = ''name7'' AND at = 110::int2 AND n = 11.00'),
	t.same('SELECT id FROM p WHERE name = ''name7''::name COLLATE icu_en AND at < 20'), t.same('SELECT id FROM p WHERE name = ANY (''{name7,name8,none}'') AND at IN (109, 110, 111)');
RESET enable_seqscan;
RESET enable_bitmapscan;
SELECT lsm_check('p_k', true);
DROP TABLE p;
DROP FUNCTION entered;

-- 4. A composite type gets another attribute, or loses one: old values would get other hashes.
CREATE TYPE point3 AS (x int, y int, z text);
CREATE TABLE c (k point3, a point3[], id serial) WITH (autovacuum_enabled = off);
CREATE INDEX c_k ON c USING lsm (k) WITH (merge_fanout = 32);
CREATE INDEX c_a ON c USING lsm (a, k) WITH (merge_fanout = 32);
CREATE PROCEDURE load_points(batches int) LANGUAGE plpgsql AS $$
BEGIN
	FOR b IN 1 .. batches LOOP
		INSERT INTO c (k, a)
		SELECT q, ARRAY[q] FROM generate_series(1, 1000) i, LATERAL (SELECT ROW(i * 10 + b, i % 7, 'z')::point3 AS q) x;
		COMMIT;
	END LOOP;
END $$;
CREATE FUNCTION find_points() RETURNS text LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off SET enable_memoize = off AS $$
BEGIN
	PERFORM lsm_check('c_k', true), lsm_check('c_a', true);
	RETURN concat_ws(', ', t.same('SELECT c.id FROM (SELECT k AS v FROM c WHERE id % 97 = 0) s, c WHERE c.k = s.v'),
		t.same('SELECT c.id FROM (SELECT k AS v FROM c WHERE id % 97 = 0) s, c WHERE c.a = ARRAY[s.v]'));
END $$;
CREATE FUNCTION asks_filters() RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	CALL t.note_reads();
	PERFORM find_points();
	RETURN (SELECT bool_or(filter_checks > 0) FROM t.reads());
END $$;
CALL load_points(6);
SELECT find_points(), asks_filters();
-- A session that has already made its filters notices the change, too, and so does one within its own
-- transaction.
BEGIN;
ALTER TYPE point3 ADD ATTRIBUTE w numeric;
SELECT find_points(), asks_filters();
ROLLBACK;
SELECT find_points(), asks_filters();
ALTER TYPE point3 ADD ATTRIBUTE w numeric;
SELECT find_points(), asks_filters();
CALL load_points(3);
SELECT lsm_compact('c_k'), lsm_compact('c_a');
SELECT find_points(), asks_filters();
ALTER TYPE point3 DROP ATTRIBUTE w;
SELECT find_points(), asks_filters();
CALL load_points(3);
SELECT find_points(), asks_filters();
REINDEX TABLE c;
CALL load_points(2);
SELECT lsm_compact('c_k'), find_points(), asks_filters();
ALTER TYPE point3 RENAME ATTRIBUTE z TO v;
SELECT find_points(), asks_filters();
DROP TABLE c;
DROP PROCEDURE load_points;
DROP FUNCTION find_points, asks_filters;
DROP TYPE point3;

-- 5. Operator classes of users: without a hash, with one in C, without it again.
CREATE FUNCTION own_cmp(int, int) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
CREATE FUNCTION own_lt(int, int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
CREATE FUNCTION own_le(int, int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4le';
CREATE FUNCTION own_eq(int, int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE FUNCTION own_ge(int, int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4ge';
CREATE FUNCTION own_gt(int, int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4gt';
CREATE OPERATOR %< (LEFTARG = int, RIGHTARG = int, FUNCTION = own_lt);
CREATE OPERATOR %<= (LEFTARG = int, RIGHTARG = int, FUNCTION = own_le);
CREATE OPERATOR %= (LEFTARG = int, RIGHTARG = int, FUNCTION = own_eq);
CREATE OPERATOR %>= (LEFTARG = int, RIGHTARG = int, FUNCTION = own_ge);
CREATE OPERATOR %> (LEFTARG = int, RIGHTARG = int, FUNCTION = own_gt);
CREATE OPERATOR CLASS own_ops FOR TYPE int USING lsm AS
	OPERATOR 1 %<, OPERATOR 2 %<=, OPERATOR 3 %=, OPERATOR 4 %>=, OPERATOR 5 %>, FUNCTION 1 own_cmp (int, int);
CREATE FUNCTION own_hash(int) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashint4';
CREATE FUNCTION own_hash(int, bigint) RETURNS bigint LANGUAGE internal IMMUTABLE STRICT AS 'hashint4extended';
CREATE TABLE m (k int, t text COLLATE icu_en, id serial) WITH (autovacuum_enabled = off);
CREATE INDEX m_none ON m USING lsm (k own_ops, t);
CREATE OPERATOR CLASS own_hash_ops FOR TYPE int USING hash AS OPERATOR 1 %=, FUNCTION 1 own_hash (int);
CREATE INDEX m_standard ON m USING lsm (k own_ops, t) WITH (merge_fanout = 32);
ALTER OPERATOR FAMILY own_hash_ops USING hash ADD FUNCTION 2 (int) own_hash (int, bigint);
CREATE INDEX m_extended ON m USING lsm (k own_ops, t) WITH (merge_fanout = 32);
CREATE VIEW m_filtered AS SELECT i::regclass AS index, array_agg(filtered ORDER BY ordinal) AS filtered
	FROM unnest('{m_none,m_standard,m_extended}'::text[]) i, lsm_index_columns(i::regclass) GROUP BY i;
SELECT * FROM m_filtered ORDER BY 1;
DO $$
BEGIN
	FOR b IN 0 .. 5 LOOP
		INSERT INTO m SELECT i * 9 + b, md5((i * 9 + b)::text) FROM generate_series(1, 700) i;
		COMMIT;
	END LOOP;
END $$;
CREATE FUNCTION find_all() RETURNS text LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off SET enable_memoize = off AS $$
DECLARE
	result text;
BEGIN
	FOR i IN 0 .. 2 LOOP
		UPDATE pg_index SET indisvalid = indexrelid = ('{m_none,m_standard,m_extended}'::regclass[])[i + 1]
			WHERE indrelid = 'm'::regclass;
		result := concat_ws(', ', result, t.same('SELECT m.id FROM (SELECT k AS v, t AS w FROM m WHERE id % 97 = 0) s, m WHERE m.k %= s.v AND m.t = s.w'));
	END LOOP;
	UPDATE pg_index SET indisvalid = true WHERE indrelid = 'm'::regclass;
	PERFORM lsm_check('m_none', true), lsm_check('m_standard', true), lsm_check('m_extended', true);
	RETURN result;
END $$;
SELECT find_all();
SELECT lsm_compact('m_none'), lsm_compact('m_standard'), lsm_compact('m_extended');
SELECT find_all();
CALL t.note_reads();
SELECT find_all();
SELECT index, filter_checks > 0 AS asked FROM t.reads() ORDER BY 1;
-- With another function, filters are not tested.
CREATE FUNCTION own_other(int, bigint) RETURNS bigint LANGUAGE internal IMMUTABLE STRICT AS 'hashfloat4extended';
ALTER OPERATOR FAMILY own_hash_ops USING hash DROP FUNCTION 2 (int);
ALTER OPERATOR FAMILY own_hash_ops USING hash ADD FUNCTION 2 (int) own_other (int, bigint);
SELECT find_all();
ALTER OPERATOR FAMILY own_hash_ops USING hash DROP FUNCTION 2 (int);
ALTER OPERATOR FAMILY own_hash_ops USING hash ADD FUNCTION 2 (int) own_hash (int, bigint);
SELECT find_all();
DROP FUNCTION own_other;
-- A function that is not in C may change in the middle of a statement, and is not used.
CREATE FUNCTION sql_hash(a int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT hashint4(a)';
CREATE FUNCTION sql_hash(a int, seed bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS 'SELECT hashint4extended(a, seed)';
BEGIN;
DROP OPERATOR FAMILY own_hash_ops USING hash;
CREATE OPERATOR CLASS own_hash_ops FOR TYPE int USING hash AS OPERATOR 1 %=, FUNCTION 1 sql_hash (int), FUNCTION 2 sql_hash (int, bigint);
CREATE TABLE of_sql (k int);
CREATE INDEX of_sql_k ON of_sql USING lsm (k own_ops);
SELECT filtered FROM lsm_index_columns('of_sql_k');
ROLLBACK;
DROP FUNCTION sql_hash(int), sql_hash(int, bigint);
-- Core looks up the functions of elements again and again, so those of users are not used.
BEGIN;
CREATE TYPE own_int;
CREATE FUNCTION own_in(cstring) RETURNS own_int LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION own_out(own_int) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE own_int (INPUT = own_in, OUTPUT = own_out, LIKE = int4);
CREATE FUNCTION own_cmp(own_int, own_int) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
CREATE FUNCTION own_lt(own_int, own_int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
CREATE FUNCTION own_le(own_int, own_int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4le';
CREATE FUNCTION own_eq(own_int, own_int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
CREATE FUNCTION own_ge(own_int, own_int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4ge';
CREATE FUNCTION own_gt(own_int, own_int) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4gt';
CREATE FUNCTION own_hash(own_int) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'hashint4';
CREATE FUNCTION own_hash(own_int, bigint) RETURNS bigint LANGUAGE internal IMMUTABLE STRICT AS 'hashint4extended';
CREATE OPERATOR %< (LEFTARG = own_int, RIGHTARG = own_int, FUNCTION = own_lt);
CREATE OPERATOR %<= (LEFTARG = own_int, RIGHTARG = own_int, FUNCTION = own_le);
CREATE OPERATOR = (LEFTARG = own_int, RIGHTARG = own_int, FUNCTION = own_eq);
CREATE OPERATOR %>= (LEFTARG = own_int, RIGHTARG = own_int, FUNCTION = own_ge);
CREATE OPERATOR %> (LEFTARG = own_int, RIGHTARG = own_int, FUNCTION = own_gt);
CREATE OPERATOR CLASS own_int_ops DEFAULT FOR TYPE own_int USING btree AS
	OPERATOR 1 %<, OPERATOR 2 %<=, OPERATOR 3 =, OPERATOR 4 %>=, OPERATOR 5 %>, FUNCTION 1 own_cmp (own_int, own_int);
CREATE OPERATOR CLASS own_int_lsm_ops DEFAULT FOR TYPE own_int USING lsm AS
	OPERATOR 1 %<, OPERATOR 2 %<=, OPERATOR 3 =, OPERATOR 4 %>=, OPERATOR 5 %>, FUNCTION 1 own_cmp (own_int, own_int);
CREATE OPERATOR CLASS own_int_hash_ops DEFAULT FOR TYPE own_int USING hash AS
	OPERATOR 1 =, FUNCTION 1 own_hash (own_int), FUNCTION 2 own_hash (own_int, bigint);
CREATE TYPE own_pair AS (a own_int, b int);
CREATE TABLE of_own (k own_int, a own_int[], p own_pair);
CREATE INDEX of_own_i ON of_own USING lsm (k, a, p);
SELECT filtered FROM lsm_index_columns('of_own_i') ORDER BY ordinal;
ROLLBACK;
-- Without the hash functions, old filters are not tested and no new ones are made.
DROP OPERATOR FAMILY own_hash_ops USING hash;
\c
SET pg_lsm.debug_segment_size = 64;
SET pg_lsm.debug_foreground_blocks = 128;
SET pg_lsm.debug_page_entries = 0;
SET pg_lsm.debug_batch_entries = 0;
SELECT find_all();
INSERT INTO m SELECT i * 9 + 7, md5((i * 9 + 7)::text) FROM generate_series(1, 700) i;
SELECT find_all();
SELECT lsm_compact('m_none'), lsm_compact('m_standard'), lsm_compact('m_extended');
SELECT find_all();
CALL t.note_reads();
SELECT find_all();
SELECT index, filter_checks > 0 AS asked FROM t.reads() ORDER BY 1;
DROP VIEW m_filtered;
DROP TABLE m;
-- A composite that gets an attribute without a hash: its filters are no longer used, and its values are not hashed.
CREATE TYPE grown AS (x int, y int);
CREATE TABLE g (k grown);
CREATE UNIQUE INDEX g_k ON g USING lsm (k);
INSERT INTO g SELECT ROW(i, i)::grown FROM generate_series(1, 3000) i;
SELECT lsm_compact('g_k');
INSERT INTO g SELECT ROW(i, i)::grown FROM generate_series(3001, 3100) i;
INSERT INTO g SELECT ROW(i, i)::grown FROM generate_series(3101, 3200) i;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM g WHERE k = ROW(5, 5)::grown;
ALTER TYPE grown ADD ATTRIBUTE v tsvector;
SELECT count(*) FROM g WHERE k = ROW(5, 5, NULL)::grown;
INSERT INTO g VALUES (ROW(5, 5, NULL)::grown);
SELECT lsm_compact('g_k'), lsm_check('g_k', true);
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE g;
DROP TYPE grown;
DROP FUNCTION find_all, check_oddity, is_filtered, count_entered;
DROP TABLE oddities;
DROP OPERATOR FAMILY own_ops USING lsm;
DROP OPERATOR %< (int, int), %<= (int, int), %= (int, int), %>= (int, int), %> (int, int);
DROP FUNCTION own_cmp, own_lt, own_le, own_eq, own_ge, own_gt, own_hash(int), own_hash(int, bigint);
DROP TYPE nested, odd, caseless_range, mood, few;
DROP COLLATION no_case, icu_en;
