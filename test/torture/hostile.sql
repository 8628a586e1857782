-- Functions of operator classes and expressions that do what the setting hostile.mood says: 'PLACE DEED N'.
-- One of N calls at the place does the deed. Without a mood they are honest.
CREATE EXTENSION pg_lsm;
CREATE ROLE villain LOGIN;
GRANT pg_checkpoint TO villain;
CREATE SCHEMA h AUTHORIZATION villain;
GRANT CREATE, TEMPORARY ON DATABASE postgres TO villain;
CREATE TYPE h.num AS (v int);
CREATE TABLE h.notes (a int);

CREATE FUNCTION h.fall(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN h.fall(n + 1); END';

-- Lies: the answer instead of the honest one.
CREATE FUNCTION h.lie(deed text, a int, b int, honest int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	RETURN CASE deed
		WHEN 'random' THEN floor(random() * 3)::int - 1
		WHEN 'reverse' THEN -honest
		WHEN 'zero' THEN 0
		WHEN 'one' THEN 1
		WHEN 'least' THEN -2147483648
		WHEN 'cycle' THEN ((a - b) % 3 + 3) % 3 - 1
		WHEN 'drift' THEN honest + 1
	END;
END $$;

-- What a function of the table's owner must not achieve while a superuser or a worker maintains the index.
CREATE FUNCTION h.rob() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	ways text[] := ARRAY['SET ROLE postgres', 'RESET ROLE', 'RESET SESSION AUTHORIZATION',
		'SET SESSION AUTHORIZATION postgres', 'CREATE TEMP TABLE loot (a int)', 'INSERT INTO h.later VALUES (1)',
		'DECLARE loot CURSOR WITH HOLD FOR SELECT 1', 'LISTEN loot', 'PREPARE loot AS SELECT 1',
		'ALTER ROLE villain SUPERUSER', 'SELECT set_config(''search_path'', ''h'', false)',
		'SELECT lsm_stat_reset()', 'CREATE FUNCTION pg_temp.loot() RETURNS int LANGUAGE sql AS ''SELECT 1'''];
BEGIN
	IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
		RAISE WARNING 'hostile: gained the rights of %', current_user;
	END IF;
	EXECUTE ways[1 + floor(random() * array_length(ways, 1))];
END $$;

-- A deferred trigger would run at commit, as the session's user.
CREATE TABLE h.later (a int);
CREATE FUNCTION h.later() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF current_user <> 'villain' THEN
		RAISE WARNING 'hostile: gained a trigger as %', current_user;
	END IF;
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON h.later DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION h.later();

CREATE FUNCTION h.act(place text, a int, b int, honest int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	mood text[] := string_to_array(current_setting('hostile.mood', true), ' ');
	kept text := '';
	n int;
BEGIN
	IF mood[1] IS DISTINCT FROM place OR random() * mood[3]::int >= 1 THEN
		RETURN honest;
	END IF;
	CASE mood[2]
		WHEN 'error' THEN RAISE EXCEPTION 'hostile error';
		WHEN 'caught' THEN
			BEGIN
				n := 1 / 0;
			EXCEPTION WHEN division_by_zero THEN
				NULL;
			END;
		WHEN 'nth' THEN
			n := coalesce(nullif(current_setting('hostile.calls', true), ''), '0')::int + 1;
			PERFORM set_config('hostile.calls', n::text, false);
			IF n % 37 = 0 THEN
				RAISE EXCEPTION 'hostile error of call %', n;
			END IF;
		WHEN 'null' THEN RETURN NULL;
		WHEN 'sleep' THEN PERFORM pg_sleep(30);
		WHEN 'spin' THEN
			LOOP
				n := 1;
			END LOOP;
		WHEN 'recurse' THEN RETURN h.fall(0);
		WHEN 'allocate' THEN
			LOOP
				kept := kept || repeat('x', 60000000);
			END LOOP;
		WHEN 'extremes' THEN RETURN CASE WHEN honest < 0 THEN -2147483648 WHEN honest > 0 THEN 2147483647 ELSE 0 END;
		WHEN 'write' THEN INSERT INTO h.notes VALUES (a);
		WHEN 'insert-self' THEN INSERT INTO h.t (id) VALUES (a);
		WHEN 'select-self' THEN PERFORM k FROM h.t ORDER BY k LIMIT 1;
		WHEN 'select-cross' THEN PERFORM k FROM h.u ORDER BY k LIMIT 1;
		WHEN 'insert-cross' THEN INSERT INTO h.u SELECT * FROM h.u LIMIT 1;
		WHEN 'lock' THEN LOCK TABLE h.t;
		WHEN 'drop' THEN DROP TABLE h.t;
		WHEN 'drop-index' THEN DROP INDEX h.t_k;
		WHEN 'alter' THEN ALTER TABLE h.t ADD COLUMN more int DEFAULT 1;
		WHEN 'set-fillfactor' THEN ALTER TABLE h.t SET (fillfactor = 50);
		WHEN 'truncate' THEN TRUNCATE h.t;
		WHEN 'reindex' THEN REINDEX INDEX h.t_k;
		WHEN 'create-index' THEN CREATE INDEX ON h.t USING lsm (id);
		WHEN 'compact' THEN PERFORM lsm_compact('h.t_k');
		WHEN 'check' THEN PERFORM lsm_check('h.t_k', true);
		WHEN 'vacuum' THEN EXECUTE 'VACUUM h.t';
		WHEN 'rob' THEN PERFORM h.rob();
		WHEN 'checkpoint' THEN EXECUTE 'CHECKPOINT';
		WHEN 'terminate' THEN PERFORM pg_terminate_backend(pg_backend_pid());
		WHEN 'cancel' THEN PERFORM pg_cancel_backend(pg_backend_pid());
		WHEN 'commit' THEN EXECUTE 'COMMIT';
		ELSE RETURN h.lie(mood[2], a, b, honest);
	END CASE;
	RETURN honest;
END $$;

-- An operator class of a type that all functions serve, and one for int that shares the operators of int4_ops.
CREATE FUNCTION h.num_cmp(a h.num, b h.num) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN h.act(''cmp'', a.v, b.v, btint4cmp(a.v, b.v)); END';
CREATE FUNCTION h.int_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN h.act(''cmp'', a, b, btint4cmp(a, b)); END';
CREATE FUNCTION h.num_hash(a h.num) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN h.act(''hash'', a.v, a.v, hashint4(a.v)); END';
CREATE FUNCTION h.num_hash(a h.num, seed bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN hashint4extended(h.act(''hash'', a.v, a.v, a.v), seed); END';
CREATE FUNCTION h.lt(a h.num, b h.num) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN h.act(''op'', a.v, b.v, btint4cmp(a.v, b.v)) < 0; END';
CREATE FUNCTION h.le(a h.num, b h.num) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN h.act(''op'', a.v, b.v, btint4cmp(a.v, b.v)) <= 0; END';
CREATE FUNCTION h.eq(a h.num, b h.num) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN h.act(''op'', a.v, b.v, btint4cmp(a.v, b.v)) = 0; END';
CREATE FUNCTION h.ge(a h.num, b h.num) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN h.act(''op'', a.v, b.v, btint4cmp(a.v, b.v)) >= 0; END';
CREATE FUNCTION h.gt(a h.num, b h.num) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN h.act(''op'', a.v, b.v, btint4cmp(a.v, b.v)) > 0; END';
CREATE OPERATOR h.< (LEFTARG = h.num, RIGHTARG = h.num, FUNCTION = h.lt, COMMUTATOR = OPERATOR(h.>));
CREATE OPERATOR h.<= (LEFTARG = h.num, RIGHTARG = h.num, FUNCTION = h.le, COMMUTATOR = OPERATOR(h.>=));
CREATE OPERATOR h.= (LEFTARG = h.num, RIGHTARG = h.num, FUNCTION = h.eq, COMMUTATOR = OPERATOR(h.=), HASHES, MERGES);
CREATE OPERATOR h.>= (LEFTARG = h.num, RIGHTARG = h.num, FUNCTION = h.ge, COMMUTATOR = OPERATOR(h.<=));
CREATE OPERATOR h.> (LEFTARG = h.num, RIGHTARG = h.num, FUNCTION = h.gt, COMMUTATOR = OPERATOR(h.<));
CREATE OPERATOR CLASS h.num_ops DEFAULT FOR TYPE h.num USING btree AS
	OPERATOR 1 h.<, OPERATOR 2 h.<=, OPERATOR 3 h.=, OPERATOR 4 h.>=, OPERATOR 5 h.>, FUNCTION 1 h.num_cmp (h.num, h.num);
CREATE OPERATOR CLASS h.num_hash_ops DEFAULT FOR TYPE h.num USING hash AS
	OPERATOR 1 h.=, FUNCTION 1 h.num_hash (h.num), FUNCTION 2 h.num_hash (h.num, bigint);
SELECT lsm_create_opclass('h.num_ops');
CREATE OPERATOR CLASS h.int_ops FOR TYPE int USING lsm AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 h.int_cmp (int, int);

CREATE FUNCTION h.expr(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN h.act(''expr'', a, a, a); END';
CREATE FUNCTION h.pred(a int) RETURNS bool LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS
	'BEGIN RETURN h.act(''pred'', a, a, 1 - abs(a % 3)) <> 0; END';

-- The tables belong to the villain, and so do all functions.
ALTER TABLE h.notes OWNER TO villain;
ALTER TABLE h.later OWNER TO villain;
DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'h'::regnamespace LOOP
		EXECUTE format('ALTER FUNCTION %s OWNER TO villain', f);
	END LOOP;
END $$;
CREATE TABLE public.functions AS SELECT * FROM pg_proc WHERE pronamespace = 'h'::regnamespace
