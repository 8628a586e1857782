#!/bin/sh
#
# A load for the dashboard: rows with random keys, in batches and one by one, lookups, and duplicates. Connects as libpq's
# environment variables say, and goes on until it is stopped.

set -eu

until psql -qc 'SELECT 1' >/dev/null 2>&1; do
	sleep 1
done
psql -q -v ON_ERROR_STOP=1 <<'SQL'
SET client_min_messages = warning;
CREATE TABLE IF NOT EXISTS events (
	id uuid PRIMARY KEY WITH (lsm = true),
	device_id int NOT NULL,
	at timestamptz NOT NULL DEFAULT now(),
	value float8);
CREATE INDEX IF NOT EXISTS events_device_id_at_idx ON events USING lsm (device_id, at DESC);
SQL
trap 'exit 0' INT TERM
while :; do
	psql -q -v ON_ERROR_STOP=1 >/dev/null <<'SQL'
INSERT INTO events SELECT gen_random_uuid(), random() * 1e6, now(), random() FROM generate_series(1, 5000);
INSERT INTO events SELECT gen_random_uuid(), random() * 1e6, now(), random();
INSERT INTO events SELECT id, device_id, at, value FROM events TABLESAMPLE SYSTEM (0.01) LIMIT 100 ON CONFLICT DO NOTHING;
SELECT * FROM events WHERE device_id = (random() * 1e6)::int ORDER BY at DESC LIMIT 10;
SQL
	[ "${LOAD_ONCE:-}" = "" ] || exit 0
	sleep 0.1
done
