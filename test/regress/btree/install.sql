-- Takes the place of install.sql when btree stands in for lsm.  amcheck's
-- verifier does what lsm_check does.
CREATE ROLE regress_lsm_nobody;
CREATE EXTENSION amcheck;
CREATE FUNCTION lsm_check(index regclass, heapallindexed boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	-- A partitioned index has no pages.
	IF (SELECT relkind FROM pg_class WHERE oid = index) = 'i' THEN
		PERFORM bt_index_check(index, heapallindexed);
	END IF;
END $$;
