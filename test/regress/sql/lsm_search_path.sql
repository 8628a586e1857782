-- Who runs the comparison functions of a user, and with which search_path.
CREATE SCHEMA oc;
-- A comparison function that finds another one through search_path: a statement's own batch uses
-- the statement's path, and merges use the function's schema.
CREATE FUNCTION oc.helped(a int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a';
CREATE FUNCTION oc.helped_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN btint4cmp(helped(a), helped(b)); END';
CREATE OPERATOR CLASS oc.helped_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 oc.helped_cmp (int, int);
SET search_path = oc, public, t;
SET pg_lsm.batch_inserts = on;
CREATE TABLE helped_rows (k int);
CREATE INDEX helped_k ON helped_rows USING lsm (k oc.helped_ops);
CREATE TABLE helped_keys (k int);
CREATE UNIQUE INDEX helped_u ON helped_keys USING lsm (k oc.helped_ops);
INSERT INTO helped_rows VALUES (3);
INSERT INTO helped_rows SELECT i % 70 FROM generate_series(1, 3000) i;
INSERT INTO helped_keys SELECT i * 7919 % 5000 FROM generate_series(1, 3000) i;
INSERT INTO helped_keys VALUES (7919), (6000);
INSERT INTO helped_keys SELECT i FROM generate_series(1, 3000) i ON CONFLICT DO NOTHING;
DO $$ BEGIN FOR i IN 1..300 LOOP INSERT INTO helped_rows VALUES (i); END LOOP; END $$;
DELETE FROM helped_rows WHERE k = 9;
VACUUM helped_rows;
SELECT lsm_compact('helped_k'), lsm_compact('helped_u'), lsm_check('helped_k', true), lsm_check('helped_u', true);
SET enable_seqscan = off;
SELECT count(*) FROM helped_rows WHERE k = 5;
-- Entries are compared as the user who inserted them, whichever user needs them first.
CREATE TABLE seen_users (who text);
GRANT ALL ON seen_users TO public;
CREATE FUNCTION oc.seen_cmp(a int, b int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
	IF current_setting('regress.see', true) = 'yes' THEN
		INSERT INTO oc.seen_users VALUES (current_user || ' ' || current_setting('search_path'));
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CREATE OPERATOR CLASS oc.seen_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 oc.seen_cmp (int, int);
CREATE TABLE seen (k int);
CREATE INDEX seen_k ON seen USING lsm (k oc.seen_ops);
CREATE FUNCTION oc.reads_seen() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$ BEGIN
	RETURN (SELECT count(*) FROM oc.seen WHERE k > 0);
END $$;
CREATE ROLE seen_user;
GRANT USAGE ON SCHEMA oc TO seen_user;
GRANT ALL ON seen TO seen_user;
SET ROLE seen_user;
SET regress.see = 'yes';
INSERT INTO seen SELECT CASE WHEN i = 60 THEN oc.reads_seen()::int * 0 + i ELSE i END FROM generate_series(1, 100) i;
RESET regress.see;
RESET ROLE;
SELECT DISTINCT who FROM seen_users WHERE who NOT LIKE '%pg_catalog%';
REVOKE ALL ON seen FROM seen_user;
REVOKE USAGE ON SCHEMA oc FROM seen_user;
DROP ROLE seen_user;
DROP TABLE helped_rows, helped_keys, seen, seen_users;
SET client_min_messages = warning;
DROP SCHEMA oc CASCADE;
-- Functions of the extension name its schema, so it stays there.
SELECT extrelocatable, t.error_of('ALTER EXTENSION pg_lsm SET SCHEMA t') FROM pg_extension WHERE extname = 'pg_lsm';
