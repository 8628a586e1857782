-- Statements that the suite runs twice: in schema l with :am = lsm and :lsm = true, and in schema b with B-trees. A
-- statement ends with a semicolon at the end of a line. Both must have the same result, or fail with the same error. Rows
-- are compared in order if the statement has ORDER BY. After a statement that changes something, the contents of the
-- tables that it names are compared as well. :dir is a folder that the server can write to. A line "-- fails" precedes a
-- statement that must fail, "-- may fail" one whose success depends on the versions of PostgreSQL and Citus.

-- Distributed tables. The key and the indexes exist before, or are added later.
CREATE TABLE events (
	device int,
	id bigint,
	at timestamptz NOT NULL DEFAULT '2026-01-01 00:00:00+00',
	kind text COLLATE "C",
	value numeric,
	note text,
	PRIMARY KEY (device, id) WITH (lsm = :lsm));
CREATE INDEX events_at ON events USING :am (at DESC, device);
SELECT create_distributed_table('events', 'device', shard_count := 8, colocate_with := 'none');
CREATE INDEX events_kind ON events USING :am (kind, value) INCLUDE (note);
CREATE INDEX events_part ON events USING :am (value) WHERE kind = 'k3';
CREATE INDEX events_expression ON events USING :am ((id % 100), lower(kind));
CREATE UNIQUE INDEX events_unique ON events USING :am (device, at, id);
CREATE TABLE devices (
	device int PRIMARY KEY WITH (lsm = :lsm),
	name text NOT NULL,
	region int,
	UNIQUE (device, name) WITH (lsm = :lsm));
SELECT create_distributed_table('devices', 'device', colocate_with := 'events');
CREATE INDEX ON devices USING :am (region, device);
CREATE TABLE regions (
	region int PRIMARY KEY WITH (lsm = :lsm),
	name text UNIQUE WITH (lsm = :lsm));
SELECT create_reference_table('regions');
CREATE INDEX regions_name ON regions USING :am (name DESC NULLS LAST);
CREATE TABLE ledger (
	id uuid PRIMARY KEY WITH (lsm = :lsm),
	account int NOT NULL,
	amount int,
	at date);
CREATE INDEX ledger_account ON ledger USING :am (account, at);
SELECT create_distributed_table('ledger', 'id', shard_count := 8, colocate_with := 'none');
CREATE TABLE local (
	id int PRIMARY KEY WITH (lsm = :lsm),
	region int,
	name text);
CREATE INDEX local_region ON local USING :am (region, id);

-- Loads.
INSERT INTO regions SELECT r, 'region ' || r FROM generate_series(1, 20) r;
INSERT INTO devices SELECT d, 'device ' || d, d % 20 + 1 FROM generate_series(1, 500) d;
INSERT INTO local SELECT i, i % 20 + 1, 'local ' || i FROM generate_series(1, 200) i;
COPY (SELECT i * 7919 % 500 + 1, i, '2026-01-01 00:00:00+00'::timestamptz + i * interval '37 s', 'k' || i % 7, i % 101, repeat('x', i % 13)
	FROM generate_series(1, 12000) i) TO ':dir/events';
COPY events FROM ':dir/events';
COPY (SELECT i * 7919 % 500 + 1, i::bigint, '2026-01-08 00:00:00+00'::timestamptz + i * interval '11 s', 'k' || i % 7, (i % 101)::numeric, NULL::text
	FROM generate_series(12001, 12200) i) TO ':dir/events2' (FORMAT binary);
COPY events FROM ':dir/events2' (FORMAT binary);
COPY events (device, id, kind) FROM PROGRAM 'seq 20001 20060 | sed "s/.*/7\t&\tk1/"';
-- fails
COPY events FROM ':dir/events';
INSERT INTO ledger SELECT md5(i::text)::uuid, i % 300, i, '2026-01-01'::date + i % 365 FROM generate_series(1, 5000) i;
COPY ledger FROM PROGRAM 'seq 100000 100300 | sed "s/.*/00000000-0000-0000-0000-000000&\t290\t1\t2026-02-02/"';
COPY (SELECT gen_random_uuid(), 1 LIMIT 0) TO ':dir/empty';
COPY ledger (id, account) FROM ':dir/empty';
ANALYZE events;
ANALYZE devices;
ANALYZE ledger;
ANALYZE regions;
ANALYZE local;

-- Lookups, ranges, order.
SELECT * FROM events WHERE device = 7 AND id = 20030;
SELECT * FROM events WHERE device = 77 ORDER BY id;
SELECT * FROM events WHERE device = 77 ORDER BY id DESC LIMIT 5;
SELECT * FROM events WHERE device = 77 AND id > 4000 ORDER BY id LIMIT 3;
SELECT device, id FROM events WHERE device IN (3, 5, 8, 13) ORDER BY device, id;
SELECT device, id FROM events WHERE device = ANY (ARRAY[499, 1, 250]) AND id BETWEEN 2000 AND 9000 ORDER BY device DESC, id;
SELECT device, id, at FROM events ORDER BY at DESC, device LIMIT 20;
SELECT device, id, at FROM events ORDER BY at, device DESC, id LIMIT 20;
SELECT device, id, at FROM events WHERE at >= '2026-01-03 00:00:00+00' AND at < '2026-01-03 03:00:00+00' ORDER BY at, device, id;
SELECT kind, value, note FROM events WHERE kind = 'k2' AND value > 95 ORDER BY kind, value, note LIMIT 40;
SELECT kind, value FROM events WHERE kind >= 'k5' ORDER BY kind DESC, value DESC LIMIT 40;
SELECT id FROM events WHERE kind = 'k3' AND value = 50 ORDER BY id;
SELECT id FROM events WHERE kind = 'k3' AND value BETWEEN 10 AND 12 ORDER BY value, id;
SELECT id FROM events WHERE id % 100 = 42 AND lower(kind) = 'k1' ORDER BY id;
SELECT id FROM events WHERE id % 100 = 42 ORDER BY id LIMIT 30;
SELECT DISTINCT kind FROM events ORDER BY kind;
SELECT DISTINCT ON (kind) kind, value, id FROM events ORDER BY kind, value, id;
SELECT id FROM events WHERE note IS NULL ORDER BY id LIMIT 10;
SELECT id FROM events WHERE kind LIKE 'k4%' AND value = 3 ORDER BY id;
SELECT id FROM events WHERE (device, id) > (250, 6000) ORDER BY device, id LIMIT 25;
SELECT device, id FROM events ORDER BY device, id LIMIT 25 OFFSET 5000;
SELECT * FROM ledger WHERE id = md5('77')::uuid;
SELECT id, amount FROM ledger WHERE id > 'f0000000-0000-0000-0000-000000000000' ORDER BY id LIMIT 30;
SELECT id, amount FROM ledger ORDER BY id DESC LIMIT 10;
SELECT account, at, amount FROM ledger WHERE account BETWEEN 20 AND 22 ORDER BY account, at, amount;
SELECT * FROM regions WHERE region = 7;
SELECT * FROM regions ORDER BY name DESC NULLS LAST;
SELECT * FROM regions WHERE name BETWEEN 'region 1' AND 'region 15' ORDER BY name;
SELECT * FROM local WHERE region = 3 ORDER BY region, id;
SELECT * FROM local ORDER BY id DESC LIMIT 7;

-- Aggregates.
SELECT count(*) FROM events;
SELECT count(*), sum(value), min(at), max(at), avg(value) FROM events;
SELECT kind, count(*), sum(value), min(id), max(id) FROM events GROUP BY kind ORDER BY kind;
SELECT device, count(*) FROM events GROUP BY device ORDER BY device LIMIT 50;
SELECT min(id), max(id) FROM events WHERE device = 9;
SELECT count(DISTINCT device) FROM events WHERE kind = 'k5';
SELECT kind, count(*) FROM events GROUP BY kind HAVING count(*) > 1700 ORDER BY kind;
SELECT date_trunc('day', at) AS day, count(*), sum(value) FROM events GROUP BY 1 ORDER BY 1;
SELECT account, sum(amount) FROM ledger GROUP BY account ORDER BY account LIMIT 30;
SELECT max(amount) FROM ledger WHERE account = 5;
SELECT device, id, row_number() OVER (PARTITION BY device ORDER BY id) FROM events WHERE device < 4 ORDER BY device, id;
SELECT device, id, lag(value) OVER (PARTITION BY device ORDER BY at, id) FROM events WHERE device IN (10, 11) ORDER BY device, id;

-- Joins: co-located, with reference and local tables, repartitioned; subqueries.
SELECT d.name, count(*) FROM devices d JOIN events e USING (device) WHERE d.device < 20 GROUP BY d.name ORDER BY d.name;
SELECT d.device, e.id FROM devices d JOIN events e USING (device) WHERE d.region = 4 AND e.kind = 'k6' ORDER BY d.device, e.id LIMIT 40;
SELECT r.name, count(*) FROM regions r JOIN devices d USING (region) GROUP BY r.name ORDER BY r.name;
SELECT r.name, sum(e.value) FROM regions r JOIN devices d USING (region) JOIN events e USING (device) GROUP BY r.name ORDER BY r.name;
SELECT d.device, e.id FROM devices d LEFT JOIN events e ON e.device = d.device AND e.id < 100 ORDER BY d.device, e.id LIMIT 60;
SELECT d.device FROM devices d WHERE EXISTS (SELECT FROM events e WHERE e.device = d.device AND e.id = d.device) ORDER BY d.device;
SELECT d.device FROM devices d WHERE NOT EXISTS (SELECT FROM events e WHERE e.device = d.device AND e.value > 99) ORDER BY d.device;
SELECT l.id, d.name FROM local l JOIN devices d ON d.device = l.id WHERE l.region = 2 ORDER BY l.id;
SELECT l.name, r.name FROM local l JOIN regions r USING (region) WHERE l.id < 20 ORDER BY l.id;
SET citus.enable_repartition_joins = on;
SELECT count(*) FROM events e JOIN ledger l ON l.account = e.device;
SELECT l.account, count(*) FROM devices d JOIN ledger l ON l.account = d.device GROUP BY l.account ORDER BY l.account LIMIT 20;
WITH few AS (SELECT device, id FROM events WHERE value = 7 ORDER BY id LIMIT 50)
	SELECT few.id, d.name FROM few JOIN devices d USING (device) ORDER BY few.id;
SELECT device FROM events WHERE id = 5 UNION SELECT device FROM devices WHERE region = 1 ORDER BY device;
SELECT device FROM devices INTERSECT SELECT device FROM events WHERE kind = 'k0' ORDER BY device;
SELECT d.device, x.id FROM devices d, LATERAL (SELECT id FROM events e WHERE e.device = d.device ORDER BY id DESC LIMIT 2) x WHERE d.device < 15 ORDER BY d.device, x.id;
SELECT device, id FROM events WHERE (device, id) IN (SELECT device, max(id) FROM events WHERE device < 9 GROUP BY device) ORDER BY device;

-- Single rows, errors, ON CONFLICT.
INSERT INTO events VALUES (1, 30001, '2026-03-01 00:00:00+00', 'k1', 1, 'single');
-- fails
INSERT INTO events VALUES (1, 30001, '2026-03-01 00:00:00+00', 'k1', 1, 'twice');
INSERT INTO events VALUES (1, 30002, '2026-03-01 00:00:00+00', 'k1', 1), (2, 30003, '2026-03-01 00:00:00+00', 'k2', 2), (3, 30004, '2026-03-01 00:00:00+00', 'k3', 3);
-- fails
INSERT INTO events VALUES (4, 30005, '2026-03-01 00:00:00+00', 'k1', 1), (5, 30006, '2026-03-01 00:00:00+00', 'k2', 2), (1, 30001, '2026-03-01 00:00:00+00', 'k3', 3);
-- fails
INSERT INTO events (device, id, at) VALUES (1, NULL, '2026-03-01 00:00:00+00');
INSERT INTO events VALUES (1, 30001, '2026-03-01 00:00:00+00', 'k9', 9) ON CONFLICT DO NOTHING;
INSERT INTO events VALUES (1, 30001, '2026-03-01 00:00:00+00', 'k9', 9) ON CONFLICT (device, id) DO NOTHING RETURNING *;
INSERT INTO events AS e VALUES (1, 30001, '2026-03-01 00:00:00+00', 'k9', 9) ON CONFLICT (device, id) DO UPDATE SET value = e.value + excluded.value, kind = excluded.kind RETURNING device, id, kind, value;
INSERT INTO events AS e VALUES (1, 30001, '2026-03-01 00:00:00+00', 'k9', 9) ON CONFLICT (device, id) DO UPDATE SET value = 0 WHERE e.value > 1000;
-- fails
INSERT INTO events VALUES (6, 30007, '2026-03-01 00:00:00+00', 'k9', 9), (6, 30007, '2026-03-01 00:00:00+00', 'k9', 9) ON CONFLICT (device, id) DO UPDATE SET value = 0;
INSERT INTO events SELECT d, 40000 + d, '2026-03-02 00:00:00+00'::timestamptz, 'k' || d % 7, d FROM generate_series(1, 400) d ON CONFLICT DO NOTHING;
INSERT INTO events SELECT d, 40000 + d, '2026-03-02 00:00:00+00'::timestamptz, 'k8', d FROM generate_series(1, 500) d ON CONFLICT DO NOTHING;
INSERT INTO events AS e SELECT d, 40000 + d, '2026-03-02 00:00:00+00'::timestamptz, 'k8', d FROM generate_series(300, 600) d ON CONFLICT (device, id) DO UPDATE SET value = e.value * 2, kind = 'k8';
INSERT INTO events SELECT d % 400 + 1, 40000 + d, '2026-03-02 00:00:00+00'::timestamptz FROM generate_series(400, 800) d;
INSERT INTO devices VALUES (501, 'device 501', 1) ON CONFLICT (device) DO UPDATE SET region = 1 RETURNING *;
INSERT INTO devices VALUES (501, 'device 501', 2) ON CONFLICT (device, name) DO UPDATE SET region = 2 RETURNING *;
-- fails
INSERT INTO devices VALUES (501, 'another', 3);
INSERT INTO regions VALUES (21, 'region 21'), (22, NULL), (23, NULL);
-- fails
INSERT INTO regions VALUES (24, 'region 21');
INSERT INTO regions VALUES (21, 'region 22') ON CONFLICT (region) DO UPDATE SET name = excluded.name;
INSERT INTO regions VALUES (25, 'region 22') ON CONFLICT (name) DO NOTHING;
INSERT INTO ledger SELECT md5(i::text)::uuid, i % 300, -i, '2026-05-05' FROM generate_series(4900, 5100) i ON CONFLICT (id) DO UPDATE SET amount = excluded.amount RETURNING amount;
INSERT INTO ledger VALUES (md5('1')::uuid, 1, 1) ON CONFLICT DO NOTHING;
-- fails
INSERT INTO ledger VALUES (md5('1')::uuid, 1, 1);
INSERT INTO local VALUES (1, 1, 'again') ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING *;
INSERT INTO local SELECT i, 5, 'more' FROM generate_series(150, 260) i ON CONFLICT DO NOTHING;
-- fails
INSERT INTO local VALUES (1, 1);

-- INSERT SELECT: pushed down, repartitioned, through the coordinator.
INSERT INTO events (device, id, at, kind) SELECT device, id + 100000, at + interval '90 days', 'copy' FROM events WHERE device < 40 AND id < 9000;
INSERT INTO events (device, id, at, kind, value) SELECT account, 200000 + amount, '2026-06-01 00:00:00+00', 'ledger', amount FROM ledger WHERE account BETWEEN 1 AND 90 AND amount > 0;
INSERT INTO events (device, id, kind) SELECT device, 300000 + device, 'limit' FROM devices ORDER BY device LIMIT 60;
-- fails
INSERT INTO events (device, id, kind) SELECT device, 300000 + device, 'again' FROM devices WHERE device < 10;
INSERT INTO ledger (id, account, amount) SELECT md5('e' || id)::uuid, device, value::int FROM events WHERE kind = 'k4';
INSERT INTO ledger (id, account, amount) SELECT md5('e' || id)::uuid, device, 1 FROM events WHERE kind = 'k4' ON CONFLICT (id) DO UPDATE SET amount = ledger.amount + excluded.amount;
INSERT INTO regions SELECT device, 'from device ' || device FROM devices WHERE device BETWEEN 100 AND 110;
INSERT INTO local SELECT device, region, name FROM devices WHERE device BETWEEN 400 AND 420;
INSERT INTO devices SELECT id + 1000, name, region FROM local WHERE id < 100;

-- UPDATE and DELETE.
UPDATE events SET value = value + 1 WHERE device = 7 AND id = 20030;
UPDATE events SET kind = 'changed' WHERE device = 8;
UPDATE events SET id = id + 1000000 WHERE device = 9 AND id < 3000;
-- fails
UPDATE events SET id = 30001 WHERE device = 1 AND id = 30002;
UPDATE events SET value = -value, note = 'all' WHERE kind = 'k2';
UPDATE events SET at = '2026-02-02 00:00:00+00' WHERE id % 100 = 17;
-- fails
UPDATE events SET device = 1 WHERE device = 2;
UPDATE events e SET note = d.name FROM devices d WHERE d.device = e.device AND d.region = 6;
UPDATE devices SET name = name || '!' WHERE device = 11 RETURNING device, name;
UPDATE regions SET name = upper(name) WHERE region < 5;
UPDATE ledger SET account = account + 1 WHERE at = '2026-01-20';
UPDATE ledger SET amount = amount + 1;
UPDATE local SET region = region + 1 WHERE id > 250;
DELETE FROM events WHERE device = 12 AND id = 40012;
DELETE FROM events WHERE kind = 'k5' AND value < 20;
DELETE FROM events WHERE at < '2026-01-01 06:00:00+00';
DELETE FROM events e USING devices d WHERE d.device = e.device AND d.region = 9 RETURNING e.device, e.id;
DELETE FROM ledger WHERE id = md5('9')::uuid RETURNING account, amount;
DELETE FROM ledger WHERE account = 17;
DELETE FROM regions WHERE region = 20;
DELETE FROM local WHERE id BETWEEN 10 AND 20;
SELECT device, id, kind, value FROM events WHERE device IN (7, 8, 9) ORDER BY device, id;
SELECT kind, count(*), sum(value) FROM events GROUP BY kind ORDER BY kind;
SELECT id FROM events WHERE kind = 'changed' ORDER BY kind, value, id LIMIT 50;

-- Transactions.
BEGIN;
INSERT INTO events SELECT d, 500000 + d, '2026-07-01 00:00:00+00'::timestamptz, 'rolled', d FROM generate_series(1, 500) d;
SELECT count(*) FROM events WHERE kind = 'rolled';
UPDATE events SET value = 0 WHERE kind = 'rolled' AND device < 100;
SELECT count(*) FROM events WHERE kind = 'rolled' AND value = 0;
ROLLBACK;
SELECT count(*) FROM events WHERE kind = 'rolled';
BEGIN;
COPY events (device, id, kind) FROM PROGRAM 'seq 1 700 | sed "s/.*/&\t600000\trolled/"';
SELECT count(*), min(device), max(device) FROM events WHERE kind = 'rolled';
DELETE FROM events WHERE kind = 'rolled' AND device % 2 = 0;
SELECT device FROM events WHERE id = 600000 ORDER BY device LIMIT 20;
ROLLBACK;
BEGIN;
INSERT INTO events VALUES (1, 700001), (2, 700002), (3, 700003);
SAVEPOINT s;
INSERT INTO events VALUES (4, 700004), (5, 700005);
-- fails
INSERT INTO events VALUES (1, 700001);
ROLLBACK TO s;
INSERT INTO events VALUES (6, 700006);
SAVEPOINT t;
DELETE FROM events WHERE device = 3 AND id = 700003;
ROLLBACK TO t;
COMMIT;
SELECT device, id FROM events WHERE id BETWEEN 700000 AND 700010 ORDER BY id;
BEGIN;
INSERT INTO regions VALUES (30, 'thirty');
INSERT INTO local VALUES (3000, 30, 'thirty');
INSERT INTO devices VALUES (3000, 'thirty', 30);
SELECT count(*) FROM regions JOIN devices USING (region) WHERE region = 30;
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM ledger;
INSERT INTO ledger SELECT md5('rr' || i)::uuid, i, i FROM generate_series(1, 300) i;
SELECT count(*), sum(amount) FROM ledger;
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT device, id FROM events WHERE device = 30 ORDER BY id;
FETCH 5 FROM c;
FETCH 5 FROM c;
CLOSE c;
SELECT id FROM events WHERE device = 30 ORDER BY id LIMIT 3 FOR UPDATE;
COMMIT;
BEGIN;
UPDATE ledger SET amount = 0 WHERE account < 50;
UPDATE events SET value = 0 WHERE device < 50;
UPDATE regions SET name = name || '.';
COMMIT;
BEGIN;
TRUNCATE events, devices;
SELECT count(*) FROM events;
INSERT INTO devices VALUES (1, 'new', 1);
ROLLBACK;
SELECT count(*) FROM events;
PREPARE one (int, bigint) AS SELECT kind, value FROM events WHERE device = $1 AND id = $2;
EXECUTE one (7, 20030);
EXECUTE one (8, 40008);
EXECUTE one (7, 20031);
EXECUTE one (7, 20032);
EXECUTE one (7, 20033);
EXECUTE one (7, 20034);
EXECUTE one (7, 20035);
PREPARE put (int, bigint) AS INSERT INTO events VALUES ($1, $2) ON CONFLICT DO NOTHING;
EXECUTE put (7, 800001);
EXECUTE put (7, 800001);
SELECT count(*) FROM events WHERE id = 800001;
DEALLOCATE ALL;

-- Commands on indexes and tables.
CREATE INDEX CONCURRENTLY events_later ON events USING :am (value DESC, device);
SELECT id FROM events WHERE value > 90 ORDER BY value DESC, device, id LIMIT 40;
CREATE UNIQUE INDEX CONCURRENTLY events_later_unique ON events USING :am (id, device);
-- fails
CREATE UNIQUE INDEX not_distributed ON events USING :am (id);
-- fails
CREATE UNIQUE INDEX duplicates ON events USING :am (device);
REINDEX TABLE events;
REINDEX INDEX events_later;
REINDEX INDEX CONCURRENTLY events_later;
REINDEX TABLE CONCURRENTLY regions;
VACUUM events;
VACUUM (ANALYZE) ledger;
VACUUM FULL devices;
DELETE FROM ledger WHERE account > 200;
VACUUM (INDEX_CLEANUP on) ledger;
SELECT count(*), sum(amount) FROM ledger WHERE account BETWEEN 100 AND 250;
ALTER INDEX events_later RENAME TO events_value;
SELECT id FROM events WHERE value > 90 ORDER BY value DESC, device, id LIMIT 40;
DROP INDEX events_value;
DROP INDEX CONCURRENTLY events_later_unique;
ALTER TABLE events ADD COLUMN extra int DEFAULT 5;
CREATE INDEX events_extra ON events USING :am (extra, device);
UPDATE events SET extra = device WHERE id > 9000;
SELECT device, id, extra FROM events WHERE extra = 44 ORDER BY extra, device, id;
ALTER TABLE events ALTER COLUMN extra TYPE bigint;
SELECT device, id, extra FROM events WHERE extra > 490 ORDER BY extra, device, id;
ALTER TABLE events RENAME COLUMN extra TO more;
SELECT count(*) FROM events WHERE more = 44;
ALTER TABLE events DROP COLUMN more;
ALTER TABLE devices ADD CONSTRAINT devices_region UNIQUE (device, region) WITH (lsm = :lsm);
INSERT INTO devices VALUES (502, 'a', 1) ON CONFLICT (device, region) DO NOTHING;
ALTER TABLE devices DROP CONSTRAINT devices_region;
ALTER TABLE ledger DROP CONSTRAINT ledger_pkey;
INSERT INTO ledger VALUES (md5('1')::uuid, 1, 1);
-- fails
ALTER TABLE ledger ADD PRIMARY KEY (id) WITH (lsm = :lsm);
DELETE FROM ledger WHERE id = md5('1')::uuid;
ALTER TABLE ledger ADD PRIMARY KEY (id) WITH (lsm = :lsm);
-- fails
INSERT INTO ledger SELECT id, 1, 1 FROM ledger ORDER BY id LIMIT 3;
INSERT INTO ledger SELECT id, 1, 1 FROM ledger ORDER BY id LIMIT 3 ON CONFLICT (id) DO UPDATE SET amount = 77;
BEGIN;
ALTER TABLE devices DROP CONSTRAINT devices_pkey;
ALTER TABLE devices ADD PRIMARY KEY (device) WITH (lsm = :lsm);
COMMIT;
-- fails
INSERT INTO devices SELECT * FROM devices WHERE device = 3;
ALTER TABLE ledger RENAME TO journal;
SELECT count(*) FROM journal WHERE account = 20;
ALTER TABLE journal RENAME TO ledger;
TRUNCATE devices;
INSERT INTO devices SELECT d, 'device ' || d, d % 20 + 1 FROM generate_series(1, 500) d;
SELECT device FROM devices WHERE region = 3 ORDER BY region, device;
CREATE TABLE likewise (LIKE events INCLUDING ALL);
SELECT create_distributed_table('likewise', 'device', colocate_with := 'events');
INSERT INTO likewise SELECT * FROM events WHERE device < 100;
SELECT device, id FROM likewise WHERE device = 44 ORDER BY id;
DROP TABLE likewise;

-- Tables that have rows and indexes before they are distributed, and back.
CREATE TABLE before (
	id int PRIMARY KEY WITH (lsm = :lsm),
	k int,
	t text);
CREATE INDEX before_k ON before USING :am (k, id) INCLUDE (t);
CREATE INDEX before_t ON before USING :am (t text_pattern_ops);
INSERT INTO before SELECT i, i * 7919 % 10007, 't' || i FROM generate_series(1, 6000) i;
SELECT create_distributed_table('before', 'id', shard_count := 8);
SELECT k, id, t FROM before WHERE k BETWEEN 100 AND 160 ORDER BY k, id;
SELECT id FROM before WHERE t LIKE 't59%' ORDER BY id;
SELECT * FROM before WHERE id = 4711;
INSERT INTO before SELECT i, i, 'new' FROM generate_series(5990, 6100) i ON CONFLICT (id) DO UPDATE SET t = 'updated';
SELECT alter_distributed_table('before', shard_count := 4, cascade_to_colocated := false);
SELECT k, id, t FROM before WHERE k BETWEEN 100 AND 160 ORDER BY k, id;
-- fails
SELECT alter_distributed_table('before', distribution_column := 'k');
SELECT alter_distributed_table('before', shard_count := 6, cascade_to_colocated := false);
SELECT undistribute_table('before');
SELECT k, id, t FROM before WHERE k BETWEEN 100 AND 160 ORDER BY k, id;
-- fails
INSERT INTO before VALUES (1, 1, 'twice');
SELECT create_reference_table('before');
SELECT k, id, t FROM before WHERE k > 10000 ORDER BY k, id;
UPDATE before SET k = k + 1 WHERE k < 100;
SELECT undistribute_table('before');
-- may fail
SELECT create_distributed_table_concurrently('before', 'id', shard_count := 4);
SELECT k, id, t FROM before WHERE k < 100 ORDER BY k, id;
-- fails
INSERT INTO before VALUES (2, 2, 'twice');
SELECT citus_add_local_table_to_metadata('local');
SELECT * FROM local WHERE region = 4 ORDER BY region, id;
INSERT INTO local VALUES (9001, 4, 'managed');
SELECT l.id, d.name FROM local l JOIN devices d ON d.device = l.id WHERE l.region = 2 ORDER BY l.id;
SELECT undistribute_table('local');

-- Partitions of distributed tables.
CREATE TABLE parted (device int, at date, v int) PARTITION BY RANGE (at);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
CREATE INDEX parted_v ON parted USING :am (v, device);
SELECT create_distributed_table('parted', 'device', shard_count := 4, colocate_with := 'none');
INSERT INTO parted SELECT i % 60, '2026-01-01'::date + i % 59, i FROM generate_series(1, 3000) i;
SELECT device, at, v FROM parted WHERE v BETWEEN 100 AND 140 ORDER BY v, device;
CREATE TABLE parted_3 PARTITION OF parted FOR VALUES FROM ('2026-03-01') TO ('2026-04-01');
CREATE INDEX parted_at ON parted USING :am (device, at DESC);
INSERT INTO parted SELECT i % 60, '2026-03-01'::date + i % 31, i FROM generate_series(3001, 4000) i;
SELECT device, at, v FROM parted WHERE device = 33 ORDER BY device, at DESC, v LIMIT 30;
UPDATE parted SET at = '2026-03-03' WHERE v = 7;
SELECT count(*), sum(v) FROM parted WHERE at >= '2026-02-15';
ALTER TABLE parted DETACH PARTITION parted_1;
SELECT count(*), sum(v) FROM parted;
DROP TABLE parted_2;
SELECT v FROM parted WHERE v > 3950 ORDER BY v;

-- Schema-based sharding, views, functions, foreign keys from a table.
CREATE VIEW latest AS SELECT DISTINCT ON (device) device, id, at FROM events ORDER BY device, at DESC, id;
SELECT * FROM latest WHERE device BETWEEN 40 AND 60 ORDER BY device;
CREATE MATERIALIZED VIEW totals AS SELECT device, count(*) AS n, sum(value) AS total FROM events GROUP BY device;
CREATE UNIQUE INDEX totals_device ON totals USING :am (device);
SELECT * FROM totals ORDER BY device LIMIT 20;
REFRESH MATERIALIZED VIEW totals;
SELECT * FROM totals WHERE device = 30;
CREATE TABLE tagged (device int, tag text COLLATE "C", doc jsonb, list int[], addr inet, PRIMARY KEY (device, tag) WITH (lsm = :lsm));
SELECT create_distributed_table('tagged', 'device', colocate_with := 'events');
CREATE INDEX tagged_doc ON tagged USING :am (doc);
CREATE INDEX tagged_list ON tagged USING :am (list, addr);
INSERT INTO tagged SELECT i % 90, 'tag ' || i, jsonb_build_object('n', i % 50), ARRAY[i % 3, i], ('10.0.0.' || i % 250)::inet FROM generate_series(1, 2000) i;
SELECT device, tag FROM tagged WHERE doc = '{"n": 7}' ORDER BY device, tag;
SELECT list, addr FROM tagged WHERE list > ARRAY[2, 1900] ORDER BY list, addr;
SELECT device, tag FROM tagged WHERE device = 5 AND tag > 'tag 5' ORDER BY tag;
UPDATE tagged SET doc = '{"n": 1000}' WHERE tag = 'tag 77';
SELECT device, tag FROM tagged WHERE doc >= '{"n": 49}' ORDER BY doc, device, tag;
ALTER TABLE tagged ALTER COLUMN tag TYPE varchar(50) COLLATE "C";
ALTER TABLE tagged ALTER COLUMN list TYPE bigint[];
-- fails
INSERT INTO tagged VALUES (5, 'tag 5');
SELECT device, tag FROM tagged WHERE device = 6 AND tag > 'tag 5' ORDER BY tag;
SELECT list, addr FROM tagged WHERE list > ARRAY[2, 1900]::bigint[] ORDER BY list, addr;
SELECT isolate_tenant_to_new_shard('events', 7, 'CASCADE', shard_transfer_mode := 'block_writes') > 0;
SELECT * FROM events WHERE device = 7 ORDER BY id;
-- may fail
SELECT isolate_tenant_to_new_shard('ledger', md5('7')::uuid, shard_transfer_mode := 'force_logical') > 0;
SELECT * FROM ledger WHERE id = md5('7')::uuid;
SELECT count(*), sum(amount) FROM ledger;
MERGE INTO devices d USING (SELECT device, 'merged' AS name, 5 AS region FROM tagged WHERE tag = 'tag 88' OR tag = 'tag 1001') s ON d.device = s.device
	WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT VALUES (s.device, s.name, s.region);
SELECT * FROM devices WHERE name = 'merged' ORDER BY device;
