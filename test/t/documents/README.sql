CREATE EXTENSION pg_lsm;
CREATE TABLE events (device_id int, at timestamptz, value float8);
CREATE INDEX events_device_id_at_idx ON events (device_id, at);
