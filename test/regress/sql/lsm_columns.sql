-- lsm_index_columns: how each key column is stored.
CREATE TABLE stored (i int, c varchar(20) COLLATE "C", d date, j jsonb, p text COLLATE "C", n int);
CREATE INDEX stored_bytes ON stored USING lsm (i, d DESC, c, p text_pattern_ops) INCLUDE (n);
SELECT ordinal, column_name, type, split_part(opclass, '.', 2) AS opclass, "collation", storage, filtered FROM lsm_index_columns('stored_bytes');
CREATE INDEX stored_function ON stored USING lsm (j);
SELECT ordinal, column_name, type, split_part(opclass, '.', 2) AS opclass, storage FROM lsm_index_columns('stored_function');
-- An expression has the name of the index's column.
CREATE INDEX stored_expression ON stored USING lsm ((i + 1), lower(c));
SELECT ordinal, column_name, type FROM lsm_index_columns('stored_expression');
-- The function takes only lsm indexes that have a file.
CREATE INDEX stored_other ON stored (i);
SELECT t.error_of('SELECT lsm_index_columns(''stored_other'')'), t.error_of('SELECT lsm_index_columns(''stored'')');
CREATE TABLE parted (k int) PARTITION BY RANGE (k);
CREATE INDEX parted_k ON parted USING lsm (k);
SELECT t.error_of('SELECT lsm_index_columns(''parted_k'')');
-- Monitoring roles and the owner may call it.
CREATE ROLE stored_reader;
GRANT USAGE ON SCHEMA t TO stored_reader;
SET ROLE stored_reader;
SELECT t.error_of('SELECT lsm_index_columns(''stored_bytes'')');
RESET ROLE;
GRANT pg_monitor TO stored_reader;
SET ROLE stored_reader;
SELECT count(*) FROM lsm_index_columns('stored_bytes');
RESET ROLE;
REVOKE USAGE ON SCHEMA t FROM stored_reader;
DROP ROLE stored_reader;
DROP TABLE stored, parted;
-- All operator classes of the extension: which of them compare keys as bytes.
CREATE FUNCTION storage_of(class text, typ text, coll text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('CREATE TABLE one (k %s)', typ || CASE WHEN coll IS NULL THEN '' ELSE format(' COLLATE %I', coll) END);
	EXECUTE format('CREATE INDEX one_k ON one USING lsm (k %s)', class);
	SELECT storage || CASE WHEN filtered THEN '' ELSE ', no filters' END INTO result FROM lsm_index_columns('one_k');
	DROP TABLE one;
	RETURN result;
END $$;
CREATE TYPE stored_enum AS ENUM ('a');
CREATE TYPE stored_pair AS (a int);
SELECT storage_of(opcname, typ, CASE WHEN typcollation > 0 THEN 'C' END) AS storage, string_agg(opcname, ' ' ORDER BY opcname) AS classes
FROM (SELECT opcname::text, typcollation, CASE opcintype WHEN 'anyarray'::regtype THEN 'int[]' WHEN 'anyenum'::regtype THEN 'stored_enum' WHEN 'anyrange'::regtype THEN 'int4range'
		WHEN 'anymultirange'::regtype THEN 'int4multirange' WHEN 'record'::regtype THEN 'stored_pair' ELSE opcintype::regtype::text END AS typ
	FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod JOIN pg_type t ON t.oid = opcintype
	WHERE amname = 'lsm' AND opcname IN (SELECT opcname FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'btree' AND opcnamespace = 'pg_catalog'::regnamespace) AND opcname <> 'oid8_ops') classes
GROUP BY 1 ORDER BY 1;
-- Since 19.
SELECT count(*) FROM pg_opclass JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'lsm' AND opcname = 'oid8_ops' AND storage_of(opcname::text, 'oid8', NULL) <> 'bytes';
-- Text, by collation.  From glibc 2.35 on, libc's C.UTF-8 has no collation rules.
CREATE COLLATION c_utf8 (provider = libc, locale = 'C.UTF-8');
SELECT coll, storage_of('text_ops', 'text', coll), storage_of('bpchar_ops', 'char(5)', coll), storage_of('bpchar_pattern_ops', 'char(5)', coll), storage_of('name_ops', 'name', coll)
FROM unnest('{C,POSIX,c_utf8,default}'::text[]) coll;
SELECT DISTINCT storage_of('text_ops', 'text', collname), storage_of('varchar_pattern_ops', 'varchar', collname)
FROM (SELECT collname FROM pg_collation WHERE collname = 'und-x-icu') icu
UNION SELECT 'function', 'bytes';
-- The builtin provider, since 17.
SELECT count(*) = 0 FROM pg_collation WHERE collprovider = 'b' AND (collencoding = -1 OR collencoding = 6) AND storage_of('text_ops', 'text', collname) <> 'bytes';
DROP FUNCTION storage_of;
DROP TYPE stored_enum, stored_pair;
DROP COLLATION c_utf8;
