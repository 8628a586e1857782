-- Batches of a unique index while most runs are small: one filter contains the keys of all small runs.
CREATE TABLE usr (k int, v int) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX usr_k ON usr USING lsm (k) WITH (merge_fanout = 32);
-- Batch i has 100 keys in random order: those of the numbers from i * 100 on, which never repeat (100003 is
-- prime).
CREATE FUNCTION usr_key(n int) RETURNS int IMMUTABLE LANGUAGE sql AS $$ SELECT (n::int8 * 7919 % 100003)::int $$;
-- Each batch gets one key of an earlier batch, or, after its own keys, `again` of them. Returns how many
-- are found.
CREATE FUNCTION usr_try(batches int, again int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	first int := coalesce((SELECT max(v) + 1 FROM usr), 0);
	caught int := 0;
	missed int := 0;
BEGIN
	FOR i IN first .. first + batches - 1 LOOP
		FOR n IN 1 .. CASE WHEN i = 0 THEN 0 ELSE again END LOOP
			BEGIN
				-- Also as the first and the last of the batch, in key order.
				INSERT INTO usr
				SELECT CASE WHEN j = 50 THEN k ELSE usr_key(i * 100 + j) END, i
				FROM generate_series(0, 99) j, usr_key((i * 37 + n * 7919) % (i * 100)) k
				WHERE j = 50 OR n % 3 = 0 OR (n % 3 = 1 AND usr_key(i * 100 + j) > k) OR
					(n % 3 = 2 AND usr_key(i * 100 + j) < k);
				missed := missed + 1;
			EXCEPTION WHEN unique_violation THEN
				caught := caught + 1;
			END;
		END LOOP;
		INSERT INTO usr SELECT usr_key(i * 100 + j), i FROM generate_series(0, 99) j;
	END LOOP;
	RETURN format('%s caught, %s missed', caught, missed);
END $$;
SELECT usr_try(20, 6);
SELECT usr_try(180, 2);
-- More keys exist than are looked up together. Half of them are inserted again, and the transaction has
-- deleted none.
DO $$
BEGIN
	INSERT INTO usr SELECT usr_key(n), -1 FROM generate_series(0, 19999, 13) n;
	RAISE NOTICE 'keys came in twice';
EXCEPTION WHEN unique_violation THEN
	RAISE NOTICE 'caught';
END $$;
-- Keys can be inserted again after their rows were deleted, whether their entries still exist or VACUUM has
-- emptied the runs.
DELETE FROM usr WHERE v % 2 = 0;
INSERT INTO usr SELECT usr_key(v * 100 + j), v FROM generate_series(0, 198, 4) v, generate_series(0, 99) j;
VACUUM usr;
INSERT INTO usr SELECT usr_key(v * 100 + j), v FROM generate_series(2, 198, 4) v, generate_series(0, 99) j;
SELECT count(*), count(DISTINCT k) FROM usr;
SELECT usr_try(10, 9);
SELECT lsm_check('usr_k', true);
-- Lookups of keys that ascend, and then descend, skip small runs.
TRUNCATE usr;
DO $$
BEGIN
	FOR i IN 0 .. 29 LOOP
		INSERT INTO usr SELECT 1000000 + i * 100 + j, i FROM generate_series(0, 99) j;
		INSERT INTO usr SELECT 1000000 - i * 100 - j, i FROM generate_series(1, 100) j;
	END LOOP;
END $$;
SELECT count(*), count(DISTINCT k) FROM usr;
DO $$
DECLARE
	caught int := 0;
BEGIN
	FOR i IN -30 .. 29 LOOP
		BEGIN
			INSERT INTO usr SELECT CASE WHEN j = 17 THEN 1000000 + i * 100 + 17 ELSE 2000000 + i * 100 + j END, i FROM generate_series(0, 99) j;
		EXCEPTION WHEN unique_violation THEN
			caught := caught + 1;
		END;
	END LOOP;
	RAISE NOTICE '% of 60 caught', caught;
END $$;
SELECT lsm_check('usr_k', true);
-- A batch that has the same new key twice, among keys that small runs contain or not.
DO $$
BEGIN
	INSERT INTO usr SELECT CASE WHEN j = 60 THEN 3000040 ELSE 3000000 + j END FROM generate_series(0, 99) j;
	RAISE NOTICE 'a key came in twice';
EXCEPTION WHEN unique_violation THEN
	RAISE NOTICE 'caught';
END $$;
DROP TABLE usr;
DROP FUNCTION usr_try, usr_key;
