# REPACK and REPACK (CONCURRENTLY) of PostgreSQL 19: alone, while others write, killed midway, and replayed on a
# standby.
use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LsmTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_node('primary', init => { allows_streaming => 'logical' },
	conf => "fsync = off\nwal_level = logical\nmax_replication_slots = 10\nmax_worker_processes = 16\n");
$primary->start;
my $version = $primary->safe_psql('postgres', 'SHOW server_version_num');
if ($version < 190000)
{
	$primary->stop;
	plan skip_all => 'REPACK came with PostgreSQL 19';
}
$primary->safe_psql('postgres', 'CREATE EXTENSION pg_lsm');
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

# REPACK (CONCURRENTLY) looks rows up by the primary key, an lsm index. The other indexes are lsm indexes as well.
$primary->safe_psql('postgres', q{
	CREATE TABLE r (id int NOT NULL, k text NOT NULL, n numeric, f text) WITH (autovacuum_enabled = off);
	ALTER TABLE r ADD PRIMARY KEY (id) WITH (lsm = true);
	CREATE UNIQUE INDEX r_k ON r USING lsm (k, n);
	CREATE INDEX r_n ON r USING lsm (n DESC, id);
	INSERT INTO r SELECT i, 'key ' || hashint4(i), i / 8.0, repeat('f', 100) FROM generate_series(1, 6000) i;
});

sub rows_of
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT count(*), sum(id), sum(n), md5(string_agg(k, NULL ORDER BY id)) FROM r');
}

# 1. No other session.
foreach my $command ('REPACK r', 'REPACK r USING INDEX r_pkey', 'REPACK (CONCURRENTLY) r', 'REPACK (CONCURRENTLY) r USING INDEX r_pkey')
{
	$primary->safe_psql('postgres', 'DELETE FROM r WHERE id % 17 = 3; UPDATE r SET n = n + 1 WHERE id % 13 = 5');
	my $before = rows_of($primary);
	my ($ret, $out, $err) = $primary->psql('postgres', $command);
	is($ret, 0, $command) or diag($err);
	is(rows_of($primary), $before, "the table has the same rows after $command");
	check_clean($primary, "indexes are sound after $command");
}

# 2. While four clients insert, update keys, delete and roll back.
my @scripts = ([ 1, q{
	\set id random(1, 20000)
	\set n random(1, 1000000)
	DO $$
	BEGIN
		INSERT INTO r VALUES (:id, 'key ' || :n, :n / 8.0, 'new') ON CONFLICT (id) DO UPDATE SET n = r.n + 0.5;
		UPDATE r SET k = 'moved ' || :n WHERE id = :id + 1;
		DELETE FROM r WHERE id = :id + 2;
		BEGIN
			DELETE FROM r WHERE id BETWEEN :id AND :id + 20;
			RAISE division_by_zero;
		EXCEPTION WHEN division_by_zero THEN
		END;
	EXCEPTION WHEN unique_violation OR deadlock_detected THEN
	END $$;
} ]);

my $load = load_start($primary, scripts => \@scripts, seconds => 12);
my $done = 0;
foreach my $try (1 .. 6)
{
	my ($ret, $out, $err) = $primary->psql('postgres', $try % 2 ? 'REPACK (CONCURRENTLY) r' : 'REPACK (CONCURRENTLY) r USING INDEX r_pkey');
	# A user would repeat REPACK after a deadlock or a similar error.
	diag($err) if $ret != 0;
	$done++ if $ret == 0;
}
load_stop($load);
cmp_ok($done, '>', 0, 'REPACK CONCURRENTLY succeeds under load');
check_clean($primary, 'indexes are sound after REPACK CONCURRENTLY under load');
catch_up($primary, $standby);
is(rows_of($standby), rows_of($primary), 'the standby has the same rows');
check_clean($standby, "the standby's indexes are sound after REPACK CONCURRENTLY");

# 3. The server is killed midway, repeatedly.
foreach my $try (1 .. 5)
{
	$load = load_start($primary, scripts => \@scripts, seconds => 30);
	my $session = $primary->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/begun/, "\\echo begun\nREPACK (CONCURRENTLY) r;\n");
	select(undef, undef, undef, 0.15 * $try);
	kill_postmaster($primary);
	load_stop($load);
	eval { $session->quit };
	$primary->start;
	check_clean($primary, "indexes are sound after kill $try in REPACK CONCURRENTLY");
}
my ($ret, $out, $err) = $primary->psql('postgres', 'REPACK (CONCURRENTLY) r');
is($ret, 0, 'REPACK CONCURRENTLY succeeds after the kills') or diag($err);
check_clean($primary, 'indexes are sound after the REPACK that follows the kills');
catch_up($primary, $standby);
is(rows_of($standby), rows_of($primary), 'the standby has the same rows after the kills');
check_clean($standby, "the standby's indexes are sound after the kills");

$standby->stop;
$primary->stop;
done_testing();
