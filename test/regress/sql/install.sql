-- The extension installs, and a role without rights cannot install it.
CREATE ROLE regress_lsm_nobody;
SET ROLE regress_lsm_nobody;
CREATE EXTENSION pg_lsm;
RESET ROLE;
CREATE EXTENSION pg_lsm;
SELECT amname, amtype FROM pg_am WHERE amname = 'lsm';
