-- Strings: collations, pattern operator classes, long common prefixes,
-- padding, LIKE.
SET client_min_messages = warning;
CREATE TABLE words (id serial, w text COLLATE "C");
INSERT INTO words (w) SELECT x FROM unnest(ARRAY['', ' ', 'a', 'A', 'aa', 'ab', 'a b', 'a  ', 'b', 'B', '_', '%', '\',
	E'\x01', E'a\x01', E'a\x01b', E'\x7f', E'a\x7f', E'\u00e9', E'\u0101', E'\u4e2d', E'\U0001F600', E'e\u0301', 'z', 'zz', NULL,
	repeat('x', 7), repeat('x', 8), repeat('x', 9), repeat('x', 15), repeat('x', 16), repeat('x', 17), repeat('x', 500),
	repeat('x', 500) || 'a', repeat('x', 499), repeat('x', 250) || 'y', 'prefix', 'prefix1', 'prefix2', 'prefiy', 'pre']) x;
CREATE TABLE sought AS SELECT id AS n, w FROM words;

-- A table of the words in some type and collation, half of it filled before the index exists;
-- all operators, both directions.
CREATE FUNCTION check_text(typ text, coll text, opclass text DEFAULT '', ops text[] DEFAULT '{<,<=,=,>=,>}')
RETURNS text LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off SET enable_memoize = off AS $$
DECLARE
	said text;
	problems text;
	direction text;
	op text;
BEGIN
	FOREACH direction IN ARRAY '{ASC,DESC,DESC NULLS LAST}'::text[] LOOP
		DROP TABLE IF EXISTS v;
		EXECUTE format('CREATE TABLE v (id int, k %s COLLATE %s)', typ, coll);
		INSERT INTO v SELECT id, w FROM words ORDER BY md5(w);
		EXECUTE format('CREATE INDEX v_idx ON v USING lsm (k %s %s) INCLUDE (id)', opclass, direction);
		INSERT INTO v SELECT id, w FROM words ORDER BY id DESC;
		INSERT INTO v SELECT id, w FROM words;
		PERFORM lsm_check('v_idx', true);
		IF opclass = '' THEN
			said := t.same_order('v', 'id, k', regexp_replace('k ' || direction, ' ASC', ''));
			IF said ~ 'DIFFERENT|NO INDEX' THEN
				problems := concat_ws(E'\n', problems, format('order by %s: %s', direction, said));
			END IF;
		END IF;
		FOREACH op IN ARRAY ops LOOP
			said := t.same(format('SELECT s.n, v.* FROM sought s, LATERAL (SELECT id, octet_length(k) FROM v WHERE k %s s.w::%s COLLATE %s) v',
				op, typ, coll));
			IF said ~ 'DIFFERENT|NO INDEX' THEN
				problems := concat_ws(E'\n', problems, format('(%s): k %s: %s', direction, op, said));
			END IF;
		END LOOP;
	END LOOP;
	RETURN coalesce(problems, 'same');
END $$;

SELECT typ, coll, check_text(typ, coll) FROM unnest('{text,varchar,varchar(600),char(510)}'::text[]) typ, unnest('{"\"C\"","\"POSIX\"","\"default\""}'::text[]) coll;
-- ICU, where the server has it.
SELECT typ, CASE WHEN EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu')
	THEN check_text(typ, '"und-x-icu"') ELSE 'same' END
FROM unnest('{text,varchar,char(510)}'::text[]) typ;
DO $$
BEGIN
	CREATE COLLATION no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported OR invalid_parameter_value OR undefined_file THEN
	CREATE COLLATION no_case FROM "C";
END $$;
SELECT typ, check_text(typ, 'no_case') FROM unnest('{text,char(510)}'::text[]) typ;
-- libc, where the server has the locale: one without collation rules, and one with.
DO $$
DECLARE
	name text;
BEGIN
	FOREACH name IN ARRAY '{C.UTF-8,en_US.UTF-8}'::text[] LOOP
		BEGIN
			EXECUTE format('CREATE COLLATION %I (provider = libc, locale = %L)', 'libc ' || name, name);
		EXCEPTION WHEN undefined_file OR invalid_parameter_value OR undefined_object THEN
			EXECUTE format('CREATE COLLATION %I FROM "C"', 'libc ' || name);
		END;
	END LOOP;
END $$;
SELECT typ, coll, check_text(typ, coll) FROM unnest('{text,varchar(600),char(510),bpchar}'::text[]) typ, unnest('{"\"libc C.UTF-8\"","\"libc en_US.UTF-8\""}'::text[]) coll;
SELECT check_text('char(510)', '"libc en_US.UTF-8"', 'bpchar_pattern_ops', '{~<~,~<=~,=,~>=~,~>~}');
DROP TABLE v;
DROP COLLATION "libc C.UTF-8", "libc en_US.UTF-8";
-- Pattern classes compare bytes, whatever the collation.
SELECT check_text('text', '"default"', 'text_pattern_ops', '{~<~,~<=~,=,~>=~,~>~}');
SELECT check_text('varchar', '"default"', 'varchar_pattern_ops', '{~<~,~<=~,=,~>=~,~>~}');
SELECT check_text('char(510)', '"default"', 'bpchar_pattern_ops', '{~<~,~<=~,=,~>=~,~>~}');
DROP TABLE v;

-- LIKE and regular expressions become ranges.
CREATE INDEX words_w ON words USING lsm (w);
CREATE INDEX words_p ON words USING lsm (w text_pattern_ops);
SELECT q, t.same('SELECT * FROM words WHERE w ' || q) FROM unnest(ARRAY[
	$$LIKE 'prefix%'$$, $$LIKE 'x%'$$, $$LIKE 'a'$$, $$LIKE '\_%'$$, $$LIKE 'a_'$$, $$~ '^pre'$$, $$~ '^prefix[12]'$$,
	$$~~ 'nothing%'$$, $$^@ 'xx'$$]) q;
DROP INDEX words_w;
-- (LIKE does not become a range of a pattern class: the planner does that for
-- btree's own family only.)
SELECT q, t.same('SELECT * FROM words WHERE w ' || q) FROM unnest(ARRAY[
	$$~>=~ 'prefix' AND w ~<~ 'prefiy'$$, $$~<=~ 'a'$$, $$= 'prefix'$$]) q;
DROP INDEX words_p;

-- A name compares with text.
CREATE TABLE names AS SELECT id, left(w, 20)::name AS n FROM words WHERE octet_length(left(w, 20)) < 60;
CREATE INDEX names_n ON names USING lsm (n);
SELECT q, t.same('SELECT * FROM names WHERE n ' || q) FROM unnest(ARRAY[
	$$= 'prefix1'::text$$, $$< 'prefix1'::text$$, $$>= 'prefix1'::text$$, $$= 'prefix1'::name$$, $$LIKE 'prefix%'$$]) q;
SELECT lsm_check('names_n', true);

-- The padding of char(n) does not matter for equality, but it is returned.
CREATE TABLE padded (c char(5));
CREATE INDEX padded_c ON padded USING lsm (c);
INSERT INTO padded VALUES ('a'), ('a '), ('a  b'), (''), ('abcde');
VACUUM padded;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT '[' || c || ']' AS trimmed, octet_length(c) FROM padded WHERE c = 'a    ';
SELECT octet_length(c), bpcharout(c) FROM padded ORDER BY c;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- Padding counts characters, not bytes.  Without a length, the padding is what was stored.
CREATE TABLE blanks (c char(4), b bpchar, v varchar(8), n int);
INSERT INTO blanks SELECT x, x::bpchar, x, n FROM unnest(ARRAY['', ' ', '    ', 'a', 'a ', 'a   ', 'aé中', 'é', 'é  ', 'abcd', 'abcd    ', E'a\x01', 'b', NULL]) WITH ORDINALITY u (x, n);
INSERT INTO blanks SELECT 'x', repeat('y', i) || repeat(' ', i * i * i), 'x', 100 + i FROM generate_series(1, 12) i;
CREATE INDEX blanks_c ON blanks USING lsm (c, n) INCLUDE (v);
CREATE INDEX blanks_b ON blanks USING lsm (b DESC, n);
CREATE INDEX blanks_p ON blanks USING lsm (b bpchar_pattern_ops, c bpchar_pattern_ops DESC, n);
VACUUM blanks;
SELECT lsm_check('blanks_c', true), lsm_check('blanks_b', true), lsm_check('blanks_p', true);
SELECT t.same('SELECT bpcharout(c), octet_length(c), v, n FROM blanks ORDER BY c, n'), t.same('SELECT bpcharout(b), octet_length(b), n FROM blanks ORDER BY b DESC, n');
SELECT t.same($$SELECT bpcharout(b), octet_length(b), bpcharout(c) FROM blanks WHERE b ~>=~ ''$$);
SELECT q, t.same('SELECT bpcharout(b), octet_length(b), n FROM blanks WHERE b ' || q) FROM unnest(ARRAY[$$= 'a'$$, $$= 'a        '$$, $$IN ('a  ', 'é', 'yyy')$$, $$< 'a '$$,
	$$> 'yyy  '$$, $$LIKE 'y%'$$, $$LIKE 'a %'$$, $$BETWEEN '' AND 'b'$$, $$IS NULL$$]) q;
-- The length may be removed while the index stays.
SELECT pg_relation_filenode('blanks_c') AS before \gset
ALTER TABLE blanks ALTER c TYPE bpchar;
SELECT pg_relation_filenode('blanks_c') = :before AS same_file;
INSERT INTO blanks (c, n) VALUES ('a', 200), ('a  ', 201), ('a    ', 202), ('a      ', 203), ('', 204);
VACUUM blanks;
SELECT lsm_check('blanks_c', true), lsm_check('blanks_p', true), t.same('SELECT bpcharout(c), octet_length(c), v, n FROM blanks ORDER BY c, n');
-- A value too long for a tuple is refused at once, not only when a scan forms the tuple.
CREATE TABLE wide (c char(8000));
CREATE INDEX wide_c ON wide USING lsm (c);
INSERT INTO wide VALUES ('a'), ('b'), (repeat('c', 500));
VACUUM wide;
SELECT lsm_check('wide_c', true), t.same('SELECT c FROM wide ORDER BY c');
CREATE TABLE wider (c char(20000));
ALTER TABLE wider ALTER c SET STORAGE EXTERNAL;
CREATE INDEX wider_c ON wider USING lsm (c);
SELECT t.error_of($$INSERT INTO wider VALUES ('a')$$);
DROP TABLE blanks, wide, wider;

-- Two collations on the same column: each index serves its own collation.
CREATE TABLE two (k text COLLATE "C", p text COLLATE "POSIX");
INSERT INTO two SELECT w, w FROM words;
CREATE INDEX two_k ON two USING lsm (k, p);
CREATE INDEX two_p ON two USING lsm (p COLLATE "C" DESC, k COLLATE "POSIX");
SELECT t.same('SELECT * FROM two ORDER BY k, p', 'SELECT * FROM two ORDER BY k, p, ctid');
SELECT t.same('SELECT * FROM two ORDER BY p COLLATE "C" DESC, k COLLATE "POSIX"', 'SELECT * FROM two ORDER BY p COLLATE "C" DESC, k COLLATE "POSIX", ctid');
DROP TABLE words, sought, names, padded, two;
DROP FUNCTION check_text;
DROP COLLATION no_case;
