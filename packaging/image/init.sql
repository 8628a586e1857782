-- For the database that the image creates, and for those that will be created from template1.
CREATE EXTENSION IF NOT EXISTS pg_lsm;
\connect template1
CREATE EXTENSION IF NOT EXISTS pg_lsm;
