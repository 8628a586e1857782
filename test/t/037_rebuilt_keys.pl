# Extensions that create keys by themselves: with pg_lsm.default_method = lsm, chunks and partitions get lsm keys. In
# PostgreSQL 18 and later, ON CONFLICT at the root works.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = start_new_node('rebuilt', conf => $full);
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

sub available
{
	my ($extension) = @_;

	return $node->safe_psql('postgres', "SELECT default_version FROM pg_available_extensions WHERE name = '$extension'");
}

# Makes a database in which new keys are lsm.
sub make_database
{
	my ($database) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION pg_lsm');
	$node->safe_psql('postgres', "ALTER DATABASE $database SET pg_lsm.default_method = lsm");
	return;
}

# Returns each method of the primary keys of a table and all its children, and whether more than three keys have it.
sub methods_of_keys
{
	my ($database, $table) = @_;

	return $node->safe_psql($database, "
		WITH RECURSIVE tree(id) AS (SELECT '$table'::regclass::oid
			UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = id)
		SELECT a.amname, count(*) > 3 FROM tree JOIN pg_constraint k ON k.conrelid = id AND k.contype = 'p'
			JOIN pg_class c ON c.oid = k.conindid JOIN pg_am a ON a.oid = c.relam GROUP BY 1");
}

# Inserts rows of several days. Then inserts their keys again, once with DO UPDATE and once with DO NOTHING. Returns the
# number of rows, and the least and the greatest value.
sub upsert_twice
{
	my ($database, $table) = @_;

	$node->safe_psql($database, "
		INSERT INTO $table SELECT now() + i * interval '10 minutes', i % 50, 1 FROM generate_series(1, 600) i
		ON CONFLICT (at, device) DO UPDATE SET value = excluded.value");
	return $node->safe_psql($database, "
		INSERT INTO $table SELECT at, device, 2 FROM $table ON CONFLICT (at, device) DO UPDATE SET value = excluded.value;
		INSERT INTO $table SELECT at, device, 3 FROM $table ON CONFLICT DO NOTHING;
		SELECT count(*), min(value), max(value) FROM $table");
}

SKIP:
{
	skip 'pg_partman is not installed', 1 if available('pg_partman') eq '';
	skip 'before 18, keys of partitioned tables are B-trees', 1 if $version < 180000;
	make_database('partman');
	$node->safe_psql('partman', "
		CREATE SCHEMA partman;
		CREATE EXTENSION pg_partman SCHEMA partman;
		CREATE TABLE metrics (at timestamptz NOT NULL, device int, value int, PRIMARY KEY (at, device)) PARTITION BY RANGE (at);
		SELECT partman.create_parent('public.metrics', 'at', '1 day');
		CALL partman.run_maintenance_proc()");
	is(methods_of_keys('partman', 'metrics'), 'lsm|t', 'pg_partman: the partitions have lsm keys');
	is(upsert_twice('partman', 'metrics'), '600|2|2', 'pg_partman: ON CONFLICT works at the root');
	is($node->safe_psql('partman', 'SELECT count(*) FROM lsm_check_all(NULL, true)'), 0, 'pg_partman: the indexes are sound');
}

SKIP:
{
	skip 'TimescaleDB is not installed', 1 if available('timescaledb') eq '';
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'timescaledb,pg_lsm'\ntimescaledb.telemetry_level = off\n");
	$node->restart;
	make_database('timescale');
	$node->safe_psql('timescale', "
		CREATE EXTENSION timescaledb;
		CREATE TABLE metrics (at timestamptz NOT NULL, device int, value int, PRIMARY KEY (at, device));
		SELECT create_hypertable('metrics', 'at', chunk_time_interval => interval '1 day', create_default_indexes => false)");
	if ($version < 180000)
	{
		# TimescaleDB opens the indexes of chunks by itself, and PostgreSQL then demands B-trees for ON CONFLICT.
		$node->safe_psql('timescale', "INSERT INTO metrics SELECT now() + i * interval '10 minutes', i % 50, 1 FROM generate_series(1, 600) i");
		my ($status, $out, $err) = $node->psql('timescale', 'INSERT INTO metrics SELECT at, device, 2 FROM metrics ON CONFLICT (at, device) DO NOTHING');
		like($err, qr/unexpected non-btree speculative unique index/, 'TimescaleDB before 18: ON CONFLICT needs a B-tree');
	}
	else
	{
		is(upsert_twice('timescale', 'metrics'), '600|2|2', 'TimescaleDB: ON CONFLICT works at the root');
	}
	is(methods_of_keys('timescale', 'metrics'), 'lsm|t', 'TimescaleDB: the chunks have lsm keys');
	is($node->safe_psql('timescale', 'SELECT count(*) FROM lsm_check_all(NULL, true)'), 0, 'TimescaleDB: the indexes are sound');
}

$node->stop;
ok(1, 'the server stops');
done_testing();
