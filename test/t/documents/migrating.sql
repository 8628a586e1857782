CREATE EXTENSION pg_lsm;
CREATE TABLE events (device_id int, at timestamptz, value float8);
CREATE INDEX ON events (device_id, at);
CREATE TABLE ledger (id uuid PRIMARY KEY WITH (lsm = true), provider int, event text);
