CREATE EXTENSION pg_lsm;
CREATE EXTENSION citext;
CREATE EXTENSION isn;
CREATE TABLE people (surname text, born date);
CREATE TABLE accounts (email citext);
