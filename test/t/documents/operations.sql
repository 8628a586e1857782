CREATE EXTENSION pg_lsm;
CREATE TABLE events (device_id int, at timestamptz, value float8);
CREATE INDEX events_lsm ON events USING lsm (device_id, at);
CREATE INDEX some_index ON events USING lsm (at);
CREATE TABLE ledger (id uuid PRIMARY KEY WITH (lsm = true), provider int, event text);
CREATE DATABASE shop_without_lsm;
